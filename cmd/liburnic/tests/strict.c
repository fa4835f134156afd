/* URNIC_STRICT: what hardware for iWARP refuses is refused, so that a program can be tested for it. */
#include "test.h"

int main(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED, .num_sge = 2}, *bad = NULL;
	struct ibv_sge s[2];
	struct ibv_mr *mr;
	struct pair p;

	OK(setenv("URNIC_STRICT", "1", 1));
	pair_open(&p, &(struct plan){.how = BY_CM});
	/* A Read with several sinks (RFC 5040 s.4.4: it names one). */
	s[0] = sge(&p.a, 0, 8);
	s[1] = sge(&p.a, 8, 8);
	wr.sg_list = s;
	wr.wr.rdma.remote_addr = to(&p.b, 0);
	wr.wr.rdma.rkey = p.b.mr->rkey;
	CHECK(ibv_post_send(p.a.qp, &wr, &bad) != 0);
	CHECK(bad == &wr);
	pair_close(&p);

	/* A Read into a region that the peer may not write to (RFC 5040 s.5.1). */
	pair_open(&p, &(struct plan){.how = BY_CM});
	CHECK(mr = ibv_reg_mr(p.a.pd, p.a.memory, 64, IBV_ACCESS_LOCAL_WRITE));
	if (try_post(&p.a, &(struct op){.opcode = IBV_WR_RDMA_READ, .wr_id = 1, .length = 8, .lkey = mr->lkey,
					.remote = to(&p.b, 0), .rkey = p.b.mr->rkey}) == 0) {
		struct ibv_wc wc = wait_wc(p.a.scq);

		CHECK(wc.status == IBV_WC_LOC_PROT_ERR || wc.status == IBV_WC_LOC_ACCESS_ERR);
	}
	OK(ibv_dereg_mr(mr));
	pair_close(&p);

	/* Immediate data (hardware of RFC 5040 has none). */
	pair_open(&p, &(struct plan){.how = BY_CM});
	recv_at(&p.b, 1, 0, 8);
	CHECK(try_post(&p.a, &(struct op){.opcode = IBV_WR_SEND_WITH_IMM, .wr_id = 2, .length = 8, .imm = 5}) != 0);
	pair_close(&p);

	/* What hardware does is as it was. */
	pair_open(&p, &(struct plan){.how = BY_CM});
	recv_at(&p.b, 1, 0, 8);
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .length = 8, .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 8);
	done(p.a.scq, 2, IBV_WC_RDMA_READ);
	done(p.a.scq, 3, IBV_WC_SEND);
	done(p.b.rcq, 1, IBV_WC_RECV);
	pair_close(&p);
	return 0;
}
