/*
 * Ten faults, and how the request that meets one completes: with the transport ethernet as on
 * InfiniBand, on the request itself; with iwarp when TCP has taken it. docs/drop-in.md has the
 * table.
 */
#include "test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static bool ethernet;
static FILE *said; /* what the library says */

/* says wants a text in what the library has said since the last call. */
static void says_at(int line, const char *what)
{
	static off_t from;
	char text[16384];
	ssize_t n;

	CHECK((n = pread(fileno(said), text, sizeof(text) - 1, from)) >= 0);
	text[n] = 0;
	from += n;
	if (what && !strstr(text, what))
		fail(__FILE__, line, "the log does not say \"%s\": %s", what, text);
}
#define says(what) says_at(__LINE__, what)

/* A way to fail: what a does to b, by a request of ID 2. */
struct fault {
	const char *name;
	void (*act)(struct pair *p);
	enum ibv_wc_status status; /* with ethernet */
	uint32_t vendor;
	const char *line;
	enum ibv_wc_status iwarp; /* success if it is reported when it was sent */
	const char *iwarp_line;
	bool first; /* the request before it is over then */
};

static void *memory; /* of b, beside the end's */
static struct ibv_mr *mr;
static struct ibv_pd *pd;

static void write_to(struct pair *p, uint64_t remote, uint32_t rkey)
{
	post(&p->a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 2, .length = 8, .remote = remote, .rkey = rkey);
}

static void bad_rkey(struct pair *p) { write_to(p, to(&p->b, 0), p->b.mr->rkey ^ 0xffff00); }

static void out_of_bounds(struct pair *p) { write_to(p, to(&p->b, MEMORY - 4), p->b.mr->rkey); }

static void no_rights(struct pair *p)
{
	CHECK(mr = ibv_reg_mr(p->b.pd, memory, 4096, IBV_ACCESS_REMOTE_READ));
	write_to(p, (uintptr_t)memory, mr->rkey);
}

static void read_without_rights(struct pair *p)
{
	CHECK(mr = ibv_reg_mr(p->b.pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE));
	post(&p->a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .length = 8, .remote = (uintptr_t)memory, .rkey = mr->rkey);
}

static void wrong_domain(struct pair *p)
{
	CHECK(pd = ibv_alloc_pd(p->b.context));
	CHECK(mr = ibv_reg_mr(pd, memory, 4096, ALL_ACCESS));
	post(&p->a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .length = 8, .remote = (uintptr_t)memory, .rkey = mr->rkey);
}

static void write_to_wrong_domain(struct pair *p)
{
	CHECK(pd = ibv_alloc_pd(p->b.context));
	CHECK(mr = ibv_reg_mr(pd, memory, 4096, ALL_ACCESS));
	write_to(p, (uintptr_t)memory, mr->rkey);
}

static void revoked(struct pair *p)
{
	struct ibv_mr *was;

	CHECK(was = ibv_reg_mr(p->b.pd, memory, 4096, ALL_ACCESS));
	post(&p->a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 9, .length = 8, .remote = (uintptr_t)memory, .rkey = was->rkey);
	done(p->a.scq, 9, IBV_WC_RDMA_WRITE);
	if (!ethernet) { /* it may be on its way */
		post(&p->a, .opcode = IBV_WR_RDMA_READ, .wr_id = 9, .length = 8, .remote = (uintptr_t)memory, .rkey = was->rkey);
		done(p->a.scq, 9, IBV_WC_RDMA_READ);
	}
	uint32_t rkey = was->rkey;
	OK(ibv_dereg_mr(was));
	write_to(p, (uintptr_t)memory, rkey);
}

static void no_receive(struct pair *p) { post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8); }

static void receive_too_short(struct pair *p)
{
	recv_at(&p->b, 1, 0, 4);
	post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
}

static void bad_lkey(struct pair *p)
{
	post(&p->a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 2, .length = 8, .lkey = p->a.mr->lkey ^ 0xffff00,
	     .remote = to(&p->b, 0), .rkey = p->b.mr->rkey);
}

