/* All operations of ibv_post_send, and what they say at both ends. */
#include "test.h"

static void fill(struct end *e, uint8_t seed)
{
	for (size_t i = 0; i < MEMORY; i++)
		e->memory[i] = (uint8_t)(i * 13 + seed);
}

static void sends(struct pair *p)
{
	static const uint32_t sizes[] = {0, 1, 63, 64, 65, 1000, 1448, 4096, 30000};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct ibv_wc wc;

		fill(&p->a, (uint8_t)i);
		memset(p->b.memory, 0, MEMORY);
		recv_at(&p->b, 1, 100, MEMORY - 100);
		post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = sizes[i]);
		wc = done(p->b.rcq, 1, IBV_WC_RECV);
		EQ(wc.byte_len, sizes[i]);
		EQ(wc.wc_flags, 0);
		EQ(memcmp(p->b.memory + 100, p->a.memory, sizes[i]), 0);
		EQ(p->b.memory[100 + sizes[i]], 0);
		done(p->a.scq, 2, IBV_WC_SEND);
	}
}

static void immediate(struct pair *p)
{
	struct ibv_wc wc;

	recv_at(&p->b, 1, 0, 100);
	post(&p->a, .opcode = IBV_WR_SEND_WITH_IMM, .wr_id = 2, .length = 100, .imm = 0xdeadbeef);
	wc = done(p->b.rcq, 1, IBV_WC_RECV);
	EQ(wc.byte_len, 100);
	EQ(wc.wc_flags, IBV_WC_WITH_IMM);
	EQ(ntohl(wc.imm_data), 0xdeadbeef);
	done(p->a.scq, 2, IBV_WC_SEND);

	recv_at(&p->b, 1, 0, 0); /* nothing is placed into the receive */
	fill(&p->a, 3);
	memset(p->b.memory, 0, MEMORY);
	post(&p->a, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .wr_id = 2, .length = 20000, .imm = 0x01020304,
	     .remote = to(&p->b, 1000), .rkey = p->b.mr->rkey);
	wc = done(p->b.rcq, 1, IBV_WC_RECV_RDMA_WITH_IMM);
	EQ(wc.byte_len, 20000);
	EQ(wc.wc_flags, IBV_WC_WITH_IMM);
	EQ(ntohl(wc.imm_data), 0x01020304);
	EQ(memcmp(p->b.memory + 1000, p->a.memory, 20000), 0); /* the data was there before */
	done(p->a.scq, 2, IBV_WC_RDMA_WRITE);

	recv_at(&p->b, 1, 0, 8); /* and of nothing */
	post(&p->a, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .wr_id = 2, .length = 0, .imm = 7, .remote = to(&p->b, 0),
	     .rkey = p->b.mr->rkey);
	wc = done(p->b.rcq, 1, IBV_WC_RECV_RDMA_WITH_IMM);
	EQ(wc.byte_len, 0);
	EQ(ntohl(wc.imm_data), 7);
	done(p->a.scq, 2, IBV_WC_RDMA_WRITE);
}

static void writes_and_reads(struct pair *p)
{
	static const uint32_t sizes[] = {1, 64, 1449, 30000};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		fill(&p->a, (uint8_t)(i + 50));
		memset(p->b.memory, 0, MEMORY);
		post(&p->a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = sizes[i], .remote = to(&p->b, 7),
		     .rkey = p->b.mr->rkey);
		done(p->a.scq, 1, IBV_WC_RDMA_WRITE);
		post(&p->a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .offset = 32000, .length = sizes[i],
		     .remote = to(&p->b, 7), .rkey = p->b.mr->rkey);
		EQ(done(p->a.scq, 2, IBV_WC_RDMA_READ).byte_len, sizes[i]);
		EQ(memcmp(p->a.memory, p->a.memory + 32000, sizes[i]), 0);
		EQ(memcmp(p->a.memory, p->b.memory + 7, sizes[i]), 0);
		EQ(p->b.memory[6], 0);
		EQ(p->b.memory[7 + sizes[i]], 0);
	}
	post(&p->a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .remote = to(&p->b, 7), .rkey = p->b.mr->rkey);
	done(p->a.scq, 1, IBV_WC_RDMA_WRITE);
	post(&p->a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .remote = to(&p->b, 7), .rkey = p->b.mr->rkey);
	done(p->a.scq, 2, IBV_WC_RDMA_READ);
}

