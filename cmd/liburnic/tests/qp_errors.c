/* How work requests fail, and what becomes of those behind them. */
#include "test.h"

static enum ibv_qp_state state(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	OK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* In the state ERR, all that was posted is flushed, in order, and all that is posted later too. */
static void flush(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	for (uint64_t i = 0; i < 4; i++)
		recv_at(&p.a, i, 0, 8);
	OK(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_wc wc = want_wc(p.a.rcq, i, IBV_WC_WR_FLUSH_ERR, 0);

		EQ(wc.qp_num, p.a.qp->qp_num);
	}
	recv_at(&p.a, 10, 0, 8);
	want_wc(p.a.rcq, 10, IBV_WC_WR_FLUSH_ERR, 0);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 11, .length = 8);
	want_wc(p.a.scq, 11, IBV_WC_WR_FLUSH_ERR, 0);
	/* One that asks for no completion has one if it fails. */
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 12, .length = 8, .unsignaled = true);
	want_wc(p.a.scq, 12, IBV_WC_WR_FLUSH_ERR, 0);
	EQ(state(p.a.qp), IBV_QPS_ERR);
	pair_close(&p);
}

/* The end of one side is seen by the other, and its requests are flushed: by rdma_cm at once. */
static void peer_ends(void)
{
	for (int how = BY_CM; how <= BY_GID; how++) {
		struct pair p;

		pair_open(&p, &(struct plan){.how = (enum how)how});
		recv_at(&p.b, 1, 0, 8); /* once the connection is there: by GID, that takes a while */
		post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
		done(p.b.rcq, 1, IBV_WC_RECV);
		recv_at(&p.b, 1, 0, 8);
		OK(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
		if (how == BY_GID) {
			/* As on InfiniBand, nothing tells the other: it finds out when it sends. */
			enum ibv_wc_status status;

			empty(p.b.rcq);
			do { /* what leaves before the end is known has left */
				post(&p.b, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 8);
				status = wait_wc(p.b.scq).status;
			} while (status == IBV_WC_SUCCESS);
			EQ(status, IBV_WC_RETRY_EXC_ERR);
		}
		want_wc(p.b.rcq, 1, IBV_WC_WR_FLUSH_ERR, 0);
		pair_close(&p);
	}
}

/* Only the first failure has a status of its own. */
static void first_failure(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	recv_at(&p.a, 50, 0, 8);
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 1, .length = 8, .remote = to(&p.b, 0),
	     .rkey = p.b.mr->rkey ^ 0xffff00, .unsignaled = true);
	for (uint64_t i = 2; i < 6; i++)
		post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = i, .length = 8, .remote = to(&p.b, 0),
		     .rkey = p.b.mr->rkey, .flags = IBV_SEND_FENCE);
	want_wc(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR, 0);
	for (uint64_t i = 2; i < 6; i++)
		want_wc(p.a.scq, i, IBV_WC_WR_FLUSH_ERR, 0);
	want_wc(p.a.rcq, 50, IBV_WC_WR_FLUSH_ERR, 0);
	EQ(state(p.a.qp), IBV_QPS_ERR);
	pair_close(&p);
}

/* A receive of too few bytes: LOC_LEN_ERR here, REM_INV_REQ_ERR or the end there. */
static void too_short(void)
{
	struct pair p;
	struct ibv_wc wc;

	pair_open(&p, &(struct plan){.how = BY_GID});
	memset(p.a.memory, 0x66, 100);
	recv_at(&p.b, 1, 0, 10);
	recv_at(&p.b, 2, 0, 100);
	recv_at(&p.a, 3, 200, 8);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 4, .length = 11);
	want_wc(p.b.rcq, 1, IBV_WC_LOC_LEN_ERR, 0);
	EQ(p.b.memory[10], 0);
	want_wc(p.b.rcq, 2, IBV_WC_WR_FLUSH_ERR, 0);
	wc = wait_wc(p.a.scq); /* success, if it was told as soon as it was sent, as iWARP may */
	EQ(wc.wr_id, 4);
	if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR)
		EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
	want_wc(p.a.rcq, 3, IBV_WC_WR_FLUSH_ERR, 0);
	pair_close(&p);
}

/* A message without a receive: the sender waits, or hears of it (RNR); no receive is wrong here. */
static void no_receive(void)
{
	struct pair p;
	struct ibv_wc wc;

	pair_open(&p, &(struct plan){.how = BY_GID});
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 1, .length = 8);
	recv_at(&p.b, 2, 0, 8); /* later, as programs do that rely on RNR retries */
	wc = wait_wc(p.b.rcq);
	EQ(wc.wr_id, 2);
	EQ(wc.status, IBV_WC_SUCCESS);
	done(p.a.scq, 1, IBV_WC_SEND);
	pair_close(&p);
}

