/*
 * The ibv_wr_* functions: from wr_start to wr_complete they build a list of work requests,
 * which is then posted: all of it, or nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "shim.h"

#define RDMA_OPS (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ)
#define SEND_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV)
#define ATOMIC_OPS (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define WINDOW_OPS (IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)

#define FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)

/*
 * Room for all that the send queue can hold, made once: entry i has the SGEs from
 * i * max_send_sge on, and the inline data from i * max_inline_data on.
 */
struct urnic_builder {
	pthread_mutex_t lock; /* from wr_start to wr_complete or wr_abort */
	int err;              /* the first that was found */
	uint32_t n, max, max_sge, max_inline;
	struct ibv_send_wr *wrs;
	struct ibv_sge *sges;
	char *data;
};

static struct urnic_builder *of(struct ibv_qp_ex *qp)
{
	return urnic_container(qp, struct urnic_qp, ex)->builder;
}

static void fail(struct urnic_builder *b, int err)
{
	if (!b->err)
		b->err = err;
}

static void start(struct ibv_qp_ex *qp)
{
	struct urnic_builder *b = of(qp);

	pthread_mutex_lock(&b->lock);
	b->n = 0;
	b->err = 0;
}

static void abandon(struct ibv_qp_ex *qp)
{
	pthread_mutex_unlock(&of(qp)->lock);
}

static int complete(struct ibv_qp_ex *qp)
{
	const struct urnic_engine *e = urnic_live;
	struct urnic_builder *b = of(qp);
	int err = e ? b->err : errno;

	urnic_spin_anew();
	for (uint32_t i = 1; i < b->n; i++)
		b->wrs[i - 1].next = &b->wrs[i];
	if (!err && b->n)
		err = e->qp_post_all(qp->qp_base.handle, (struct urnic_send_wr *)b->wrs);
	pthread_mutex_unlock(&b->lock);
	return err;
}

/* Begins a work request: NULL if there is no room. */
static struct ibv_send_wr *add(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode)
{
	struct urnic_builder *b = of(qp);
	struct ibv_send_wr *wr;

	if (b->n == b->max) {
		fail(b, ENOMEM);
		return NULL;
	}
	wr = &b->wrs[b->n++];
	*wr = (struct ibv_send_wr){.wr_id = qp->wr_id, .opcode = opcode, .send_flags = qp->wr_flags & FLAGS};
	return wr;
}

static void add_rdma(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	struct ibv_send_wr *wr = add(qp, opcode);

	if (!wr)
		return;
	wr->imm_data = imm;
	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
}

static void rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	add_rdma(qp, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	add_rdma(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	add_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

static void add_atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr,
		       uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = add(qp, opcode);

	if (!wr)
		return;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
	wr->wr.atomic.rkey = rkey;
}

static void atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	add_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t value)
{
	add_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, value, 0);
}

static void send_plain(struct ibv_qp_ex *qp)
{
	add(qp, IBV_WR_SEND);
}

static void send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
	struct ibv_send_wr *wr = add(qp, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm_data;
}

static void add_inv(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t invalidate_rkey)
{
	struct ibv_send_wr *wr = add(qp, opcode);

	if (wr)
		wr->invalidate_rkey = invalidate_rkey;
}

static void send_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	add_inv(qp, IBV_WR_SEND_WITH_INV, invalidate_rkey);
}

static void local_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	add_inv(qp, IBV_WR_LOCAL_INV, invalidate_rkey);
}

static void bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *bind_info)
{
	struct ibv_send_wr *wr;

	if (!mw || !bind_info) {
		fail(of(qp), EINVAL);
		return;
	}
	wr = add(qp, IBV_WR_BIND_MW);
	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *bind_info;
}

/* The request that a setter is for: NULL if there is none, or it has its data. */
static struct ibv_send_wr *last(struct urnic_builder *b)
{
	struct ibv_send_wr *wr = b->n ? &b->wrs[b->n - 1] : NULL;

	if (b->err)
		return NULL;
	if (!wr || wr->sg_list || wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV) {
		fail(b, EINVAL);
		return NULL;
	}
	return wr;
}

static void set_sge_list(struct ibv_qp_ex *qp, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct urnic_builder *b = of(qp);
	struct ibv_send_wr *wr = last(b);

	if (!wr)
		return;
	if (num_sge > b->max_sge || (num_sge && !sg_list)) {
		fail(b, EINVAL);
		return;
	}
	wr->sg_list = &b->sges[(size_t)(b->n - 1) * b->max_sge];
	wr->num_sge = (int)num_sge;
	if (num_sge)
		memcpy(wr->sg_list, sg_list, num_sge * sizeof(*sg_list));
}

static void set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	set_sge_list(qp, 1, &sge);
}

