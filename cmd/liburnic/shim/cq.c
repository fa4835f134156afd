/*
 * Completion queues.
 */
#include <stdlib.h>

#include "adapter.h"

static struct urnic_cq *of(struct ibv_cq *cq)
{
	return urnic_container(cq, struct urnic_cq, cq);
}

static struct urnic_cq *create(struct ibv_context *context, uint32_t cqe, void *cq_context,
			       struct ibv_comp_channel *channel, uint32_t comp_vector)
{
	const struct urnic_engine *e;
	struct urnic_cq *cq;
	int err;

	if (!context || !cqe || cqe > INT32_MAX || comp_vector >= (uint32_t)context->num_comp_vectors ||
	    (channel && channel->context != context))
		return urnic_null(EINVAL);
	e = urnic_engine();
	if (!e)
		return NULL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	err = e->cq_create(urnic_context(context)->handle, &cqe,
			   channel ? urnic_container(channel, struct urnic_channel, channel)->handle : 0,
			   (uintptr_t)cq, &cq->cq.handle);
	if (err) {
		free(cq);
		return urnic_null(err);
	}
	cq->cq.context = context;
	cq->cq.channel = channel;
	cq->cq.cq_context = cq_context;
	cq->cq.cqe = (int)cqe;
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	pthread_mutex_init(&cq->poll, NULL);
	urnic_channel_use(channel, 1);
	return cq;
}

URNIC_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
					  struct ibv_comp_channel *channel, int comp_vector)
{
	struct urnic_cq *cq;

	if (cqe < 1 || comp_vector < 0)
		return urnic_null(EINVAL);
	cq = create(context, (uint32_t)cqe, cq_context, channel, (uint32_t)comp_vector);
	return cq ? &cq->cq : NULL;
}

#define TIME_FLAGS                                                                                                     \
	((uint64_t)(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct urnic_cq *cq;
	uint32_t flags;

	if (!attr || (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)))
		return urnic_null(EINVAL);
	if (attr->wc_flags & ~(uint64_t)(IBV_WC_STANDARD_FLAGS | (urnic_is_adapter() ? TIME_FLAGS : 0)))
		return urnic_null(urnic_unsupported("ibv_create_cq_ex: the device has no time stamps, and no fields of Ethernet queues"));
	flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	if (flags & ~(uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
		return urnic_null(EINVAL);
	cq = create(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	urnic_cq_extend(cq, flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED, attr->wc_flags & TIME_FLAGS);
	return &cq->ex;
}

URNIC_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	const struct urnic_engine *e;
	uint32_t entries = (uint32_t)cqe;
	int err;

	if (!cq || cqe < 1)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->cq_resize(cq->handle, &entries);
	if (err)
		return urnic_fail(err);
	cq->cqe = (int)entries;
	return 0;
}

/* Waits until the program has acked all events that it has got of the queue. */
URNIC_EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	const struct urnic_engine *e;
	int err;

	if (!cq)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->cq_destroy(cq->handle);
	if (err)
		return urnic_fail(err);
	urnic_await_comp_acks(cq);
	urnic_await_cq_acks(cq);
	urnic_channel_use(cq->channel, -1);
	pthread_mutex_destroy(&of(cq)->poll);
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);
	free(of(cq));
	return 0;
}

void urnic_set_cq_ops(struct verbs_context *v)
{
	v->create_cq_ex = create_cq_ex;
}
