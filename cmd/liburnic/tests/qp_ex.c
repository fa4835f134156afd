/* Extended queue pairs: work requests built by ibv_wr_*. */
#include "test.h"

#define ALL_SEND_OPS                                                                                                   \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |                        \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                 \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |                     \
	 IBV_QP_EX_WITH_SEND_WITH_INV)

static struct ibv_qp_ex *begin(struct end *e, uint64_t wr_id)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(e->qp);

	CHECK(qpx != NULL);
	ibv_wr_start(qpx);
	qpx->wr_id = wr_id;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	return qpx;
}

static void each_operation(struct pair *p)
{
	struct ibv_data_buf buffers[2];
	struct ibv_sge s[2];
	struct ibv_qp_ex *qpx;
	uint64_t number = 5;
	struct ibv_wc wc;

	for (uint64_t i = 0; i < 3; i++)
		recv_at(&p->b, 10 + i, 1000 * i, 1000);
	memset(p->a.memory, 0x21, 500);

	qpx = begin(&p->a, 1);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 0), 500);
	OK(ibv_wr_complete(qpx));
	done(p->a.scq, 1, IBV_WC_SEND);
	EQ(done(p->b.rcq, 10, IBV_WC_RECV).byte_len, 500);
	EQ(p->b.memory[499], 0x21);

	qpx = begin(&p->a, 2);
	ibv_wr_send_imm(qpx, htonl(0xcafe));
	s[0] = sge(&p->a, 0, 100);
	s[1] = sge(&p->a, 400, 100);
	ibv_wr_set_sge_list(qpx, 2, s);
	OK(ibv_wr_complete(qpx));
	done(p->a.scq, 2, IBV_WC_SEND);
	wc = done(p->b.rcq, 11, IBV_WC_RECV);
	EQ(wc.byte_len, 200);
	EQ(ntohl(wc.imm_data), 0xcafe);

	qpx = begin(&p->a, 3);
	ibv_wr_rdma_write(qpx, p->b.mr->rkey, to(&p->b, 5000));
	ibv_wr_set_inline_data(qpx, &number, sizeof(number));
	number = 0; /* it was copied */
	OK(ibv_wr_complete(qpx));
	done(p->a.scq, 3, IBV_WC_RDMA_WRITE);

	number = 6;
	qpx = begin(&p->a, 4);
	ibv_wr_rdma_write_imm(qpx, p->b.mr->rkey, to(&p->b, 5008), htonl(0xf00d));
	buffers[0] = (struct ibv_data_buf){&number, sizeof(number)};
	buffers[1] = (struct ibv_data_buf){&number, 4};
	ibv_wr_set_inline_data_list(qpx, 2, buffers);
	OK(ibv_wr_complete(qpx));
	done(p->a.scq, 4, IBV_WC_RDMA_WRITE);
	wc = done(p->b.rcq, 12, IBV_WC_RECV_RDMA_WITH_IMM);
	EQ(wc.byte_len, 12);
	EQ(ntohl(wc.imm_data), 0xf00d);
	EQ(p->b.memory[5000], 5);
	EQ(p->b.memory[5008], 6);
	EQ(p->b.memory[5016], 6);

	qpx = begin(&p->a, 5);
	ibv_wr_rdma_read(qpx, p->b.mr->rkey, to(&p->b, 5000));
	ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 6000), 16);
	OK(ibv_wr_complete(qpx));
	done(p->a.scq, 5, IBV_WC_RDMA_READ);
	EQ(p->a.memory[6000], 5);
	EQ(p->a.memory[6008], 6);

	qpx = begin(&p->a, 6);
	ibv_wr_atomic_fetch_add(qpx, p->b.mr->rkey, to(&p->b, 5000), 10);
	ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 6000), 8);
	OK(ibv_wr_complete(qpx));
	done(p->a.scq, 6, IBV_WC_FETCH_ADD);
	EQ(*(uint64_t *)(p->a.memory + 6000), 5);

	qpx = begin(&p->a, 7);
	ibv_wr_atomic_cmp_swp(qpx, p->b.mr->rkey, to(&p->b, 5000), 15, 99);
	ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 6000), 8);
	OK(ibv_wr_complete(qpx));
	done(p->a.scq, 7, IBV_WC_COMP_SWAP);
	EQ(*(uint64_t *)(p->a.memory + 6000), 15);
	EQ(*(uint64_t *)(p->b.memory + 5000), 99);
}

