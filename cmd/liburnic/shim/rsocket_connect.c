/* Rsockets from nothing to connected: by rdma_cm, whose private data are the two hellos. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "rsocket.h"

enum {
	RESOLVE_MS = 5000, /* for the address, and again for the route */
	MOST_REQUESTS = 1024,
};

static int new_channel(struct rsocket *rs)
{
	rs->events = rdma_create_event_channel();
	if (!rs->events)
		return errno;
	return fcntl(rs->events->fd, F_SETFL, fcntl(rs->events->fd, F_GETFL) | O_NONBLOCK) ? errno : 0;
}

int rs_new_id(struct rsocket *rs)
{
	int err = new_channel(rs);

	if (err)
		return err;
	return rdma_create_id(rs->events, &rs->id, rs, RDMA_PS_TCP) ? errno : 0;
}

URNIC_EXPORT int rsocket(int domain, int type, int protocol)
{
	struct rsocket *rs;
	int err, number;

	if (domain != AF_INET && domain != AF_INET6)
		return urnic_minus(EAFNOSUPPORT);
	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_DGRAM)
		return urnic_engine() ? rs_make_datagram(domain, type, protocol) : -1;
	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM)
		return urnic_minus(EOPNOTSUPP);
	if (protocol && protocol != IPPROTO_TCP)
		return urnic_minus(EPROTONOSUPPORT);
	if (!urnic_engine())
		return -1;
	rs = rs_make(domain, -1);
	if (!rs)
		return -1;
	rs->set = rs_defaults;
	rs->nonblocking = type & SOCK_NONBLOCK;
	number = rs->number;
	err = rs_new_id(rs);
	if (err)
		rclose(number);
	rs_put(rs);
	return err ? urnic_minus(err) : number;
}

/* Fails an attempt to connect. What it had goes; rconnect may try again. */
static void failed(struct rsocket *rs, int error)
{
	rs->error = error ? error : ECONNREFUSED;
	rs->state = RS_FAILED;
	rs_release(rs);
}

/* A status of an event: what has failed, or the usual. */
static int reason(const struct rdma_cm_event *event, int usual)
{
	return event->status < 0 ? -event->status : usual;
}

static struct rdma_conn_param parameters(struct rsocket *rs, struct rs_hello *hello)
{
	rs_fill_hello(rs, hello);
	return (struct rdma_conn_param){.private_data = hello, .private_data_len = sizeof(*hello),
					.responder_resources = 1, .initiator_depth = 1,
					.flow_control = 1, .retry_count = 7, .rnr_retry_count = 7};
}

/* The route is there: asks for the connection. 0 or an errno. */
static int ask(struct rsocket *rs)
{
	struct rs_hello hello;
	struct rdma_conn_param param;
	int err = rs_prepare(rs);

	if (err)
		return err;
	param = parameters(rs, &hello);
	rs->state = RS_CONNECTING;
	return rdma_connect(rs->id, &param) ? errno : 0;
}

/* Takes the private data of an event: whether they are a hello. */
static bool hello_of(const struct rdma_cm_event *event, struct rs_hello *hello)
{
	size_t len = event->param.conn.private_data ? event->param.conn.private_data_len : 0;

	memset(hello, 0, sizeof(*hello));
	if (len)
		memcpy(hello, event->param.conn.private_data, len < sizeof(*hello) ? len : sizeof(*hello));
	return rs_good_hello(hello, len);
}

/* Keeps a request until the program accepts it. One that is of no rsocket is rejected. */
static void keep(struct rsocket *rs, const struct rdma_cm_event *event)
{
	struct rs_request *r = calloc(1, sizeof(*r)), **last = &rs->requests;

	if (!r || !hello_of(event, &r->hello)) {
		rdma_reject(event->id, NULL, 0);
		rdma_destroy_id(event->id);
		free(r);
		return;
	}
	r->id = event->id;
	while (*last)
		last = &(*last)->next;
	*last = r;
	rs->queued++;
}

/* The request of an id that has ended before it was accepted. */
static void forget(struct rsocket *rs, struct rdma_cm_id *id)
{
	for (struct rs_request **at = &rs->requests; *at; at = &(*at)->next) {
		struct rs_request *r = *at;

		if (r->id != id)
			continue;
		*at = r->next;
		rs->queued--;
		free(r);
		return;
	}
}

void rs_drop_requests(struct rsocket *rs)
{
	while (rs->requests) {
		struct rdma_cm_id *id = rs->requests->id;

		forget(rs, id);
		rdma_destroy_id(id);
	}
}

/* What an event does: the id that is to be destroyed once it is acknowledged, or NULL. */
static struct rdma_cm_id *take_event(struct rsocket *rs, struct rdma_cm_event *event, int *fails)
{
	struct rs_hello hello;

