/*
 * Completion channels.
 */
#include <stdlib.h>

#include "shim.h"

static struct urnic_channel *of(struct ibv_comp_channel *channel)
{
	return urnic_container(channel, struct urnic_channel, channel);
}

URNIC_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	const struct urnic_engine *e;
	struct urnic_channel *ch;
	int32_t fd;
	int err;

	if (!context)
		return urnic_null(EINVAL);
	e = urnic_engine();
	if (!e)
		return NULL;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;
	err = e->channel_create(urnic_context(context)->handle, &ch->handle, &fd);
	if (err) {
		free(ch);
		return urnic_null(err);
	}
	pthread_mutex_init(&ch->lock, NULL);
	ch->channel.context = context;
	ch->channel.fd = fd;
	return &ch->channel;
}

/* refcnt counts CQs, under the lock that rdma-core uses for it. */
void urnic_channel_use(struct ibv_comp_channel *channel, int change)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += change;
	pthread_mutex_unlock(&channel->context->mutex);
}

URNIC_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	const struct urnic_engine *e;
	int err, users;

	if (!channel)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	pthread_mutex_lock(&channel->context->mutex);
	users = channel->refcnt;
	pthread_mutex_unlock(&channel->context->mutex);
	if (users)
		return urnic_fail(EBUSY);
	err = e->channel_destroy(of(channel)->handle);
	if (err)
		return urnic_fail(err);
	pthread_mutex_destroy(&of(channel)->lock);
	free(of(channel));
	return 0;
}

/* Takes an event if there is one, and counts it: an errno, EAGAIN if there is none. */
static int take(struct urnic_channel *ch, struct ibv_cq **cq)
{
	const struct urnic_engine *e = urnic_engine();
	struct urnic_cq *c;
	uint64_t cookie;
	int err;

	if (!e)
		return errno;
	/* Under the lock, so that whoever destroys the CQ knows whether one is on its way. */
	pthread_mutex_lock(&ch->lock);
	err = e->channel_next(ch->handle, &cookie);
	if (!err) {
		c = (struct urnic_cq *)(uintptr_t)cookie;
		c->comp_events++;
		*cq = &c->cq;
	}
	pthread_mutex_unlock(&ch->lock);
	return err;
}

URNIC_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct ibv_cq *got = NULL;

	if (!channel || !cq)
		return urnic_minus(EINVAL);
	for (;;) {
		int err = take(of(channel), &got);

		if (!err)
			break;
		if (err != EAGAIN)
			return urnic_minus(err);
		if (urnic_wait(channel->fd))
			return -1;
	}
	*cq = got;
	if (cq_context)
		*cq_context = got->cq_context;
	return 0;
}

URNIC_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (!cq)
		return;
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

void urnic_await_comp_acks(struct ibv_cq *cq)
{
	struct urnic_cq *c = urnic_container(cq, struct urnic_cq, cq);
	uint32_t fetched;

	if (!cq->channel)
		return;
	pthread_mutex_lock(&of(cq->channel)->lock);
	fetched = c->comp_events;
	pthread_mutex_unlock(&of(cq->channel)->lock);

	pthread_mutex_lock(&cq->mutex);
	while (cq->comp_events_completed != fetched)
		urnic_cond_wait(&cq->cond, &cq->mutex);
	pthread_mutex_unlock(&cq->mutex);
}