static void windows(struct pair *p)
{
	struct ibv_mw_bind_info info = {.addr = to(&p->b, 0), .length = 100, .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_ex *qpx;
	struct ibv_wc wc;
	struct ibv_mw *mw;
	uint32_t key;

	CHECK(info.mr = ibv_reg_mr(p->b.pd, p->b.memory, MEMORY, ALL_ACCESS | IBV_ACCESS_MW_BIND));
	CHECK(mw = ibv_alloc_mw(p->b.pd, IBV_MW_TYPE_2));
	key = mw->rkey;
	for (int i = 0; i < 2; i++) {
		key = ibv_inc_rkey(key);
		qpx = begin(&p->b, 1);
		ibv_wr_bind_mw(qpx, mw, key, &info);
		OK(ibv_wr_complete(qpx));
		done(p->b.scq, 1, IBV_WC_BIND_MW);
		qpx = begin(&p->a, 2);
		ibv_wr_rdma_read(qpx, key, to(&p->b, 99));
		ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 0), 1);
		OK(ibv_wr_complete(qpx));
		done(p->a.scq, 2, IBV_WC_RDMA_READ);
		if (i == 0) {
			qpx = begin(&p->b, 3);
			ibv_wr_local_inv(qpx, key);
			OK(ibv_wr_complete(qpx));
			done(p->b.scq, 3, IBV_WC_LOCAL_INV);
			continue;
		}
		recv_at(&p->b, 4, 0, 8);
		qpx = begin(&p->a, 5);
		ibv_wr_send_inv(qpx, key);
		ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 0), 8);
		OK(ibv_wr_complete(qpx));
		done(p->a.scq, 5, IBV_WC_SEND);
		wc = done(p->b.rcq, 4, IBV_WC_RECV);
		EQ(wc.wc_flags, IBV_WC_WITH_INV);
		EQ(wc.invalidated_rkey, key);
	}
	OK(ibv_dealloc_mw(mw));
	OK(ibv_dereg_mr(info.mr));
}

/* Several requests between start and complete are posted together. */
static void batch(struct pair *p)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(p->a.qp);

	for (uint64_t i = 0; i < 8; i++)
		recv_at(&p->b, i, 8 * i, 8);
	ibv_wr_start(qpx);
	for (uint64_t i = 0; i < 8; i++) {
		p->a.memory[8 * i] = (uint8_t)(i + 100);
		qpx->wr_id = i;
		qpx->wr_flags = i == 7 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_send(qpx);
		ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 8 * i), 8);
	}
	OK(ibv_wr_complete(qpx));
	done(p->a.scq, 7, IBV_WC_SEND);
	for (uint64_t i = 0; i < 8; i++) {
		done(p->b.rcq, i, IBV_WC_RECV);
		EQ(p->b.memory[8 * i], i + 100);
	}
	empty(p->a.scq);
}

/* abort takes back all since start. */
static void aborted(struct pair *p)
{
	struct ibv_qp_ex *qpx = begin(&p->a, 1);

	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 0), 8);
	ibv_wr_abort(qpx);
	recv_at(&p->b, 2, 0, 8);
	p->a.memory[50] = 0xab;
	qpx = begin(&p->a, 3);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 50), 1);
	OK(ibv_wr_complete(qpx));
	done(p->a.scq, 3, IBV_WC_SEND);
	EQ(done(p->b.rcq, 2, IBV_WC_RECV).byte_len, 1);
	EQ(p->b.memory[0], 0xab);
	empty(p->a.scq);
}

/* A mistake anywhere fails the whole, at complete, and nothing of it is posted. */
static void mistakes(struct pair *p)
{
	static uint8_t much[1 << 16];
	struct ibv_qp_ex *qpx = begin(&p->a, 1);

	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, much, sizeof(much));
	EQ(ibv_wr_complete(qpx), EINVAL);
	empty(p->a.scq);

	qpx = begin(&p->a, 1); /* more requests than the queue takes */
	for (int i = 0; i < 20000; i++) {
		ibv_wr_send(qpx);
		ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 0), 8);
	}
	EQ(ibv_wr_complete(qpx), ENOMEM);
	empty(p->a.scq);

	for (int i = 0; i < 4; i++) { /* what reliable connections of iWARP have not */
		qpx = begin(&p->a, 1);
		if (i == 0) {
			ibv_wr_send_tso(qpx, much, 14, 1000);
		} else if (i == 1) {
			ibv_wr_atomic_write(qpx, p->b.mr->rkey, to(&p->b, 0), much);
		} else {
			ibv_wr_send(qpx);
			if (i == 2)
				ibv_wr_set_ud_addr(qpx, NULL, 1, 1);
			else
				ibv_wr_set_xrc_srqn(qpx, 1);
		}
		EQ(ibv_wr_complete(qpx), EOPNOTSUPP);
		empty(p->a.scq);
	}

	recv_at(&p->b, 2, 0, 8); /* it still works, and so does the plain way to post */
	post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 8);
	done(p->a.scq, 3, IBV_WC_SEND);
	done(p->b.rcq, 2, IBV_WC_RECV);
}

