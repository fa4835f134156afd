/* rsockets are not there; rpoll and rselect, which take other descriptors too, are. */
#include "test.h"

#include <rdma/rsocket.h>

int main(void)
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

	FAILS(rsocket(AF_INET, SOCK_STREAM, 0), EOPNOTSUPP);
	/* No descriptor is an rsocket, whatever else it is. */
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
	EQ(rpoll(&p, 1, 1000), 1);
	FD_ZERO(&set);
	FD_SET(pipes[0], &set);
	EQ(rselect(pipes[0] + 1, &set, NULL, NULL, &now), 1);
	CHECK(FD_ISSET(pipes[0], &set));
	close(pipes[0]);
	close(pipes[1]);
	return 0;
}
