/* Regions that are no range of memory, null ones and implicit ones: URNIC_TRANSPORT=ethernet. */
#include "test.h"

#include <sys/mman.h>

/* An SGE with a null region, at any address: it is read as zeros, and what is written into it is dropped. */
static struct ibv_sge null_sge(const struct ibv_mr *null, uint64_t addr, uint32_t length)
{
	return (struct ibv_sge){.addr = addr, .length = length, .lkey = null->lkey};
}

static void send_list(struct end *e, struct ibv_sge *list, int n, enum ibv_wr_opcode opcode, uint64_t remote, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 5, .sg_list = list, .num_sge = n, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	OK(ibv_post_send(e->qp, &wr, &bad));
}

static void null_regions(bool srq)
{
	struct ibv_mr *null_a, *null_b;
	struct ibv_recv_wr recv = {.wr_id = 1, .num_sge = 2}, *bad;
	struct ibv_sge list[2];
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .srq = srq});
	CHECK(null_a = ibv_alloc_null_mr(p.a.pd));
	CHECK(null_b = ibv_alloc_null_mr(p.b.pd));
	CHECK(null_a->lkey != null_b->lkey);
	CHECK(null_a->addr == NULL && null_a->pd == p.a.pd && null_a->context == p.a.context);

	/* A Send of zeros and then of memory; a receive whose first bytes are dropped. */
	memset(p.a.memory, 7, 100);
	memset(p.b.memory, 9, 200);
	list[0] = null_sge(null_b, 0, 10);
	list[1] = sge(&p.b, 0, 100);
	recv.sg_list = list;
	OK(srq ? ibv_post_srq_recv(p.b.srq, &recv, &bad) : ibv_post_recv(p.b.qp, &recv, &bad));
	EQ(list[0].lkey, null_b->lkey); /* the program's list stays */
	list[0] = null_sge(null_a, UINT64_MAX - 5, 40);
	list[1] = sge(&p.a, 0, 20);
	send_list(&p.a, list, 2, IBV_WR_SEND, 0, 0);
	done(p.a.scq, 5, IBV_WC_SEND);
	done(p.b.rcq, 1, IBV_WC_RECV);
	for (int i = 0; i < 100; i++)
		EQ(p.b.memory[i], i < 30 ? 0 : i < 50 ? 7 : 9);

	/* RDMA: zeros to the peer, of more than what a sink keeps; and what is read is dropped, and never read again. */
	memset(p.b.memory, 3, MEMORY);
	list[0] = null_sge(null_a, 0x1234, 1000);
	send_list(&p.a, list, 1, IBV_WR_RDMA_READ, (uintptr_t)p.b.memory, p.b.mr->rkey);
	done(p.a.scq, 5, IBV_WC_RDMA_READ);
	list[0] = null_sge(null_a, 1, 1000);
	send_list(&p.a, list, 1, IBV_WR_RDMA_WRITE, (uintptr_t)p.b.memory, p.b.mr->rkey);
	done(p.a.scq, 5, IBV_WC_RDMA_WRITE);
	for (int i = 0; i < 1100; i++)
		EQ(p.b.memory[i], i < 1000 ? 0 : 3);

	OK(ibv_dereg_mr(null_b));
	list[0] = null_sge(null_a, 0, 8);
	OK(ibv_dereg_mr(null_a));
	send_list(&p.a, list, 1, IBV_WR_SEND, 0, 0);
	want_wc(p.a.scq, 5, IBV_WC_LOC_PROT_ERR, 0);
	pair_close(&p);
}

