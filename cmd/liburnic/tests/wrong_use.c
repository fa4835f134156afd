/* Wrong use of memory completes with hardware's status, and URNIC_LOG=info says why. */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>

static int said; /* what is written to the standard error output goes here */
/* says wants a line since the last call that has this in it. */
static void says(const char *want)
{
	static char text[1 << 16];
	static off_t from;
	ssize_t n = pread(said, text, sizeof(text) - 1, from);

	CHECK(n >= 0);
	text[n] = 0;
	from += n;
	if (!strstr(text, want))
		FAIL("no line says %s:\n%s", want, text);
}

static void lkey_that_is_not_there(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){0});
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 41, .length = 8, .lkey = p.a.mr->lkey ^ 0x5500);
	want_wc(p.a.scq, 41, IBV_WC_LOC_PROT_ERR, 0);
	says("request 41 completes with status 4");
	pair_close(&p);
}

static void region_that_is_freed(void)
{
	static uint8_t memory[64];
	struct ibv_mr *mr;
	uint32_t key;
	struct pair p;

	for (int local = 0; local < 2; local++) {
		pair_open(&p, &(struct plan){0});
		CHECK(mr = ibv_reg_mr(local ? p.a.pd : p.b.pd, memory, sizeof(memory), ALL_ACCESS));
		key = mr->lkey;
		OK(ibv_dereg_mr(mr));
		if (local) {
			post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 42, .length = 8, .lkey = key,
			     .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
			want_wc(p.a.scq, 42, IBV_WC_LOC_PROT_ERR, 0);
			says("request 42 completes with status 4");
		} else {
			post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 43, .length = 8,
			     .remote = (uintptr_t)memory, .rkey = key);
			want_wc(p.a.scq, 43, IBV_WC_REM_ACCESS_ERR, 0);
			says("request 43 completes with status 10");
		}
		pair_close(&p);
	}
}

/* A call that is refused says why too. */
static void refused(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){0});
	EQ(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_SQE}, IBV_QP_STATE), EINVAL);
	says(": from RTS to 5");
	pair_close(&p);
}

int main(void)
{
	OK(setenv("URNIC_LOG", "info", 1)); /* before the first call of verbs */
	CHECK((said = memfd_create("said", MFD_CLOEXEC)) >= 0);
	CHECK(stderr = fdopen(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), "w")); /* of this program only */
	CHECK(dup2(said, STDERR_FILENO) == STDERR_FILENO);
	lkey_that_is_not_there();
	region_that_is_freed();
	refused();
	fclose(stderr);
	return 0;
}
