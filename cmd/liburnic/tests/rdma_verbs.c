/* The inline helpers of rdma_verbs.h, and the queues that rdma_create_qp and rdma_create_srq make by themselves. */
#include "test.h"

#include <pthread.h>

static struct ibv_qp_init_attr common(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 32},
	};
}

struct ends {
	struct rdma_event_channel *a_events, *b_events;
	struct rdma_cm_id *listener, *a, *b;
};

/* connect_ends has rdma_cm make all that can be left to it; b may share its receives. */
static void connect_ends(struct ends *e, bool shared)
{
	struct rdma_conn_param param = {.responder_resources = 2, .initiator_depth = 2};
	struct ibv_qp_init_attr attr = common();
	struct sockaddr_in any = loopback(0), to;
	struct rdma_cm_event *event;

	CHECK(e->a_events = rdma_create_event_channel());
	CHECK(e->b_events = rdma_create_event_channel());
	OK(rdma_create_id(e->b_events, &e->listener, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(e->listener, (struct sockaddr *)&any));
	OK(rdma_listen(e->listener, 1));
	to = loopback(ntohs(rdma_get_src_port(e->listener)));
	OK(rdma_create_id(e->a_events, &e->a, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(e->a, NULL, (struct sockaddr *)&to, 5000));
	cm_take(e->a_events, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(e->a, 5000));
	cm_take(e->a_events, RDMA_CM_EVENT_ROUTE_RESOLVED);
	OK(rdma_create_qp(e->a, NULL, &attr));
	CHECK(e->a->qp->qp_context != NULL || attr.qp_context == NULL);
	CHECK(e->a->send_cq && e->a->recv_cq && e->a->send_cq_channel && e->a->recv_cq_channel);
	CHECK(e->a->send_cq->cq_context == e->a && e->a->qp->send_cq == e->a->send_cq);
	OK(rdma_connect(e->a, &param));
	event = cm_event(e->b_events, RDMA_CM_EVENT_CONNECT_REQUEST);
	e->b = event->id;
	OK(rdma_ack_cm_event(event));
	if (shared) {
		struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = 8, .max_sge = 2}};

		OK(rdma_create_srq_ex(e->b, &srq));
		CHECK(e->b->srq != NULL && e->b->srq->pd == e->b->pd);
		rdma_destroy_srq(e->b); /* and the older way */
		CHECK(e->b->srq == NULL);
		{
			struct ibv_srq_init_attr older = {.attr = {.max_wr = 8, .max_sge = 2}};

			OK(rdma_create_srq(e->b, NULL, &older));
			CHECK(older.attr.max_wr >= 8);
		}
	}
	attr = common();
	OK(rdma_create_qp(e->b, NULL, &attr));
	CHECK(e->b->qp->srq == e->b->srq);
	OK(rdma_accept(e->b, &param));
	cm_take(e->a_events, RDMA_CM_EVENT_ESTABLISHED);
	cm_take(e->b_events, RDMA_CM_EVENT_ESTABLISHED);
}

static void disconnect_ends(struct ends *e)
{
	rdma_destroy_qp(e->a);
	CHECK(e->a->qp == NULL && e->a->send_cq == NULL && e->a->recv_cq == NULL);
	rdma_destroy_qp(e->b);
	if (e->b->srq)
		rdma_destroy_srq(e->b);
	OK(rdma_destroy_id(e->a));
	OK(rdma_destroy_id(e->b));
	OK(rdma_destroy_id(e->listener));
	rdma_destroy_event_channel(e->a_events);
	rdma_destroy_event_channel(e->b_events);
}

static uint8_t here[4096], there[4096];

static void want(int got, const struct ibv_wc *wc, void *context, enum ibv_wc_opcode opcode)
{
	EQ(got, 1);
	EQ(wc->status, IBV_WC_SUCCESS);
	EQ(wc->opcode, opcode);
	CHECK((void *)(uintptr_t)wc->wr_id == context);
}

