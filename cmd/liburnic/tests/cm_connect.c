/* Connections by rdma_cm: private data, resources, refusal, end, and other ways to the same. */
#include "test.h"

static const struct ibv_qp_init_attr common = {
	.qp_type = IBV_QPT_RC,
	.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
};

/* Two channels, an id that listens on b's, and one of a's that may connect to it. */
struct sides {
	struct rdma_event_channel *a, *b;
	struct rdma_cm_id *listener, *id;
};

static void open_sides(struct sides *s, const struct sockaddr *any)
{
	struct sockaddr_storage to;

	CHECK(s->a = rdma_create_event_channel());
	CHECK(s->b = rdma_create_event_channel());
	OK(rdma_create_id(s->b, &s->listener, s, RDMA_PS_TCP));
	OK(rdma_bind_addr(s->listener, (struct sockaddr *)any));
	OK(rdma_listen(s->listener, 0));
	memcpy(&to, rdma_get_local_addr(s->listener), sizeof(to));
	OK(rdma_create_id(s->a, &s->id, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&to, 5000));
	cm_take(s->a, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(s->id, 5000));
	cm_take(s->a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	{
		struct ibv_qp_init_attr attr = common;

		OK(rdma_create_qp(s->id, NULL, &attr));
	}
}

static void open_loopback(struct sides *s)
{
	struct sockaddr_in any = loopback(0);

	open_sides(s, (struct sockaddr *)&any);
}

static void close_id(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	OK(rdma_destroy_id(id));
}

static void close_sides(struct sides *s)
{
	close_id(s->id);
	OK(rdma_destroy_id(s->listener));
	rdma_destroy_event_channel(s->a);
	rdma_destroy_event_channel(s->b);
}

/* request takes a request; the private data is checked. */
static struct rdma_cm_id *request(struct sides *s, const void *private, uint8_t length)
{
	struct rdma_cm_event *event = cm_event(s->b, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;
	struct ibv_qp_init_attr attr = common;

	CHECK(event->listen_id == s->listener && id != s->listener);
	CHECK(id->context == s && id->channel == s->b && id->verbs == s->id->verbs);
	EQ(event->param.conn.private_data_len, length);
	if (length > 0)
		EQ(memcmp(event->param.conn.private_data, private, length), 0);
	EQ(rdma_get_dst_port(id), rdma_get_src_port(s->id));
	EQ(rdma_get_src_port(id), rdma_get_dst_port(s->id));
	OK(rdma_ack_cm_event(event));
	OK(rdma_create_qp(id, NULL, &attr));
	return id;
}

static void private_data(void)
{
	uint8_t hello[200], welcome[150];
	struct rdma_conn_param param = {.private_data = hello, .private_data_len = sizeof(hello),
					.responder_resources = 3, .initiator_depth = 5};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct sides s;

	for (size_t i = 0; i < sizeof(hello); i++)
		hello[i] = (uint8_t)(i + 1);
	for (size_t i = 0; i < sizeof(welcome); i++)
		welcome[i] = (uint8_t)(200 - i);
	open_loopback(&s);
	OK(rdma_connect(s.id, &param));
	event = cm_event(s.b, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = event->id;
	EQ(event->param.conn.private_data_len, sizeof(hello));
	EQ(memcmp(event->param.conn.private_data, hello, sizeof(hello)), 0);
	/* What the peer can answer is our depth, and the other way round (rdma_get_cm_event(3)). */
	EQ(event->param.conn.responder_resources, 5);
	EQ(event->param.conn.initiator_depth, 3);
	OK(rdma_ack_cm_event(event));
	{
		struct ibv_qp_init_attr attr = common;

		OK(rdma_create_qp(id, NULL, &attr));
	}
	param.private_data = welcome;
	param.private_data_len = sizeof(welcome);
	param.responder_resources = 2;
	param.initiator_depth = 1;
	OK(rdma_accept(id, &param));
	event = cm_event(s.a, RDMA_CM_EVENT_ESTABLISHED);
	EQ(event->param.conn.private_data_len, sizeof(welcome));
	EQ(memcmp(event->param.conn.private_data, welcome, sizeof(welcome)), 0);
	OK(rdma_ack_cm_event(event));
	cm_take(s.b, RDMA_CM_EVENT_ESTABLISHED);
	close_id(id);
	close_sides(&s);
}

/* A refusal has private data too, and the id can be destroyed at once. */
static void reject(void)
{
	static const char why[] = "not today";
	struct rdma_conn_param param = {0};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct sides s;

	for (int ece = 0; ece <= 1; ece++) {
		open_loopback(&s);
		OK(rdma_connect(s.id, &param));
		id = request(&s, NULL, 0);
		if (ece)
			OK(rdma_reject_ece(id, why, sizeof(why)));
		else
			OK(rdma_reject(id, why, sizeof(why)));
		event = cm_event(s.a, RDMA_CM_EVENT_REJECTED);
		CHECK(event->id == s.id && event->status != 0);
		EQ(event->param.conn.private_data_len, sizeof(why));
		EQ(memcmp(event->param.conn.private_data, why, sizeof(why)), 0);
		OK(rdma_ack_cm_event(event));
		close_id(id);
		close_sides(&s);
	}
}

/* To destroy the id of a request refuses it. */
static void destroyed_request(void)
{
	struct rdma_conn_param param = {0};
	struct sides s;

	open_loopback(&s);
	OK(rdma_connect(s.id, &param));
	close_id(request(&s, NULL, 0));
	cm_take(s.a, RDMA_CM_EVENT_REJECTED);
	close_sides(&s);
}

/* Either side ends the connection; both hear of it, and receives are flushed. */
static void disconnect(void)
{
	for (int who = 0; who <= 2; who++) {
		struct pair p;

		pair_open(&p, &(struct plan){.how = BY_CM});
		recv_at(&p.a, 1, 0, 8);
		recv_at(&p.b, 2, 0, 8);
		if (who != 1)
			OK(rdma_disconnect(p.a.id));
		if (who != 0)
			OK(rdma_disconnect(p.b.id));
		want_wc(p.a.rcq, 1, IBV_WC_WR_FLUSH_ERR, 0);
		want_wc(p.b.rcq, 2, IBV_WC_WR_FLUSH_ERR, 0);
		cm_take(p.a.events, RDMA_CM_EVENT_DISCONNECTED);
		cm_take(p.b.events, RDMA_CM_EVENT_DISCONNECTED);
		rdma_disconnect(p.a.id); /* as the one that hears of it does; too late is no harm */
		rdma_disconnect(p.b.id);
		pair_close(&p);
	}
}

/* What was sent before the end arrives before it. */
static void data_before_the_end(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_CM});
	for (uint64_t i = 0; i < 8; i++)
		recv_at(&p.b, i, 8000 * i, 8000);
	for (uint64_t i = 0; i < 8; i++)
		post(&p.a, .opcode = IBV_WR_SEND, .wr_id = i, .length = 8000);
	for (uint64_t i = 0; i < 8; i++)
		done(p.a.scq, i, IBV_WC_SEND);
	OK(rdma_disconnect(p.a.id));
	cm_take(p.b.events, RDMA_CM_EVENT_DISCONNECTED);
	for (uint64_t i = 0; i < 8; i++)
		done(p.b.rcq, i, IBV_WC_RECV);
	pair_close(&p);
}

/* A peer that is gone without a word, with its queue pair. */
static void peer_destroyed(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_CM});
	recv_at(&p.b, 2, 0, 8);
	rdma_destroy_qp(p.a.id);
	want_wc(p.b.rcq, 2, IBV_WC_WR_FLUSH_ERR, 0);
	cm_take(p.b.events, RDMA_CM_EVENT_DISCONNECTED);
	pair_close(&p);
}

