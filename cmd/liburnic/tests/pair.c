/* Two connected queue pairs in one process: see test.h. */
#include "test.h"

static int or(int wanted, int common)
{
	return wanted == -1 ? 0 : wanted != 0 ? wanted : common;
}

static struct ibv_cq *open_cq(struct end *e, const struct plan *plan)
{
	int cqe = or(plan->cqe, 64);
	struct ibv_cq *cq;

	if (plan->wc_flags == 0) {
		CHECK(cq = ibv_create_cq(e->context, cqe, e, e->channel, 0));
	} else {
		struct ibv_cq_init_attr_ex attr = {
			.cqe = (uint32_t)cqe, .cq_context = e, .channel = e->channel, .wc_flags = plan->wc_flags};
		struct ibv_cq_ex *ex;

		CHECK(ex = ibv_create_cq_ex(e->context, &attr));
		cq = ibv_cq_ex_to_cq(ex);
	}
	return cq;
}

/* open_end makes all that an end has; its context or its id is there already. */
static void open_end(struct end *e, const struct plan *plan)
{
	struct ibv_qp_init_attr_ex attr = {.qp_context = e, .qp_type = IBV_QPT_RC, .cap = plan->cap};

	if (e->id)
		e->context = e->id->verbs;
	CHECK(e->pd = ibv_alloc_pd(e->context));
	CHECK(e->memory = aligned_alloc(4096, MEMORY));
	memset(e->memory, 0, MEMORY);
	CHECK(e->mr = ibv_reg_mr(e->pd, e->memory, MEMORY, ALL_ACCESS));
	if (plan->channels)
		CHECK(e->channel = ibv_create_comp_channel(e->context));
	e->scq = open_cq(e, plan);
	e->rcq = open_cq(e, plan);
	if (plan->srq) {
		struct ibv_srq_init_attr srq = {.srq_context = e, .attr = {.max_wr = 16, .max_sge = 4}};

		CHECK(e->srq = ibv_create_srq(e->pd, &srq));
	}
	attr.send_cq = e->scq;
	attr.recv_cq = e->rcq;
	attr.srq = e->srq;
	attr.sq_sig_all = plan->sig_all;
	attr.cap.max_send_wr = (uint32_t)or((int)plan->cap.max_send_wr, 16);
	attr.cap.max_recv_wr = (uint32_t)or((int)plan->cap.max_recv_wr, 16);
	attr.cap.max_send_sge = (uint32_t)or((int)plan->cap.max_send_sge, 4);
	attr.cap.max_recv_sge = (uint32_t)or((int)plan->cap.max_recv_sge, 4);
	attr.cap.max_inline_data = (uint32_t)or((int)plan->cap.max_inline_data, 64);
	attr.pd = e->pd;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	if (plan->send_ops != 0) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = plan->send_ops;
	}
	if (e->id) {
		OK(rdma_create_qp_ex(e->id, &attr));
		e->qp = e->id->qp;
	} else {
		CHECK(e->qp = ibv_create_qp_ex(e->context, &attr));
	}
}

uint8_t rnr_retry = 7, min_rnr_timer = 12;

void qp_to_init(struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned int)access};

	OK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

void qp_to_rtr(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t qpn, int rd_atomic)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.rq_psn = 0x123456,
		.max_dest_rd_atomic = (uint8_t)rd_atomic,
		.min_rnr_timer = min_rnr_timer,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}},
	};

	OK(ibv_modify_qp(qp, &attr,
			 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

void qp_to_rts(struct ibv_qp *qp, int rd_atomic)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = rnr_retry,
		.sq_psn = 0x123456,
		.max_rd_atomic = (uint8_t)rd_atomic,
	};

	OK(ibv_modify_qp(qp, &attr,
			 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				 IBV_QP_MAX_QP_RD_ATOMIC));
}

