/* Queue pairs as objects: to create them, their states, attributes and limits. */
#include "test.h"

static struct ibv_qp_init_attr small(struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 2, .max_recv_wr = 3, .max_send_sge = 2, .max_recv_sge = 1, .max_inline_data = 32},
		.qp_type = IBV_QPT_RC,
	};
}

/*
 * What a query tells before the queue pair is modified. An iWARP device has no RESET: its
 * new queue pairs are in the state INIT, and allow the peer all.
 */
static void as_created(struct ibv_qp *qp, const struct ibv_qp_init_attr *asked)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	memset(&init, 0xff, sizeof(init));
	OK(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP | IBV_QP_ACCESS_FLAGS, &init));
	EQ(attr.qp_state, IBV_QPS_INIT);
	EQ(attr.cur_qp_state, IBV_QPS_INIT);
	EQ(attr.qp_access_flags, ALL_ACCESS);
	EQ(memcmp(&attr.cap, &asked->cap, sizeof(attr.cap)), 0); /* as create has told */
	EQ(memcmp(&init.cap, &asked->cap, sizeof(init.cap)), 0);
	CHECK(init.send_cq == asked->send_cq && init.recv_cq == asked->recv_cq && init.srq == asked->srq &&
	      init.qp_context == asked->qp_context);
	EQ(init.qp_type, asked->qp_type);
	EQ(init.sq_sig_all, asked->sq_sig_all);
}

static void create(struct ibv_context *context)
{
	struct ibv_qp_init_attr attr;
	struct ibv_device_attr device;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int x;

	OK(ibv_query_device(context, &device));
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(cq = ibv_create_cq(context, 10, NULL, NULL, 0));
	attr = small(cq);
	attr.qp_context = &x;
	CHECK(qp = ibv_create_qp(pd, &attr));
	CHECK(qp->context == context && qp->qp_context == &x && qp->pd == pd && qp->send_cq == cq &&
	      qp->recv_cq == cq && qp->srq == NULL);
	EQ(qp->qp_type, IBV_QPT_RC);
	EQ(qp->state, IBV_QPS_RESET);
	CHECK(qp->qp_num != 0 && qp->qp_num < 1 << 24);
	CHECK(attr.cap.max_send_wr >= 2 && attr.cap.max_recv_wr >= 3 && attr.cap.max_send_sge >= 2 &&
	      attr.cap.max_recv_sge >= 1 && attr.cap.max_inline_data >= 32);
	CHECK(ibv_qp_to_qp_ex(qp) == NULL); /* it was not made so */
	as_created(qp, &attr);
	EQ(ibv_dealloc_pd(pd), EBUSY);
	OK(ibv_destroy_qp(qp));

	attr = small(cq);
	attr.cap.max_send_wr = (uint32_t)device.max_qp_wr + 1;
	NONE(ibv_create_qp(pd, &attr), EINVAL);
	attr = small(cq);
	attr.cap.max_recv_wr = (uint32_t)device.max_qp_wr + 1;
	NONE(ibv_create_qp(pd, &attr), EINVAL);
	attr = small(cq);
	attr.cap.max_send_sge = (uint32_t)device.max_sge + 1;
	NONE(ibv_create_qp(pd, &attr), EINVAL);
	attr = small(cq);
	attr.cap.max_recv_sge = (uint32_t)device.max_sge + 1;
	NONE(ibv_create_qp(pd, &attr), EINVAL);
	attr = small(cq);
	attr.cap.max_inline_data = 1 << 30;
	NONE(ibv_create_qp(pd, &attr), EINVAL);
	attr = small(cq);
	attr.send_cq = NULL;
	NONE(ibv_create_qp(pd, &attr), EINVAL);
	attr = small(cq);
	attr.cap.max_send_wr = (uint32_t)device.max_qp_wr;
	attr.cap.max_recv_wr = (uint32_t)device.max_qp_wr;
	attr.cap.max_send_sge = (uint32_t)device.max_sge;
	attr.cap.max_recv_sge = (uint32_t)device.max_sge;
	CHECK(qp = ibv_create_qp(pd, &attr)); /* what the device says, it has */
	OK(ibv_destroy_qp(qp));
	OK(ibv_destroy_cq(cq));
	OK(ibv_dealloc_pd(pd));
}

/* Each type but RC is another transport's. */
static void types(struct ibv_context *context)
{
	static const enum ibv_qp_type others[] = {IBV_QPT_UC,	    IBV_QPT_UD,	      IBV_QPT_RAW_PACKET,
						  IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_DRIVER};
	struct ibv_qp_init_attr attr;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	CHECK(pd = ibv_alloc_pd(context));
	CHECK(cq = ibv_create_cq(context, 10, NULL, NULL, 0));
	for (size_t i = 0; i < COUNT(others); i++) {
		attr = small(cq);
		attr.qp_type = others[i];
		NONE(ibv_create_qp(pd, &attr), EOPNOTSUPP);
	}
	OK(ibv_destroy_cq(cq));
	OK(ibv_dealloc_pd(pd));
}

