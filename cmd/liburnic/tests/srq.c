/* Shared receive queues. */
#include "test.h"

static void create(struct ibv_context *context)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 10, .max_sge = 2}};
	struct ibv_srq_init_attr_ex ex = {.attr = {.max_wr = 10, .max_sge = 2}};
	struct ibv_device_attr device;
	struct ibv_srq_attr attr;
	struct ibv_srq *srq, *other;
	struct ibv_pd *pd;
	uint32_t number = 0, second = 0;
	int x;

	OK(ibv_query_device(context, &device));
	CHECK(pd = ibv_alloc_pd(context));
	init.srq_context = &x;
	CHECK(srq = ibv_create_srq(pd, &init));
	CHECK(srq->context == context && srq->pd == pd && srq->srq_context == &x);
	CHECK(init.attr.max_wr >= 10 && init.attr.max_sge >= 2); /* what it has got */
	memset(&attr, 0xff, sizeof(attr));
	OK(ibv_query_srq(srq, &attr));
	EQ(attr.max_wr, init.attr.max_wr);
	EQ(attr.max_sge, init.attr.max_sge);
	EQ(attr.srq_limit, 0);
	EQ(ibv_dealloc_pd(pd), EBUSY);

	ex.pd = pd;
	ex.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	ex.srq_type = IBV_SRQT_BASIC;
	CHECK(other = ibv_create_srq_ex(context, &ex));
	OK(ibv_get_srq_num(srq, &number));
	OK(ibv_get_srq_num(other, &second));
	CHECK(number != second);
	OK(ibv_destroy_srq(other));
	OK(ibv_destroy_srq(srq));

	init.attr.max_wr = (uint32_t)device.max_srq_wr + 1;
	NONE(ibv_create_srq(pd, &init), EINVAL);
	init.attr.max_wr = 1;
	init.attr.max_sge = (uint32_t)device.max_srq_sge + 1;
	NONE(ibv_create_srq(pd, &init), EINVAL);
	ex.srq_type = IBV_SRQT_XRC;
	NONE(ibv_create_srq_ex(context, &ex), EOPNOTSUPP);
	ex.srq_type = IBV_SRQT_TM;
	NONE(ibv_create_srq_ex(context, &ex), EOPNOTSUPP);
	OK(ibv_dealloc_pd(pd));
}

/* Requests are taken by what comes first, over any of the queue pairs. */
static void several_queue_pairs(void)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 4, .max_send_sge = 1}, .qp_type = IBV_QPT_RC};
	union ibv_gid gid;
	struct pair p;
	struct end a2, b2;

	pair_open(&p, &(struct plan){.how = BY_GID, .srq = true});
	a2 = p.a;
	b2 = p.b;
	attr.send_cq = a2.scq;
	attr.recv_cq = a2.rcq;
	attr.srq = a2.srq;
	CHECK(a2.qp = ibv_create_qp(a2.pd, &attr));
	attr.send_cq = b2.scq;
	attr.recv_cq = b2.rcq;
	attr.srq = b2.srq;
	CHECK(b2.qp = ibv_create_qp(b2.pd, &attr));
	CHECK(b2.qp->srq == p.b.srq);
	qp_to_init(a2.qp, 0);
	qp_to_init(b2.qp, 0);
	OK(ibv_query_gid(p.a.context, 1, 0, &gid));
	qp_to_rtr(a2.qp, &gid, b2.qp->qp_num, 1);
	qp_to_rtr(b2.qp, &gid, a2.qp->qp_num, 1);
	qp_to_rts(a2.qp, 1);
	qp_to_rts(b2.qp, 1);

	for (uint64_t i = 0; i < 6; i++)
		recv_at(&p.b, i, 100 * i, 100);
	for (int i = 0; i < 6; i++) {
		struct end *from = i % 2 ? &p.a : &a2;
		struct ibv_wc wc;

		from->memory[0] = (uint8_t)(i + 1);
		post(from, .opcode = IBV_WR_SEND, .wr_id = 50, .length = 1);
		done(from->scq, 50, IBV_WC_SEND);
		wc = wait_wc(p.b.rcq);
		EQ(wc.status, IBV_WC_SUCCESS);
		EQ(wc.qp_num, i % 2 ? p.b.qp->qp_num : b2.qp->qp_num);
		EQ(wc.wr_id, i);
		EQ(p.b.memory[100 * i], i + 1);
	}
	OK(ibv_destroy_qp(a2.qp));
	OK(ibv_destroy_qp(b2.qp));
	EQ(ibv_destroy_srq(p.b.srq), EBUSY);
	pair_close(&p);
}