static void helpers(bool shared)
{
	struct ibv_mr *messages, *sink, *readable, *writable;
	struct ibv_sge s[2];
	struct ends e;
	struct ibv_wc wc;
	int x, y;

	connect_ends(&e, shared);
	CHECK(messages = rdma_reg_msgs(e.a, here, sizeof(here)));
	CHECK(sink = rdma_reg_msgs(e.b, there, 1024));
	CHECK(readable = rdma_reg_read(e.b, there + 1024, 1024));
	CHECK(writable = rdma_reg_write(e.b, there + 2048, 1024));

	memset(here, 0x61, sizeof(here));
	memset(there, 0, sizeof(there));
	OK(rdma_post_recv(e.b, &x, there, 1024, sink));
	OK(rdma_post_send(e.a, &y, here, 1024, messages, IBV_SEND_SIGNALED));
	want(rdma_get_send_comp(e.a, &wc), &wc, &y, IBV_WC_SEND);
	want(rdma_get_recv_comp(e.b, &wc), &wc, &x, IBV_WC_RECV);
	EQ(wc.byte_len, 1024);
	EQ(there[1023], 0x61);

	s[0] = (struct ibv_sge){(uintptr_t)there, 10, sink->lkey};
	s[1] = (struct ibv_sge){(uintptr_t)there + 100, 10, sink->lkey};
	memset(there, 0, sizeof(there));
	OK(rdma_post_recvv(e.b, &x, s, 2));
	s[0] = (struct ibv_sge){(uintptr_t)here, 5, messages->lkey};
	s[1] = (struct ibv_sge){(uintptr_t)here + 5, 15, messages->lkey};
	OK(rdma_post_sendv(e.a, &y, s, 2, IBV_SEND_SIGNALED));
	want(rdma_get_send_comp(e.a, &wc), &wc, &y, IBV_WC_SEND);
	want(rdma_get_recv_comp(e.b, &wc), &wc, &x, IBV_WC_RECV);
	EQ(there[9], 0x61);
	EQ(there[10], 0);
	EQ(there[109], 0x61);

	OK(rdma_post_write(e.a, &y, here, 1024, messages, IBV_SEND_SIGNALED, (uintptr_t)there + 2048, writable->rkey));
	want(rdma_get_send_comp(e.a, &wc), &wc, &y, IBV_WC_RDMA_WRITE);
	OK(rdma_post_writev(e.a, &y, s, 2, IBV_SEND_SIGNALED, (uintptr_t)there + 2048, writable->rkey));
	want(rdma_get_send_comp(e.a, &wc), &wc, &y, IBV_WC_RDMA_WRITE);
	/* Inline needs no region. */
	OK(rdma_post_write(e.a, &y, here, 8, NULL, IBV_SEND_SIGNALED | IBV_SEND_INLINE, (uintptr_t)there + 2048,
			   writable->rkey));
	want(rdma_get_send_comp(e.a, &wc), &wc, &y, IBV_WC_RDMA_WRITE);

	memset(there + 1024, 0x33, 1024);
	OK(rdma_post_read(e.a, &y, here, 1024, messages, IBV_SEND_SIGNALED, (uintptr_t)there + 1024, readable->rkey));
	want(rdma_get_send_comp(e.a, &wc), &wc, &y, IBV_WC_RDMA_READ);
	EQ(here[1023], 0x33);
	EQ(there[2048 + 1023], 0x61); /* a Read comes behind the Writes before it */
	OK(rdma_post_readv(e.a, &y, s, 2, IBV_SEND_SIGNALED, (uintptr_t)there + 1024, readable->rkey));
	want(rdma_get_send_comp(e.a, &wc), &wc, &y, IBV_WC_RDMA_READ);

	OK(rdma_dereg_mr(messages));
	OK(rdma_dereg_mr(sink));
	OK(rdma_dereg_mr(readable));
	OK(rdma_dereg_mr(writable));
	disconnect_ends(&e);
}

static void *send_later(void *argument)
{
	struct rdma_cm_id *id = argument;
	uint8_t data[8] = {1};

	OK(rdma_post_send(id, NULL, data, sizeof(data), NULL, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	return NULL;
}

/* rdma_get_recv_comp waits until something comes. */
static void waiting(void)
{
	struct ibv_mr *sink;
	pthread_t thread;
	struct ibv_wc wc;
	struct ends e;

	connect_ends(&e, false);
	CHECK(sink = rdma_reg_msgs(e.b, there, 1024));
	for (int i = 0; i < 8; i++) {
		OK(rdma_post_recv(e.b, &e, there, 1024, sink));
		OK(pthread_create(&thread, NULL, send_later, e.a));
		want(rdma_get_recv_comp(e.b, &wc), &wc, &e, IBV_WC_RECV);
		OK(pthread_join(thread, NULL));
		want(rdma_get_send_comp(e.a, &wc), &wc, NULL, IBV_WC_SEND);
	}
	OK(rdma_dereg_mr(sink));
	disconnect_ends(&e);
}

int main(void)
{
	helpers(false);
	helpers(true);
	waiting();
	return 0;
}
