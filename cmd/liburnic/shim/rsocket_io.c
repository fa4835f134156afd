/* Sending and receiving. */
#include <limits.h>
#include <string.h>

#include "rsocket.h"

/* There are no urgent data. Other flags than MSG_DONTWAIT, MSG_PEEK and MSG_WAITALL change nothing, as on Linux. */
#define REFUSED_FLAGS (MSG_OOB | MSG_ERRQUEUE)

/* The bytes of a list of buffers, or -1. */
static ssize_t total(const struct iovec *iov, size_t n)
{
	size_t sum = 0;

	if (n > IOV_MAX || (n && !iov))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (iov[i].iov_len > (size_t)SSIZE_MAX - sum)
			return -1;
		sum += iov[i].iov_len;
	}
	return (ssize_t)sum;
}

/* The rest of the buffer that a cursor is in, at most length; it moves behind that. */
static void *advance(struct rs_cursor *c, size_t *length)
{
	uint8_t *at;

	while (c->skip == c->iov->iov_len) {
		c->iov++;
		c->skip = 0;
	}
	if (*length > c->iov->iov_len - c->skip)
		*length = c->iov->iov_len - c->skip;
	at = (uint8_t *)c->iov->iov_base + c->skip;
	c->skip += *length;
	return at;
}

/* Copies into the outbox and sends: what there is room for. */
static size_t send_some(struct rsocket *rs, struct rs_cursor *c, size_t length)
{
	size_t sent = 0;
	uint32_t room;

	while (sent < length && (room = rs_room(rs))) {
		uint32_t part = length - sent < room ? (uint32_t)(length - sent) : room;

		for (size_t done = 0; done < part;) {
			size_t n = part - done;
			const void *from = advance(c, &n);

			memcpy(rs->outbox + rs->outbox_at + done, from, n);
			done += n;
		}
		rs_send_data(rs, part);
		sent += part;
	}
	return sent;
}

/* Whether what is sent can't be: an errno. */
static int cannot_send(const struct rsocket *rs)
{
	if (rs->closed)
		return EBADF;
	switch (rs->state) {
	case RS_CONNECTED:
		if (!rs->out_over)
			return 0;
		return rs->error ? rs->error : rs->dead || rs->in_over ? ECONNRESET : EPIPE;
	case RS_CONNECTING:
	case RS_RESOLVING:
	case RS_ACCEPTING:
		return 0;
	case RS_FAILED:
		return rs->error ? rs->error : ENOTCONN;
	default:
		return ENOTCONN;
	}
}

static ssize_t send_all(struct rsocket *rs, const struct iovec *iov, size_t n, int flags)
{
	struct rs_cursor c = {iov, n, 0};
	ssize_t length = total(iov, n);
	size_t sent = 0;
	int err = 0;

	if (length < 0)
		return urnic_minus(EINVAL);
	if (flags & REFUSED_FLAGS)
		return urnic_minus(EOPNOTSUPP);
	for (;;) {
		rs_process(rs);
		err = cannot_send(rs);
		if (err)
			break;
		if (rs->state == RS_CONNECTED)
			sent += send_some(rs, &c, (size_t)length - sent);
		if (sent == (size_t)length)
			return length;
		if (rs->out_over)
			continue; /* and say why */
		if (rs->nonblocking || (flags & MSG_DONTWAIT)) {
			err = EAGAIN;
			break;
		}
		if (rs_wait(rs, POLLOUT)) {
			err = errno;
			break;
		}
	}
	return sent ? (ssize_t)sent : urnic_minus(err);
}

/* Copies what has come. It stays there if it is only peeked at. */
static size_t receive_some(struct rsocket *rs, struct rs_cursor *c, size_t length, bool peek)
{
	size_t got = 0;

	while (got < length && (peek ? got < rs->in_ready : rs->in_ready > 0)) {
		size_t n = length - got;
		void *to;

		if (n > rs->in_ready - (peek ? got : 0))
			n = rs->in_ready - (peek ? got : 0);
		to = advance(c, &n);
		rs_read(rs, to, (uint32_t)n, peek ? (uint32_t)got : 0);
		if (!peek)
			rs_consume(rs, (uint32_t)n);
		got += n;
	}
	return got;
}

