/* Queue pairs and shared receive queues of ids, with the completion queues that the program does not give. */
#include <string.h>

#include "cm.h"

/* A completion queue with a channel of its own. Its context is the id: rdma_get_send_comp expects that. */
static int create_cq(struct rdma_cm_id *id, uint32_t entries, struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	int err;

	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return errno;
	*cq = ibv_create_cq(id->verbs, entries ? entries : 1, id, *channel, 0);
	if (*cq)
		return 0;
	err = errno;
	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return err;
}

static void destroy_cq(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (*cq)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

static void destroy_cqs(struct rdma_cm_id *id)
{
	destroy_cq(&id->send_cq_channel, &id->send_cq);
	destroy_cq(&id->recv_cq_channel, &id->recv_cq);
}

/* Sets those of attr's completion queues that the program has not given. */
static int create_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err;

	if (!attr->send_cq) {
		err = id->send_cq ? 0 : create_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq);
		if (err)
			return err;
		attr->send_cq = id->send_cq;
	}
	if (!attr->recv_cq) {
		err = id->recv_cq ? 0 : create_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq);
		if (err)
			return err;
		attr->recv_cq = id->recv_cq;
	}
	return 0;
}

/* From reset to INIT: it takes receives from now on. One of datagrams gets to RTS. */
static int init_qp(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask, err;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return errno;
	err = ibv_modify_qp(qp, &attr, mask);
	if (err || id->qp_type != IBV_QPT_UD)
		return err;
	/* No connection brings it farther. */
	attr.qp_state = IBV_QPS_RTR;
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	if (err)
		return err;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int create_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int err;

	if (!id->verbs || id->qp || (id->qp_type == IBV_QPT_UD) != (attr->qp_type == IBV_QPT_UD))
		return EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (!attr->pd || attr->pd->context != id->verbs)
		return EINVAL;
	if ((id->send_cq && attr->send_cq && id->send_cq != attr->send_cq) ||
	    (id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq))
		return EINVAL;
	if (id->srq && !attr->srq)
		attr->srq = id->srq;
	err = create_cqs(id, attr);
	if (err)
		goto no_cqs;
	qp = ibv_create_qp_ex(id->verbs, attr);
	if (!qp) {
		err = errno;
		goto no_cqs;
	}
	err = init_qp(id, qp);
	if (err) {
		ibv_destroy_qp(qp);
		goto no_cqs;
	}
	id->pd = attr->pd;
	id->qp = qp;
	return 0;

no_cqs:
	destroy_cqs(id);
	return err;
}

URNIC_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	int err;

	if (!id || !qp_init_attr)
		return urnic_minus(EINVAL);
	err = create_qp(id, qp_init_attr);
	return err ? urnic_minus(err) : 0;
}

URNIC_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {0};
	int err;

	if (!id || !qp_init_attr)
		return urnic_minus(EINVAL);
	attr.qp_context = qp_init_attr->qp_context;
	attr.send_cq = qp_init_attr->send_cq;
	attr.recv_cq = qp_init_attr->recv_cq;
	attr.srq = qp_init_attr->srq;
	attr.cap = qp_init_attr->cap;
	attr.qp_type = qp_init_attr->qp_type;
	attr.sq_sig_all = qp_init_attr->sq_sig_all;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd;
	err = create_qp(id, &attr);
	if (err)
		return urnic_minus(err);
	qp_init_attr->cap = attr.cap;
	return 0;
}

URNIC_EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (id->qp)
		ibv_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
}

URNIC_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	if (!id || !attr || !id->verbs || id->srq)
		return urnic_minus(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (!attr->pd || attr->pd->context != id->verbs)
		return urnic_minus(EINVAL);
	srq = ibv_create_srq_ex(id->verbs, attr);
	if (!srq)
		return -1;
	id->pd = attr->pd;
	id->srq = srq;
	return 0;
}

URNIC_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {0};

	if (!id || !attr)
		return urnic_minus(EINVAL);
	ex.srq_context = attr->srq_context;
	ex.attr = attr->attr;
	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	ex.srq_type = IBV_SRQT_BASIC;
	ex.pd = pd;
	if (rdma_create_srq_ex(id, &ex))
		return -1;
	attr->attr = ex.attr;
	return 0;
}

URNIC_EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
}
