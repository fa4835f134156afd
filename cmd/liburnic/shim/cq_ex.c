/*
 * Polling by start_poll, next_poll and end_poll: one completion at a time, that the read
 * functions take apart.
 */
#include "adapter.h"

static struct urnic_cq *of(struct ibv_cq_ex *cq)
{
	return urnic_container(cq, struct urnic_cq, ex);
}

static const struct ibv_wc *wc_of(struct ibv_cq_ex *cq)
{
	return &of(cq)->wc;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	const struct urnic_engine *e = urnic_live;
	struct urnic_cq *c = of(cq);
	int n;

	if (!e)
		return errno;
	n = e->cq_poll(cq->handle, 1, (struct urnic_wc *)&c->wc);
	if (n < 0)
		return -n;
	if (!n)
		return ENOENT;
	if (c->timed) {
		c->ticks = urnic_clock_ns();
		c->wallclock = urnic_clock_wall_ns();
	}
	cq->wr_id = c->wc.wr_id;
	cq->status = c->wc.status;
	return 0;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	if (!of(cq)->single_threaded)
		pthread_mutex_unlock(&of(cq)->poll);
}

/* If it fails, end_poll is not called. */
static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int err;

	if (attr && attr->comp_mask)
		return EINVAL;
	if (!of(cq)->single_threaded)
		pthread_mutex_lock(&of(cq)->poll);
	err = next_poll(cq);
	if (err)
		end_poll(cq);
	if (!err || err == ENOENT)
		urnic_polled(urnic_live, cq->handle, !err);
	return err;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->byte_len;
}

/* Also serves ibv_wc_read_invalidated_rkey. */
static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->slid;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->dlid_path_bits;
}

/* Without a time that the program has asked for, it reads 0. */

static uint64_t read_ts(struct ibv_cq_ex *cq)
{
	return of(cq)->ticks;
}

static uint64_t read_wallclock_ns(struct ibv_cq_ex *cq)
{
	return of(cq)->wallclock;
}

/* What create_cq_ex refuses to offer: a program that reads it all the same gets nothing, not a crash. */

static uint16_t read_no_cvlan(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint32_t read_no_flow_tag(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static void read_no_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *tm_info)
{
	(void)cq;
	*tm_info = (struct ibv_wc_tm_info){0};
}

void urnic_cq_extend(struct urnic_cq *cq, bool single_threaded, bool timed)
{
	struct ibv_cq_ex *ex = &cq->ex;

	cq->single_threaded = single_threaded;
	cq->timed = timed;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_ts;
	ex->read_completion_wallclock_ns = read_wallclock_ns;
	ex->read_cvlan = read_no_cvlan;
	ex->read_flow_tag = read_no_flow_tag;
	ex->read_tm_info = read_no_tm_info;
}