/* Whether nothing more can be received: 1 at the end of the stream, or an errno below 0. */
static int cannot_receive(const struct rsocket *rs)
{
	if (rs->closed)
		return -EBADF;
	switch (rs->state) {
	case RS_CONNECTED:
		if (rs->in_over || rs->in_shut)
			return 1;
		if (rs->drained)
			return rs->error ? -rs->error : -ECONNRESET;
		return 0;
	case RS_CONNECTING:
	case RS_RESOLVING:
	case RS_ACCEPTING:
		return 0;
	case RS_FAILED:
		return rs->error ? -rs->error : -ENOTCONN;
	default:
		return -ENOTCONN;
	}
}

static ssize_t receive(struct rsocket *rs, const struct iovec *iov, size_t n, int flags)
{
	struct rs_cursor c = {iov, n, 0};
	ssize_t length = total(iov, n);
	bool peek = flags & MSG_PEEK;
	size_t got = 0;
	int over;

	if (length < 0)
		return urnic_minus(EINVAL);
	if (flags & REFUSED_FLAGS)
		return urnic_minus(EOPNOTSUPP);
	for (;;) {
		if (!rs->in_ready || (size_t)length > rs->in_ready)
			rs_process(rs);
		got += receive_some(rs, &c, (size_t)length - got, peek);
		if (got && (peek || !(flags & MSG_WAITALL) || got == (size_t)length))
			return (ssize_t)got;
		over = cannot_receive(rs);
		if (over || !length)
			break;
		if (rs->nonblocking || (flags & MSG_DONTWAIT)) {
			over = -EAGAIN;
			break;
		}
		if (rs_wait(rs, POLLIN)) {
			over = -errno;
			break;
		}
	}
	if (got || over >= 0)
		return (ssize_t)got;
	return urnic_minus(-over);
}

/* One call of either kind. */
static ssize_t run(int socket, ssize_t (*call)(struct rsocket *, const struct iovec *, size_t, int),
		   const struct iovec *iov, size_t n, int flags)
{
	struct rsocket *rs = rs_get(socket);
	ssize_t result;
	int err;

	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	result = call(rs, iov, n, flags);
	err = errno;
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	errno = err;
	return result;
}

URNIC_EXPORT ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	if (rs_is_datagram(socket))
		return send(socket, buf, len, flags);
	return run(socket, send_all, &iov, 1, flags);
}

/* The address of a stream is that of its connection: another one is ignored, as by TCP. */
URNIC_EXPORT ssize_t rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dest_addr,
			     socklen_t addrlen)
{
	if (rs_is_datagram(socket))
		return sendto(socket, buf, len, flags, dest_addr, addrlen);
	return rsend(socket, buf, len, flags);
}

URNIC_EXPORT ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (!msg)
		return urnic_minus(EFAULT);
	if (rs_is_datagram(socket))
		return sendmsg(socket, msg, flags);
	if (msg->msg_control && msg->msg_controllen)
		return urnic_minus(EOPNOTSUPP);
	return run(socket, send_all, msg->msg_iov, msg->msg_iovlen, flags);
}

URNIC_EXPORT ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

URNIC_EXPORT ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	if (rs_is_datagram(socket))
		return writev(socket, iov, iovcnt);
	return iovcnt < 0 ? urnic_minus(EINVAL) : run(socket, send_all, iov, (size_t)iovcnt, 0);
}

URNIC_EXPORT ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	const struct iovec iov = {buf, len};

	if (rs_is_datagram(socket))
		return recv(socket, buf, len, flags);
	return run(socket, receive, &iov, 1, flags);
}

URNIC_EXPORT ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
			       socklen_t *addrlen)
{
	ssize_t n;

	if (rs_is_datagram(socket))
		return recvfrom(socket, buf, len, flags, src_addr, addrlen);
	n = rrecv(socket, buf, len, flags);
	if (n >= 0 && src_addr && addrlen && rgetpeername(socket, src_addr, addrlen))
		*addrlen = 0;
	return n;
}

URNIC_EXPORT ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	ssize_t n;

	if (!msg)
		return urnic_minus(EFAULT);
	if (rs_is_datagram(socket))
		return recvmsg(socket, msg, flags);
	n = run(socket, receive, msg->msg_iov, msg->msg_iovlen, flags);
	if (n >= 0) {
		msg->msg_namelen = 0;
		msg->msg_controllen = 0;
		msg->msg_flags = 0;
	}
	return n;
}

URNIC_EXPORT ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecv(socket, buf, count, 0);
}

URNIC_EXPORT ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	if (rs_is_datagram(socket))
		return readv(socket, iov, iovcnt);
	return iovcnt < 0 ? urnic_minus(EINVAL) : run(socket, receive, iov, (size_t)iovcnt, 0);
}