	if (event->id != rs->id && event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		forget(rs, event->id); /* a listener's request has gone */
		return event->id;
	}
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		*fails = rdma_resolve_route(rs->id, RESOLVE_MS) ? errno : 0;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		*fails = ask(rs);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		*fails = reason(event, EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		*fails = reason(event, ETIMEDOUT);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_REJECTED:
		*fails = reason(event, ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		*fails = ECONNRESET;
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		keep(rs, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (rs->state == RS_CONNECTING) {
			if (!hello_of(event, &hello)) {
				*fails = ECONNREFUSED; /* whoever it is, it is no rsocket */
				break;
			}
			rs_take_hello(rs, &hello);
		}
		rs->state = RS_CONNECTED;
		break;
	default:
		break;
	}
	return NULL;
}

void rs_process_events(struct rsocket *rs)
{
	struct rdma_cm_event *event;

	while (rs->state != RS_CONNECTED && rs->state != RS_FAILED &&
	       (rs->state != RS_LISTENING || rs->queued < rs->backlog) && !rdma_get_cm_event(rs->events, &event)) {
		struct rdma_cm_id *gone;
		int fails = 0;

		gone = take_event(rs, event, &fails);
		rdma_ack_cm_event(event);
		if (gone)
			rdma_destroy_id(gone);
		if (fails && rs->state != RS_LISTENING)
			failed(rs, fails);
		rs_tell_waiters(rs, NULL);
	}
}

/* After an attempt that failed: an id for the next one. */
static int again(struct rsocket *rs)
{
	int err;

	if (rs->state != RS_FAILED && rs->id)
		return 0;
	rs_release(rs);
	err = rs_new_id(rs);
	if (err) {
		rs_release(rs);
		return err;
	}
	rs->state = RS_NEW;
	rs->error = 0;
	rs->asked = false;
	return 0;
}

static int set_options(struct rsocket *rs)
{
	if (rs->set.reuse &&
	    rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &rs->set.reuse, sizeof(rs->set.reuse)))
		return errno;
	if (rs->domain == AF_INET6 && rs->set.v6only &&
	    rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &rs->set.v6only, sizeof(rs->set.v6only)))
		return errno;
	return 0;
}

static int bind_to(struct rsocket *rs, const struct sockaddr *addr, socklen_t len)
{
	int err;

	if (!addr || len < sizeof(addr->sa_family) || len < cm_sockaddr_len(addr))
		return EINVAL;
	if (addr->sa_family != rs->domain)
		return EAFNOSUPPORT;
	if (rs->state != RS_NEW && rs->state != RS_FAILED)
		return EINVAL;
	err = again(rs);
	if (!err)
		err = set_options(rs);
	if (!err)
		err = rdma_bind_addr(rs->id, (struct sockaddr *)(uintptr_t)addr) ? errno : 0;
	return err;
}

URNIC_EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *rs;
	int err;

	if (rs_is_datagram(socket))
		return bind(socket, addr, addrlen);
	rs = rs_get(socket);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = bind_to(rs, addr, addrlen);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err ? urnic_minus(err) : 0;
}

/* Who listens without an address gets a port of any. */
static int listen_for(struct rsocket *rs, int backlog)
{
	struct sockaddr_storage any = {.ss_family = (sa_family_t)rs->domain};
	int err = 0;

	if (rs->state != RS_NEW && rs->state != RS_LISTENING)
		return EINVAL;
	if (backlog < 1)
		backlog = 1;
	rs->backlog = backlog > MOST_REQUESTS ? MOST_REQUESTS : backlog;
	if (rs->state == RS_LISTENING)
		return 0;
	if (!rdma_get_src_port(rs->id))
		err = bind_to(rs, (struct sockaddr *)&any, sizeof(any));
	if (!err && rdma_listen(rs->id, rs->backlog))
		err = errno;
	if (!err)
		rs->state = RS_LISTENING;
	return err;
}

URNIC_EXPORT int rlisten(int socket, int backlog)
{
	struct rsocket *rs = rs_get(socket);
	int err;

	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = listen_for(rs, backlog);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err ? urnic_minus(err) : 0;
}

static void copy_address(const struct sockaddr *from, struct sockaddr *addr, socklen_t *len)
{
	socklen_t all = cm_sockaddr_len(from);

	if (!addr || !len)
		return;
	memcpy(addr, from, *len < all ? *len : all);
	*len = all;
}

/* Accepts a request as a new rsocket: 0 or an errno. The request's id is the rsocket's, or gone. */
static int answer(struct rsocket *rs, const struct rs_request *request)
{
	struct rdma_conn_param param;
	struct rs_hello hello;
	int err = new_channel(rs);

	rs->id = request->id;
	if (!err)
		err = rdma_migrate_id(rs->id, rs->events) ? errno : 0;
	if (!err)
		err = rs_prepare(rs);
	if (err)
		return err;
	rs_take_hello(rs, &request->hello);
	param = parameters(rs, &hello);
	rs->state = RS_ACCEPTING;
	return rdma_accept(rs->id, &param) ? errno : 0;
}

/* Makes an rsocket of a request: its number, or -1 with errno. */
static int make_accepted(const struct rs_request *request, const struct rs_settings *set, int domain,
			 struct sockaddr *addr, socklen_t *len)
{
	struct rsocket *made = rs_make(domain, -1);
	int err, number;

