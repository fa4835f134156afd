/*
 * Queue pairs: reliable connections, the only kind that iWARP has; and without --transport iwarp,
 * datagrams and unreliable connections.
 */
#include <stdlib.h>
#include <string.h>

#include "adapter.h"

static struct urnic_qp *of(struct ibv_qp *qp)
{
	return urnic_container(qp, struct urnic_qp, qp);
}

/* What init asks of the engine. */
static struct urnic_qp_init wanted(const struct ibv_qp_init_attr *init, struct urnic_qp *qp)
{
	return (struct urnic_qp_init){
		.cookie = (uintptr_t)&qp->qp,
		.send_cq = init->send_cq->handle,
		.recv_cq = init->recv_cq->handle,
		.srq = init->srq ? init->srq->handle : 0,
		.max_send_wr = init->cap.max_send_wr,
		.max_recv_wr = init->srq ? 0 : init->cap.max_recv_wr,
		.max_send_sge = init->cap.max_send_sge,
		.max_recv_sge = init->srq ? 0 : init->cap.max_recv_sge,
		.max_inline = init->cap.max_inline_data,
		.sq_sig_all = init->sq_sig_all != 0,
		.type = init->qp_type,
	};
}

/* Whether the device has queue pairs of a type. */
static bool has_type(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || ((type == IBV_QPT_UD || type == IBV_QPT_UC) && urnic_is_adapter());
}

static struct urnic_qp *create(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	const struct urnic_engine *e;
	struct urnic_qp_init want;
	struct urnic_qp *qp;
	int err;

	if (!pd || !init)
		return urnic_null(EINVAL);
	if (!has_type(init->qp_type))
		return urnic_null(urnic_unsupported("create QP: the only type is IBV_QPT_RC: iWARP has no datagrams, no unreliable connections and no XRC"));
	if (!init->send_cq || !init->recv_cq)
		return urnic_null(EINVAL);
	e = urnic_engine();
	if (!e)
		return NULL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	want = wanted(init, qp);
	err = e->qp_create(pd->handle, &want);
	if (err) {
		free(qp);
		return urnic_null(err);
	}
	qp->cap = (struct ibv_qp_cap){
		.max_send_wr = want.max_send_wr,
		.max_recv_wr = want.max_recv_wr,
		.max_send_sge = want.max_send_sge,
		.max_recv_sge = want.max_recv_sge,
		.max_inline_data = want.max_inline,
	};
	init->cap = qp->cap;
	qp->sq_sig_all = init->sq_sig_all;
	qp->qp.context = pd->context;
	qp->qp.qp_context = init->qp_context;
	qp->qp.pd = pd;
	qp->qp.send_cq = init->send_cq;
	qp->qp.recv_cq = init->recv_cq;
	qp->qp.srq = init->srq;
	qp->qp.handle = want.qp;
	qp->qp.qp_num = want.qpn;
	qp->qp.state = IBV_QPS_RESET;
	qp->qp.qp_type = init->qp_type;
	pthread_mutex_init(&qp->qp.mutex, NULL);
	pthread_cond_init(&qp->qp.cond, NULL);
	urnic_pd_use(pd, 1);
	err = urnic_qpn_add(&qp->qp);
	if (err) {
		ibv_destroy_qp(&qp->qp);
		return urnic_null(err);
	}
	return qp;
}

URNIC_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct urnic_qp *qp = create(pd, qp_init_attr);

	return qp ? &qp->qp : NULL;
}

/* What comp_mask may have: nothing is done for flags and headers of segmentation that are 0. */
#define INIT_MASK                                                                                                      \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER |                       \
	 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct urnic_qp *qp;
	int err = 0;

	if (!context || !attr || !(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		return urnic_null(EINVAL);
	if ((attr->comp_mask & ~(uint32_t)INIT_MASK) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) && attr->max_tso_header))
		return urnic_null(urnic_unsupported("ibv_create_qp_ex: the device has no create flags, segmentation, RSS or XRC"));
	/* It begins as ibv_qp_init_attr does: see abi.c. */
	qp = create(attr->pd, (struct ibv_qp_init_attr *)attr);
	if (!qp)
		return NULL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		err = urnic_qp_extend(qp, attr->send_ops_flags);
	if (err) {
		ibv_destroy_qp(&qp->qp);
		return urnic_null(err);
	}
	return &qp->qp;
}

