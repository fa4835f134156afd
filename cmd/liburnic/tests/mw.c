/* Memory windows of both types. */
#include "test.h"

#define ROOM 4096 /* the window is memory[ROOM..ROOM+LENGTH) of b */
#define LENGTH 1000

/* b has a region that may be bound, and windows on it; a is the peer. */
struct bound {
	struct pair p;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
};

static void open_bound(struct bound *b, enum ibv_mw_type type)
{
	pair_open(&b->p, &(struct plan){.how = BY_GID});
	CHECK(b->mr = ibv_reg_mr(b->p.b.pd, b->p.b.memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	CHECK(b->mw = ibv_alloc_mw(b->p.b.pd, type));
	CHECK(b->mw->context == b->p.b.context && b->mw->pd == b->p.b.pd);
	EQ(b->mw->type, type);
}

static void close_bound(struct bound *b)
{
	OK(ibv_dealloc_mw(b->mw));
	OK(ibv_dereg_mr(b->mr));
	pair_close(&b->p);
}

static void bind1(struct bound *b, uint64_t wr_id, uint64_t addr, uint64_t length, unsigned int access)
{
	struct ibv_mw_bind bind = {
		.wr_id = wr_id,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = b->mr, .addr = addr, .length = length, .mw_access_flags = access},
	};

	OK(ibv_bind_mw(b->p.b.qp, b->mw, &bind));
}

static int post_bind2(struct bound *b, uint64_t wr_id, uint32_t rkey, uint64_t addr, uint64_t length,
		      unsigned int access)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = b->mw,
			    .rkey = rkey,
			    .bind_info = {.mr = b->mr, .addr = addr, .length = length, .mw_access_flags = access}},
	}, *bad;

	return ibv_post_send(b->p.b.qp, &wr, &bad);
}

static void read_ok(struct bound *b, uint64_t at, uint32_t length, uint32_t rkey)
{
	post(&b->p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 100, .length = length, .remote = at, .rkey = rkey);
	done(b->p.a.scq, 100, IBV_WC_RDMA_READ);
}

/* read_refused ends the connection. */
static void read_refused(struct bound *b, uint64_t at, uint32_t length, uint32_t rkey)
{
	post(&b->p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 101, .length = length, .remote = at, .rkey = rkey);
	want_wc(b->p.a.scq, 101, IBV_WC_REM_ACCESS_ERR, 0);
}