static enum ibv_qp_state state(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	memset(&attr, 0xff, sizeof(attr));
	OK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	EQ(attr.qp_state, qp->state);
	return attr.qp_state;
}

/* The way of the states, and that what is missing or too much is refused (ibv_modify_qp(3)). */
static void states(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_ACCESS};
	int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	struct ibv_context *context = open_device();
	struct ibv_qp_init_attr create;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	CHECK(pd = ibv_alloc_pd(context));
	CHECK(cq = ibv_create_cq(context, 10, NULL, NULL, 0));
	create = small(cq);
	CHECK(qp = ibv_create_qp(pd, &create));
	EQ(state(qp), IBV_QPS_INIT);
	OK(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	EQ(state(qp), IBV_QPS_RESET);
	EQ(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE), EINVAL);
	EQ(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE), EINVAL);
	attr.port_num = 2;
	EQ(ibv_modify_qp(qp, &attr, init), EINVAL);
	attr.port_num = 1;
	attr.pkey_index = 1;
	EQ(ibv_modify_qp(qp, &attr, init), EINVAL);
	attr.pkey_index = 0;
	EQ(state(qp), IBV_QPS_RESET);
	OK(ibv_modify_qp(qp, &attr, init));
	EQ(state(qp), IBV_QPS_INIT);
	OK(ibv_modify_qp(qp, &attr, init)); /* again, it is allowed */
	EQ(state(qp), IBV_QPS_INIT);
	EQ(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE), EINVAL);
	EQ(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .cur_qp_state = IBV_QPS_RTS},
			 IBV_QP_STATE | IBV_QP_CUR_STATE),
	   EINVAL); /* it is not in that state */
	OK(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	EQ(state(qp), IBV_QPS_ERR);
	OK(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	EQ(state(qp), IBV_QPS_RESET);
	OK(ibv_modify_qp(qp, &attr, init));
	OK(ibv_destroy_qp(qp));
	OK(ibv_destroy_cq(cq));
	OK(ibv_dealloc_pd(pd));
	OK(ibv_close_device(context));
}

/* After RESET, the queue pair can be connected anew, and nothing of before is left. */
static void connected_again(void)
{
	union ibv_gid gid;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	EQ(state(p.a.qp), IBV_QPS_RTS);
	EQ(state(p.b.qp), IBV_QPS_RTS);
	OK(ibv_query_gid(p.a.context, 1, 0, &gid));
	for (int i = 0; i < 3; i++) {
		recv_at(&p.b, 1, 0, 8);
		recv_at(&p.b, 2, 0, 8);
		post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 8);
		done(p.a.scq, 3, IBV_WC_SEND);
		done(p.b.rcq, 1, IBV_WC_RECV);
		OK(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
		OK(ibv_modify_qp(p.b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
		empty(p.b.rcq); /* the second receive is gone without a word */
		qp_to_init(p.a.qp, ALL_ACCESS);
		qp_to_init(p.b.qp, ALL_ACCESS);
		qp_to_rtr(p.a.qp, &gid, p.b.qp->qp_num, 4);
		qp_to_rtr(p.b.qp, &gid, p.a.qp->qp_num, 4);
		qp_to_rts(p.a.qp, 4);
		qp_to_rts(p.b.qp, 4);
	}
	recv_at(&p.b, 1, 0, 8);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 8);
	done(p.b.rcq, 1, IBV_WC_RECV);
	pair_close(&p);
}

/* What was set can be read. */
static void query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	union ibv_gid gid;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .sig_all = true, .rd_atomic = 3});
	memset(&attr, 0xff, sizeof(attr));
	memset(&init, 0xff, sizeof(init));
	OK(ibv_query_qp(p.a.qp, &attr, (1 << 21) - 1, &init));
	EQ(attr.qp_state, IBV_QPS_RTS);
	EQ(attr.cur_qp_state, IBV_QPS_RTS);
	EQ(attr.path_mtu, IBV_MTU_1024);
	EQ(attr.dest_qp_num, p.b.qp->qp_num);
	EQ(attr.rq_psn, 0x123456);
	EQ(attr.sq_psn, 0x123456);
	EQ(attr.qp_access_flags, ALL_ACCESS);
	EQ(attr.max_rd_atomic, 3);
	EQ(attr.max_dest_rd_atomic, 3);
	EQ(attr.min_rnr_timer, 12);
	EQ(attr.timeout, 14);
	EQ(attr.retry_cnt, 7);
	EQ(attr.rnr_retry, 7);
	EQ(attr.port_num, 1);
	EQ(attr.pkey_index, 0);
	EQ(attr.sq_draining, 0);
	EQ(attr.ah_attr.is_global, 1);
	OK(ibv_query_gid(p.a.context, 1, 0, &gid));
	EQ(memcmp(&attr.ah_attr.grh.dgid, &gid, sizeof(gid)), 0);
	CHECK(attr.cap.max_send_wr >= 16 && attr.cap.max_recv_wr >= 16 && attr.cap.max_send_sge >= 4 &&
	      attr.cap.max_recv_sge >= 4 && attr.cap.max_inline_data >= 64);
	CHECK(init.qp_context == &p.a && init.send_cq == p.a.scq && init.recv_cq == p.a.rcq && init.srq == NULL);
	EQ(init.qp_type, IBV_QPT_RC);
	CHECK(init.sq_sig_all != 0);
	EQ(memcmp(&init.cap, &attr.cap, sizeof(init.cap)), 0);
	pair_close(&p);
}

