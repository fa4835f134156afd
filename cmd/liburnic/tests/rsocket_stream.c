/* What goes through connected rsockets arrives, in both directions at once, by all calls; and how they end. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "rsocket_pair.h"

struct way {
	int socket;
	size_t total, at_once;
};

static void *sends(void *arg)
{
	struct way *w = arg;

	rs_send_stream(w->socket, 0, w->total, w->at_once);
	OK(rshutdown(w->socket, SHUT_WR));
	return NULL;
}

static void *receives(void *arg)
{
	struct way *w = arg;
	char more;

	rs_want_stream(w->socket, 0, w->total, w->at_once);
	EQ(rrecv(w->socket, &more, 1, 0), 0);
	return NULL;
}

/* Four threads, two for each rsocket. */
static void both_ways(const struct rs_plan *plan, size_t total, size_t at_once)
{
	pthread_t threads[4];
	int a, b;

	rs_pair(&a, &b, plan);
	struct way ways[4] = {{a, total, at_once}, {b, total, at_once / 2 + 1}, {a, total, at_once / 3 + 1}, {b, total, at_once + 7}};
	for (int i = 0; i < 4; i++)
		OK(pthread_create(&threads[i], NULL, i < 2 ? sends : receives, &ways[i]));
	for (int i = 0; i < 4; i++)
		OK(pthread_join(threads[i], NULL));
	OK(rclose(a));
	OK(rclose(b));
}