/* A window of type 1 gets a new rkey with each bind, and the old one is void. */
static void type1(void)
{
	struct bound b;
	uint32_t first;
	uint64_t at;

	open_bound(&b, IBV_MW_TYPE_1);
	at = to(&b.p.b, ROOM);
	first = b.mw->rkey;
	bind1(&b, 1, at, LENGTH, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	done(b.p.b.scq, 1, IBV_WC_BIND_MW);
	CHECK(b.mw->rkey != first);
	b.p.b.memory[ROOM] = 0x31;
	b.p.b.memory[ROOM + LENGTH - 1] = 0x32;
	read_ok(&b, at, LENGTH, b.mw->rkey);
	EQ(b.p.a.memory[0], 0x31);
	EQ(b.p.a.memory[LENGTH - 1], 0x32);
	post(&b.p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 2, .length = 1, .remote = at + 1, .rkey = b.mw->rkey);
	done(b.p.a.scq, 2, IBV_WC_RDMA_WRITE);
	read_ok(&b, at + 1, 1, b.mw->rkey); /* on iWARP, only this reports that it has arrived */

	first = b.mw->rkey; /* to another place */
	bind1(&b, 3, at + LENGTH, 10, IBV_ACCESS_REMOTE_READ);
	done(b.p.b.scq, 3, IBV_WC_BIND_MW);
	CHECK(b.mw->rkey != first);
	read_ok(&b, at + LENGTH + 9, 1, b.mw->rkey);
	read_refused(&b, at, 1, first);
	close_bound(&b);

	open_bound(&b, IBV_MW_TYPE_1); /* its bounds */
	at = to(&b.p.b, ROOM);
	bind1(&b, 1, at, LENGTH, IBV_ACCESS_REMOTE_READ);
	done(b.p.b.scq, 1, IBV_WC_BIND_MW);
	read_refused(&b, at, LENGTH + 1, b.mw->rkey);
	close_bound(&b);

	open_bound(&b, IBV_MW_TYPE_1); /* its rights */
	at = to(&b.p.b, ROOM);
	bind1(&b, 1, at, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	done(b.p.b.scq, 1, IBV_WC_BIND_MW);
	read_refused(&b, at, 1, b.mw->rkey);
	close_bound(&b);

	open_bound(&b, IBV_MW_TYPE_1); /* of length 0, it is unbound */
	at = to(&b.p.b, ROOM);
	bind1(&b, 1, at, LENGTH, IBV_ACCESS_REMOTE_READ);
	done(b.p.b.scq, 1, IBV_WC_BIND_MW);
	first = b.mw->rkey;
	bind1(&b, 2, 0, 0, 0);
	done(b.p.b.scq, 2, IBV_WC_BIND_MW);
	read_refused(&b, at, 1, first);
	close_bound(&b);
}

static void type1_wrong_use(void)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct bound b;

	open_bound(&b, IBV_MW_TYPE_1);
	bind.bind_info.addr = to(&b.p.b, 0);
	bind.bind_info.length = 64;
	EQ(ibv_bind_mw(b.p.b.qp, b.mw, &bind), EINVAL); /* a length without a region */
	CHECK(pd = ibv_alloc_pd(b.p.b.context));
	CHECK(mr = ibv_reg_mr(pd, b.p.b.memory, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	bind.bind_info.mr = mr;
	EQ(ibv_bind_mw(b.p.b.qp, b.mw, &bind), EPERM); /* of another domain */
	OK(ibv_dereg_mr(mr));
	OK(ibv_dealloc_pd(pd));
	/* The others are for the completion to tell. A region that may not be bound: */
	bind.wr_id = 9;
	bind.bind_info.mr = b.p.b.mr;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	OK(ibv_bind_mw(b.p.b.qp, b.mw, &bind));
	want_wc(b.p.b.scq, 9, IBV_WC_MW_BIND_ERR, 0);
	close_bound(&b);

	open_bound(&b, IBV_MW_TYPE_1); /* Beyond the region: */
	bind1(&b, 1, to(&b.p.b, MEMORY - 1), 2, IBV_ACCESS_REMOTE_READ);
	want_wc(b.p.b.scq, 1, IBV_WC_MW_BIND_ERR, 0);
	close_bound(&b);
}

/* A window of type 2 is bound by a work request, with a key of its program's choice. */
static void type2(void)
{
	struct bound b;
	uint32_t key;
	uint64_t at;

	open_bound(&b, IBV_MW_TYPE_2);
	at = to(&b.p.b, ROOM);
	key = ibv_inc_rkey(b.mw->rkey);
	EQ(key >> 8, b.mw->rkey >> 8);
	CHECK(key != b.mw->rkey);
	OK(post_bind2(&b, 1, key, at, LENGTH, IBV_ACCESS_REMOTE_READ));
	done(b.p.b.scq, 1, IBV_WC_BIND_MW);
	b.p.b.memory[ROOM] = 0x31;
	read_ok(&b, at, LENGTH, key);
	EQ(b.p.a.memory[0], 0x31);

	/* LOCAL_INV takes it away; then it can be bound again. */
	post(&b.p.b, .opcode = IBV_WR_LOCAL_INV, .wr_id = 2, .imm = key);
	done(b.p.b.scq, 2, IBV_WC_LOCAL_INV);
	key = ibv_inc_rkey(key);
	OK(post_bind2(&b, 3, key, at, LENGTH, IBV_ACCESS_REMOTE_READ));
	done(b.p.b.scq, 3, IBV_WC_BIND_MW);
	read_ok(&b, at, LENGTH, key);

	/* And so does the peer's Send with Invalidate, which tells the key. */
	recv_at(&b.p.b, 4, 0, 16);
	post(&b.p.a, .opcode = IBV_WR_SEND_WITH_INV, .wr_id = 5, .length = 16, .imm = key);
	done(b.p.a.scq, 5, IBV_WC_SEND);
	{
		struct ibv_wc wc = done(b.p.b.rcq, 4, IBV_WC_RECV);

		EQ(wc.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
		EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0);
		EQ(wc.invalidated_rkey, key);
	}
	read_refused(&b, at, 1, key);
	close_bound(&b);
}

/* Of type 2 and bound already: it has to be invalidated first. */
static void type2_wrong_use(void)
{
	struct ibv_mw_bind bind = {0};
	struct bound b;
	uint32_t key;

	open_bound(&b, IBV_MW_TYPE_2);
	EQ(ibv_bind_mw(b.p.b.qp, b.mw, &bind), EINVAL); /* that is for type 1 */
	key = ibv_inc_rkey(b.mw->rkey);
	OK(post_bind2(&b, 1, key, to(&b.p.b, 0), 64, IBV_ACCESS_REMOTE_READ));
	done(b.p.b.scq, 1, IBV_WC_BIND_MW);
	OK(post_bind2(&b, 2, ibv_inc_rkey(key), to(&b.p.b, 0), 64, IBV_ACCESS_REMOTE_READ));
	want_wc(b.p.b.scq, 2, IBV_WC_MW_BIND_ERR, 0);
	close_bound(&b);

	open_bound(&b, IBV_MW_TYPE_1); /* that is for type 2 */
	EQ(post_bind2(&b, 1, b.mw->rkey, to(&b.p.b, 0), 64, IBV_ACCESS_REMOTE_READ), EINVAL);
	close_bound(&b);
}

/*
 * Programs bind windows with IBV_ACCESS_LOCAL_WRITE, or with optional flags. These add
 * nothing to what the window grants, by any of the three ways to bind one.
 */
static void local_flags(void)
{
	static const unsigned int with = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
	struct ibv_mw_bind_info info = {.length = LENGTH, .mw_access_flags = with | IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_ex *ex;
	struct bound b;
	uint32_t key;
	uint64_t at;

	for (int writable = 0; writable < 2; writable++) {
		unsigned int grants = writable ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;

		for (enum ibv_mw_type type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
			open_bound(&b, type);
			at = to(&b.p.b, ROOM);
			if (type == IBV_MW_TYPE_1) {
				bind1(&b, 1, at, LENGTH, with | grants);
				key = b.mw->rkey;
			} else {
				key = ibv_inc_rkey(b.mw->rkey);
				OK(post_bind2(&b, 1, key, at, LENGTH, with | grants));
			}
			done(b.p.b.scq, 1, IBV_WC_BIND_MW);
			if (!writable)
				read_ok(&b, at, LENGTH, key);
			else
				read_refused(&b, at, LENGTH, key);
			close_bound(&b);
		}
	}

	pair_open(&b.p, &(struct plan){.how = BY_GID, .send_ops = IBV_QP_EX_WITH_BIND_MW});
	CHECK(b.mr = ibv_reg_mr(b.p.b.pd, b.p.b.memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	CHECK(b.mw = ibv_alloc_mw(b.p.b.pd, IBV_MW_TYPE_2));
	info.mr = b.mr;
	info.addr = to(&b.p.b, ROOM);
	key = ibv_inc_rkey(b.mw->rkey);
	CHECK(ex = ibv_qp_to_qp_ex(b.p.b.qp));
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, b.mw, key, &info);
	OK(ibv_wr_complete(ex));
	done(b.p.b.scq, 1, IBV_WC_BIND_MW);
	post(&b.p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .length = LENGTH, .remote = info.addr, .rkey = key);
	done(b.p.a.scq, 2, IBV_WC_RDMA_READ);
	close_bound(&b);
}

/* A window without rights can be bound, and opens nothing. */
static void no_rights(void)
{
	struct bound b;

	for (unsigned int flags = 0; flags <= IBV_ACCESS_LOCAL_WRITE; flags++) {
		open_bound(&b, IBV_MW_TYPE_1);
		bind1(&b, 1, to(&b.p.b, ROOM), LENGTH, flags);
		done(b.p.b.scq, 1, IBV_WC_BIND_MW);
		read_refused(&b, to(&b.p.b, ROOM), 1, b.mw->rkey);
		close_bound(&b);
	}
}

/* A window that counts from 0 is none of ours. */
static void zero_based(void)
{
	struct bound b;

	open_bound(&b, IBV_MW_TYPE_2);
	EQ(post_bind2(&b, 1, ibv_inc_rkey(b.mw->rkey), to(&b.p.b, ROOM), LENGTH,
		      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED),
	   EOPNOTSUPP);
	close_bound(&b);
}

/* A region with windows bound to it is in use; a window that was never bound can go. */
static void region_in_use(void)
{
	struct ibv_mw *unbound;
	struct bound b;

	open_bound(&b, IBV_MW_TYPE_2);
	CHECK(unbound = ibv_alloc_mw(b.p.b.pd, IBV_MW_TYPE_1));
	OK(ibv_dealloc_mw(unbound));
	OK(post_bind2(&b, 1, ibv_inc_rkey(b.mw->rkey), to(&b.p.b, ROOM), LENGTH, IBV_ACCESS_REMOTE_READ));
	done(b.p.b.scq, 1, IBV_WC_BIND_MW);
	EQ(ibv_dereg_mr(b.mr), EBUSY);
	close_bound(&b);
}

static void no_such_type(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd;

	CHECK(pd = ibv_alloc_pd(context));
	NONE(ibv_alloc_mw(pd, (enum ibv_mw_type)3), EINVAL);
	OK(ibv_dealloc_pd(pd));
	OK(ibv_close_device(context));
}

int main(void)
{
	type1();
	type1_wrong_use();
	type2();
	type2_wrong_use();
	local_flags();
	no_rights();
	zero_based();
	region_in_use();
	no_such_type();
	return 0;
}
