/* Each right of a memory region, judged by accesses of a peer and of this side. */
#include "test.h"

#define ROOM 4096 /* the region is memory[ROOM..ROOM+LENGTH) of b */
#define LENGTH 1000

static struct ibv_mr *region(struct pair *p, int access)
{
	struct ibv_mr *mr;

	CHECK(mr = ibv_reg_mr(p->b.pd, p->b.memory + ROOM, LENGTH, access));
	return mr;
}

/*
 * access does one access by a to b, and returns how it ended for who must know. A Write
 * completes when it is sent: that it was refused is told by the stream's end. So a Send
 * follows it.
 */
static enum ibv_wc_status access_of(struct pair *p, enum ibv_wr_opcode opcode, uint64_t at, uint32_t length,
				    uint32_t rkey)
{
	struct ibv_wc wc;

	post(&p->a, .opcode = opcode, .wr_id = 1, .length = length, .remote = at, .rkey = rkey, .compare_add = 1,
	     .swap = 2);
	if (opcode != IBV_WR_RDMA_WRITE)
		return wait_wc(p->a.scq).status;
	recv_at(&p->b, 2, 0, 1);
	post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 1);
	wc = wait_wc(p->b.rcq);
	EQ(wc.wr_id, 2);
	return wc.status == IBV_WC_SUCCESS ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

/* judge does one access to a region with some rights, over a pair of its own. */
static void judge_at(int line, int rights, enum ibv_wr_opcode opcode, int64_t offset, uint32_t length,
		     enum ibv_wc_status want)
{
	uint8_t before[MEMORY];
	struct ibv_async_event event;
	enum ibv_wc_status status;
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	for (size_t i = 0; i < MEMORY; i++)
		p.b.memory[i] = (uint8_t)(i * 7);
	p.b.memory[0] = 0; /* of the Send */
	memcpy(before, p.b.memory, MEMORY);
	mr = region(&p, rights);
	memset(p.a.memory, 0xa5, MEMORY);
	p.a.memory[0] = 0;
	status = access_of(&p, opcode, to(&p.b, ROOM) + (uint64_t)offset, length, mr->rkey);
	if (status != want)
		fail(__FILE__, line, "the access gives %s, not %s", ibv_wc_status_str(status), ibv_wc_status_str(want));
	if (want != IBV_WC_SUCCESS) {
		if (memcmp(before, p.b.memory, MEMORY) != 0)
			fail(__FILE__, line, "a refused access has changed memory");
		event = want_event(p.b.context, IBV_EVENT_QP_ACCESS_ERR);
		CHECK(event.element.qp == p.b.qp);
		ibv_ack_async_event(&event);
	} else if (opcode == IBV_WR_RDMA_WRITE) {
		memcpy(before + ROOM + offset, p.a.memory, length);
		if (memcmp(before, p.b.memory, MEMORY) != 0)
			fail(__FILE__, line, "the Write did not write what it should");
	} else if (opcode == IBV_WR_RDMA_READ && memcmp(p.a.memory, p.b.memory + ROOM + offset, length) != 0) {
		fail(__FILE__, line, "the Read did not read what it should");
	}
	OK(ibv_dereg_mr(mr));
	pair_close(&p);
}
#define judge(...) judge_at(__LINE__, __VA_ARGS__)

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define RR IBV_ACCESS_REMOTE_READ
#define RA (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define REFUSED IBV_WC_REM_ACCESS_ERR

static void remote(void)
{
	judge(RW, IBV_WR_RDMA_WRITE, 0, LENGTH, IBV_WC_SUCCESS);
	judge(RW, IBV_WR_RDMA_WRITE, LENGTH - 1, 1, IBV_WC_SUCCESS);
	judge(RW, IBV_WR_RDMA_WRITE, -1, 1, REFUSED);
	judge(RW, IBV_WR_RDMA_WRITE, LENGTH, 1, REFUSED);
	judge(LW | RR, IBV_WR_RDMA_WRITE, 0, 1, REFUSED);
	judge(RA, IBV_WR_RDMA_WRITE, 0, 8, REFUSED);

	judge(RR, IBV_WR_RDMA_READ, 0, LENGTH, IBV_WC_SUCCESS);
	judge(RR, IBV_WR_RDMA_READ, LENGTH - 1, 1, IBV_WC_SUCCESS);
	judge(RR, IBV_WR_RDMA_READ, 1, LENGTH, REFUSED);
	judge(RR, IBV_WR_RDMA_READ, -1, 1, REFUSED);
	judge(RW | RA, IBV_WR_RDMA_READ, 0, 1, REFUSED);

	judge(RA, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, IBV_WC_SUCCESS);
	judge(RA, IBV_WR_ATOMIC_CMP_AND_SWP, LENGTH - 8, 8, IBV_WC_SUCCESS);
	judge(RA, IBV_WR_ATOMIC_FETCH_AND_ADD, LENGTH, 8, REFUSED);
	judge(RW | RR, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 8, REFUSED);
}

