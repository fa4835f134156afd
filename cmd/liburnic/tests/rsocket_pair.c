#include "rsocket_pair.h"

#include <fcntl.h>

static void set(int socket, const struct rs_plan *plan)
{
	if (plan->buffer) {
		OK(rsetsockopt(socket, SOL_SOCKET, SO_SNDBUF, &plan->buffer, sizeof(int)));
		OK(rsetsockopt(socket, SOL_SOCKET, SO_RCVBUF, &plan->buffer, sizeof(int)));
	}
	if (plan->mappings)
		OK(rsetsockopt(socket, SOL_RDMA, RDMA_IOMAPSIZE, &plan->mappings, sizeof(int)));
	if (plan->queue) {
		OK(rsetsockopt(socket, SOL_RDMA, RDMA_SQSIZE, &plan->queue, sizeof(int)));
		OK(rsetsockopt(socket, SOL_RDMA, RDMA_RQSIZE, &plan->queue, sizeof(int)));
	}
}

int rs_listener(struct sockaddr_in *at)
{
	socklen_t length = sizeof(*at);
	int s = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(s >= 0);
	*at = loopback(0);
	OK(rbind(s, (struct sockaddr *)at, sizeof(*at)));
	OK(rlisten(s, 100));
	OK(rgetsockname(s, (struct sockaddr *)at, &length));
	CHECK(at->sin_port != 0);
	return s;
}

void rs_pair(int *a, int *b, const struct rs_plan *plan)
{
	struct sockaddr_in at;
	struct pollfd p[2];
	int listener = rs_listener(&at);

	set(listener, plan);
	*a = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	*b = -1;
	set(*a, plan);
	FAILS(rconnect(*a, (struct sockaddr *)&at, sizeof(at)), EINPROGRESS);
	p[0] = (struct pollfd){.fd = *a, .events = POLLOUT};
	p[1] = (struct pollfd){.fd = listener, .events = POLLIN};
	do {
		CHECK(rpoll(p, 2, PATIENCE_MS) > 0);
		if (p[1].revents) {
			EQ(p[1].revents, POLLIN);
			*b = raccept(listener, NULL, NULL);
			CHECK(*b >= 0);
		}
	} while (*b < 0 || !p[0].revents);
	EQ(p[0].revents, POLLOUT);
	OK(rfcntl(*a, F_SETFL, 0));
	OK(rclose(listener));
}

uint8_t rs_octet(uint64_t at)
{
	return (uint8_t)((at * 0x9e3779b97f4a7c15u) >> 56);
}

void rs_send_stream(int socket, uint64_t from, size_t length, size_t at_once)
{
	uint8_t *buffer = malloc(at_once);

	while (length) {
		size_t n = length < at_once ? length : at_once;
		ssize_t sent;

		for (size_t i = 0; i < n; i++)
			buffer[i] = rs_octet(from + i);
		sent = rsend(socket, buffer, n, 0);
		CHECK(sent > 0);
		from += (size_t)sent;
		length -= (size_t)sent;
	}
	free(buffer);
}

void rs_want_stream(int socket, uint64_t from, size_t length, size_t at_once)
{
	uint8_t *buffer = malloc(at_once);

	while (length) {
		ssize_t n = rrecv(socket, buffer, length < at_once ? length : at_once, 0);

		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			if (buffer[i] != rs_octet(from + (size_t)i))
				FAIL("the byte at %" PRIu64 " is another one", from + (size_t)i);
		from += (size_t)n;
		length -= (size_t)n;
	}
	free(buffer);
}
