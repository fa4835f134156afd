/* Options and flags of rsockets. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>

#include "rsocket.h"

enum {
	LEAST_BUFFER = 4096,
	MOST_BUFFER = 64 << 20,
	LEAST_QUEUE = 16,
	MOST_QUEUE = 16384,
	MOST_INLINE = 1024,
};

const struct rs_settings rs_defaults = {
	.sndbuf = 128 << 10,
	.rcvbuf = 128 << 10,
	.sq = 384,
	.rq = 384,
	.inline_data = 64,
	.keepidle = 7200,
};

static uint32_t between(int value, uint32_t least, uint32_t most)
{
	if (value < 0 || (uint32_t)value < least)
		return least;
	return (uint32_t)value > most ? most : (uint32_t)value;
}

/* An option that is a number. */
struct number {
	int level, name;
	size_t at;         /* in rs_settings */
	uint32_t least, most;
	bool before; /* it can't be changed once there are buffers and queues */
};

#define NUMBER(level, name, member, least, most, before)                                                               \
	{level, name, offsetof(struct rs_settings, member), least, most, before}

static const struct number numbers[] = {
	NUMBER(SOL_SOCKET, SO_SNDBUF, sndbuf, LEAST_BUFFER, MOST_BUFFER, true),
	NUMBER(SOL_SOCKET, SO_RCVBUF, rcvbuf, LEAST_BUFFER, MOST_BUFFER, true),
	NUMBER(SOL_SOCKET, SO_REUSEADDR, reuse, 0, 1, false),
	NUMBER(SOL_SOCKET, SO_KEEPALIVE, keepalive, 0, 1, false),
	NUMBER(SOL_SOCKET, SO_OOBINLINE, oobinline, 0, 1, false),
	NUMBER(IPPROTO_TCP, TCP_NODELAY, nodelay, 0, 1, false),
	NUMBER(IPPROTO_TCP, TCP_KEEPIDLE, keepidle, 1, 32767, false),
	NUMBER(IPPROTO_IPV6, IPV6_V6ONLY, v6only, 0, 1, false),
	NUMBER(SOL_RDMA, RDMA_SQSIZE, sq, LEAST_QUEUE, MOST_QUEUE, true),
	NUMBER(SOL_RDMA, RDMA_RQSIZE, rq, LEAST_QUEUE, MOST_QUEUE, true),
	NUMBER(SOL_RDMA, RDMA_INLINE, inline_data, 0, MOST_INLINE, true),
	NUMBER(SOL_RDMA, RDMA_IOMAPSIZE, mappings, 0, RS_MOST_MAPPINGS, true),
};

static const struct number *find(int level, int name)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].level == level && numbers[i].name == name)
			return &numbers[i];
	return NULL;
}

/* On the wire, numbers of mappings above 128 are in units of 256; halves are equal, so a ring is even. */
static uint32_t adjusted(const struct number *n, uint32_t value)
{
	if (n->at == offsetof(struct rs_settings, mappings) && value > 128)
		return (value + 255) & ~255u;
	if (n->at == offsetof(struct rs_settings, rcvbuf))
		return (value + 1) & ~1u;
	return value;
}

/* The queue pair and its buffers are made when the route is there. */
static bool has_buffers(const struct rsocket *rs)
{
	return rs->state != RS_NEW && rs->state != RS_LISTENING && rs->state != RS_FAILED;
}

static int set_option(struct rsocket *rs, int level, int name, const void *value, socklen_t len)
{
	const struct number *n = find(level, name);
	uint32_t v;
	int given;

	if (level == SOL_SOCKET && name == SO_LINGER) {
		if (len < sizeof(rs->set.linger))
			return EINVAL;
		memcpy(&rs->set.linger, value, sizeof(rs->set.linger));
		return 0;
	}
	if (level == IPPROTO_TCP && name == TCP_MAXSEG)
		return 0;
	if (!n)
		return ENOPROTOOPT;
	if (len < sizeof(given))
		return EINVAL;
	memcpy(&given, value, sizeof(given));
	if (n->before && has_buffers(rs))
		return level == SOL_SOCKET ? 0 : EINVAL; /* a buffer's size is a wish, as ever */
	if (n->most == 1)
		given = given != 0;
	v = adjusted(n, between(given, n->least, n->most));
	memcpy((char *)&rs->set + n->at, &v, sizeof(v));
	return 0;
}