/* The limits that create_qp has told hold, and hold at once. */
static void full(void)
{
	struct ibv_context *context = open_device();
	struct ibv_qp_init_attr attr;
	struct end e = {.context = context};

	CHECK(e.pd = ibv_alloc_pd(context));
	CHECK(e.scq = ibv_create_cq(context, 100, NULL, NULL, 0));
	CHECK(e.memory = calloc(1, MEMORY));
	CHECK(e.mr = ibv_reg_mr(e.pd, e.memory, MEMORY, ALL_ACCESS));
	attr = small(e.scq);
	CHECK(e.qp = ibv_create_qp(e.pd, &attr));
	{
		struct ibv_sge s = sge(&e, 0, 8);
		struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad = NULL;

		OK(ibv_modify_qp(e.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
		EQ(ibv_post_recv(e.qp, &wr, &bad), EINVAL); /* not in the state RESET */
		CHECK(bad == &wr);
		EQ(try_post(&e, &(struct op){.opcode = IBV_WR_SEND, .length = 8}), EINVAL);
		qp_to_init(e.qp, 0);
		for (uint32_t i = 0; i < attr.cap.max_recv_wr; i++)
			OK(ibv_post_recv(e.qp, &wr, &bad));
		bad = NULL;
		EQ(ibv_post_recv(e.qp, &wr, &bad), ENOMEM);
		CHECK(bad == &wr);

		/* A place is free when the completion of its receive is polled. */
		OK(ibv_modify_qp(e.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
		EQ(ibv_post_recv(e.qp, &wr, &bad), ENOMEM);
		want_wc(e.scq, 0, IBV_WC_WR_FLUSH_ERR, 0);
		OK(ibv_post_recv(e.qp, &wr, &bad));
		EQ(ibv_post_recv(e.qp, &wr, &bad), ENOMEM);
	}
	OK(ibv_destroy_qp(e.qp));
	OK(ibv_dereg_mr(e.mr));
	OK(ibv_destroy_cq(e.scq));
	OK(ibv_dealloc_pd(e.pd));
	OK(ibv_close_device(context));
	free(e.memory);
}

/* Enhancements, order of data and rate limits are not there, and say so. */
static void not_there(void)
{
	struct ibv_ece ece;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	memset(&ece, 0xff, sizeof(ece));
	{
		int error = ibv_query_ece(p.a.qp, &ece);

		/* rdma-core gives 0 and an empty answer for providers that have none. */
		if (error == 0)
			CHECK(ece.vendor_id == 0 && ece.options == 0 && ece.comp_mask == 0);
		else
			EQ(error, EOPNOTSUPP);
	}
	memset(&ece, 0, sizeof(ece));
	ece.vendor_id = 0x15b3;
	ece.options = 1;
	EQ(ibv_set_ece(p.a.qp, &ece), EOPNOTSUPP);
	EQ(ibv_query_qp_data_in_order(p.a.qp, IBV_WR_RDMA_WRITE, 0), 0);
	EQ(ibv_modify_qp_rate_limit(p.a.qp, &(struct ibv_qp_rate_limit_attr){.rate_limit = 1000}), EOPNOTSUPP);
	NONE(ibv_open_qp(p.a.context, &(struct ibv_qp_open_attr){.qp_num = 1}), EOPNOTSUPP);
	pair_close(&p);
}

int main(void)
{
	struct ibv_context *context = open_device();

	create(context);
	types(context);
	OK(ibv_close_device(context));
	states();
	connected_again();
	query();
	full();
	not_there();
	return 0;
}