static struct urnic_qp_attr to_engine(const struct ibv_qp_attr *a)
{
	struct urnic_qp_attr to = {
		.state = a->qp_state,
		.cur_state = a->cur_qp_state,
		.path_mtu = a->path_mtu,
		.qkey = a->qkey,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qpn = a->dest_qp_num,
		.access = a->qp_access_flags,
		.max_send_wr = a->cap.max_send_wr,
		.max_recv_wr = a->cap.max_recv_wr,
		.max_send_sge = a->cap.max_send_sge,
		.max_recv_sge = a->cap.max_recv_sge,
		.max_inline = a->cap.max_inline_data,
		.is_global = a->ah_attr.is_global,
		.sgid_index = a->ah_attr.grh.sgid_index,
		.dlid = a->ah_attr.dlid,
		.pkey_index = a->pkey_index,
		.port_num = a->port_num,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.sqd_notify = a->en_sqd_async_notify != 0,
	};

	memcpy(to.dgid, a->ah_attr.grh.dgid.raw, sizeof(to.dgid));
	return to;
}

static struct ibv_qp_attr from_engine(const struct urnic_qp_attr *a)
{
	struct ibv_qp_attr to = {
		.qp_state = a->state,
		.cur_qp_state = a->state,
		.path_mtu = a->path_mtu,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = a->qkey,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qp_num = a->dest_qpn,
		.qp_access_flags = a->access,
		.cap = {.max_send_wr = a->max_send_wr,
			.max_recv_wr = a->max_recv_wr,
			.max_send_sge = a->max_send_sge,
			.max_recv_sge = a->max_recv_sge,
			.max_inline_data = a->max_inline},
		.ah_attr = {.is_global = a->is_global != 0,
			    .dlid = (uint16_t)a->dlid,
			    .port_num = (uint8_t)a->port_num,
			    .grh = {.sgid_index = (uint8_t)a->sgid_index}},
		.pkey_index = (uint16_t)a->pkey_index,
		.sq_draining = a->sq_draining != 0,
		.max_rd_atomic = (uint8_t)a->max_rd_atomic,
		.max_dest_rd_atomic = (uint8_t)a->max_dest_rd_atomic,
		.min_rnr_timer = (uint8_t)a->min_rnr_timer,
		.port_num = (uint8_t)a->port_num,
		.timeout = (uint8_t)a->timeout,
		.retry_cnt = (uint8_t)a->retry_cnt,
		.rnr_retry = (uint8_t)a->rnr_retry,
	};

	memcpy(to.ah_attr.grh.dgid.raw, a->dgid, sizeof(a->dgid));
	return to;
}

/* The device has the ports that are named, each with one P_Key. */
static bool has_ports(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	return (!(mask & IBV_QP_PORT) || urnic_has_port(qp->context, attr->port_num)) &&
	       (!(mask & IBV_QP_PKEY_INDEX) || !attr->pkey_index) &&
	       (!(mask & IBV_QP_AV) || urnic_has_port(qp->context, attr->ah_attr.port_num));
}

URNIC_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	const struct urnic_engine *e;
	struct urnic_qp_attr want;
	int err;

	if (!qp || !attr)
		return urnic_fail(EINVAL);
	if (!has_ports(qp, attr, attr_mask))
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	want = to_engine(attr);
	err = e->qp_modify(qp->handle, &want, (uint32_t)attr_mask);
	if (err)
		return urnic_fail(err);
	if (attr_mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return 0;
}

/* All attributes are filled in, whatever the mask. */
URNIC_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			      struct ibv_qp_init_attr *init_attr)
{
	const struct urnic_engine *e;
	struct urnic_qp_attr got;
	int err;

	(void)attr_mask;
	if (!qp || !attr)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->qp_query(qp->handle, &got);
	if (err)
		return urnic_fail(err);
	*attr = from_engine(&got);
	qp->state = attr->qp_state;
	if (init_attr)
		*init_attr = (struct ibv_qp_init_attr){
			.qp_context = qp->qp_context,
			.send_cq = qp->send_cq,
			.recv_cq = qp->recv_cq,
			.srq = qp->srq,
			.cap = attr->cap,
			.qp_type = qp->qp_type,
			.sq_sig_all = of(qp)->sq_sig_all,
		};
	return 0;
}

/* Waits until the program has acked all events that it has got of the queue pair. */
URNIC_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	const struct urnic_engine *e;
	int err;

	if (!qp)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->qp_destroy(qp->handle);
	if (err)
		return urnic_fail(err);
	urnic_qpn_remove(qp);
	urnic_await_qp_acks(qp);
	urnic_pd_use(qp->pd, -1);
	urnic_qp_unextend(of(qp));
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
	free(of(qp));
	return 0;
}

/* Never: whoever peeks before the completion may find anything (RFC 5040 §5.5). */
URNIC_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}

/* ECE is what InfiniBand devices tell each other of their extensions. */

URNIC_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return urnic_fail(EOPNOTSUPP);
}

URNIC_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return urnic_fail(EOPNOTSUPP);
}

void urnic_set_qp_ops(struct verbs_context *v)
{
	v->create_qp_ex = create_qp_ex;
}