URNIC_EXPORT int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rsocket *rs;
	int err;

	if (rs_is_datagram(socket) && rs_of_system(level))
		return setsockopt(socket, level, optname, optval, optlen);
	rs = rs_any(socket);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = optval ? set_option(rs, level, optname, optval, optlen) : EFAULT;
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err ? urnic_minus(err) : 0;
}

/* What is no setting but a fact: whether there is such an option. */
static bool fact(struct rsocket *rs, int level, int name, int *out)
{
	if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
		*out = RS_MOST_WRITE;
		return true;
	}
	if (level != SOL_SOCKET)
		return false;
	switch (name) {
	case SO_ERROR:
		*out = rs->error;
		rs->error = 0;
		return true;
	case SO_TYPE:
		*out = SOCK_STREAM;
		return true;
	case SO_DOMAIN:
		*out = rs->domain;
		return true;
	case SO_PROTOCOL:
		*out = IPPROTO_TCP;
		return true;
	case SO_ACCEPTCONN:
		*out = rs->state == RS_LISTENING;
		return true;
	default:
		return false;
	}
}

static int get_option(struct rsocket *rs, int level, int name, void *value, socklen_t *len)
{
	const struct number *n = find(level, name);
	const void *from;
	socklen_t all = sizeof(int);
	int number;

	if (!rs->datagram)
		rs_process(rs);
	if (level == SOL_SOCKET && name == SO_LINGER) {
		from = &rs->set.linger;
		all = sizeof(rs->set.linger);
	} else if (n) {
		from = (const char *)&rs->set + n->at;
	} else if (fact(rs, level, name, &number)) {
		from = &number;
	} else {
		return ENOPROTOOPT;
	}
	if (*len > all)
		*len = all;
	memcpy(value, from, *len);
	return 0;
}

URNIC_EXPORT int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rsocket *rs;
	int err;

	if (rs_is_datagram(socket) && rs_of_system(level))
		return getsockopt(socket, level, optname, optval, optlen);
	rs = rs_any(socket);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = optval && optlen ? get_option(rs, level, optname, optval, optlen) : EFAULT;
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err ? urnic_minus(err) : 0;
}

URNIC_EXPORT int rfcntl(int socket, int cmd, ...)
{
	struct rsocket *rs = rs_any(socket);
	int result = 0, arg = 0;
	va_list args;

	if (!rs)
		return -1;
	if (cmd == F_SETFL || cmd == F_SETFD) {
		va_start(args, cmd);
		arg = va_arg(args, int);
		va_end(args);
	}
	pthread_mutex_lock(&rs->lock);
	switch (cmd) {
	case F_GETFL:
		if (rs->datagram)
			result = fcntl(rs->number, F_GETFL);
		else
			result = O_RDWR | (rs->nonblocking ? O_NONBLOCK : 0);
		break;
	case F_SETFL:
		rs->nonblocking = arg & O_NONBLOCK;
		if (rs->datagram)
			result = fcntl(rs->number, F_SETFL, arg);
		break;
	case F_GETFD:
		result = fcntl(rs->number, F_GETFD);
		break;
	case F_SETFD:
		result = fcntl(rs->number, F_SETFD, arg);
		break;
	default:
		result = urnic_minus(EINVAL);
	}
	pthread_mutex_unlock(&rs->lock);
	int err = errno;
	rs_put(rs);
	errno = err;
	return result;
}
