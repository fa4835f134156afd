/*
 * Memory that is no longer there, though it is registered: the process lives on, and what
 * uses the memory fails. Nothing pins it, as the kernel does for hardware.
 */
#include "test.h"

#include <sys/mman.h>

static uint8_t *pages;
static size_t len;

/* gone registers memory and makes it inaccessible. To unmap it would let others map theirs there. */
static struct ibv_mr *gone(struct end *e)
{
	struct ibv_mr *mr;

	len = 16 * (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	CHECK(mr = ibv_reg_mr(e->pd, pages, len, ALL_ACCESS));
	OK(mprotect(pages, len, PROT_NONE));
	return mr;
}

static void back(struct ibv_mr *mr)
{
	OK(ibv_dereg_mr(mr));
	OK(munmap(pages, len));
}

/* What the peer reads, writes or adds to. */
static void remote(enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, &(struct plan){0});
	mr = gone(&p.b);
	post(&p.a, .opcode = opcode, .wr_id = 1, .length = length, .remote = (uintptr_t)pages, .rkey = mr->rkey,
	     .unsignaled = opcode == IBV_WR_RDMA_WRITE, .compare_add = 1);
	if (opcode == IBV_WR_RDMA_WRITE) { /* it may complete before the peer has it */
		post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .length = 8, .remote = to(&p.b, 0),
		     .rkey = p.b.mr->rkey);
		CHECK(wait_wc(p.a.scq).status != IBV_WC_SUCCESS);
	} else {
		want_wc(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR, 0);
	}
	back(mr);
	pair_close(&p);
}

static void sent(uint32_t length)
{
	struct ibv_mr *mr;
	struct pair p;
	struct ibv_sge s;
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

	pair_open(&p, &(struct plan){0});
	recv_at(&p.b, 2, 0, MEMORY);
	mr = gone(&p.a);
	s = (struct ibv_sge){(uintptr_t)pages, length, mr->lkey};
	OK(ibv_post_send(p.a.qp, &wr, &bad));
	want_wc(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, 0);
	back(mr);
	pair_close(&p);
}

static void received(uint32_t length)
{
	struct ibv_mr *mr;
	struct pair p;
	struct ibv_sge s;
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &s, .num_sge = 1}, *bad;

	pair_open(&p, &(struct plan){0});
	mr = gone(&p.b);
	s = (struct ibv_sge){(uintptr_t)pages, length, mr->lkey};
	OK(ibv_post_recv(p.b.qp, &wr, &bad));
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = length);
	want_wc(p.b.rcq, 1, IBV_WC_LOC_PROT_ERR, 0);
	back(mr);
	pair_close(&p);
}

int main(void)
{
	for (uint32_t length = 8; length <= 40000; length += 39992) {
		remote(IBV_WR_RDMA_READ, length);
		remote(IBV_WR_RDMA_WRITE, length);
		sent(length);
		received(length);
	}
	remote(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	return 0;
}
