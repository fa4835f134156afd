/* The state SQD: what is posted waits, and what was begun drains (ibv_modify_qp(3)). */
#include "test.h"

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	OK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr;
}

static void to_sqd(struct ibv_qp *qp, bool notify)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify};

	OK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | (notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0)));
}

/* One message that way. */
static void message(struct end *from, struct end *to)
{
	recv_at(to, 50, 100, 8);
	post(from, .opcode = IBV_WR_SEND, .wr_id = 51, .length = 8);
	done(from->scq, 51, IBV_WC_SEND);
	done(to->rcq, 50, IBV_WC_RECV);
}

static void drained(struct end *e)
{
	struct ibv_async_event event = want_event(e->context, IBV_EVENT_SQ_DRAINED);

	CHECK(event.element.qp == e->qp);
	ibv_ack_async_event(&event);
}

static void stop_and_go(enum how how)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = how});
	message(&p.a, &p.b);
	message(&p.b, &p.a);
	for (int notify = 0; notify <= 1; notify++) {
		to_sqd(p.a.qp, notify);
		EQ(query(p.a.qp).qp_state, IBV_QPS_SQD);
		if (notify)
			drained(&p.a);
		recv_at(&p.b, 1, 0, 8);
		post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
		recv_at(&p.a, 3, 0, 8); /* a receives meanwhile, and answers a Read */
		post(&p.b, .opcode = IBV_WR_SEND, .wr_id = 4, .length = 8);
		done(p.b.scq, 4, IBV_WC_SEND);
		done(p.a.rcq, 3, IBV_WC_RECV);
		post(&p.b, .opcode = IBV_WR_RDMA_READ, .wr_id = 5, .length = 8, .remote = to(&p.a, 0),
		     .rkey = p.a.mr->rkey);
		done(p.b.scq, 5, IBV_WC_RDMA_READ);
		empty(p.a.scq);
		empty(p.b.rcq);
		EQ(query(p.a.qp).sq_draining, 0);
		OK(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE));
		done(p.a.scq, 2, IBV_WC_SEND);
		done(p.b.rcq, 1, IBV_WC_RECV);
		if (!notify)
			CHECK(!is_readable(p.a.context->async_fd));
	}
	pair_close(&p);
}

/* What was begun completes, then the event comes; what waits is flushed by ERR. */
static void drains(enum how how)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = how});
	message(&p.a, &p.b);
	for (uint64_t i = 0; i < 8; i++)
		post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = i, .offset = 1024 * i, .length = 1024,
		     .remote = to(&p.b, 0), .rkey = p.b.mr->rkey);
	to_sqd(p.a.qp, true);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 9, .length = 8);
	drained(&p.a);
	EQ(query(p.a.qp).sq_draining, 0);
	OK(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	for (uint64_t i = 0, flushed = 0; i < 10 && i != 8; i++) { /* how many were begun, who can tell? */
		struct ibv_wc wc = wait_wc(p.a.scq);

		EQ(wc.wr_id, i);
		flushed += wc.status == IBV_WC_WR_FLUSH_ERR;
		EQ(wc.status, flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
	}
	want_wc(p.a.scq, 9, IBV_WC_WR_FLUSH_ERR, 0);
	pair_close(&p);
}

int main(void)
{
	OK(setenv("URNIC_TIMES", "release=1s", 1)); /* what is left to send holds up the end of a queue pair that is in SQD */
	for (int how = BY_CM; how <= BY_GID; how++) {
		stop_and_go((enum how)how);
		drains((enum how)how);
	}
	return 0;
}
