/* Extended completion queues: start, next and end of polling, and all that can be read. */
#include "test.h"

static void create(struct ibv_context *context)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 10, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_parent_domain_init_attr domain = {0};
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_cq_ex *cq;
	int x;

	attr.cq_context = &x;
	CHECK(cq = ibv_create_cq_ex(context, &attr));
	CHECK(cq->context == context && cq->channel == NULL && cq->cq_context == &x && cq->cqe >= 10);
	EQ(ibv_start_poll(cq, &poll), ENOENT);
	empty(ibv_cq_ex_to_cq(cq));
	OK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));

	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	CHECK(cq = ibv_create_cq_ex(context, &attr));
	EQ(ibv_start_poll(cq, &poll), ENOENT);
	OK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));

	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD; /* with a parent domain */
	CHECK(domain.pd = ibv_alloc_pd(context));
	CHECK(attr.parent_domain = ibv_alloc_parent_domain(context, &domain));
	CHECK(cq = ibv_create_cq_ex(context, &attr));
	OK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	OK(ibv_dealloc_pd(attr.parent_domain));
	OK(ibv_dealloc_pd(domain.pd));

	attr.comp_mask = 1U << 31;
	NONE(ibv_create_cq_ex(context, &attr), EINVAL);
	attr.comp_mask = 0;
	attr.cqe = 0;
	NONE(ibv_create_cq_ex(context, &attr), EINVAL);
	attr.cqe = 10;
	attr.wc_flags = IBV_WC_EX_WITH_TM_INFO; /* matching of tags is not there */
	NONE(ibv_create_cq_ex(context, &attr), EOPNOTSUPP);
	attr.wc_flags = 1ULL << 40;
	NONE(ibv_create_cq_ex(context, &attr), EOPNOTSUPP);
}

/* start waits for the first completion, and leaves the queue open for reading. */
static void start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};
	int error;

	for (int i = 0; (error = ibv_start_poll(cq, &attr)) == ENOENT && i < PATIENCE_MS * 10; i++)
		usleep(100); /* ibv_start_poll is the condition */
	OK(error);
}

static void reading(void)
{
	struct ibv_cq_ex *send, *receive;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .wc_flags = IBV_WC_STANDARD_FLAGS});
	receive = (struct ibv_cq_ex *)p.b.rcq;
	send = (struct ibv_cq_ex *)p.a.scq;
	for (uint64_t i = 0; i < 3; i++)
		recv_at(&p.b, 10 + i, 0, 64);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 1, .length = 33);
	post(&p.a, .opcode = IBV_WR_SEND_WITH_IMM, .wr_id = 2, .length = 34, .imm = 0x12345678);
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .wr_id = 3, .length = 35, .imm = 0x9abcdef0,
	     .remote = to(&p.b, 4096), .rkey = p.b.mr->rkey);

	start(receive);
	EQ(receive->wr_id, 10);
	EQ(receive->status, IBV_WC_SUCCESS);
	EQ(ibv_wc_read_opcode(receive), IBV_WC_RECV);
	EQ(ibv_wc_read_byte_len(receive), 33);
	EQ(ibv_wc_read_wc_flags(receive), 0);
	EQ(ibv_wc_read_qp_num(receive), p.b.qp->qp_num);
	EQ(ibv_wc_read_vendor_err(receive), 0);
	EQ(ibv_wc_read_slid(receive), 0);
	EQ(ibv_wc_read_sl(receive), 0);
	EQ(ibv_wc_read_dlid_path_bits(receive), 0);
	(void)ibv_wc_read_src_qp(receive); /* is for datagrams */
	ibv_end_poll(receive);

	start(receive);
	EQ(receive->wr_id, 11);
	EQ(ibv_wc_read_opcode(receive), IBV_WC_RECV);
	EQ(ibv_wc_read_byte_len(receive), 34);
	EQ(ibv_wc_read_wc_flags(receive) & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	EQ(ntohl(ibv_wc_read_imm_data(receive)), 0x12345678);
	for (int i = 0, error; (error = ibv_next_poll(receive)) != 0; i++) {
		EQ(error, ENOENT);
		CHECK(i < PATIENCE_MS * 10);
		usleep(100); /* ibv_next_poll is the condition */
	}
	EQ(receive->wr_id, 12);
	EQ(receive->status, IBV_WC_SUCCESS);
	EQ(ibv_wc_read_opcode(receive), IBV_WC_RECV_RDMA_WITH_IMM);
	EQ(ibv_wc_read_byte_len(receive), 35);
	EQ(ntohl(ibv_wc_read_imm_data(receive)), 0x9abcdef0);
	EQ(ibv_next_poll(receive), ENOENT);
	ibv_end_poll(receive);
	EQ(ibv_start_poll(receive, &(struct ibv_poll_cq_attr){0}), ENOENT);

	start(send); /* and the other way to poll sees the rest */
	EQ(send->wr_id, 1);
	EQ(ibv_wc_read_opcode(send), IBV_WC_SEND);
	ibv_end_poll(send);
	done(p.a.scq, 2, IBV_WC_SEND);
	done(p.a.scq, 3, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

/* What start and next have not shown yet is not lost by end, whoever polls next. */
static void mixed(void)
{
	struct ibv_cq_ex *receive;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN});
	receive = (struct ibv_cq_ex *)p.b.rcq;
	for (uint64_t i = 0; i < 8; i++)
		recv_at(&p.b, i, 0, 64);
	for (uint64_t i = 0; i < 8; i++) {
		post(&p.a, .opcode = IBV_WR_SEND, .wr_id = i, .length = 8);
		done(p.a.scq, i, IBV_WC_SEND);
	}
	for (uint64_t i = 0; i < 8; i += 2) {
		start(receive);
		EQ(receive->wr_id, i);
		ibv_end_poll(receive);
		done(p.b.rcq, i + 1, IBV_WC_RECV);
	}
	pair_close(&p);
}