/* lkeys that are none. */
static void wrong_lkeys(void)
{
	struct ibv_sge s;
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &s, .num_sge = 1}, *bad;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 1, .length = 8, .lkey = p.a.mr->lkey ^ 0xffff00);
	want_wc(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, 0);
	EQ(state(p.a.qp), IBV_QPS_ERR);
	pair_close(&p);

	pair_open(&p, &(struct plan){.how = BY_GID});
	s = sge(&p.b, 0, 8);
	s.lkey ^= 0xffff00;
	OK(ibv_post_recv(p.b.qp, &wr, &bad));
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	want_wc(p.b.rcq, 1, IBV_WC_LOC_PROT_ERR, 0);
	EQ(p.b.memory[0], 0);
	pair_close(&p);

	pair_open(&p, &(struct plan){.how = BY_GID}); /* the sink of a Read */
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 1, .length = 8, .lkey = p.a.mr->lkey ^ 0xffff00,
	     .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
	want_wc(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, 0);
	pair_close(&p);

	pair_open(&p, &(struct plan){.how = BY_GID}); /* the source of a Write; behind what succeeds */
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8, .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 2, .length = 8, .lkey = p.a.mr->lkey ^ 0xffff00,
	     .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
	done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	want_wc(p.a.scq, 2, IBV_WC_LOC_PROT_ERR, 0);
	pair_close(&p);
}

/* An atomic beside its alignment, or with a wrong length. */
static void wrong_atomics(void)
{
	struct pair p;
	struct ibv_wc wc;

	pair_open(&p, &(struct plan){.how = BY_GID});
	post(&p.a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr_id = 1, .length = 8, .remote = to(&p.b, 4),
	     .rkey = p.b.mr->rkey, .compare_add = 1);
	wc = wait_wc(p.a.scq); /* the second: what the Terminate of RFC 7306 s.8.2 says */
	EQ(wc.wr_id, 1);
	CHECK(wc.status == IBV_WC_REM_INV_REQ_ERR || wc.status == IBV_WC_REM_OP_ERR);
	EQ(p.b.memory[4], 0);
	pair_close(&p);

	pair_open(&p, &(struct plan){.how = BY_GID});
	EQ(try_post(&p.a, &(struct op){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr_id = 1, .length = 4,
				       .remote = to(&p.b, 0), .rkey = p.b.mr->rkey, .compare_add = 1}),
	   EINVAL);
	EQ(p.b.memory[0], 0);
	pair_close(&p);
}

/* Reads and atomics where none may be outstanding. */
static void no_read_resources(void)
{
	struct pair p;
	struct ibv_wc wc;

	pair_open(&p, &(struct plan){.how = BY_GID, .rd_atomic = -1});
	if (try_post(&p.a, &(struct op){.opcode = IBV_WR_RDMA_READ, .wr_id = 1, .length = 8, .remote = to(&p.b, 0),
					.rkey = p.b.mr->rkey}) == 0) {
		wc = wait_wc(p.a.scq);
		EQ(wc.wr_id, 1);
		CHECK(wc.status == IBV_WC_LOC_QP_OP_ERR || wc.status == IBV_WC_REM_INV_REQ_ERR);
	}
	pair_close(&p);
}

/* A key to invalidate that names nothing. */
static void wrong_invalidation(void)
{
	struct pair p;
	struct ibv_wc wc;

	pair_open(&p, &(struct plan){.how = BY_GID});
	post(&p.a, .opcode = IBV_WR_LOCAL_INV, .wr_id = 1, .imm = p.a.mr->rkey ^ 0xffff00);
	wc = wait_wc(p.a.scq);
	EQ(wc.wr_id, 1);
	CHECK(wc.status == IBV_WC_MW_BIND_ERR || wc.status == IBV_WC_LOC_PROT_ERR || wc.status == IBV_WC_LOC_QP_OP_ERR);
	pair_close(&p);
}

/* The rights of a queue pair say what a peer may do, whatever the region's are. */
static void rights_of_the_queue_pair(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .access = IBV_ACCESS_REMOTE_WRITE});
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8, .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
	done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .length = 8, .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
	{
		struct ibv_wc wc = wait_wc(p.a.scq);

		EQ(wc.wr_id, 2);
		CHECK(wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_INV_REQ_ERR);
	}
	pair_close(&p);
}

/* To destroy a queue pair with all kinds of requests posted and outstanding. */
static void destroy_in_flight(void)
{
	for (int i = 0; i < 20; i++) {
		struct pair p;

		pair_open(&p, &(struct plan){.how = BY_GID});
		for (uint64_t j = 0; j < 4; j++) {
			recv_at(&p.b, j, 0, 30000);
			post(&p.a, .opcode = IBV_WR_SEND, .length = 30000);
			post(&p.a, .opcode = IBV_WR_RDMA_READ, .length = 30000, .remote = to(&p.b, 0),
			     .rkey = p.b.mr->rkey);
			post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .length = 30000, .remote = to(&p.b, 30000),
			     .rkey = p.b.mr->rkey);
		}
		if (i % 2) {
			OK(ibv_destroy_qp(p.a.qp));
			p.a.qp = NULL;
		} else {
			OK(ibv_destroy_qp(p.b.qp));
			p.b.qp = NULL;
		}
		pair_close(&p);
	}
}

int main(void)
{
	flush();
	peer_ends();
	first_failure();
	too_short();
	no_receive();
	wrong_lkeys();
	wrong_atomics();
	no_read_resources();
	wrong_invalidation();
	rights_of_the_queue_pair();
	destroy_in_flight();
	return 0;
}
