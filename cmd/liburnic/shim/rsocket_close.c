/* How an rsocket ends. */
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "rsocket.h"

enum {
	LINGER_MS = 5000, /* at most, until what was sent has gone, and again until the peer has closed */
	QUIET_MS = 50,    /* without a message */
};

static int shut(struct rsocket *rs, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return EINVAL;
	if (rs->state == RS_LISTENING)
		return 0;
	rs_process(rs);
	if (rs->state != RS_CONNECTED)
		return ENOTCONN;
	if (how != SHUT_WR)
		rs->in_shut = true;
	if (how != SHUT_RD && !rs->out_over) {
		rs->owed = how == SHUT_RDWR || rs->in_over ? RS_DISCONNECT : RS_SHUTDOWN;
		rs->out_over = true;
		rs_pay(rs);
	}
	rs_tell_waiters(rs, NULL);
	return 0;
}

URNIC_EXPORT int rshutdown(int socket, int how)
{
	struct rsocket *rs;
	int err;

	if (rs_is_datagram(socket))
		return shutdown(socket, how);
	rs = rs_get(socket);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = shut(rs, how);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err ? urnic_minus(err) : 0;
}

static int64_t milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* All that was sent has been taken by the network, and no end is owed. */
static bool sent(const struct rsocket *rs)
{
	return rs->dead || (rs->owed < 0 && rs->sq_free == rs->set.sq + RS_SPARE);
}

static bool drained(const struct rsocket *rs)
{
	return rs->drained;
}

static bool over(const struct rsocket *rs)
{
	return rs->dead || rs->in_over;
}

/* Waits for completions until something is so, for a while. Nobody else waits here any more. */
static void await(struct rsocket *rs, bool (*so)(const struct rsocket *), int64_t until)
{
	struct pollfd p = {.fd = rs->comp->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	for (;;) {
		rs_process(rs);
		if (so(rs) || milliseconds() >= until)
			return;
		if (!ibv_get_cq_event(rs->comp, &cq, &context))
			ibv_ack_cq_events(cq, 1);
		ibv_req_notify_cq(rs->cq, 0);
		rs_process(rs);
		if (so(rs))
			return;
		poll(&p, 1, (int)(until - milliseconds() > 0 ? until - milliseconds() : 0));
	}
}

/*
 * Waits until the peer has ended as well, or says no more. A peer that still reads grants messages, and on siw it fails
 * when these meet a connection that is closing, with what it has not read.
 */
static void await_quiet(struct rsocket *rs)
{
	int64_t until = milliseconds() + LINGER_MS;
	uint32_t heard;

	do {
		heard = rs->heard;
		await(rs, over, milliseconds() + QUIET_MS);
	} while (!over(rs) && rs->heard != heard && milliseconds() < until);
}

/*
 * Ends the connection: says so, lets all that was sent go, and waits until the peer has closed, since a
 * connection that is dropped with something unread may destroy what is on its way.
 */
static void disconnect(struct rsocket *rs)
{
	bool abort = rs->set.linger.l_onoff && !rs->set.linger.l_linger;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	rs_process(rs);
	if (abort) {
		ibv_modify_qp(rs->id->qp, &attr, IBV_QP_STATE);
		return;
	}
	if (!rs->dead && !rs->said_disconnect) {
		rs->owed = RS_DISCONNECT;
		rs->out_over = true;
	}
	await(rs, sent, milliseconds() + LINGER_MS);
	await_quiet(rs);
	if (!rs->dead && !rdma_disconnect(rs->id))
		await(rs, drained, milliseconds() + LINGER_MS);
}

URNIC_EXPORT int rclose(int socket)
{
	struct rsocket *rs = rs_remove(socket);

	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (!rs->datagram)
		rs_process(rs);
	if (rs->state == RS_CONNECTED)
		disconnect(rs);
	rs->closed = true;
	rs_tell_waiters(rs, NULL);
	pthread_mutex_unlock(&rs->lock);
	close(rs->number);
	rs_put(rs);
	return 0;
}
