/* Rsockets of the type SOCK_DGRAM. */
#include <fcntl.h>
#include <netinet/tcp.h>

#include "rsocket_pair.h"

static struct sockaddr_in address(int socket)
{
	struct sockaddr_in at = {0};
	socklen_t length = sizeof(at);

	OK(rgetsockname(socket, (struct sockaddr *)&at, &length));
	EQ(length, sizeof(at));
	return at;
}

static int bound(int flags)
{
	struct sockaddr_in any = loopback(0);
	int s = rsocket(AF_INET, SOCK_DGRAM | flags, 0);

	CHECK(s >= 0);
	OK(rbind(s, (struct sockaddr *)&any, sizeof(any)));
	return s;
}

/* A datagram is one message, and says from where it comes. Neither side is connected. */
static void messages(int a, int b)
{
	struct sockaddr_in to = address(b), from = {0}, own = address(a);
	socklen_t length = sizeof(from);
	uint8_t buffer[100];
	struct iovec parts[2] = {{"two", 3}, {"parts", 5}}, all = {buffer, sizeof(buffer)};
	struct msghdr sent = {.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = parts, .msg_iovlen = 2};
	struct msghdr got = {.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &all, .msg_iovlen = 1};
	struct pollfd p = {.fd = b, .events = POLLIN};

	EQ(rpoll(&p, 1, 0), 0);
	EQ(rsendto(a, "first", 5, 0, (struct sockaddr *)&to, sizeof(to)), 5);
	EQ(rsendto(a, "second one", 10, 0, (struct sockaddr *)&to, sizeof(to)), 10);
	EQ(rpoll(&p, 1, PATIENCE_MS), 1);
	EQ(p.revents, POLLIN);
	EQ(rrecvfrom(b, buffer, sizeof(buffer), 0, (struct sockaddr *)&from, &length), 5);
	OK(memcmp(buffer, "first", 5));
	EQ(from.sin_port, own.sin_port);
	EQ(from.sin_addr.s_addr, own.sin_addr.s_addr);
	EQ(rrecv(b, buffer, 6, MSG_PEEK), 6);
	EQ(rrecv(b, buffer, 6, 0), 6); /* the rest of it is lost */
	OK(memcmp(buffer, "second", 6));
	FAILS((int)rrecv(b, buffer, sizeof(buffer), MSG_DONTWAIT), EAGAIN);
	EQ(rsendmsg(a, &sent, 0), 8);
	EQ(rrecvmsg(b, &got, 0), 8);
	OK(memcmp(buffer, "twoparts", 8));
	EQ(from.sin_port, own.sin_port);
}

/* One that is connected has a peer, and hears nobody else. */
static void connected(int a, int b)
{
	struct sockaddr_in to = address(b), peer = {0};
	struct iovec iov = {"xyz", 3};
	struct timeval now = {0}, soon = {.tv_sec = PATIENCE_MS / 1000};
	socklen_t length = sizeof(peer);
	int c = bound(SOCK_NONBLOCK);
	uint8_t buffer[16];
	fd_set set;

	FAILS((int)rsend(c, "x", 1, 0), EDESTADDRREQ);
	FAILS(rgetpeername(c, (struct sockaddr *)&peer, &length), ENOTCONN);
	OK(rconnect(c, (struct sockaddr *)&to, sizeof(to)));
	OK(rgetpeername(c, (struct sockaddr *)&peer, &length));
	EQ(peer.sin_port, to.sin_port);
	EQ(rwrite(c, "abc", 3), 3);
	EQ(rwritev(c, &iov, 1), 3);
	EQ(rread(b, buffer, sizeof(buffer)), 3);
	iov.iov_base = buffer;
	EQ(rreadv(b, &iov, 1), 3);
	OK(memcmp(buffer, "xyz", 3));
	peer = address(c);
	EQ(rsendto(a, "stranger", 8, 0, (struct sockaddr *)&peer, sizeof(peer)), 8);
	FD_ZERO(&set);
	FD_SET(c, &set);
	EQ(rselect(c + 1, &set, NULL, NULL, &now), 0);
	EQ(rsendto(b, "peer", 4, 0, (struct sockaddr *)&peer, sizeof(peer)), 4);
	FD_ZERO(&set);
	FD_SET(c, &set);
	EQ(rselect(c + 1, &set, NULL, NULL, &soon), 1);
	EQ(rrecv(c, buffer, sizeof(buffer), 0), 4);
	FAILS((int)rrecv(c, buffer, sizeof(buffer), 0), EAGAIN); /* it does not block */
	CHECK(rfcntl(c, F_GETFL) & O_NONBLOCK);
	OK(rfcntl(c, F_SETFL, 0));
	CHECK(!(rfcntl(c, F_GETFL) & O_NONBLOCK));
	OK(rshutdown(c, SHUT_RDWR));
	EQ(rrecv(c, buffer, sizeof(buffer), 0), 0);
	OK(rclose(c));
	FAILS(rclose(c), EBADF);
}

