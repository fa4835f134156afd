/*
 * Shared receive queues.
 */
#include <stdlib.h>

#include "shim.h"

static struct urnic_srq *of(struct ibv_srq *srq)
{
	return urnic_container(srq, struct urnic_srq, srq);
}

URNIC_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init_attr)
{
	const struct urnic_engine *e;
	struct urnic_srq_attr attr;
	struct urnic_srq *srq;
	int err;

	if (!pd || !init_attr)
		return urnic_null(EINVAL);
	e = urnic_engine();
	if (!e)
		return NULL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	/* The limit is for ibv_modify_srq to arm: here it means nothing. */
	attr = (struct urnic_srq_attr){.max_wr = init_attr->attr.max_wr, .max_sge = init_attr->attr.max_sge};
	err = e->srq_create(pd->handle, &attr, (uintptr_t)&srq->srq, &srq->srq.handle, &srq->number);
	if (err) {
		free(srq);
		return urnic_null(err);
	}
	init_attr->attr.max_wr = attr.max_wr;
	init_attr->attr.max_sge = attr.max_sge;
	srq->srq.context = pd->context;
	srq->srq.srq_context = init_attr->srq_context;
	srq->srq.pd = pd;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	urnic_pd_use(pd, 1);
	return &srq->srq;
}

/* verbs.h calls it for all but basic queues with a PD. */
static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	if (!context || !attr || (attr->comp_mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_RESERVED - 1)))
		return urnic_null(EINVAL);
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC)
		return urnic_null(urnic_unsupported("ibv_create_srq_ex: the only shared receive queues are basic ones, without XRC and tag matching"));
	if (attr->comp_mask & (IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM))
		return urnic_null(urnic_unsupported("ibv_create_srq_ex: the only shared receive queues are basic ones, without XRC and tag matching"));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		return urnic_null(EINVAL);
	return ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
}

URNIC_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int mask)
{
	const struct urnic_engine *e;
	struct urnic_srq_attr attr;
	int err;

	if (!srq || !srq_attr || (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)))
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	attr = (struct urnic_srq_attr){.max_wr = srq_attr->max_wr, .limit = srq_attr->srq_limit};
	err = e->srq_modify(srq->handle, &attr, (uint32_t)mask);
	return err ? urnic_fail(err) : 0;
}

URNIC_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	const struct urnic_engine *e;
	struct urnic_srq_attr attr;
	int err;

	if (!srq || !srq_attr)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->srq_query(srq->handle, &attr);
	if (err)
		return urnic_fail(err);
	*srq_attr = (struct ibv_srq_attr){.max_wr = attr.max_wr, .max_sge = attr.max_sge, .srq_limit = attr.limit};
	return 0;
}

static int get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	if (!srq_num)
		return urnic_fail(EINVAL);
	*srq_num = of(srq)->number;
	return 0;
}

/* Waits until the program has acked all events that it has got of the queue. */
URNIC_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	const struct urnic_engine *e;
	int err;

	if (!srq)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->srq_destroy(srq->handle);
	if (err)
		return urnic_fail(err);
	urnic_await_srq_acks(srq);
	urnic_pd_use(srq->pd, -1);
	pthread_cond_destroy(&srq->cond);
	pthread_mutex_destroy(&srq->mutex);
	free(of(srq));
	return 0;
}

void urnic_set_srq_ops(struct verbs_context *v)
{
	v->create_srq_ex = create_srq_ex;
	v->get_srq_num = get_srq_num;
}
