/* Completion queues: to create, resize, poll and overflow them. */
#include "test.h"

static void create(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	struct ibv_cq *cq;
	int x;

	OK(ibv_query_device(context, &attr));
	CHECK(cq = ibv_create_cq(context, 10, &x, NULL, 0));
	CHECK(cq->context == context && cq->channel == NULL && cq->cq_context == &x);
	CHECK(cq->cqe >= 10);
	empty(cq);
	EQ(ibv_poll_cq(cq, 0, NULL), 0);
	OK(ibv_destroy_cq(cq));
	CHECK(cq = ibv_create_cq(context, attr.max_cqe, NULL, NULL, 0));
	CHECK(cq->cqe >= attr.max_cqe);
	OK(ibv_destroy_cq(cq));
	CHECK(cq = ibv_create_cq(context, 1, NULL, NULL, context->num_comp_vectors - 1));
	OK(ibv_destroy_cq(cq));

	NONE(ibv_create_cq(context, 0, NULL, NULL, 0), EINVAL);
	NONE(ibv_create_cq(context, -1, NULL, NULL, 0), EINVAL);
	NONE(ibv_create_cq(context, attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	NONE(ibv_create_cq(context, 1, NULL, NULL, context->num_comp_vectors), EINVAL);
	NONE(ibv_create_cq(context, 1, NULL, NULL, -1), EINVAL);
}

static void busy(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	EQ(ibv_destroy_cq(p.a.scq), EBUSY);
	EQ(ibv_destroy_cq(p.a.rcq), EBUSY);
	pair_close(&p);
}

/* Completions come in the order of the requests, as many at once as are asked for. */
static void order(void)
{
	struct ibv_wc wcs[16];
	struct pair p;
	int n = 0;

	pair_open(&p, &(struct plan){0});
	for (uint64_t i = 0; i < 12; i++)
		recv_at(&p.b, 100 + i, 64 * i, 64);
	for (uint64_t i = 0; i < 12; i++)
		post(&p.a, .opcode = IBV_WR_SEND, .wr_id = i, .length = (uint32_t)(i + 1));
	for (uint64_t i = 0; i < 12; i++)
		done(p.a.scq, i, IBV_WC_SEND);
	while (n < 12) {
		int got = ibv_poll_cq(p.b.rcq, 5, wcs + n);

		CHECK(got >= 0 && got <= 5);
		n += got;
		CHECK(n <= 12);
	}
	for (int i = 0; i < 12; i++) {
		EQ(wcs[i].wr_id, 100 + i);
		EQ(wcs[i].status, IBV_WC_SUCCESS);
		EQ(wcs[i].opcode, IBV_WC_RECV);
		EQ(wcs[i].byte_len, i + 1);
		EQ(wcs[i].qp_num, p.b.qp->qp_num);
		EQ(wcs[i].wc_flags, 0);
		EQ(wcs[i].vendor_err, 0);
	}
	empty(p.b.rcq);
	pair_close(&p);
}

/* One queue for both directions and both queue pairs of a context: each tells whose it is. */
static void shared(void)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct end a, b;
	union ibv_gid gid;
	bool sent = false, received = false;

	memset(&a, 0, sizeof(a));
	a.context = open_device();
	CHECK(a.pd = ibv_alloc_pd(a.context));
	CHECK(a.memory = calloc(1, MEMORY));
	CHECK(a.mr = ibv_reg_mr(a.pd, a.memory, MEMORY, ALL_ACCESS));
	CHECK(a.scq = attr.send_cq = attr.recv_cq = ibv_create_cq(a.context, 16, NULL, NULL, 0));
	b = a;
	CHECK(a.qp = ibv_create_qp(a.pd, &attr));
	CHECK(b.qp = ibv_create_qp(a.pd, &attr));
	CHECK(a.qp->qp_num != b.qp->qp_num);
	qp_to_init(a.qp, ALL_ACCESS);
	qp_to_init(b.qp, ALL_ACCESS);
	OK(ibv_query_gid(a.context, 1, 0, &gid));
	recv_at(&b, 1, 0, 8);
	qp_to_rtr(a.qp, &gid, b.qp->qp_num, 1);
	qp_to_rtr(b.qp, &gid, a.qp->qp_num, 1);
	qp_to_rts(a.qp, 1);
	qp_to_rts(b.qp, 1);
	post(&a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = wait_wc(a.scq);

		EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_SEND) {
			EQ(wc.qp_num, a.qp->qp_num);
			EQ(wc.wr_id, 2);
			sent = true;
		} else {
			EQ(wc.qp_num, b.qp->qp_num);
			EQ(wc.wr_id, 1);
			received = true;
		}
	}
	CHECK(sent && received);
	OK(ibv_destroy_qp(a.qp));
	OK(ibv_destroy_qp(b.qp));
	OK(ibv_destroy_cq(a.scq));
	OK(ibv_dereg_mr(a.mr));
	OK(ibv_dealloc_pd(a.pd));
	OK(ibv_close_device(a.context));
	free(a.memory);
}