void pair_unconnected(struct pair *p, const struct plan *plan)
{
	memset(p, 0, sizeof(*p));
	p->a.context = open_device();
	p->b.context = open_device();
	open_end(&p->a, plan);
	open_end(&p->b, plan);
	qp_to_init(p->a.qp, or(plan->access, ALL_ACCESS));
	qp_to_init(p->b.qp, or(plan->access, ALL_ACCESS));
}

static void by_gid(struct pair *p, const struct plan *plan)
{
	int rd_atomic = or(plan->rd_atomic, 4);
	union ibv_gid gid;

	pair_unconnected(p, plan);
	OK(ibv_query_gid(p->a.context, 1, 0, &gid));
	qp_to_rtr(p->a.qp, &gid, p->b.qp->qp_num, rd_atomic);
	qp_to_rtr(p->b.qp, &gid, p->a.qp->qp_num, rd_atomic);
	qp_to_rts(p->a.qp, rd_atomic);
	qp_to_rts(p->b.qp, rd_atomic);
}

static void by_cm(struct pair *p, const struct plan *plan)
{
	struct sockaddr_in any = loopback(0), to;
	int rd_atomic = or(plan->rd_atomic, 4);
	struct rdma_conn_param param = {
		.responder_resources = (uint8_t)rd_atomic, .initiator_depth = (uint8_t)rd_atomic, .retry_count = 7,
		.rnr_retry_count = rnr_retry};
	struct rdma_cm_event *event;

	memset(p, 0, sizeof(*p));
	CHECK(p->a.events = rdma_create_event_channel());
	CHECK(p->b.events = rdma_create_event_channel());
	OK(rdma_create_id(p->b.events, &p->listener, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(p->listener, (struct sockaddr *)&any));
	OK(rdma_listen(p->listener, 4));
	to = loopback(ntohs(rdma_get_src_port(p->listener)));

	OK(rdma_create_id(p->a.events, &p->a.id, &p->a, RDMA_PS_TCP));
	OK(rdma_resolve_addr(p->a.id, NULL, (struct sockaddr *)&to, 5000));
	cm_take(p->a.events, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(p->a.id, 5000));
	cm_take(p->a.events, RDMA_CM_EVENT_ROUTE_RESOLVED);
	open_end(&p->a, plan);
	OK(rdma_connect(p->a.id, &param));

	event = cm_event(p->b.events, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->b.id = event->id;
	OK(rdma_ack_cm_event(event));
	p->b.id->context = &p->b;
	open_end(&p->b, plan);
	OK(rdma_accept(p->b.id, &param));
	cm_take(p->a.events, RDMA_CM_EVENT_ESTABLISHED);
	cm_take(p->b.events, RDMA_CM_EVENT_ESTABLISHED);
}

void pair_open(struct pair *p, const struct plan *plan)
{
	if (plan->how == BY_GID)
		by_gid(p, plan);
	else
		by_cm(p, plan);
}

/* close_end frees what open_end has made; what a test has freed itself is NULL. */
static void close_end(struct end *e)
{
	if (e->id) {
		if (e->id->qp)
			rdma_destroy_qp(e->id);
		OK(rdma_destroy_id(e->id));
	} else if (e->qp) {
		OK(ibv_destroy_qp(e->qp));
	}
	if (e->srq)
		OK(ibv_destroy_srq(e->srq));
	OK(ibv_destroy_cq(e->scq));
	OK(ibv_destroy_cq(e->rcq));
	if (e->channel)
		OK(ibv_destroy_comp_channel(e->channel));
	if (e->mr)
		OK(ibv_dereg_mr(e->mr));
	OK(ibv_dealloc_pd(e->pd));
	free(e->memory);
	if (e->events)
		rdma_destroy_event_channel(e->events);
	else
		OK(ibv_close_device(e->context));
	memset(e, 0, sizeof(*e));
}

void pair_close(struct pair *p)
{
	if (p->listener)
		OK(rdma_destroy_id(p->listener));
	close_end(&p->a);
	close_end(&p->b);
}