static void memory_gone(struct pair *p)
{
	CHECK(mr = ibv_reg_mr(p->b.pd, memory, 4096, ALL_ACCESS));
	OK(mprotect(memory, 4096, PROT_NONE));
	write_to(p, (uintptr_t)memory, mr->rkey);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	OK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* The peer's queue pair is in the state ERR. No completion has told this side. */
static void peer_in_error(struct pair *p)
{
	OK(ibv_modify_qp(p->b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	while (state_of(p->a.qp) != IBV_QPS_ERR) /* what leaves before the end is known has left, with iwarp */
		usleep(100);
	write_to(p, to(&p->b, 0), p->b.mr->rkey);
}

static const struct fault faults[] = {
	{"bad rkey", bad_rkey, IBV_WC_REM_ACCESS_ERR, 0x0100, "the peer has no such rkey", IBV_WC_SUCCESS, NULL, false},
	{"out of bounds", out_of_bounds, IBV_WC_REM_ACCESS_ERR, 0x0101, "it is out of bounds of the peer's memory",
	 IBV_WC_SUCCESS, NULL, false},
	{"no rights, Write", no_rights, IBV_WC_REM_ACCESS_ERR, 0x1102,
	 "the peer's memory does not allow it, or belongs to another protection domain", IBV_WC_SUCCESS, NULL, false},
	{"no rights, Read", read_without_rights, IBV_WC_REM_ACCESS_ERR, 0x0102, "the peer's memory does not allow it",
	 IBV_WC_REM_ACCESS_ERR, "access rights violation", false},
	{"wrong domain", wrong_domain, IBV_WC_REM_ACCESS_ERR, 0x0103, "the peer's memory belongs to another protection domain",
	 IBV_WC_REM_ACCESS_ERR, "STag not associated", false},
	{"wrong domain, Write", write_to_wrong_domain, IBV_WC_REM_ACCESS_ERR, 0x1102,
	 "the peer's memory does not allow it, or belongs to another protection domain", IBV_WC_SUCCESS, NULL, false},
	{"revoked", revoked, IBV_WC_REM_ACCESS_ERR, 0x0110, "the peer has revoked it", IBV_WC_SUCCESS, NULL, true},
	{"receive too short", receive_too_short, IBV_WC_REM_INV_REQ_ERR, 0x1205, "the peer's receive is too short",
	 IBV_WC_SUCCESS, NULL, false},
	{"peer's QP in error", peer_in_error, IBV_WC_RETRY_EXC_ERR, 0, "the peer is not there, or not any more",
	 IBV_WC_RETRY_EXC_ERR, "the peer is not there, or not any more", true},
	{"local lkey", bad_lkey, IBV_WC_LOC_PROT_ERR, 0, "local protection error", IBV_WC_LOC_PROT_ERR,
	 "local protection error", false},
	{"memory gone", memory_gone, IBV_WC_REM_ACCESS_ERR, 0x0101, "or that is gone", IBV_WC_SUCCESS, NULL, false},
	{"no receive", no_receive, IBV_WC_RNR_RETRY_EXC_ERR, 0x1202, "the peer has posted no receive", IBV_WC_SUCCESS, NULL, false},
};

/* meet has a request meet a fault, with one before it and one behind. */
static void meet(const struct fault *f)
{
	enum ibv_wc_status want = ethernet ? f->status : f->iwarp;
	struct ibv_wc wc;
	struct pair p;

	CHECK((memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	mr = NULL;
	pd = NULL;
	rnr_retry = 1;
	pair_open(&p, &(struct plan){.how = BY_GID});
	says(NULL);
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 8, .length = 1, .remote = to(&p.b, 100), .rkey = p.b.mr->rkey);
	done(p.a.scq, 8, IBV_WC_RDMA_WRITE); /* the connection is there */
	p.a.memory[0] = 0x5a;
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 1, .remote = to(&p.b, 100), .rkey = p.b.mr->rkey);
	if (f->first)
		done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	f->act(&p);
	if (!f->first) {
		wc = wait_wc(p.a.scq);
		EQ(wc.wr_id, 1);
		if (ethernet || wc.status != IBV_WC_WR_FLUSH_ERR) /* the peer's word was faster */
			EQ(wc.status, IBV_WC_SUCCESS);
	}
	if (ethernet)
		EQ(*(volatile uint8_t *)&p.b.memory[100], 0x5a);
	wc = wait_wc(p.a.scq);
	if (!ethernet && want == IBV_WC_SUCCESS && wc.status == IBV_WC_WR_FLUSH_ERR)
		want = wc.status; /* the peer's word was faster */
	if (wc.wr_id != 2 || wc.status != want)
		FAIL("%s, ethernet %d: request %d completes with %s, not %s", f->name, ethernet, (int)wc.wr_id,
		     ibv_wc_status_str(wc.status), ibv_wc_status_str(want));
	if (ethernet && f->vendor != 0)
		EQ(wc.vendor_err, f->vendor);
	says(ethernet ? f->line : f->iwarp_line);
	if (want != IBV_WC_SUCCESS) {
		post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 3, .length = 1, .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
		want_wc(p.a.scq, 3, IBV_WC_WR_FLUSH_ERR, 0);
	}
	if (mr)
		OK(ibv_dereg_mr(mr));
	if (pd)
		OK(ibv_dealloc_pd(pd));
	pair_close(&p);
	OK(munmap(memory, 4096));
}

/* What a process tells another one of its queue pair. */
struct address {
	uint32_t qpn, rkey;
	uint64_t memory;
};

/* A peer that is killed. */
static void peer_gone(void)
{
	int up[2], down[2];
	struct address mine, theirs;
	union ibv_gid gid;
	struct ibv_wc wc;
	struct pair p;
	pid_t child;

	OK(pipe(up));
	OK(pipe(down));
	CHECK((child = fork()) >= 0); /* neither has called verbs before */
	pair_unconnected(&p, &(struct plan){.how = BY_GID});
	mine = (struct address){p.a.qp->qp_num, p.a.mr->rkey, to(&p.a, 0)};
	EQ(write(child ? down[1] : up[1], &mine, sizeof(mine)), sizeof(mine));
	EQ(read(child ? up[0] : down[0], &theirs, sizeof(theirs)), sizeof(theirs));
	OK(ibv_query_gid(p.a.context, 1, 0, &gid));
	qp_to_rtr(p.a.qp, &gid, theirs.qpn, 4);
	qp_to_rts(p.a.qp, 4);
	if (child == 0)
		for (;;)
			pause();
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8, .remote = theirs.memory, .rkey = theirs.rkey);
	done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	OK(kill(child, SIGKILL));
	EQ(waitpid(child, NULL, 0), child);
	for (;;) { /* with iwarp, what leaves before the end is known has left */
		post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 2, .length = 8, .remote = theirs.memory, .rkey = theirs.rkey);
		wc = wait_wc(p.a.scq);
		if (wc.status != IBV_WC_SUCCESS)
			break;
		CHECK(!ethernet);
	}
	EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
	says("the peer is not there, or not any more");
	pair_close(&p);
}

/* run runs part of the program in a process of its own, with one transport. */
static pid_t run(bool as_ethernet, void (*part)(void))
{
	pid_t child;

	CHECK(said = tmpfile());
	CHECK((child = fork()) >= 0);
	if (child != 0)
		return child;
	ethernet = as_ethernet;
	OK(setenv("URNIC_TRANSPORT", ethernet ? "ethernet" : "iwarp", 1));
	OK(setenv("URNIC_LOG", "warning", 1));
	CHECK(dup2(fileno(said), 2) == 2);
	part();
	exit(0);
}

static void all(void)
{
	for (size_t i = 0; i < COUNT(faults); i++)
		meet(&faults[i]);
}

int main(void)
{
	void (*parts[])(void) = {all, peer_gone};
	FILE *logs[2 * COUNT(parts)];
	pid_t children[2 * COUNT(parts)];

	for (size_t i = 0; i < COUNT(children); i++) {
		children[i] = run(i % 2, parts[i / 2]);
		logs[i] = said;
	}
	for (size_t i = 0; i < COUNT(children); i++) {
		char text[16384] = "";
		int status;

		EQ(waitpid(children[i], &status, 0), children[i]);
		if (status != 0) {
			CHECK(pread(fileno(logs[i]), text, sizeof(text) - 1, 0) >= 0);
			FAIL("part %zu ends with status 0x%x: %s", i, (unsigned)status, text);
		}
		fclose(logs[i]);
	}
	return 0;
}