/* A null region takes as much as an SGE can hold. */
static void great_null_region(void)
{
	const size_t length = (size_t)80 << 20;
	struct ibv_mr *null, *mr;
	struct ibv_sge list;
	struct pair p;
	uint8_t *memory;

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK((memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	memset(memory, 1, length);
	CHECK(mr = ibv_reg_mr(p.b.pd, memory, length, ALL_ACCESS));
	CHECK(null = ibv_alloc_null_mr(p.a.pd));
	list = null_sge(null, 0, (uint32_t)length);
	send_list(&p.a, &list, 1, IBV_WR_RDMA_READ, (uintptr_t)memory, mr->rkey);
	done(p.a.scq, 5, IBV_WC_RDMA_READ);
	send_list(&p.a, &list, 1, IBV_WR_RDMA_WRITE, (uintptr_t)memory, mr->rkey);
	done(p.a.scq, 5, IBV_WC_RDMA_WRITE);
	for (size_t i = 0; i < length; i++)
		if (memory[i])
			FAIL("byte %zu is %d", i, memory[i]);
	OK(ibv_dereg_mr(null));
	OK(ibv_dereg_mr(mr));
	OK(munmap(memory, length));
	pair_close(&p);
}

/* A region of all memory is used wherever there is some, whenever it was mapped. */
static void implicit_region(void)
{
	const int access = ALL_ACCESS | IBV_ACCESS_ON_DEMAND;
	struct ibv_mr *all, *other;
	struct ibv_sge advice;
	struct pair p;
	char *memory, *big;

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(all = ibv_reg_mr(p.a.pd, NULL, SIZE_MAX, access));
	CHECK(other = ibv_reg_mr(p.b.pd, NULL, SIZE_MAX, access));
	CHECK(all->addr == NULL && all->length == SIZE_MAX);
	CHECK((memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	CHECK(big = malloc(1 << 20)); /* sent from where it lies */
	memset(big, 5, 1 << 20);
	memcpy(memory, "all memory", 11);
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .offset = (uintptr_t)memory - (uintptr_t)p.a.memory, .length = 11,
	     .lkey = all->lkey, .remote = (uintptr_t)memory + 4000, .rkey = other->rkey);
	done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	EQ(memcmp(memory + 4000, "all memory", 11), 0);
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .offset = (uintptr_t)big - (uintptr_t)p.a.memory, .length = 11,
	     .lkey = all->lkey, .remote = (uintptr_t)memory, .rkey = other->rkey);
	done(p.a.scq, 2, IBV_WC_RDMA_READ);
	EQ(memcmp(big, "all memory", 11), 0);
	recv_at(&p.b, 3, 0, 64);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 4, .offset = (uintptr_t)memory - (uintptr_t)p.a.memory, .length = 11,
	     .lkey = all->lkey);
	done(p.a.scq, 4, IBV_WC_SEND);
	done(p.b.rcq, 3, IBV_WC_RECV);
	EQ(memcmp(p.b.memory, "all memory", 11), 0);

	advice = (struct ibv_sge){.addr = (uintptr_t)memory, .length = 8192, .lkey = all->lkey};
	OK(ibv_advise_mr(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &advice, 1));

	/* What is not mapped is refused when it is used: here at the peer. */
	OK(munmap(memory, 8192));
	EQ(ibv_advise_mr(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &advice, 1), EFAULT);
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 6, .length = 8, .remote = (uintptr_t)memory, .rkey = other->rkey);
	want_wc(p.a.scq, 6, IBV_WC_REM_ACCESS_ERR, 0);
	free(big);
	OK(ibv_dereg_mr(other));
	OK(ibv_dereg_mr(all));
	pair_close(&p);
}

/* So it is with addresses that no memory has, on this side. */
static void implicit_region_where_nothing_is(void)
{
	static const uint64_t nowhere[] = {0, 8, 4096, (uint64_t)1 << 46, ((uint64_t)1 << 47) - 4096, (uint64_t)1 << 50, UINT64_MAX - 7};

	for (size_t i = 0; i < COUNT(nowhere); i++) {
		struct ibv_mr *all;
		struct pair p;

		pair_open(&p, &(struct plan){.how = BY_GID});
		CHECK(all = ibv_reg_mr(p.a.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
		post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .offset = nowhere[i] - (uintptr_t)p.a.memory, .length = 8,
		     .lkey = all->lkey, .remote = (uintptr_t)p.b.memory, .rkey = p.b.mr->rkey);
		want_wc(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, 0);
		OK(ibv_dereg_mr(all));
		pair_close(&p);
	}
}

static void implicit_region_that_is_refused(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd;

	CHECK(pd = ibv_alloc_pd(context));
	NONE(ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	NONE(ibv_reg_mr_iova(pd, NULL, SIZE_MAX, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND), EINVAL);
	NONE(ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED), EINVAL);
	NONE(ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND), EINVAL);
	OK(ibv_dealloc_pd(pd));
	OK(ibv_close_device(context));
}

int main(void)
{
	OK(setenv("URNIC_TRANSPORT", "ethernet", 1));
	null_regions(false);
	null_regions(true);
	great_null_region();
	implicit_region();
	implicit_region_where_nothing_is();
	implicit_region_that_is_refused();
	return 0;
}