static void atomics(struct pair *p)
{
	uint64_t *there = (uint64_t *)(p->b.memory + 64), *here = (uint64_t *)(p->a.memory + 128);

	*there = 40;
	post(&p->a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr_id = 1, .offset = 128, .length = 8,
	     .remote = to(&p->b, 64), .rkey = p->b.mr->rkey, .compare_add = 2);
	EQ(done(p->a.scq, 1, IBV_WC_FETCH_ADD).byte_len, 8);
	EQ(*here, 40);
	EQ(*there, 42);
	post(&p->a, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .wr_id = 2, .offset = 128, .length = 8,
	     .remote = to(&p->b, 64), .rkey = p->b.mr->rkey, .compare_add = 42, .swap = 0x1122334455667788);
	done(p->a.scq, 2, IBV_WC_COMP_SWAP);
	EQ(*here, 42);
	EQ(*there, 0x1122334455667788);
	post(&p->a, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .wr_id = 3, .offset = 128, .length = 8,
	     .remote = to(&p->b, 64), .rkey = p->b.mr->rkey, .compare_add = 42, .swap = 1); /* not equal */
	done(p->a.scq, 3, IBV_WC_COMP_SWAP);
	EQ(*here, 0x1122334455667788);
	EQ(*there, 0x1122334455667788);
}

/* Data is gathered from and scattered to several elements, some of them empty. */
static void lists(struct pair *p)
{
	struct ibv_sge from[4] = {sge(&p->a, 10, 5), sge(&p->a, 0, 0), sge(&p->a, 100, 2000), sge(&p->a, 3000, 1)};
	struct ibv_sge into[4] = {sge(&p->b, 0, 1), sge(&p->b, 50, 1500), sge(&p->b, 0, 0), sge(&p->b, 5000, 505)};
	struct ibv_recv_wr rwr = {.wr_id = 1, .sg_list = into, .num_sge = 4}, *bad_r;
	struct ibv_send_wr wr = {.wr_id = 2, .sg_list = from, .num_sge = 4, .send_flags = IBV_SEND_SIGNALED}, *bad;
	uint8_t sent[2006], got[2006];

	fill(&p->a, 9);
	memset(p->b.memory, 0, MEMORY);
	memcpy(sent, p->a.memory + 10, 5);
	memcpy(sent + 5, p->a.memory + 100, 2000);
	memcpy(sent + 2005, p->a.memory + 3000, 1);

	wr.opcode = IBV_WR_SEND;
	OK(ibv_post_recv(p->b.qp, &rwr, &bad_r));
	OK(ibv_post_send(p->a.qp, &wr, &bad));
	done(p->a.scq, 2, IBV_WC_SEND);
	EQ(done(p->b.rcq, 1, IBV_WC_RECV).byte_len, 2006);
	memcpy(got, p->b.memory, 1);
	memcpy(got + 1, p->b.memory + 50, 1500);
	memcpy(got + 1501, p->b.memory + 5000, 505);
	EQ(memcmp(sent, got, sizeof(sent)), 0);

	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = to(&p->b, 20000);
	wr.wr.rdma.rkey = p->b.mr->rkey;
	OK(ibv_post_send(p->a.qp, &wr, &bad));
	done(p->a.scq, 2, IBV_WC_RDMA_WRITE);

	memset(p->a.memory, 0, MEMORY); /* a Read with several sinks, which iWARP has not */
	wr.opcode = IBV_WR_RDMA_READ;
	OK(ibv_post_send(p->a.qp, &wr, &bad));
	done(p->a.scq, 2, IBV_WC_RDMA_READ);
	memcpy(got, p->a.memory + 10, 5);
	memcpy(got + 5, p->a.memory + 100, 2000);
	memcpy(got + 2005, p->a.memory + 3000, 1);
	EQ(memcmp(sent, got, sizeof(sent)), 0);
	EQ(p->a.memory[15], 0);
	EQ(p->a.memory[99], 0);
	EQ(p->a.memory[2100], 0);

	wr.opcode = IBV_WR_SEND; /* no element at all: a message of nothing */
	wr.num_sge = 0;
	wr.sg_list = NULL;
	rwr.num_sge = 0;
	rwr.sg_list = NULL;
	OK(ibv_post_recv(p->b.qp, &rwr, &bad_r));
	OK(ibv_post_send(p->a.qp, &wr, &bad));
	done(p->a.scq, 2, IBV_WC_SEND);
	EQ(done(p->b.rcq, 1, IBV_WC_RECV).byte_len, 0);
}