/* To resize keeps what is in the queue, which can't become smaller than that. */
static void resize(void)
{
	struct pair p;
	int cqe;

	pair_open(&p, &(struct plan){.cqe = 64});
	for (uint64_t i = 0; i < 8; i++)
		recv_at(&p.b, i, 0, 8);
	for (uint64_t i = 0; i < 8; i++) {
		post(&p.a, .opcode = IBV_WR_SEND, .wr_id = i, .length = 8);
		done(p.a.scq, i, IBV_WC_SEND);
	}
	done(p.b.rcq, 0, IBV_WC_RECV);
	OK(ibv_resize_cq(p.b.rcq, 200));
	CHECK(p.b.rcq->cqe >= 200);
	for (uint64_t i = 1; i < 4; i++)
		done(p.b.rcq, i, IBV_WC_RECV);
	OK(ibv_resize_cq(p.b.rcq, 20));
	CHECK(p.b.rcq->cqe >= 20 && p.b.rcq->cqe <= 200);
	for (uint64_t i = 4; i < 8; i++)
		done(p.b.rcq, i, IBV_WC_RECV);
	cqe = p.b.rcq->cqe;
	EQ(ibv_resize_cq(p.b.rcq, 0), EINVAL);
	EQ(ibv_resize_cq(p.b.rcq, 1 << 30), EINVAL);
	EQ(p.b.rcq->cqe, cqe);
	EQ(ibv_modify_cq(p.b.rcq, &(struct ibv_modify_cq_attr){.attr_mask = IBV_CQ_ATTR_MODERATE}), EOPNOTSUPP);
	pair_close(&p);
}

/* An overflow of a queue is reported, and its queue pairs end. */
static void overflow(void)
{
	struct ibv_async_event event;
	struct pair p;
	int cqe, n;

	pair_open(&p, &(struct plan){.how = BY_GID, .cqe = 4, .cap = {.max_recv_wr = 64, .max_send_wr = 64}});
	cqe = p.b.rcq->cqe;
	CHECK(cqe < 60);
	for (int i = 0; i < cqe + 2; i++)
		recv_at(&p.b, (uint64_t)i, 0, 8);
	for (int i = 0; i < cqe + 2; i++)
		if (try_post(&p.a, &(struct op){.opcode = IBV_WR_SEND, .unsignaled = true, .length = 8}) != 0)
			break; /* by now, the peer may be gone */
	for (bool told = false; !told;) { /* and of the queue pair, before or after */
		wait_readable(p.b.context->async_fd);
		OK(ibv_get_async_event(p.b.context, &event));
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			CHECK(event.element.cq == p.b.rcq);
			told = true;
		} else {
			CHECK(event.element.qp == p.b.qp);
		}
		ibv_ack_async_event(&event);
	}
	/* What is in the queue may be fetched still, or not; it never has more than it holds. */
	for (n = 0;; n++) {
		struct ibv_wc wc;

		if (ibv_poll_cq(p.b.rcq, 1, &wc) <= 0)
			break;
	}
	CHECK(n <= cqe);
	pair_close(&p);
}

/*
 * A request keeps its place in the send queue until its completion is polled: whoever posts
 * until it is full never overflows a completion queue of that size.
 */
static void held_until_polled(void)
{
	struct op op = {.opcode = IBV_WR_RDMA_WRITE, .length = 8};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair p;
	uint32_t n = 0;
	int error;

	pair_open(&p, &(struct plan){.how = BY_GID, .channels = true, .cqe = 16});
	OK(ibv_query_qp(p.a.qp, &attr, IBV_QP_CAP, &init));
	CHECK((int)attr.cap.max_send_wr <= p.a.scq->cqe);
	op.remote = to(&p.b, 0);
	op.rkey = p.b.mr->rkey;
	OK(ibv_req_notify_cq(p.a.scq, 0));
	while ((error = try_post(&p.a, &op)) == 0)
		CHECK(++n <= attr.cap.max_send_wr);
	EQ(error, ENOMEM);
	EQ(n, attr.cap.max_send_wr);
	wait_readable(p.a.channel->fd); /* some are done */
	EQ(try_post(&p.a, &op), ENOMEM);
	done(p.a.scq, 0, IBV_WC_RDMA_WRITE);
	OK(try_post(&p.a, &op));
	for (uint32_t i = 0; i < n; i++)
		done(p.a.scq, 0, IBV_WC_RDMA_WRITE);
	CHECK(!is_readable(p.a.context->async_fd));
	pair_close(&p);
}

/* ibv_destroy_qp takes the completions of its queue pair out of the queue. */
static void destroyed_queue_pair(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	recv_at(&p.b, 1, 0, 8);
	OK(ibv_modify_qp(p.b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	OK(ibv_destroy_qp(p.b.qp));
	p.b.qp = NULL;
	empty(p.b.rcq);
	pair_close(&p);
}

int main(void)
{
	struct ibv_context *context = open_device();

	create(context);
	OK(ibv_close_device(context));
	busy();
	order();
	shared();
	resize();
	overflow();
	held_until_polled();
	destroyed_queue_pair();
	return 0;
}