/* The region of one protection domain is no region for a queue pair of another. */
static void other_domain(void)
{
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(pd = ibv_alloc_pd(p.b.context));
	CHECK(mr = ibv_reg_mr(pd, p.b.memory, 64, ALL_ACCESS));
	EQ(access_of(&p, IBV_WR_RDMA_READ, to(&p.b, 0), 8, mr->rkey), REFUSED);
	OK(ibv_dereg_mr(mr));
	OK(ibv_dealloc_pd(pd));
	pair_close(&p);

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(pd = ibv_alloc_pd(p.a.context));
	CHECK(mr = ibv_reg_mr(pd, p.a.memory, 64, ALL_ACCESS));
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 1, .length = 8, .lkey = mr->lkey);
	want_wc(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, 0);
	OK(ibv_dereg_mr(mr));
	OK(ibv_dealloc_pd(pd));
	pair_close(&p);
}

/* What this side may do with regions of few rights. */
static void local(void)
{
	struct ibv_sge s;
	struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = &s, .num_sge = 1}, *bad;
	struct ibv_mr *mr;
	struct pair p;

	/* To send, none is needed; to receive, LOCAL_WRITE is. */
	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(mr = ibv_reg_mr(p.a.pd, p.a.memory, 64, 0));
	recv_at(&p.b, 2, 0, 64);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 1, .length = 64, .lkey = mr->lkey);
	done(p.a.scq, 1, IBV_WC_SEND);
	done(p.b.rcq, 2, IBV_WC_RECV);
	s = sge(&p.a, 0, 64);
	s.lkey = mr->lkey;
	OK(ibv_post_recv(p.a.qp, &wr, &bad));
	post(&p.b, .opcode = IBV_WR_SEND, .wr_id = 6, .length = 64);
	want_wc(p.a.rcq, 5, IBV_WC_LOC_PROT_ERR, 0);
	OK(ibv_dereg_mr(mr));
	pair_close(&p);

	/* The sink of a Read or of an atomic needs it too. */
	for (int atomic = 0; atomic <= 1; atomic++) {
		pair_open(&p, &(struct plan){.how = BY_GID});
		CHECK(mr = ibv_reg_mr(p.a.pd, p.a.memory, 64, IBV_ACCESS_REMOTE_READ));
		post(&p.a, .opcode = atomic ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_READ, .wr_id = 1, .length = 8,
		     .lkey = mr->lkey, .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
		want_wc(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, 0);
		OK(ibv_dereg_mr(mr));
		pair_close(&p);
	}

	/* But no remote right: iWARP asks for one (RFC 5040 s.5.1), we do without unless URNIC_STRICT is set. */
	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(mr = ibv_reg_mr(p.a.pd, p.a.memory, 64, IBV_ACCESS_LOCAL_WRITE));
	p.b.memory[0] = 0x42;
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 1, .length = 8, .lkey = mr->lkey, .remote = to(&p.b, 0),
	     .rkey = p.b.mr->rkey);
	done(p.a.scq, 1, IBV_WC_RDMA_READ);
	EQ(p.a.memory[0], 0x42);
	/* The last byte of a region can be sent, the one behind it can't. */
	recv_at(&p.b, 2, 0, 64);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 3, .offset = 63, .length = 1, .lkey = mr->lkey);
	done(p.a.scq, 3, IBV_WC_SEND);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 4, .offset = 63, .length = 2, .lkey = mr->lkey);
	want_wc(p.a.scq, 4, IBV_WC_LOC_PROT_ERR, 0);
	OK(ibv_dereg_mr(mr));
	pair_close(&p);
}

/* Addresses within a region of ibv_reg_mr_iova begin where the program says. */
static void iova(void)
{
	const uint64_t begin = 0x123456789abc0000;
	struct ibv_sge s;
	struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = &s, .num_sge = 1}, *bad;
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(mr = ibv_reg_mr_iova(p.b.pd, p.b.memory + ROOM, LENGTH, begin, ALL_ACCESS));
	memset(p.a.memory, 0x11, 16);
	EQ(access_of(&p, IBV_WR_RDMA_WRITE, begin + LENGTH - 16, 16, mr->rkey), IBV_WC_SUCCESS);
	EQ(p.b.memory[ROOM + LENGTH - 1], 0x11);
	EQ(p.b.memory[ROOM + LENGTH], 0);
	done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	done(p.a.scq, 3, IBV_WC_SEND);
	s = (struct ibv_sge){.addr = begin + 1, .length = 3, .lkey = mr->lkey}; /* and for this side */
	OK(ibv_post_recv(p.b.qp, &wr, &bad));
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 6, .length = 3);
	done(p.b.rcq, 5, IBV_WC_RECV);
	EQ(p.b.memory[ROOM], 0);
	EQ(p.b.memory[ROOM + 1], 0x11);
	done(p.a.scq, 6, IBV_WC_SEND);
	EQ(access_of(&p, IBV_WR_RDMA_READ, to(&p.b, ROOM), 8, mr->rkey), REFUSED);
	OK(ibv_dereg_mr(mr));
	pair_close(&p);
}

static void zero_based(void)
{
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(mr = ibv_reg_mr(p.b.pd, p.b.memory + ROOM, LENGTH, ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
	p.b.memory[ROOM + 10] = 0x99;
	EQ(access_of(&p, IBV_WR_RDMA_READ, 10, 8, mr->rkey), IBV_WC_SUCCESS);
	EQ(p.a.memory[0], 0x99);
	EQ(access_of(&p, IBV_WR_RDMA_READ, to(&p.b, ROOM), 8, mr->rkey), REFUSED);
	OK(ibv_dereg_mr(mr));
	pair_close(&p);
}

int main(void)
{
	remote();
	other_domain();
	local();
	iova();
	zero_based();
	return 0;
}