/* Inline data needs no region, and may be changed at once. */
static void inlined(struct pair *p)
{
	uint8_t data[64];
	struct ibv_sge s[2] = {{.addr = (uintptr_t)data, .length = 40}, {.addr = (uintptr_t)data + 40, .length = 24}};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = s,
				 .num_sge = 2,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
			   *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	memset(p->b.memory, 0, 200);
	recv_at(&p->b, 2, 0, 64);
	OK(ibv_post_send(p->a.qp, &wr, &bad));
	memset(data, 0, sizeof(data));
	done(p->a.scq, 1, IBV_WC_SEND);
	EQ(done(p->b.rcq, 2, IBV_WC_RECV).byte_len, 64);
	for (size_t i = 0; i < sizeof(data); i++)
		EQ(p->b.memory[i], i + 1);

	memset(data, 0x44, sizeof(data));
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = to(&p->b, 100);
	wr.wr.rdma.rkey = p->b.mr->rkey;
	OK(ibv_post_send(p->a.qp, &wr, &bad));
	memset(data, 0, sizeof(data));
	done(p->a.scq, 1, IBV_WC_RDMA_WRITE);
	recv_at(&p->b, 2, 0, 64);
	post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 1);
	done(p->b.rcq, 2, IBV_WC_RECV);
	done(p->a.scq, 3, IBV_WC_SEND);
	EQ(p->b.memory[100], 0x44);
	EQ(p->b.memory[163], 0x44);

	/* More than the queue pair takes is refused. */
	OK(ibv_query_qp(p->a.qp, &attr, IBV_QP_CAP, &init));
	s[0] = sge(&p->a, 0, attr.cap.max_inline_data + 1);
	wr.num_sge = 1;
	bad = NULL;
	EQ(ibv_post_send(p->a.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	/* And so is inline data of a Read, which has nothing to send. */
	s[0].length = 8;
	wr.opcode = IBV_WR_RDMA_READ;
	EQ(ibv_post_send(p->a.qp, &wr, &bad), EINVAL);
}

/* Requests that ask for no completion have none, and free their place with the next that has. */
static void unsignaled(struct pair *p)
{
	for (int round = 0; round < 10; round++) {
		for (uint64_t i = 0; i < 8; i++)
			recv_at(&p->b, i, 0, 8);
		for (uint64_t i = 0; i < 8; i++)
			post(&p->a, .opcode = IBV_WR_SEND, .wr_id = i, .length = 8, .unsignaled = i != 7);
		for (uint64_t i = 0; i < 8; i++)
			done(p->b.rcq, i, IBV_WC_RECV);
		done(p->a.scq, 7, IBV_WC_SEND);
		empty(p->a.scq);
	}
}

/* A list of requests is posted whole, up to the first that is wrong. */
static void list_of_requests(struct pair *p)
{
	struct ibv_sge s = sge(&p->a, 0, 8);
	struct ibv_send_wr wr[4], *bad = NULL;

	memset(wr, 0, sizeof(wr));
	for (size_t i = 0; i < COUNT(wr); i++) {
		wr[i].wr_id = i;
		wr[i].next = i + 1 < COUNT(wr) ? &wr[i + 1] : NULL;
		wr[i].sg_list = &s;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].send_flags = IBV_SEND_SIGNALED;
	}
	for (uint64_t i = 0; i < 6; i++)
		recv_at(&p->b, i, 0, 8);
	OK(ibv_post_send(p->a.qp, wr, &bad));
	for (uint64_t i = 0; i < 4; i++)
		done(p->a.scq, i, IBV_WC_SEND);
	wr[2].num_sge = 1000;
	EQ(ibv_post_send(p->a.qp, wr, &bad), EINVAL);
	CHECK(bad == &wr[2]);
	done(p->a.scq, 0, IBV_WC_SEND);
	done(p->a.scq, 1, IBV_WC_SEND);
	for (uint64_t i = 0; i < 6; i++)
		done(p->b.rcq, i, IBV_WC_RECV);
	empty(p->a.scq);
	wr[0].next = NULL;
	wr[0].opcode = (enum ibv_wr_opcode)77;
	EQ(ibv_post_send(p->a.qp, wr, &bad), EINVAL);
	CHECK(bad == &wr[0]);
	wr[0].opcode = IBV_WR_TSO; /* of datagrams */
	CHECK(ibv_post_send(p->a.qp, wr, &bad) != 0);
}

