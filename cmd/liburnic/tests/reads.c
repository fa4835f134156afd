/* RDMA Reads with several sinks: each is one request, whatever goes over the wire. */
#include "test.h"

#define DEPTH 2
#define SINKS 8
#define SIZE 16 /* of a sink */
#define READ (SINKS * SIZE)

static const struct plan plan = {.how = BY_GID, .cap = {.max_send_wr = DEPTH, .max_send_sge = SINKS}};

/* Fills the peer's memory with bytes that differ. */
static void fill(struct pair *p)
{
	for (size_t i = 0; i < MEMORY; i++)
		p->b.memory[i] = (uint8_t)(i * 7 + 1);
}

/* The sinks of read i: every other SIZE bytes of a's memory. */
static void sinks(const struct pair *p, int i, struct ibv_sge *sges)
{
	for (int k = 0; k < SINKS; k++)
		sges[k] = sge(&p->a, (size_t)(2 * (i * SINKS + k) * SIZE), SIZE);
}

/* Wants read i to have brought its data. */
static void check(struct pair *p, int i)
{
	for (int k = 0; k < SINKS; k++) {
		const uint8_t *sink = p->a.memory + 2 * (i * SINKS + k) * SIZE;

		EQ(memcmp(sink, p->b.memory + i * READ + k * SIZE, SIZE), 0);
		for (int j = SIZE; j < 2 * SIZE; j++)
			EQ(sink[j], 0);
	}
}

static struct ibv_send_wr read_of(const struct pair *p, int i, struct ibv_sge *sges)
{
	sinks(p, i, sges);
	return (struct ibv_send_wr){
		.wr_id = (uint64_t)i,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = sges,
		.num_sge = SINKS,
		.wr.rdma = {.remote_addr = to(&p->b, (size_t)(i * READ)), .rkey = p->b.mr->rkey},
	};
}

/* The queue takes as many Reads as it has places. One more is refused, and has no effect. */
static void depth(void)
{
	struct ibv_sge sges[DEPTH + 1][SINKS];
	struct ibv_send_wr wrs[DEPTH + 1], *bad = NULL;
	struct pair p;

	pair_open(&p, &plan);
	fill(&p);
	for (int i = 0; i <= DEPTH; i++) {
		wrs[i] = read_of(&p, i, sges[i]);
		wrs[i].next = i < DEPTH ? &wrs[i + 1] : NULL;
	}
	EQ(ibv_post_send(p.a.qp, wrs, &bad), ENOMEM);
	CHECK(bad == &wrs[DEPTH]);
	for (int i = 0; i < DEPTH; i++) {
		EQ(done(p.a.scq, (uint64_t)i, IBV_WC_RDMA_READ).byte_len, READ);
		check(&p, i);
	}
	empty(p.a.scq);
	for (int i = 0; i < 2 * READ; i++)
		EQ(p.a.memory[2 * DEPTH * READ + i], 0);
	pair_close(&p);
}

/* The same by ibv_wr_*. */
static void extended(void)
{
	struct plan with_ops = plan;
	struct ibv_sge sges[SINKS];
	struct ibv_qp_ex *ex;
	struct pair p;

	with_ops.send_ops = IBV_QP_EX_WITH_RDMA_READ;
	pair_open(&p, &with_ops);
	fill(&p);
	CHECK(ex = ibv_qp_to_qp_ex(p.a.qp));
	for (int round = 0; round < 3; round++) {
		memset(p.a.memory, 0, MEMORY);
		ibv_wr_start(ex);
		for (int i = 0; i < DEPTH; i++) {
			ex->wr_id = (uint64_t)i;
			ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_rdma_read(ex, p.b.mr->rkey, to(&p.b, (size_t)(i * READ)));
			sinks(&p, i, sges);
			ibv_wr_set_sge_list(ex, SINKS, sges);
		}
		OK(ibv_wr_complete(ex));
		for (int i = 0; i < DEPTH; i++) {
			EQ(done(p.a.scq, (uint64_t)i, IBV_WC_RDMA_READ).byte_len, READ);
			check(&p, i);
		}
		empty(p.a.scq);
	}
	pair_close(&p);
}

/* A Read whose last sink can't be used completes once, with an error, and brings nothing. */
static void bad_sink(void)
{
	struct ibv_sge sges[SINKS];
	struct ibv_send_wr wr, *bad;
	struct pair p;

	pair_open(&p, &plan);
	fill(&p);
	wr = read_of(&p, 0, sges);
	wr.send_flags = 0;
	sges[SINKS - 1].lkey ^= 0x100;
	OK(ibv_post_send(p.a.qp, &wr, &bad));
	want_wc(p.a.scq, 0, IBV_WC_LOC_PROT_ERR, 0);
	empty(p.a.scq);
	for (int i = 0; i < 2 * READ; i++)
		EQ(p.a.memory[i], 0);
	pair_close(&p);
}

/* A Read that is flushed is flushed once. */
static void flushed(void)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_sge sges[SINKS];
	struct ibv_send_wr wr, *bad;
	struct pair p;

	pair_unconnected(&p, &plan);
	wr = read_of(&p, 7, sges);
	wr.send_flags = 0;
	OK(ibv_post_send(p.a.qp, &wr, &bad));
	OK(ibv_modify_qp(p.a.qp, &error, IBV_QP_STATE));
	want_wc(p.a.scq, 7, IBV_WC_WR_FLUSH_ERR, 0);
	empty(p.a.scq);
	pair_close(&p);
}

int main(void)
{
	depth();
	extended();
	bad_sink();
	flushed();
	return 0;
}