static void set_inline_data_list(struct ibv_qp_ex *qp, size_t num_buf, const struct ibv_data_buf *buf_list)
{
	struct urnic_builder *b = of(qp);
	struct ibv_send_wr *wr = last(b);
	char *data;
	size_t n = 0;

	if (!wr)
		return;
	if (wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || (num_buf && !buf_list)) {
		fail(b, EINVAL); /* nothing is to be sent */
		return;
	}
	data = &b->data[(size_t)(b->n - 1) * b->max_inline];
	for (size_t i = 0; i < num_buf; i++) {
		if (buf_list[i].length > b->max_inline - n) {
			fail(b, EINVAL);
			return;
		}
		if (buf_list[i].length)
			memcpy(data + n, buf_list[i].addr, buf_list[i].length);
		n += buf_list[i].length;
	}
	wr->send_flags |= IBV_SEND_INLINE;
	wr->sg_list = &b->sges[(size_t)(b->n - 1) * b->max_sge];
	wr->sg_list[0] = (struct ibv_sge){.addr = (uintptr_t)data, .length = (uint32_t)n};
	wr->num_sge = 1;
}

static void set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	set_inline_data_list(qp, 1, &buf);
}

/* What reliable connections of iWARP have not: noted, for wr_complete to tell. */

static void no_tso(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	(void)hdr;
	(void)hdr_sz;
	(void)mss;
	fail(of(qp), urnic_unsupported("ibv_wr_send_tso: the device segments nothing"));
}

static void set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct urnic_builder *b = of(qp);

	if (qp->qp_base.qp_type != IBV_QPT_UD) {
		fail(b, urnic_unsupported("ibv_wr_set_ud_addr: iWARP has no datagrams"));
		return;
	}
	if (!b->n) {
		fail(b, EINVAL);
		return;
	}
	b->wrs[b->n - 1].wr.ud.ah = ah;
	b->wrs[b->n - 1].wr.ud.remote_qpn = remote_qpn;
	b->wrs[b->n - 1].wr.ud.remote_qkey = remote_qkey;
}

static void no_xrc_srqn(struct ibv_qp_ex *qp, uint32_t remote_srqn)
{
	(void)remote_srqn;
	fail(of(qp), urnic_unsupported("ibv_wr_set_xrc_srqn: iWARP has no XRC"));
}

static void no_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr)
{
	(void)rkey;
	(void)remote_addr;
	(void)atomic_wr;
	fail(of(qp), urnic_unsupported("ibv_wr_atomic_write: RFC 7306 has no atomic write"));
}

static void set_functions(struct ibv_qp_ex *ex)
{
	ex->wr_start = start;
	ex->wr_complete = complete;
	ex->wr_abort = abandon;
	ex->wr_rdma_read = rdma_read;
	ex->wr_rdma_write = rdma_write;
	ex->wr_rdma_write_imm = rdma_write_imm;
	ex->wr_atomic_cmp_swp = atomic_cmp_swp;
	ex->wr_atomic_fetch_add = atomic_fetch_add;
	ex->wr_send = send_plain;
	ex->wr_send_imm = send_imm;
	ex->wr_send_inv = send_inv;
	ex->wr_local_inv = local_inv;
	ex->wr_bind_mw = bind_mw;
	ex->wr_set_sge = set_sge;
	ex->wr_set_sge_list = set_sge_list;
	ex->wr_set_inline_data = set_inline_data;
	ex->wr_set_inline_data_list = set_inline_data_list;
	ex->wr_send_tso = no_tso;
	ex->wr_set_ud_addr = set_ud_addr;
	ex->wr_set_xrc_srqn = no_xrc_srqn;
	ex->wr_atomic_write = no_atomic_write;
}

int urnic_qp_extend(struct urnic_qp *qp, uint64_t send_ops)
{
	struct urnic_builder *b;

	if (qp->qp.qp_type != IBV_QPT_RC && (send_ops & ~(uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)))
		return urnic_unsupported("ibv_create_qp_ex: send_ops_flags has operations that queue pairs of its type do not have");
	if (send_ops & ~(uint64_t)(RDMA_OPS | SEND_OPS | ATOMIC_OPS | WINDOW_OPS))
		return urnic_unsupported("ibv_create_qp_ex: send_ops_flags has operations that iWARP does not have");
	b = calloc(1, sizeof(*b));
	if (!b)
		return ENOMEM;
	qp->builder = b;
	b->max = qp->cap.max_send_wr;
	b->max_sge = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1; /* inline data need one */
	b->max_inline = qp->cap.max_inline_data;
	pthread_mutex_init(&b->lock, NULL);
	b->wrs = calloc((size_t)b->max + 1, sizeof(*b->wrs));
	b->sges = calloc(((size_t)b->max + 1) * b->max_sge, sizeof(*b->sges));
	b->data = calloc(((size_t)b->max + 1), (size_t)b->max_inline + 1);
	if (!b->wrs || !b->sges || !b->data)
		return ENOMEM; /* who destroys the queue pair frees them */
	set_functions(&qp->ex);
	return 0;
}

void urnic_qp_unextend(struct urnic_qp *qp)
{
	struct urnic_builder *b = qp->builder;

	if (!b)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b->wrs);
	free(b->sges);
	free(b->data);
	free(b);
	qp->builder = NULL;
}

/* NULL if qp has not been created with send_ops_flags. */
URNIC_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct urnic_qp *q = urnic_container(qp, struct urnic_qp, qp);

	return qp && q->builder ? &q->ex : NULL;
}