/* What is fenced waits for the Reads before it, and sees what they read. */
static void fence(struct pair *p)
{
	for (int i = 0; i < 20; i++) {
		memset(p->b.memory + 20000, i + 1, 20000);
		memset(p->a.memory, 0, 20000);
		recv_at(&p->b, 1, 0, 8);
		post(&p->a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .length = 20000, .remote = to(&p->b, 20000),
		     .rkey = p->b.mr->rkey);
		post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 3, .offset = 19992, .length = 8, .flags = IBV_SEND_FENCE);
		done(p->a.scq, 2, IBV_WC_RDMA_READ);
		done(p->a.scq, 3, IBV_WC_SEND);
		done(p->b.rcq, 1, IBV_WC_RECV);
		EQ(p->b.memory[7], i + 1);
	}
}

/* More Reads than may be outstanding at once wait for each other. */
static void many_reads(struct pair *p)
{
	fill(&p->b, 77);
	for (uint64_t i = 0; i < 16; i++)
		post(&p->a, .opcode = IBV_WR_RDMA_READ, .wr_id = i, .offset = 2000 * i, .length = 2000,
		     .remote = to(&p->b, 2000 * i), .rkey = p->b.mr->rkey);
	for (uint64_t i = 0; i < 16; i++)
		done(p->a.scq, i, IBV_WC_RDMA_READ);
	EQ(memcmp(p->a.memory, p->b.memory, 32000), 0);
}

static void all(struct pair *p)
{
	sends(p);
	immediate(p);
	writes_and_reads(p);
	atomics(p);
	lists(p);
	inlined(p);
	unsignaled(p);
	list_of_requests(p);
	fence(p);
	many_reads(p);
}

/* The same from the other end, which has not dialled. */
static struct pair swapped(const struct pair *p)
{
	return (struct pair){.a = p->b, .b = p->a, .listener = p->listener};
}

int main(void)
{
	for (int how = BY_CM; how <= BY_GID; how++) {
		struct pair p, other;

		pair_open(&p, &(struct plan){.how = (enum how)how});
		other = swapped(&p);
		all(&other); /* first, who has not dialled: its data may come before the peer's */
		all(&p);
		pair_close(&p);
	}
	{
		struct pair p; /* sq_sig_all: each request completes */

		pair_open(&p, &(struct plan){.how = BY_GID, .sig_all = true});
		recv_at(&p.b, 1, 0, 8);
		post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8, .unsignaled = true);
		done(p.a.scq, 2, IBV_WC_SEND);
		pair_close(&p);
	}
	return 0;
}