	if (!made) {
		err = errno;
		rdma_destroy_id(request->id);
		return urnic_minus(err);
	}
	made->set = *set;
	number = made->number;
	pthread_mutex_lock(&made->lock);
	err = answer(made, request);
	if (!err)
		copy_address(&made->id->route.addr.dst_addr, addr, len);
	pthread_mutex_unlock(&made->lock);
	if (err)
		rclose(number);
	rs_put(made);
	return err ? urnic_minus(err) : number;
}

/* The next request, which the caller frees, or NULL with errno. */
static struct rs_request *next_request(struct rsocket *rs)
{
	struct rs_request *r;

	for (;;) {
		if (rs->closed || rs->state != RS_LISTENING)
			return urnic_null(rs->closed ? EBADF : EINVAL);
		rs_process(rs);
		r = rs->requests;
		if (r) {
			rs->requests = r->next;
			rs->queued--;
			return r;
		}
		if (rs->nonblocking)
			return urnic_null(EAGAIN);
		if (rs_wait(rs, POLLIN))
			return NULL;
	}
}

URNIC_EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rs_get(socket);
	struct rs_settings set;
	int number = -1, domain, err;

	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	set = rs->set;
	domain = rs->domain;
	do {
		struct rs_request *r = next_request(rs);

		err = errno;
		if (!r)
			break;
		number = make_accepted(r, &set, domain, addr, addrlen);
		err = number < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ? errno : 0;
		free(r);
	} while (number < 0 && !err); /* that one has gone: the next */
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return number < 0 ? urnic_minus(err) : number;
}

/* Starts to connect. */
static int dial(struct rsocket *rs, const struct sockaddr *addr, socklen_t len)
{
	int err;

	if (!addr || len < sizeof(addr->sa_family) || len < cm_sockaddr_len(addr))
		return EINVAL;
	if (addr->sa_family != rs->domain)
		return EAFNOSUPPORT;
	err = again(rs);
	if (!err)
		err = set_options(rs);
	if (err)
		return err;
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)(uintptr_t)addr, RESOLVE_MS))
		return errno;
	rs->state = RS_RESOLVING;
	return 0;
}

/* Waits until the attempt has ended, if the rsocket may: 0 or an errno. */
static int attempt(struct rsocket *rs)
{
	for (;;) {
		int err = rs->error;

		switch (rs->state) {
		case RS_CONNECTED:
			return 0;
		case RS_FAILED:
			rs->error = 0;
			return err;
		default:
			break;
		}
		if (rs->closed)
			return EBADF;
		if (rs->nonblocking)
			return EINPROGRESS;
		if (rs_wait(rs, POLLOUT))
			return errno;
	}
}

static int connect_to(struct rsocket *rs, const struct sockaddr *addr, socklen_t len)
{
	bool before = rs->asked;
	int err = 0;

	rs_process(rs);
	switch (rs->state) {
	case RS_LISTENING:
	case RS_ACCEPTING:
		return EISCONN;
	case RS_CONNECTED:
		rs->asked = false;
		return before ? 0 : EISCONN; /* as TCP does: success is reported once */
	case RS_RESOLVING:
	case RS_CONNECTING:
		if (rs->nonblocking)
			return EALREADY;
		break;
	case RS_FAILED:
		if (rs->asked && rs->error) {
			err = rs->error;
			rs->error = 0;
			rs->asked = false;
			return err;
		}
		/* fallthrough */
	case RS_NEW:
		err = dial(rs, addr, len);
	}
	if (!err)
		err = attempt(rs);
	rs->asked = err == EINPROGRESS || err == EINTR;
	return err;
}

URNIC_EXPORT int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsocket *rs;
	int err;

	if (rs_is_datagram(socket))
		return connect(socket, addr, addrlen);
	rs = rs_get(socket);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = connect_to(rs, addr, addrlen);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err ? urnic_minus(err) : 0;
}

/* Where an address of an rsocket is: none if it has not got that far. */
static int name(int socket, struct sockaddr *addr, socklen_t *len, bool peer)
{
	struct rsocket *rs = rs_get(socket);
	struct sockaddr_storage none;
	int err = 0;

	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	rs_process(rs);
	none = (struct sockaddr_storage){.ss_family = (sa_family_t)rs->domain};
	if (!addr || !len)
		err = EFAULT;
	else if (peer && rs->state != RS_CONNECTED && rs->state != RS_ACCEPTING)
		err = ENOTCONN;
	else if (peer)
		copy_address(&rs->id->route.addr.dst_addr, addr, len);
	else if (rs->id && cm_sockaddr_len(&rs->id->route.addr.src_addr))
		copy_address(&rs->id->route.addr.src_addr, addr, len);
	else
		copy_address((struct sockaddr *)&none, addr, len);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err ? urnic_minus(err) : 0;
}

URNIC_EXPORT int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return rs_is_datagram(socket) ? getpeername(socket, addr, addrlen) : name(socket, addr, addrlen, true);
}

URNIC_EXPORT int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return rs_is_datagram(socket) ? getsockname(socket, addr, addrlen) : name(socket, addr, addrlen, false);
}
