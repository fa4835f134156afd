/* Rsockets by themselves: what is none, options, names, connecting and what prevents it, many at once. */
#include <fcntl.h>
#include <netinet/tcp.h>

#include "rsocket_pair.h"

/* No descriptor is an rsocket, whatever else it is; but rpoll and rselect take others, too. */
static void others(void)
{
	struct sockaddr_in sin = loopback(0);
	socklen_t length = sizeof(sin);
	uint8_t buffer[8];
	struct iovec iov = {buffer, sizeof(buffer)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	struct timeval now = {0};
	struct pollfd p;
	fd_set set;
	int pipes[2], value = 0;

	FAILS(rsocket(AF_INET, SOCK_RAW, 0), EOPNOTSUPP);
	FAILS(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
	OK(pipe(pipes));
	FAILS(rbind(pipes[0], (struct sockaddr *)&sin, length), EBADF);
	FAILS(rlisten(pipes[0], 1), EBADF);
	FAILS(raccept(pipes[0], (struct sockaddr *)&sin, &length), EBADF);
	FAILS(rconnect(pipes[0], (struct sockaddr *)&sin, length), EBADF);
	FAILS(rshutdown(pipes[0], SHUT_RDWR), EBADF);
	FAILS(rclose(pipes[0]), EBADF);
	FAILS((int)rrecv(pipes[0], buffer, sizeof(buffer), 0), EBADF);
	FAILS((int)rrecvfrom(pipes[0], buffer, sizeof(buffer), 0, NULL, NULL), EBADF);
	FAILS((int)rrecvmsg(pipes[0], &message, 0), EBADF);
	FAILS((int)rsend(pipes[1], buffer, sizeof(buffer), 0), EBADF);
	FAILS((int)rsendto(pipes[1], buffer, sizeof(buffer), 0, NULL, 0), EBADF);
	FAILS((int)rsendmsg(pipes[1], &message, 0), EBADF);
	FAILS((int)rread(pipes[0], buffer, sizeof(buffer)), EBADF);
	FAILS((int)rreadv(pipes[0], &iov, 1), EBADF);
	FAILS((int)rwrite(pipes[1], buffer, sizeof(buffer)), EBADF);
	FAILS((int)rwritev(pipes[1], &iov, 1), EBADF);
	FAILS(rgetpeername(pipes[0], (struct sockaddr *)&sin, &length), EBADF);
	FAILS(rgetsockname(pipes[0], (struct sockaddr *)&sin, &length), EBADF);
	FAILS(rsetsockopt(pipes[0], SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), EBADF);
	length = sizeof(value);
	FAILS(rgetsockopt(pipes[0], SOL_RDMA, RDMA_SQSIZE, &value, &length), EBADF);
	FAILS(rfcntl(pipes[0], 3 /* F_GETFL */), EBADF);
	FAILS((int)riomap(pipes[0], buffer, sizeof(buffer), PROT_WRITE, 0, -1), EBADF);
	FAILS(riounmap(pipes[0], buffer, sizeof(buffer)), EBADF);
	FAILS((int)riowrite(pipes[0], buffer, sizeof(buffer), 0, 0), EBADF);

	p = (struct pollfd){.fd = pipes[0], .events = POLLIN};
	EQ(rpoll(&p, 1, 0), 0);
	EQ(write(pipes[1], "x", 1), 1);
	EQ(rpoll(&p, 1, PATIENCE_MS), 1);
	FD_ZERO(&set);
	FD_SET(pipes[0], &set);
	EQ(rselect(pipes[0] + 1, &set, NULL, NULL, &now), 1);
	CHECK(FD_ISSET(pipes[0], &set));
	close(pipes[0]);
	close(pipes[1]);
}

static int option(int s, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	OK(rgetsockopt(s, level, name, &value, &length));
	EQ(length, sizeof(value));
	return value;
}

static void options(void)
{
	static const struct {
		int level, name, usual, set, then;
	} all[] = {
		{SOL_SOCKET, SO_SNDBUF, 131072, 1, 4096},
		{SOL_SOCKET, SO_RCVBUF, 131072, 9999, 10000},
		{SOL_SOCKET, SO_REUSEADDR, 0, 7, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 0, 1, 1},
		{SOL_SOCKET, SO_OOBINLINE, 0, 1, 1},
		{IPPROTO_TCP, TCP_NODELAY, 0, 1, 1},
		{IPPROTO_IPV6, IPV6_V6ONLY, 0, 1, 1},
		{SOL_RDMA, RDMA_SQSIZE, 384, 1 << 30, 16384},
		{SOL_RDMA, RDMA_RQSIZE, 384, 1, 16},
		{SOL_RDMA, RDMA_INLINE, 64, 0, 0},
		{SOL_RDMA, RDMA_IOMAPSIZE, 0, 129, 256},
	};
	struct linger linger = {1, 3}, got = {0, 0};
	socklen_t length = sizeof(got);
	int s = rsocket(AF_INET6, SOCK_STREAM, IPPROTO_TCP), value = 1;

	CHECK(s >= 0);
	for (size_t i = 0; i < COUNT(all); i++) {
		EQ(option(s, all[i].level, all[i].name), all[i].usual);
		OK(rsetsockopt(s, all[i].level, all[i].name, &all[i].set, sizeof(int)));
		EQ(option(s, all[i].level, all[i].name), all[i].then);
	}
	EQ(option(s, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	EQ(option(s, SOL_SOCKET, SO_ERROR), 0);
	OK(rsetsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	OK(rgetsockopt(s, SOL_SOCKET, SO_LINGER, &got, &length));
	EQ(got.l_linger, 3);
	FAILS(rsetsockopt(s, SOL_SOCKET, SO_BROADCAST, &value, sizeof(value)), ENOPROTOOPT);
	FAILS(rsetsockopt(s, SOL_SOCKET, SO_SNDBUF, &value, 1), EINVAL);
	FAILS(rsetsockopt(s, SOL_SOCKET, SO_SNDBUF, NULL, 4), EFAULT);
	EQ(rfcntl(s, F_GETFL), O_RDWR);
	OK(rfcntl(s, F_SETFL, O_NONBLOCK));
	EQ(rfcntl(s, F_GETFL), O_RDWR | O_NONBLOCK);
	EQ(rfcntl(s, F_GETFD), FD_CLOEXEC);
	FAILS(rfcntl(s, F_GETLK), EINVAL);
	OK(rclose(s));
}

static void unconnected(void)
{
	struct sockaddr_in at, same;
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	socklen_t length = sizeof(same);
	int listener = rs_listener(&at), s = rsocket(AF_INET, SOCK_STREAM, 0);
	char c = 0;

	OK(rfcntl(listener, F_SETFL, O_NONBLOCK));
	FAILS(raccept(listener, NULL, NULL), EAGAIN);
	FAILS(raccept(s, NULL, NULL), EINVAL);
	FAILS((int)rsend(s, &c, 1, 0), ENOTCONN);
	FAILS((int)rrecv(s, &c, 1, 0), ENOTCONN);
	FAILS((int)rrecv(listener, &c, 1, 0), ENOTCONN);
	FAILS(rshutdown(s, SHUT_RDWR), ENOTCONN);
	FAILS(rgetpeername(s, (struct sockaddr *)&same, &length), ENOTCONN);
	FAILS((int)riomap(s, &c, 1, PROT_WRITE, 0, -1), ENOTCONN);
	FAILS((int)riowrite(s, &c, 1, 0, 0), ENOTCONN);
	FAILS(rconnect(s, (struct sockaddr *)&six, sizeof(six)), EAFNOSUPPORT);
	FAILS(rconnect(s, (struct sockaddr *)&at, 4), EINVAL);
	FAILS(rbind(s, (struct sockaddr *)&at, sizeof(at)), EADDRINUSE);
	OK(rclose(listener));
	FAILS(rconnect(s, (struct sockaddr *)&at, sizeof(at)), ECONNREFUSED); /* nobody listens any more */
	FAILS(rconnect(s, (struct sockaddr *)&at, sizeof(at)), ECONNREFUSED); /* and it can be tried again */
	OK(rclose(s));
}

/* Connects without waiting, and is refused: the poll and the option tell. */
static void refused(void)
{
	struct sockaddr_in at;
	struct pollfd p;
	int listener = rs_listener(&at), s = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	OK(rclose(listener));
	FAILS(rconnect(s, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
	p = (struct pollfd){.fd = s, .events = POLLOUT};
	EQ(rpoll(&p, 1, PATIENCE_MS), 1);
	CHECK(p.revents & POLLERR);
	EQ(option(s, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	EQ(option(s, SOL_SOCKET, SO_ERROR), 0);
	OK(rclose(s));
}

/* A peer of rdma_cm whose private data are no hello is rejected, and the listener continues. */
static void no_rsocket(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_conn_param param = {.private_data = "hello", .private_data_len = 5};
	struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct sockaddr_in at;
	struct rdma_cm_id *id;
	struct pollfd p;
	int listener = rs_listener(&at), s;

	OK(rdma_create_id(events, &id, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, 5000));
	cm_take(events, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(id, 5000));
	cm_take(events, RDMA_CM_EVENT_ROUTE_RESOLVED);
	OK(rdma_create_qp(id, NULL, &attr));
	OK(rdma_connect(id, &param));
	p = (struct pollfd){.fd = listener, .events = POLLIN};
	while (!is_readable(events->fd))
		EQ(rpoll(&p, 1, 10), 0);
	struct rdma_cm_event *event;
	OK(rdma_get_cm_event(events, &event));
	EQ(event->event, RDMA_CM_EVENT_REJECTED);
	OK(rdma_ack_cm_event(event));
	rdma_destroy_qp(id);
	OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(events);

	s = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FAILS(rconnect(s, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
	struct pollfd both[2] = {{.fd = s, .events = POLLOUT}, {.fd = listener, .events = POLLIN}};
	while (!both[1].revents)
		CHECK(rpoll(both, 2, PATIENCE_MS) > 0);
	FAILS(rconnect(s, (struct sockaddr *)&at, sizeof(at)), EALREADY);
	OK(rclose(s));
	OK(rclose(listener));
}

/* Names of both ends; rselect; many connections that one call waits for. */
static void many(void)
{
	enum { pairs = 20 };
	struct sockaddr_in mine, peers;
	socklen_t length;
	struct pollfd p[pairs];
	int a[pairs], b[pairs], most = 0;
	struct timeval wait = {10, 0};
	fd_set in, out;
	char c;

	for (int i = 0; i < pairs; i++) {
		rs_pair(&a[i], &b[i], &(struct rs_plan){.buffer = 8192, .queue = 16});
		p[i] = (struct pollfd){.fd = b[i], .events = POLLIN};
		most = b[i] > most ? b[i] : most;
		length = sizeof(mine);
		OK(rgetsockname(a[i], (struct sockaddr *)&mine, &length));
		length = sizeof(peers);
		OK(rgetpeername(b[i], (struct sockaddr *)&peers, &length));
		EQ(length, sizeof(peers));
		EQ(mine.sin_port, peers.sin_port);
	}
	EQ(rpoll(p, pairs, 0), 0);
	for (int i = pairs - 1; i >= 0; i--) {
		EQ(rsend(a[i], "x", 1, 0), 1);
		EQ(rpoll(p, pairs, PATIENCE_MS), 1);
		EQ(p[i].revents, POLLIN);
		FD_ZERO(&in);
		FD_ZERO(&out);
		for (int j = 0; j < pairs; j++)
			FD_SET(b[j], &in);
		FD_SET(b[0], &out);
		EQ(rselect(most + 1, &in, &out, NULL, &wait), 2);
		CHECK(FD_ISSET(b[i], &in) && FD_ISSET(b[0], &out));
		EQ(rrecv(b[i], &c, 1, 0), 1);
	}
	for (int i = 0; i < pairs; i++) {
		OK(rclose(a[i]));
		OK(rclose(b[i]));
	}
}

int main(void)
{
	others();
	options();
	unconnected();
	refused();
	no_rsocket();
	many();
	return 0;
}