/* The limit event comes once, when fewer requests than the limit are left. */
static void limit(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};
	struct ibv_async_event event;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .srq = true});
	for (uint64_t i = 0; i < 4; i++)
		recv_at(&p.b, i, 0, 8);
	OK(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_LIMIT));
	OK(ibv_query_srq(p.b.srq, &attr));
	EQ(attr.srq_limit, 3);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 9, .length = 8);
	done(p.b.rcq, 0, IBV_WC_RECV); /* three are left */
	CHECK(!is_readable(p.b.context->async_fd));
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 9, .length = 8);
	done(p.b.rcq, 1, IBV_WC_RECV);
	event = want_event(p.b.context, IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(event.element.srq == p.b.srq);
	ibv_ack_async_event(&event);
	OK(ibv_query_srq(p.b.srq, &attr));
	EQ(attr.srq_limit, 0); /* not armed any more */
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 9, .length = 8);
	done(p.b.rcq, 2, IBV_WC_RECV);
	CHECK(!is_readable(p.b.context->async_fd));
	pair_close(&p);
}

static void modify(void)
{
	struct ibv_srq_attr attr = {.max_wr = 100};
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .srq = true});
	OK(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_MAX_WR));
	OK(ibv_query_srq(p.b.srq, &attr));
	CHECK(attr.max_wr >= 100);
	for (uint64_t i = 0; i < 100; i++)
		recv_at(&p.b, i, 0, 8);
	attr.srq_limit = attr.max_wr + 1;
	EQ(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	EQ(ibv_modify_srq(p.b.srq, &attr, 1 << 7), EINVAL);
	pair_close(&p);
}

/* A full queue and malformed requests. */
static void post_errors(void)
{
	struct ibv_sge s[64];
	struct ibv_recv_wr wr[2], *bad = NULL;
	struct ibv_srq_attr attr;
	struct pair p;
	int error = 0;

	pair_open(&p, &(struct plan){.how = BY_GID, .srq = true});
	memset(wr, 0, sizeof(wr));
	for (size_t i = 0; i < COUNT(s); i++)
		s[i] = sge(&p.b, 0, 1);
	OK(ibv_query_srq(p.b.srq, &attr));
	wr[0].next = &wr[1]; /* the first is good and stays posted */
	wr[0].sg_list = wr[1].sg_list = s;
	wr[0].num_sge = 1;
	wr[1].num_sge = (int)attr.max_sge + 1;
	EQ(ibv_post_srq_recv(p.b.srq, wr, &bad), EINVAL);
	CHECK(bad == &wr[1]);
	wr[0].next = NULL;
	for (uint32_t i = 1; i < attr.max_wr; i++)
		OK(ibv_post_srq_recv(p.b.srq, wr, &bad));
	for (uint32_t i = 0; i < attr.max_wr && error == 0; i++)
		error = ibv_post_srq_recv(p.b.srq, wr, &bad);
	EQ(error, ENOMEM);
	CHECK(bad == &wr[0]);
	/* The queue pair has no receive queue of its own. */
	EQ(ibv_post_recv(p.b.qp, wr, &bad), EINVAL);
	/* Tags are not matched here. */
	{
		struct ibv_ops_wr op = {.opcode = IBV_WR_TAG_SYNC}, *bad_op = NULL;

		EQ(ibv_post_srq_ops(p.b.srq, &op, &bad_op), EOPNOTSUPP);
		CHECK(bad_op == &op);
	}
	pair_close(&p);
}

/* A queue pair in error leaves the requests to the others, and says when it takes no more. */
static void last_request(void)
{
	struct ibv_async_event event;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID, .srq = true});
	recv_at(&p.b, 1, 0, 8);
	OK(ibv_modify_qp(p.b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	event = want_event(p.b.context, IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(event.element.qp == p.b.qp);
	ibv_ack_async_event(&event);
	empty(p.b.rcq);
	pair_close(&p);
}

int main(void)
{
	struct ibv_context *context = open_device();

	create(context);
	OK(ibv_close_device(context));
	several_queue_pairs();
	limit();
	modify();
	post_errors();
	last_request();
	return 0;
}
