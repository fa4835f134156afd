/* A program of TCP sockets, which knows nothing of RDMA: an echo server, and a client of it, each a thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOTAL (16u << 20)

#define CHECK(what)                                                                                                    \
	do {                                                                                                           \
		if (!(what)) {                                                                                         \
			fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #what, strerror(errno));       \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static struct sockaddr_in address;

static void *serve(void *arg)
{
	int listener = *(int *)arg, s = accept(listener, NULL, NULL);
	static char buffer[30000];
	ssize_t n;

	CHECK(s >= 0);
	while ((n = recv(s, buffer, sizeof(buffer), 0)) > 0)
		for (ssize_t sent = 0; sent < n;) {
			ssize_t more = send(s, buffer + sent, (size_t)(n - sent), 0);

			CHECK(more > 0);
			sent += more;
		}
	CHECK(n == 0);
	CHECK(!shutdown(s, SHUT_WR));
	CHECK(!close(s));
	return NULL;
}

static uint8_t octet(size_t at)
{
	return (uint8_t)(at * 2654435761u >> 13);
}

int main(void)
{
	static uint8_t out[20000], in[20000];
	socklen_t length = sizeof(address);
	struct pollfd p;
	pthread_t server;
	size_t sent = 0, got = 0;
	int listener = socket(AF_INET, SOCK_STREAM, 0), s, one = 1;

	address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	CHECK(listener >= 0);
	CHECK(!bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!listen(listener, 5));
	CHECK(!getsockname(listener, (struct sockaddr *)&address, &length));
	CHECK(!pthread_create(&server, NULL, serve, &listener));
	s = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(s, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	CHECK(!fcntl(s, F_SETFL, O_NONBLOCK));
	while (got < TOTAL) {
		p = (struct pollfd){.fd = s, .events = (short)(POLLIN | (sent < TOTAL ? POLLOUT : 0))};
		CHECK(poll(&p, 1, 10000) == 1);
		if (p.revents & POLLOUT) {
			size_t n = TOTAL - sent < sizeof(out) ? TOTAL - sent : sizeof(out);
			ssize_t done;

			for (size_t i = 0; i < n; i++)
				out[i] = octet(sent + i);
			done = write(s, out, n);
			CHECK(done > 0 || errno == EAGAIN);
			sent += done > 0 ? (size_t)done : 0;
			if (sent == TOTAL)
				CHECK(!shutdown(s, SHUT_WR));
		}
		if (p.revents & POLLIN) {
			ssize_t n = read(s, in, sizeof(in));

			CHECK(n > 0);
			for (ssize_t i = 0; i < n; i++)
				CHECK(in[i] == octet(got + (size_t)i));
			got += (size_t)n;
		}
	}
	CHECK(!fcntl(s, F_SETFL, 0));
	CHECK(read(s, in, 1) == 0);
	CHECK(!close(s));
	CHECK(!pthread_join(server, NULL));
	CHECK(!close(listener));
	return 0;
}