static void options(int a)
{
	int value = 1 << 16;
	socklen_t length = sizeof(value);

	OK(rsetsockopt(a, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)));
	OK(rgetsockopt(a, SOL_SOCKET, SO_RCVBUF, &value, &length));
	CHECK(value >= 1 << 16);
	OK(rgetsockopt(a, SOL_SOCKET, SO_TYPE, &value, &length));
	EQ(value, SOCK_DGRAM);
	value = 1;
	OK(rsetsockopt(a, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value))); /* of rsockets of either type */
	value = 100;
	OK(rsetsockopt(a, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)));
	value = 0;
	OK(rgetsockopt(a, SOL_RDMA, RDMA_SQSIZE, &value, &length));
	EQ(value, 100);
	FAILS(rsetsockopt(a, SOL_RDMA, 1234, &value, sizeof(value)), ENOPROTOOPT);
}

/* What only streams have. */
static void refused(int a)
{
	uint8_t buffer[8];

	FAILS(rlisten(a, 1), EOPNOTSUPP);
	FAILS(raccept(a, NULL, NULL), EOPNOTSUPP);
	FAILS((int)riomap(a, buffer, sizeof(buffer), PROT_WRITE, 0, -1), EOPNOTSUPP);
	FAILS(riounmap(a, buffer, sizeof(buffer)), EOPNOTSUPP);
	FAILS((int)riowrite(a, buffer, sizeof(buffer), 0, 0), EOPNOTSUPP);
	FAILS(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
	FAILS(rsocket(AF_UNIX, SOCK_DGRAM, 0), EAFNOSUPPORT);
}

/* Streams and datagrams in one rpoll. */
static void beside_streams(int a, int b)
{
	struct sockaddr_in to = address(b);
	struct pollfd p[2];
	uint8_t buffer[8];
	int one, other;

	rs_pair(&one, &other, &(struct rs_plan){0});
	p[0] = (struct pollfd){.fd = b, .events = POLLIN};
	p[1] = (struct pollfd){.fd = other, .events = POLLIN};
	EQ(rpoll(p, 2, 0), 0);
	EQ(rsendto(a, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
	EQ(rpoll(p, 2, PATIENCE_MS), 1);
	EQ(p[0].revents, POLLIN);
	EQ(p[1].revents, 0);
	EQ(rsend(one, "y", 1, 0), 1);
	do
		EQ(rpoll(&p[1], 1, PATIENCE_MS), 1);
	while (!(p[1].revents & POLLIN));
	EQ(rrecv(b, buffer, sizeof(buffer), 0), 1);
	EQ(rrecv(other, buffer, sizeof(buffer), 0), 1);
	OK(rclose(one));
	OK(rclose(other));
}

static void ipv6(void)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t length = sizeof(at);
	int s = rsocket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP);
	uint8_t buffer[8];

	CHECK(s >= 0);
	OK(rbind(s, (struct sockaddr *)&at, sizeof(at)));
	OK(rgetsockname(s, (struct sockaddr *)&at, &length));
	EQ(rsendto(s, "self", 4, 0, (struct sockaddr *)&at, sizeof(at)), 4);
	EQ(rrecv(s, buffer, sizeof(buffer), 0), 4);
	OK(rclose(s));
}

int main(void)
{
	int a = bound(0), b = bound(0);

	messages(a, b);
	connected(a, b);
	options(a);
	refused(a);
	beside_streams(a, b);
	ipv6();
	OK(rclose(a));
	OK(rclose(b));
	return 0;
}