/* A failure is shown by status and vendor_err. */
static void failure(void)
{
	struct ibv_cq_ex *send;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .wc_flags = IBV_WC_STANDARD_FLAGS});
	send = (struct ibv_cq_ex *)p.a.scq;
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 9, .length = 8, .remote = to(&p.b, 0),
	     .rkey = p.b.mr->rkey ^ 0xffff00);
	start(send);
	EQ(send->wr_id, 9);
	EQ(send->status, IBV_WC_REM_ACCESS_ERR);
	CHECK(ibv_wc_read_vendor_err(send) != 0);
	ibv_end_poll(send);
	pair_close(&p);
}

/* The rkey that a Send with Invalidate has taken away. */
static void invalidated(void)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_cq_ex *receive;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .wc_flags = IBV_WC_STANDARD_FLAGS});
	receive = (struct ibv_cq_ex *)p.b.rcq;
	CHECK(mr = ibv_reg_mr(p.b.pd, p.b.memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	CHECK(mw = ibv_alloc_mw(p.b.pd, IBV_MW_TYPE_2));
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, to(&p.b, 0), 64, IBV_ACCESS_REMOTE_READ};
	OK(ibv_post_send(p.b.qp, &wr, &bad));
	done(p.b.scq, 1, IBV_WC_BIND_MW);
	recv_at(&p.b, 2, 0, 8);
	post(&p.a, .opcode = IBV_WR_SEND_WITH_INV, .wr_id = 3, .length = 8, .imm = wr.bind_mw.rkey);
	start(receive);
	EQ(receive->wr_id, 2);
	EQ(ibv_wc_read_wc_flags(receive), IBV_WC_WITH_INV);
	EQ(ibv_wc_read_invalidated_rkey(receive), wr.bind_mw.rkey);
	ibv_end_poll(receive);
	OK(ibv_dealloc_mw(mw));
	OK(ibv_dereg_mr(mr));
	pair_close(&p);
}

/* Completions have a time if the device says so, and what was not asked for is not there. */
static void timestamps(void)
{
	struct ibv_context *context = open_device();
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK |
				      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_device_attr_ex device;
	struct ibv_cq_ex *cq;
	struct pair p;
	uint64_t first;

	OK(ibv_query_device_ex(context, NULL, &device));
	if (device.completion_timestamp_mask == 0) {
		NONE(ibv_create_cq_ex(context, &attr), EOPNOTSUPP);
		OK(ibv_close_device(context));
		return;
	}
	OK(ibv_close_device(context));
	pair_open(&p, &(struct plan){.how = BY_GID, .wc_flags = attr.wc_flags});
	cq = (struct ibv_cq_ex *)p.a.scq;
	recv_at(&p.b, 1, 0, 8);
	recv_at(&p.b, 2, 0, 8);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 8);
	start(cq);
	first = ibv_wc_read_completion_ts(cq);
	CHECK(first != 0);
	CHECK(ibv_wc_read_completion_wallclock_ns(cq) > 1600000000ULL * 1000000000);
	ibv_end_poll(cq);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 4, .length = 8);
	start(cq);
	CHECK(ibv_wc_read_completion_ts(cq) > first);
	ibv_end_poll(cq);
	pair_close(&p);
}

int main(void)
{
	struct ibv_context *context = open_device();

	create(context);
	OK(ibv_close_device(context));
	reading();
	mixed();
	failure();
	invalidated();
	timestamps();
	return 0;
}
