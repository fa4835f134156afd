/*
 * rsockets: there are none. A stream over our verbs would have to speak their protocol
 * to be of use; no descriptor is an rsocket, so rpoll and rselect, which programs call
 * for event channels, are poll(2) and select(2), and all others find no rsocket.
 */
#include <stdarg.h>
#include <sys/types.h>

#include <rdma/rsocket.h>

#include "shim.h"

URNIC_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

URNIC_EXPORT int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}

URNIC_EXPORT int rsocket(int domain, int type, int protocol)
{
	(void)domain, (void)type, (void)protocol;
	return urnic_minus(urnic_unsupported("rsocket: urnic has no rsockets: use verbs and rdma_cm, or sockets"));
}

/* The rest: the descriptor that they are given is none of theirs. */
#define NO_RSOCKET(type, name, params)                                                                                 \
	URNIC_EXPORT type name params                                                                                  \
	{                                                                                                              \
		return (type)urnic_minus(EBADF);                                                                       \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"
NO_RSOCKET(int, rbind, (int socket, const struct sockaddr *addr, socklen_t len))
NO_RSOCKET(int, rlisten, (int socket, int backlog))
NO_RSOCKET(int, raccept, (int socket, struct sockaddr *addr, socklen_t *len))
NO_RSOCKET(int, rconnect, (int socket, const struct sockaddr *addr, socklen_t len))
NO_RSOCKET(int, rshutdown, (int socket, int how))
NO_RSOCKET(int, rclose, (int socket))
NO_RSOCKET(ssize_t, rrecv, (int socket, void *buf, size_t len, int flags))
NO_RSOCKET(ssize_t, rrecvfrom, (int socket, void *buf, size_t len, int flags, struct sockaddr *from, socklen_t *flen))
NO_RSOCKET(ssize_t, rrecvmsg, (int socket, struct msghdr *msg, int flags))
NO_RSOCKET(ssize_t, rsend, (int socket, const void *buf, size_t len, int flags))
NO_RSOCKET(ssize_t, rsendto, (int socket, const void *buf, size_t len, int flags, const struct sockaddr *to,
			      socklen_t tlen))
NO_RSOCKET(ssize_t, rsendmsg, (int socket, const struct msghdr *msg, int flags))
NO_RSOCKET(ssize_t, rread, (int socket, void *buf, size_t len))
NO_RSOCKET(ssize_t, rreadv, (int socket, const struct iovec *iov, int n))
NO_RSOCKET(ssize_t, rwrite, (int socket, const void *buf, size_t len))
NO_RSOCKET(ssize_t, rwritev, (int socket, const struct iovec *iov, int n))
NO_RSOCKET(int, rgetpeername, (int socket, struct sockaddr *addr, socklen_t *len))
NO_RSOCKET(int, rgetsockname, (int socket, struct sockaddr *addr, socklen_t *len))
NO_RSOCKET(int, rsetsockopt, (int socket, int level, int name, const void *value, socklen_t len))
NO_RSOCKET(int, rgetsockopt, (int socket, int level, int name, void *value, socklen_t *len))
NO_RSOCKET(int, rfcntl, (int socket, int cmd, ...))
NO_RSOCKET(off_t, riomap, (int socket, void *buf, size_t len, int prot, int flags, off_t offset))
NO_RSOCKET(int, riounmap, (int socket, void *buf, size_t len))
NO_RSOCKET(size_t, riowrite, (int socket, const void *buf, size_t len, off_t offset, int flags))
