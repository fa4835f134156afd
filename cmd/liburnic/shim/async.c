/*
 * Waiting for descriptors, and the asynchronous events of a context.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "shim.h"

/*
 * Says whether a call that a signal has interrupted continues. rdma-core blocks in read(2) or
 * write(2), which the kernel restarts after a handler that has SA_RESTART; poll(2) always
 * ends. Which signal it was is not known, so all handlers must have SA_RESTART.
 */
bool urnic_restarts(void)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction act;

		if (sigaction(sig, NULL, &act) || (act.sa_flags & SA_RESTART))
			continue;
		if ((act.sa_flags & SA_SIGINFO) || (act.sa_handler != SIG_DFL && act.sa_handler != SIG_IGN))
			return false;
	}
	return true;
}

int urnic_wait(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -1;
	if (flags & O_NONBLOCK)
		return urnic_minus(EAGAIN);
	for (;;) {
		int n = poll(&p, 1, -1);

		if (n < 0 && errno == EINTR && urnic_restarts())
			continue;
		if (n < 0)
			return -1;
		return p.revents & POLLNVAL ? urnic_minus(EBADF) : 0;
	}
}

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

void urnic_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	pthread_cleanup_push(unlock, mutex);
	pthread_cond_wait(cond, mutex);
	pthread_cleanup_pop(0);
}

/* The counters of the object that an event is of; object is NULL if it is of none. */
struct counters {
	void *object;
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *fetched, *acked;
};

static struct counters cq_counters(struct ibv_cq *cq)
{
	struct urnic_cq *c = urnic_container(cq, struct urnic_cq, cq);

	return (struct counters){c, &cq->mutex, &cq->cond, &c->async_events, &cq->async_events_completed};
}

static struct counters qp_counters(struct ibv_qp *qp)
{
	struct urnic_qp *q = urnic_container(qp, struct urnic_qp, qp);

	return (struct counters){q, &qp->mutex, &qp->cond, &q->async_events, &qp->events_completed};
}

static struct counters srq_counters(struct ibv_srq *srq)
{
	struct urnic_srq *s = urnic_container(srq, struct urnic_srq, srq);

	return (struct counters){s, &srq->mutex, &srq->cond, &s->async_events, &srq->events_completed};
}

static struct counters counters(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return cq_counters(event->element.cq);
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return qp_counters(event->element.qp);
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return srq_counters(event->element.srq);
	default:
		return (struct counters){0};
	}
}

/* Takes an event if there is one, and counts it: an errno, EAGAIN if there is none. */
static int take(struct urnic_context *ctx, struct ibv_async_event *event)
{
	const struct urnic_engine *e = urnic_engine();
	struct urnic_async async;
	struct counters c;
	int err;

	if (!e)
		return errno;
	/* Under the lock, so that whoever destroys the object knows whether one is on its way. */
	pthread_mutex_lock(&ctx->async);
	err = e->async_next(ctx->handle, &async);
	if (!err) {
		*event = (struct ibv_async_event){.event_type = (enum ibv_event_type)async.type};
		/* The cookie of an object is its address, that of ibv_cq, ibv_qp or ibv_srq. */
		event->element.cq = (struct ibv_cq *)(uintptr_t)async.cookie;
		c = counters(event);
		if (c.object)
			++*c.fetched;
		else
			event->element.port_num = (int)async.cookie;
	}
	pthread_mutex_unlock(&ctx->async);
	return err;
}

URNIC_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	if (!context || !event)
		return urnic_minus(EINVAL);
	for (;;) {
		int err = take(urnic_context(context), event);

		if (!err)
			return 0;
		if (err != EAGAIN)
			return urnic_minus(err);
		if (urnic_wait(context->async_fd))
			return -1;
	}
}

URNIC_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct counters c;

	if (!event)
		return;
	c = counters(event);
	if (!c.object)
		return;
	pthread_mutex_lock(c.mutex);
	++*c.acked;
	pthread_cond_signal(c.cond);
	pthread_mutex_unlock(c.mutex);
}

/*
 * Waits until the program has acked all the events that it has fetched. The engine has
 * destroyed the object, so there will be no more of them.
 */
static void await(struct ibv_context *context, struct counters c)
{
	struct urnic_context *ctx = urnic_context(context);
	uint32_t fetched;

	pthread_mutex_lock(&ctx->async);
	fetched = *c.fetched;
	pthread_mutex_unlock(&ctx->async);

	pthread_mutex_lock(c.mutex);
	while (*c.acked != fetched)
		urnic_cond_wait(c.cond, c.mutex);
	pthread_mutex_unlock(c.mutex);
}

void urnic_await_cq_acks(struct ibv_cq *cq)
{
	await(cq->context, cq_counters(cq));
}

void urnic_await_qp_acks(struct ibv_qp *qp)
{
	await(qp->context, qp_counters(qp));
}

void urnic_await_srq_acks(struct ibv_srq *srq)
{
	await(srq->context, srq_counters(srq));
}
