/* Memory regions: what may be registered and how, and what a freed one does. */
#include "test.h"

#include <sys/mman.h>

static uint8_t memory[8192] __attribute__((aligned(4096)));

static void members(struct ibv_context *context)
{
	struct ibv_pd *pd;
	struct ibv_mr *mr, *other;

	CHECK(pd = ibv_alloc_pd(context));
	CHECK(mr = ibv_reg_mr(pd, memory + 3, 1001, IBV_ACCESS_LOCAL_WRITE));
	CHECK(mr->context == context && mr->pd == pd && mr->addr == memory + 3);
	EQ(mr->length, 1001);
	CHECK(mr->lkey != 0);
	CHECK(other = ibv_reg_mr(pd, memory + 3, 1001, IBV_ACCESS_LOCAL_WRITE)); /* the same again */
	CHECK(other->lkey != mr->lkey && other->handle != mr->handle);
	OK(ibv_dereg_mr(mr));
	OK(ibv_dereg_mr(other));
	OK(ibv_dealloc_pd(pd));
}

/* The function behind the macro is what programs of old headers call. */
static void functions(struct ibv_context *context)
{
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int) = (ibv_reg_mr);
	struct ibv_mr *(*reg_iova)(struct ibv_pd *, void *, size_t, uint64_t, int) = (ibv_reg_mr_iova);
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	CHECK(pd = ibv_alloc_pd(context));
	CHECK(mr = reg(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
	OK(ibv_dereg_mr(mr));
	CHECK(mr = reg_iova(pd, memory, sizeof(memory), 0x1000, IBV_ACCESS_LOCAL_WRITE));
	CHECK(mr->addr == memory);
	OK(ibv_dereg_mr(mr));
	CHECK(mr = ibv_reg_mr_iova2(pd, memory, sizeof(memory), 0x1000, IBV_ACCESS_LOCAL_WRITE));
	OK(ibv_dereg_mr(mr));
	OK(ibv_dealloc_pd(pd));
}

static void wrong_registrations(struct ibv_context *context)
{
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	void *readonly;

	CHECK(pd = ibv_alloc_pd(context));
	/* What others may write, this side has to be able to (ibv_reg_mr(3)). */
	NONE(ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	NONE(ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	NONE(ibv_reg_mr(pd, memory, 4096, 1 << 15), EINVAL); /* no such right */
	NONE(ibv_reg_mr(pd, (void *)(uintptr_t)-4096, 8192, IBV_ACCESS_LOCAL_WRITE), EINVAL); /* wraps */
	NONE(ibv_reg_mr(pd, NULL, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT); /* not mapped */
	CHECK((readonly = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	NONE(ibv_reg_mr(pd, readonly, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	CHECK(mr = ibv_reg_mr(pd, readonly, 4096, IBV_ACCESS_REMOTE_READ));
	OK(ibv_dereg_mr(mr));
	OK(munmap(readonly, 4096));
	/* Rights of the optional range are for whoever knows them. */
	CHECK(mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING));
	OK(ibv_dereg_mr(mr));
	CHECK(mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB));
	OK(ibv_dereg_mr(mr));
	/* Memory that faults in, and memory of a DMA-BUF: this device has none of it. */
	CHECK(ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND) == NULL);
	NONE(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE), EOPNOTSUPP);
	OK(ibv_dealloc_pd(pd));
}

/* ibv_rereg_mr changes a region in place, and what is not named in the flags stays. */
static void reregister(struct ibv_context *context)
{
	struct ibv_pd *pd, *other;
	struct ibv_mr *mr;
	uint32_t key;

	CHECK(pd = ibv_alloc_pd(context));
	CHECK(other = ibv_alloc_pd(context));
	CHECK(mr = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE));
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + 4096, 100, 0));
	CHECK(mr->addr == memory + 4096 && mr->pd == pd);
	EQ(mr->length, 100);
	key = mr->rkey;
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0));
	CHECK(mr->pd == other && mr->addr == memory + 4096);
	EQ(mr->length, 100);
	EQ(mr->rkey, key); /* the memory is the same, and so are the keys */
	EQ(mr->lkey, key);
	OK(ibv_dealloc_pd(pd)); /* nothing of it is left */
	EQ(ibv_dealloc_pd(other), EBUSY);
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));

	EQ(mr->rkey, key);
	EQ(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	/* Rights that nobody asks to change, and rights that can't be. */
	EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, IBV_ACCESS_LOCAL_WRITE), IBV_REREG_MR_ERR_INPUT);
	EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE), IBV_REREG_MR_ERR_INPUT);
	EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 1 << 15), IBV_REREG_MR_ERR_INPUT);
	EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 0, 0), IBV_REREG_MR_ERR_INPUT);
	EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)(uintptr_t)4096, 4096, 0),
	   IBV_REREG_MR_ERR_INPUT); /* not mapped */
	EQ(mr->rkey, key);
	CHECK(mr->addr == memory + 4096 && mr->pd == other);
	EQ(ibv_rereg_mr(mr, IBV_REREG_MR_FLAGS_SUPPORTED + 1, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	EQ(mr->length, 100); /* it is still there */
	CHECK(pd = ibv_alloc_pd(context)); /* all at once */
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, pd, memory,
			8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	CHECK(mr->pd == pd && mr->addr == memory);
	EQ(mr->length, 8192);
	OK(ibv_dealloc_pd(other));
	OK(ibv_dereg_mr(mr));
	OK(ibv_dealloc_pd(pd));
}

/* Rights and domain change in place: requests and peers that know the keys continue with them. */
static void keys_stay(void)
{
	struct ibv_pd *other;
	struct ibv_mr *mr;
	struct pair p;
	uint32_t key;

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(other = ibv_alloc_pd(p.b.context));
	CHECK(mr = ibv_reg_mr(p.b.pd, p.b.memory, 4096, IBV_ACCESS_LOCAL_WRITE));
	key = mr->rkey;
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS));
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0));
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, p.b.pd, NULL, 0, 0));
	memset(p.a.memory, 0x5b, 4096);
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 4096, .remote = to(&p.b, 0), .rkey = key);
	done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .offset = 8192, .length = 4096, .remote = to(&p.b, 0), .rkey = key);
	done(p.a.scq, 2, IBV_WC_RDMA_READ);
	EQ(memcmp(p.a.memory, p.a.memory + 8192, 4096), 0);
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0));
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 3, .length = 1, .remote = to(&p.b, 0), .rkey = key);
	want_wc(p.a.scq, 3, IBV_WC_REM_ACCESS_ERR, 0); /* it is not the queue pair's domain */
	OK(ibv_dereg_mr(mr));
	OK(ibv_dealloc_pd(other));
	pair_close(&p);
}

