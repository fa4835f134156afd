/*
 * Memory that is no longer there, though it is registered: the process lives on, and what
 * uses the memory fails. Nothing pins it, as the kernel does for hardware.
 */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

static const enum ibv_wr_opcode SEND = IBV_WR_SEND, WRITE = IBV_WR_RDMA_WRITE, READ = IBV_WR_RDMA_READ,
				ADD = IBV_WR_ATOMIC_FETCH_AND_ADD, SWAP = IBV_WR_ATOMIC_CMP_AND_SWP;

/* How memory is lost. To unmap it would let others map theirs there. */
enum loss {
	INACCESSIBLE,
	TRUNCATED, /* a file that is mapped: to touch it is SIGBUS */
	READ_ONLY, /* lost to whoever writes */
};

static uint8_t *pages;
static size_t len;

/* gone registers memory and takes it away. */
static struct ibv_mr *gone(struct end *e, enum loss how)
{
	char name[] = "/tmp/urnic-test-XXXXXX";
	struct ibv_mr *mr;
	int fd;

	len = 16 * (size_t)sysconf(_SC_PAGESIZE);
	CHECK((fd = mkstemp(name)) >= 0);
	OK(unlink(name));
	OK(ftruncate(fd, (off_t)len));
	pages = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(pages != MAP_FAILED);
	CHECK(mr = ibv_reg_mr(e->pd, pages, len, ALL_ACCESS));
	switch (how) {
	case INACCESSIBLE:
		OK(mprotect(pages, len, PROT_NONE));
		break;
	case TRUNCATED:
		OK(ftruncate(fd, 0));
		break;
	case READ_ONLY:
		OK(mprotect(pages, len, PROT_READ));
	}
	OK(close(fd));
	return mr;
}

static void back(struct ibv_mr *mr)
{
	OK(ibv_dereg_mr(mr));
	OK(munmap(pages, len));
}

/* What the peer reads, writes or adds to. Its program is told, too. */
static void remote(enum loss how, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_async_event event;
	struct ibv_mr *mr;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID}); /* two contexts, each with events of its own */
	mr = gone(&p.b, how);
	post(&p.a, .opcode = opcode, .wr_id = 1, .length = length, .remote = (uintptr_t)pages, .rkey = mr->rkey,
	     .unsignaled = opcode == WRITE, .compare_add = 1);
	if (opcode == WRITE) { /* it may complete before the peer has it */
		post(&p.a, .opcode = READ, .wr_id = 2, .length = 8, .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
		CHECK(wait_wc(p.a.scq).status != IBV_WC_SUCCESS);
	} else {
		want_wc(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR, 0);
	}
	event = want_event(p.b.context, IBV_EVENT_QP_ACCESS_ERR);
	CHECK(event.element.qp == p.b.qp);
	ibv_ack_async_event(&event);
	back(mr);
	pair_close(&p);
}

/* What this side sends, between two Sends of a list that are sound. */
static void sent(enum loss how, uint32_t length)
{
	struct ibv_mr *mr;
	struct pair p;
	struct ibv_sge s[3];
	struct ibv_send_wr wr[3], *bad;

	pair_open(&p, &(struct plan){0});
	mr = gone(&p.a, how);
	for (int i = 0; i < 3; i++) {
		recv_at(&p.b, (uint64_t)i, 0, MEMORY);
		s[i] = sge(&p.a, 0, length);
		wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i, .next = i < 2 ? &wr[i + 1] : NULL, .sg_list = &s[i],
					     .num_sge = 1, .opcode = SEND, .send_flags = IBV_SEND_SIGNALED};
	}
	s[1] = (struct ibv_sge){(uintptr_t)pages, length, mr->lkey};
	OK(ibv_post_send(p.a.qp, wr, &bad));
	done(p.a.scq, 0, IBV_WC_SEND);
	want_wc(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, 0);
	want_wc(p.a.scq, 2, IBV_WC_WR_FLUSH_ERR, 0);
	done(p.b.rcq, 0, IBV_WC_RECV);
	back(mr);
	pair_close(&p);
}

static void received(enum loss how, uint32_t length)
{
	struct ibv_mr *mr;
	struct pair p;
	struct ibv_sge s;
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &s, .num_sge = 1}, *bad;

	pair_open(&p, &(struct plan){0});
	mr = gone(&p.b, how);
	s = (struct ibv_sge){(uintptr_t)pages, length, mr->lkey};
	OK(ibv_post_recv(p.b.qp, &wr, &bad));
	post(&p.a, .opcode = SEND, .wr_id = 2, .length = length);
	want_wc(p.b.rcq, 1, IBV_WC_LOC_PROT_ERR, 0);
	back(mr);
	pair_close(&p);
}

/* Where the result of a Read or an atomic goes. */
static void result(enum loss how, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_mr *mr;
	struct pair p;
	struct ibv_sge s;
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &s, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	pair_open(&p, &(struct plan){0});
	mr = gone(&p.a, how);
	s = (struct ibv_sge){(uintptr_t)pages, length, mr->lkey};
	if (opcode == READ) {
		wr.wr.rdma.remote_addr = to(&p.b, 0);
		wr.wr.rdma.rkey = p.b.mr->rkey;
	} else {
		wr.wr.atomic.remote_addr = to(&p.b, 0);
		wr.wr.atomic.rkey = p.b.mr->rkey;
		wr.wr.atomic.compare_add = 0;
		wr.wr.atomic.swap = 1;
	}
	OK(ibv_post_send(p.a.qp, &wr, &bad));
	want_wc(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, 0);
	back(mr);
	pair_close(&p);
}

/* Inline data are read at once: the call fails, the connection lives. */
static void inlined(enum loss how)
{
	struct ibv_mr *mr;
	struct pair p;
	struct ibv_sge s;
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &s, .num_sge = 1, .opcode = SEND,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
			   *bad = NULL;

	pair_open(&p, &(struct plan){0});
	mr = gone(&p.a, how);
	s = (struct ibv_sge){(uintptr_t)pages, 8, 0};
	EQ(ibv_post_send(p.a.qp, &wr, &bad), EFAULT);
	CHECK(bad == &wr);
	recv_at(&p.b, 2, 0, 8);
	post(&p.a, .opcode = SEND, .wr_id = 3, .length = 8);
	done(p.a.scq, 3, IBV_WC_SEND);
	done(p.b.rcq, 2, IBV_WC_RECV);
	back(mr);
	pair_close(&p);
}

static void never(int sig)
{
	static const char text[] = "the program's handler is called\n";

	(void)sig;
	(void)!write(2, text, sizeof(text) - 1);
	_exit(1);
}

int main(void)
{
	for (uint32_t length = 8; length <= 40000; length += 39992) {
		for (enum loss how = INACCESSIBLE; how <= READ_ONLY; how++) {
			remote(how, WRITE, length);
			received(how, length);
			result(how, READ, length);
			if (how == READ_ONLY)
				continue;
			remote(how, READ, length);
			sent(how, length);
		}
		signal(SIGSEGV, never); /* such a fault is no business of the program's */
		signal(SIGBUS, never);
	}
	for (enum loss how = INACCESSIBLE; how <= READ_ONLY; how++) {
		remote(how, ADD, 8);
		remote(how, SWAP, 8);
		result(how, ADD, 8);
		result(how, SWAP, 8);
		if (how != READ_ONLY)
			inlined(how);
	}
	return 0;
}