/* What the queue has no room for, or an engine refuses, leaves nothing posted (ibv_wr_post(3)). */
static void all_or_none(struct pair *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp_ex *qpx;
	uint64_t room;

	OK(ibv_query_qp(p->a.qp, &attr, IBV_QP_CAP, &init));
	room = init.cap.max_send_wr;
	CHECK(room >= 4);
	for (uint64_t i = 0; i < 3; i++)
		recv_at(&p->b, i, 8 * i, 8);
	for (uint64_t i = 0; i < 2; i++) /* these hold their places until they are polled */
		post(&p->a, .opcode = IBV_WR_SEND, .wr_id = i, .length = 8);
	for (uint64_t i = 0; i < 2; i++)
		done(p->b.rcq, i, IBV_WC_RECV);

	qpx = begin(&p->a, 100);
	for (uint64_t i = 0; i < room - 1; i++) {
		ibv_wr_send(qpx);
		ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 0), 8);
	}
	EQ(ibv_wr_complete(qpx), ENOMEM);

	qpx = begin(&p->a, 101); /* the second is malformed: an atomic operation has 8 bytes */
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 0), 8);
	ibv_wr_atomic_fetch_add(qpx, p->b.mr->rkey, to(&p->b, 5000), 1);
	ibv_wr_set_sge(qpx, p->a.mr->lkey, to(&p->a, 0), 4);
	EQ(ibv_wr_complete(qpx), EINVAL);

	for (uint64_t i = 0; i < 2; i++)
		done(p->a.scq, i, IBV_WC_SEND);
	post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 7, .length = 5);
	done(p->a.scq, 7, IBV_WC_SEND);
	EQ(done(p->b.rcq, 2, IBV_WC_RECV).byte_len, 5); /* it comes right behind the first two */
}

/* Operations that the device has not, and a queue pair that was not made for any. */
static void not_there(void)
{
	struct ibv_context *context = open_device();
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	struct ibv_qp *qp;

	CHECK(attr.pd = ibv_alloc_pd(context));
	CHECK(attr.send_cq = attr.recv_cq = ibv_create_cq(context, 10, NULL, NULL, 0));
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	CHECK(qp = ibv_create_qp_ex(context, &attr));
	CHECK(ibv_qp_to_qp_ex(qp) != NULL);
	OK(ibv_destroy_qp(qp));
	attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
	NONE(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
	attr.send_ops_flags = 1ULL << 50;
	NONE(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	NONE(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
	attr.create_flags = 0;
	CHECK(qp = ibv_create_qp_ex(context, &attr));
	CHECK(ibv_qp_to_qp_ex(qp) == NULL);
	OK(ibv_destroy_qp(qp));
	attr.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS; /* without a domain */
	NONE(ibv_create_qp_ex(context, &attr), EINVAL);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD;
	NONE(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
	NONE(ibv_create_qp_ex(context, &attr), EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	CHECK(qp = ibv_create_qp_ex(context, &attr));
	OK(ibv_destroy_qp(qp));
	OK(ibv_destroy_cq(attr.send_cq));
	OK(ibv_dealloc_pd(attr.pd));
	OK(ibv_close_device(context));
}

int main(void)
{
	for (int how = BY_CM; how <= BY_GID; how++) {
		struct pair p;

		pair_open(&p, &(struct plan){.how = (enum how)how, .send_ops = ALL_SEND_OPS});
		each_operation(&p);
		windows(&p);
		batch(&p);
		aborted(&p);
		mistakes(&p);
		all_or_none(&p);
		pair_close(&p);
	}
	not_there();
	return 0;
}