static void by_all_calls(void)
{
	uint8_t in[12], out[12] = "0123456789a";
	struct iovec parts[3] = {{out, 5}, {out + 5, 0}, {out + 5, 7}}, places[2] = {{in, 4}, {in + 4, 8}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3}, got = {.msg_iov = places, .msg_iovlen = 2};
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	int a, b, n;

	rs_pair(&a, &b, &(struct rs_plan){0});
	for (int i = 0; i < 5; i++) {
		memset(in, 0, sizeof(in));
		switch (i) {
		case 0:
			EQ(rwritev(a, parts, 3), 12);
			EQ(rrecv(b, in, 12, MSG_WAITALL), 12);
			break;
		case 1:
			EQ(rsendmsg(a, &message, 0), 12);
			EQ(rrecvmsg(b, &got, MSG_WAITALL), 12);
			break;
		case 2:
			EQ(rsendto(a, out, 12, 0, NULL, 0), 12);
			EQ(rrecvfrom(b, in, 12, MSG_PEEK | MSG_WAITALL, (struct sockaddr *)&from, &length), 12);
			EQ(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
			EQ(memcmp(in, out, 12), 0);
			memset(in, 0, sizeof(in));
			EQ(rreadv(b, places, 2), 12);
			break;
		case 3:
			EQ(rwrite(a, out, 12), 12);
			EQ(rread(b, in, 3), 3);
			EQ(rread(b, in + 3, 9), 9);
			break;
		default:
			for (n = 0; n < 12; n++)
				EQ(rsend(a, out + n, 1, MSG_NOSIGNAL), 1);
			EQ(rrecv(b, in, 12, MSG_WAITALL), 12);
		}
		EQ(memcmp(in, out, 12), 0);
	}
	FAILS((int)rrecv(b, in, 1, MSG_DONTWAIT), EAGAIN);
	FAILS((int)rrecv(b, in, 1, MSG_OOB), EOPNOTSUPP);
	FAILS((int)rsend(b, in, 1, MSG_OOB), EOPNOTSUPP);
	EQ(rrecv(b, in, 0, 0), 0);
	EQ(rsend(b, in, 0, 0), 0);
	OK(rclose(a));
	OK(rclose(b));
}

/* Who is not read from can send no more than the buffers hold, and continues when it is. */
static void full(void)
{
	struct pollfd p;
	size_t sent = 0;
	int a, b, stuck = 0;
	uint8_t octets[1000];

	rs_pair(&a, &b, &(struct rs_plan){.buffer = 65536, .queue = 16});
	while (stuck < 3) {
		ssize_t n;

		for (size_t i = 0; i < sizeof(octets); i++)
			octets[i] = rs_octet(sent + i);
		n = rsend(a, octets, sizeof(octets), MSG_DONTWAIT);
		if (n > 0) {
			sent += (size_t)n;
			stuck = 0;
		} else {
			int error = errno;

			EQ(n, -1);
			EQ(error, EAGAIN);
			/* The peer grants messages in its calls only. */
			p = (struct pollfd){.fd = b, .events = POLLIN};
			EQ(rpoll(&p, 1, PATIENCE_MS), 1);
			p = (struct pollfd){.fd = a, .events = POLLOUT};
			stuck += rpoll(&p, 1, 100) == 0;
		}
		CHECK(sent <= 65536);
	}
	EQ(sent, 65536);
	rs_want_stream(b, 0, sent, 5000);
	p = (struct pollfd){.fd = a, .events = POLLOUT};
	EQ(rpoll(&p, 1, PATIENCE_MS), 1);
	EQ(p.revents, POLLOUT);
	rs_send_stream(a, sent, 30000, 30000);
	rs_want_stream(b, sent, 30000, 1);
	OK(rclose(a));
	OK(rclose(b));
}

static void half_closed(void)
{
	struct pollfd p;
	char c = 'x';
	int a, b;

	rs_pair(&a, &b, &(struct rs_plan){0});
	EQ(rsend(a, "last", 4, 0), 4);
	OK(rshutdown(a, SHUT_WR));
	FAILS((int)rsend(a, &c, 1, 0), EPIPE);
	p = (struct pollfd){.fd = b, .events = POLLIN | POLLRDHUP};
	do
		EQ(rpoll(&p, 1, PATIENCE_MS), 1);
	while (!(p.revents & POLLRDHUP));
	EQ(p.revents, POLLIN | POLLRDHUP);
	for (int i = 0; i < 4; i++)
		EQ(rrecv(b, &c, 1, 0), 1);
	EQ(c, 't');
	EQ(rrecv(b, &c, 1, 0), 0);
	rs_send_stream(b, 0, 300000 / 3, 1000); /* the other way is open */
	rs_want_stream(a, 0, 300000 / 3, 1000);
	OK(rshutdown(b, SHUT_WR));
	EQ(rrecv(a, &c, 1, 0), 0);
	p = (struct pollfd){.fd = a, .events = POLLIN};
	EQ(rpoll(&p, 1, PATIENCE_MS), 1);
	CHECK(p.revents & POLLHUP);
	OK(rclose(b));
	OK(rclose(a));
}

/* What was sent before a close arrives, whatever comes the other way. */
static void closed(void)
{
	char c;
	int a, b;

	rs_pair(&a, &b, &(struct rs_plan){0});
	rs_send_stream(a, 0, 60000, 60000);
	EQ(rsend(b, "unread", 6, 0), 6);
	OK(rclose(a));
	FAILS(rclose(a), EBADF);
	rs_want_stream(b, 0, 60000, 777);
	EQ(rrecv(b, &c, 1, 0), 0);
	FAILS((int)rsend(b, &c, 1, 0), ECONNRESET);
	OK(rclose(b));
}

/* An abortive close is no end of a stream. */
static void reset(void)
{
	struct linger now = {1, 0};
	struct pollfd p;
	char c;
	int a, b, error = 0;
	socklen_t length = sizeof(error);

	rs_pair(&a, &b, &(struct rs_plan){0});
	OK(rsetsockopt(a, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	OK(rclose(a));
	p = (struct pollfd){.fd = b, .events = POLLIN};
	EQ(rpoll(&p, 1, PATIENCE_MS), 1);
	CHECK((p.revents & (POLLIN | POLLHUP | POLLERR)) == (POLLIN | POLLHUP | POLLERR));
	OK(rgetsockopt(b, SOL_SOCKET, SO_ERROR, &error, &length));
	EQ(error, ECONNRESET);
	FAILS((int)rrecv(b, &c, 1, 0), ECONNRESET);
	FAILS((int)rsend(b, &c, 1, 0), ECONNRESET);
	OK(rclose(b));
}

static void *shuts(void *arg)
{
	OK(rshutdown(*(int *)arg, SHUT_RD));
	return NULL;
}

static void caught(int signal)
{
	(void)signal;
}

static bool interrupted;

static void *interrupts(void *arg)
{
	while (!__atomic_load_n(&interrupted, __ATOMIC_ACQUIRE)) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		sched_yield();
	}
	return NULL;
}

/* A call that waits ends when another thread shuts the rsocket down, or when a signal is caught. */
static void woken(void)
{
	struct sigaction act = {.sa_handler = caught};
	pthread_t thread, self = pthread_self();
	char c;
	int a, b;

	rs_pair(&a, &b, &(struct rs_plan){0});
	OK(sigaction(SIGUSR1, &act, NULL));
	OK(pthread_create(&thread, NULL, interrupts, &self));
	FAILS((int)rrecv(a, &c, 1, 0), EINTR);
	__atomic_store_n(&interrupted, true, __ATOMIC_RELEASE);
	OK(pthread_join(thread, NULL));
	OK(pthread_create(&thread, NULL, shuts, &a));
	EQ(rrecv(a, &c, 1, 0), 0);
	OK(pthread_join(thread, NULL));
	OK(rclose(a));
	OK(rclose(b));
}

int main(void)
{
	both_ways(&(struct rs_plan){0}, 16 << 20, 100000);
	both_ways(&(struct rs_plan){.buffer = 4096, .queue = 16}, 1 << 20, 3000);
	by_all_calls();
	full();
	half_closed();
	closed();
	reset();
	woken();
	return 0;
}