static void ipv6(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct rdma_conn_param param = {.private_data = "six", .private_data_len = 3};
	struct rdma_cm_id *id;
	struct sides s;

	open_sides(&s, (struct sockaddr *)&any);
	EQ(rdma_get_local_addr(s.id)->sa_family, AF_INET6);
	OK(rdma_connect(s.id, &param));
	id = request(&s, "six", 3);
	EQ(rdma_get_peer_addr(id)->sa_family, AF_INET6);
	OK(rdma_accept(id, &(struct rdma_conn_param){0}));
	cm_take(s.a, RDMA_CM_EVENT_ESTABLISHED);
	cm_take(s.b, RDMA_CM_EVENT_ESTABLISHED);
	close_id(id);
	close_sides(&s);
}

/* Many requests at one listener, answered in another order. */
static void many(void)
{
	struct rdma_conn_param param = {0};
	struct sockaddr_in any = loopback(0), to;
	struct rdma_event_channel *a, *b;
	struct rdma_cm_id *listener, *ids[8], *requests[8];
	struct ibv_qp_init_attr attr;

	CHECK(a = rdma_create_event_channel());
	CHECK(b = rdma_create_event_channel());
	OK(rdma_create_id(b, &listener, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(listener, (struct sockaddr *)&any));
	OK(rdma_listen(listener, 16));
	to = loopback(ntohs(rdma_get_src_port(listener)));
	for (uint8_t i = 0; i < COUNT(ids); i++) {
		OK(rdma_create_id(a, &ids[i], NULL, RDMA_PS_TCP));
		OK(rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&to, 5000));
		cm_take(a, RDMA_CM_EVENT_ADDR_RESOLVED);
		OK(rdma_resolve_route(ids[i], 5000));
		cm_take(a, RDMA_CM_EVENT_ROUTE_RESOLVED);
		attr = common;
		OK(rdma_create_qp(ids[i], NULL, &attr));
		param.private_data = &i;
		param.private_data_len = 1;
		OK(rdma_connect(ids[i], &param));
	}
	for (size_t i = 0; i < COUNT(ids); i++) {
		struct rdma_cm_event *event = cm_event(b, RDMA_CM_EVENT_CONNECT_REQUEST);

		requests[*(const uint8_t *)event->param.conn.private_data] = event->id;
		OK(rdma_ack_cm_event(event));
	}
	for (size_t i = COUNT(ids); i-- > 0;) {
		attr = common;
		OK(rdma_create_qp(requests[i], NULL, &attr));
		OK(rdma_accept(requests[i], &(struct rdma_conn_param){0}));
		{
			struct rdma_cm_event *event = cm_event(a, RDMA_CM_EVENT_ESTABLISHED);

			CHECK(event->id == ids[i]);
			OK(rdma_ack_cm_event(event));
		}
		{
			struct rdma_cm_event *event = cm_event(b, RDMA_CM_EVENT_ESTABLISHED);

			CHECK(event->id == requests[i]);
			OK(rdma_ack_cm_event(event));
		}
	}
	for (size_t i = 0; i < COUNT(ids); i++) {
		close_id(ids[i]);
		close_id(requests[i]);
	}
	OK(rdma_destroy_id(listener));
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
}

/* The listener can go while a connection that it has accepted lives on. */
static void listener_goes(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_CM});
	OK(rdma_destroy_id(p.listener));
	p.listener = NULL;
	recv_at(&p.b, 1, 0, 8);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	done(p.a.scq, 2, IBV_WC_SEND);
	done(p.b.rcq, 1, IBV_WC_RECV);
	pair_close(&p);
}

int main(void)
{
	private_data();
	reject();
	destroyed_request();
	disconnect();
	data_before_the_end();
	peer_destroyed();
	ipv6();
	many();
	listener_goes();
	return 0;
}
