/*
 * The data path: what programs call through the table of the context, at once handed to the
 * engine. In a child of fork there is none: urnic_engine has then set errno.
 */
#include "shim.h"

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	const struct urnic_engine *e = urnic_live;
	struct ibv_send_wr *bad;

	if (!bad_wr)
		bad_wr = &bad;
	if (!e) {
		*bad_wr = wr;
		return errno;
	}
	urnic_spin_anew();
	return e->qp_post_send(qp->handle, (struct urnic_send_wr *)wr, (struct urnic_send_wr **)bad_wr);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	const struct urnic_engine *e = urnic_live;
	struct ibv_recv_wr *bad;

	if (!bad_wr)
		bad_wr = &bad;
	if (!e) {
		*bad_wr = wr;
		return errno;
	}
	urnic_spin_anew();
	return e->qp_post_recv(qp->handle, (struct urnic_recv_wr *)wr, (struct urnic_recv_wr **)bad_wr);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	const struct urnic_engine *e = urnic_live;
	struct ibv_recv_wr *bad;

	if (!bad_wr)
		bad_wr = &bad;
	if (!e) {
		*bad_wr = wr;
		return errno;
	}
	urnic_spin_anew();
	return e->srq_post_recv(srq->handle, (struct urnic_recv_wr *)wr, (struct urnic_recv_wr **)bad_wr);
}

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	const struct urnic_engine *e = urnic_live;
	int n;

	if (!e)
		return -errno;
	n = e->cq_poll(cq->handle, num_entries, (struct urnic_wc *)wc);
	urnic_polled(e, cq->handle, n);
	return n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const struct urnic_engine *e = urnic_live;

	return e ? e->cq_arm(cq->handle, solicited_only != 0) : errno;
}

void urnic_set_post_ops(struct verbs_context *v)
{
	v->context.ops.post_send = post_send;
	v->context.ops.post_recv = post_recv;
	v->context.ops.post_srq_recv = post_srq_recv;
	v->context.ops.poll_cq = poll_cq;
	v->context.ops.req_notify_cq = req_notify_cq;
}