/* A change in place reaches who uses the region, and his peer. */
static void reregistered_region_works(void)
{
	uint8_t *half;
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	half = p.b.memory + MEMORY / 2;
	CHECK(mr = ibv_reg_mr(p.b.pd, p.b.memory, 4096, ALL_ACCESS));
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, half, 4096, 0));
	memset(p.a.memory, 0x5a, 4096);
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 4096, .remote = (uintptr_t)half, .rkey = mr->rkey);
	done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .offset = 8192, .length = 4096, .remote = (uintptr_t)half,
	     .rkey = mr->rkey);
	done(p.a.scq, 2, IBV_WC_RDMA_READ);
	EQ(memcmp(p.a.memory, p.a.memory + 8192, 4096), 0);
	EQ(half[4095], 0x5a);
	EQ(p.b.memory[0], 0);
	OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 3, .length = 1, .remote = (uintptr_t)half, .rkey = mr->rkey);
	want_wc(p.a.scq, 3, IBV_WC_REM_ACCESS_ERR, 0);
	OK(ibv_dereg_mr(mr));
	pair_close(&p);
}

/* A freed region can't be used any more, here or by the peer. */
static void freed(void)
{
	uint32_t key;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	key = p.b.mr->rkey;
	OK(ibv_dereg_mr(p.b.mr));
	p.b.mr = NULL;
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 1, .length = 8, .remote = to(&p.b, 0), .rkey = key);
	want_wc(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR, 0);
	pair_close(&p);

	pair_open(&p, &(struct plan){.how = BY_GID});
	key = p.a.mr->lkey;
	OK(ibv_dereg_mr(p.a.mr));
	CHECK(p.a.mr = ibv_reg_mr(p.a.pd, p.a.memory, MEMORY, ALL_ACCESS));
	CHECK(p.a.mr->lkey != key);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 1, .length = 8, .lkey = key);
	want_wc(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, 0);
	pair_close(&p);
}

/* No work request holds a region: it can be freed with receives posted. */
static void freed_under_a_receive(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	recv_at(&p.b, 7, 0, 64);
	OK(ibv_dereg_mr(p.b.mr));
	p.b.mr = NULL;
	memset(p.a.memory, 0x77, 64);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 1, .length = 64);
	want_wc(p.b.rcq, 7, IBV_WC_LOC_PROT_ERR, 0);
	EQ(p.b.memory[0], 0);
	pair_close(&p);
}

static void many(struct ibv_context *context)
{
	struct ibv_mr *mrs[1000];
	struct ibv_pd *pd;

	CHECK(pd = ibv_alloc_pd(context));
	for (size_t i = 0; i < COUNT(mrs); i++)
		CHECK(mrs[i] = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	for (size_t i = 0; i < COUNT(mrs); i++)
		OK(ibv_dereg_mr(mrs[i]));
	OK(ibv_dealloc_pd(pd));
}

static void advise_and_null(struct ibv_context *context)
{
	struct ibv_pd *pd;

	CHECK(pd = ibv_alloc_pd(context));
	EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0), EOPNOTSUPP);
	NONE(ibv_alloc_null_mr(pd), EOPNOTSUPP);
	OK(ibv_dealloc_pd(pd));
}

int main(void)
{
	struct ibv_context *context = open_device();

	members(context);
	functions(context);
	wrong_registrations(context);
	reregister(context);
	reregistered_region_works();
	keys_stay();
	freed();
	freed_under_a_receive();
	many(context);
	advise_and_null(context);
	OK(ibv_close_device(context));
	return 0;
}
