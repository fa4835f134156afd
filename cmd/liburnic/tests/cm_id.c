/* Ids and event channels of rdma_cm: to make, bind and resolve them, and to destroy them at any point. */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

static void channels(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;

	CHECK(channel = rdma_create_event_channel());
	CHECK(channel->fd >= 0);
	CHECK(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
	CHECK(!is_readable(channel->fd));
	OK(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	FAILS(rdma_get_cm_event(channel, &event), EAGAIN);
	rdma_destroy_event_channel(channel);
}

static void members(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	int x;

	CHECK(channel = rdma_create_event_channel());
	OK(rdma_create_id(channel, &id, &x, RDMA_PS_TCP));
	CHECK(id->channel == channel && id->context == &x && id->verbs == NULL && id->qp == NULL);
	EQ(id->ps, RDMA_PS_TCP);
	EQ(id->qp_type, IBV_QPT_RC);
	EQ(rdma_get_src_port(id), 0);
	EQ(rdma_get_dst_port(id), 0);
	OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* To bind: a port that is asked for, one that is free, an address that is not ours. */
static void bind_addr(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id, *other;
	struct sockaddr_in sin = loopback(0);
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};

	CHECK(channel = rdma_create_event_channel());
	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	OK(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(id, (struct sockaddr *)&sin));
	CHECK(rdma_get_src_port(id) != 0);
	CHECK(id->verbs != NULL); /* the device of the address */
	EQ(id->port_num, 1);
	EQ(rdma_get_local_addr(id)->sa_family, AF_INET);
	EQ(id->route.addr.src_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	FAILS(rdma_bind_addr(id, (struct sockaddr *)&sin), EINVAL); /* it is bound */
	OK(rdma_listen(id, 1));
	sin.sin_port = rdma_get_src_port(id);
	FAILS(rdma_bind_addr(other, (struct sockaddr *)&sin), EADDRINUSE);
	OK(rdma_destroy_id(other));
	OK(rdma_destroy_id(id));

	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(id, (struct sockaddr *)&sin6)); /* of all addresses: of no device yet */
	CHECK(rdma_get_src_port(id) != 0);
	CHECK(id->verbs == NULL);
	OK(rdma_destroy_id(id));

	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	sin.sin_addr.s_addr = htonl(0xcb007101); /* 203.0.113.1, of documents */
	FAILS(rdma_bind_addr(id, (struct sockaddr *)&sin), EADDRNOTAVAIL);
	OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* A port is free again when its id is gone. */
static void port_again(void)
{
	struct rdma_event_channel *channel;
	struct sockaddr_in sin = loopback(0);
	struct rdma_cm_id *id;

	CHECK(channel = rdma_create_event_channel());
	for (int i = 0; i < 10; i++) {
		OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
		OK(rdma_bind_addr(id, (struct sockaddr *)&sin));
		sin.sin_port = rdma_get_src_port(id);
		OK(rdma_listen(id, 1));
		OK(rdma_destroy_id(id));
	}
	rdma_destroy_event_channel(channel);
}

static struct rdma_cm_id *resolved(struct rdma_event_channel *channel, uint16_t port)
{
	struct sockaddr_in to = loopback(port);
	struct rdma_cm_id *id;

	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000));
	cm_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(id, 5000));
	cm_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static void resolve(void)
{
	struct sockaddr_in from = loopback(0), to = loopback(7777);
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(channel = rdma_create_event_channel());
	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	FAILS(rdma_resolve_route(id, 1000), EINVAL); /* that comes second */
	OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000));
	event = cm_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(event->id == id && event->listen_id == NULL);
	OK(rdma_ack_cm_event(event));
	CHECK(id->verbs != NULL && id->pd != NULL);
	EQ(id->port_num, 1);
	EQ(ntohs(rdma_get_dst_port(id)), 7777);
	EQ(((struct sockaddr_in *)rdma_get_peer_addr(id))->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	EQ(((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	OK(rdma_resolve_route(id, 5000));
	cm_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	OK(rdma_destroy_id(id));

	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)); /* from an address of ours */
	OK(rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 5000));
	cm_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_destroy_id(id));

	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)); /* from one that is not */
	from.sin_addr.s_addr = htonl(0xcb007101);
	if (rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 5000) == 0)
		cm_take(channel, RDMA_CM_EVENT_ADDR_ERROR);
	OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* Nobody listens there. */
static void refused(void)
{
	struct rdma_conn_param param = {0};
	struct rdma_event_channel *channel;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct sockaddr_in sin = loopback(0);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	uint16_t port;

	CHECK(channel = rdma_create_event_channel());
	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)); /* to find a free port */
	OK(rdma_bind_addr(id, (struct sockaddr *)&sin));
	port = ntohs(rdma_get_src_port(id));
	OK(rdma_destroy_id(id));

	id = resolved(channel, port);
	OK(rdma_create_qp(id, NULL, &attr));
	OK(rdma_connect(id, &param));
	wait_readable(channel->fd);
	OK(rdma_get_cm_event(channel, &event));
	/* siw gives UNREACHABLE or REJECTED with the errno; programs take each for a failure. */
	CHECK(event->event == RDMA_CM_EVENT_REJECTED || event->event == RDMA_CM_EVENT_UNREACHABLE ||
	      event->event == RDMA_CM_EVENT_CONNECT_ERROR);
	EQ(event->status, -ECONNREFUSED);
	OK(rdma_ack_cm_event(event));
	rdma_destroy_qp(id);
	OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* Wherever an id stands, it can be destroyed, and its events are gone. */
static void destroy_in_each_state(void)
{
	struct sockaddr_in any = loopback(0), to;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_conn_param param = {0};
	struct rdma_event_channel *channel, *listening;
	struct rdma_cm_id *listener, *id;

	CHECK(channel = rdma_create_event_channel());
	CHECK(listening = rdma_create_event_channel());
	OK(rdma_create_id(listening, &listener, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(listener, (struct sockaddr *)&any));
	OK(rdma_listen(listener, 10));
	to = loopback(ntohs(rdma_get_src_port(listener)));

	for (int steps = 0; steps < 5; steps++) {
		OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
		if (steps >= 1) {
			OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000));
			wait_readable(channel->fd);
		}
		if (steps >= 2) {
			cm_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
			OK(rdma_resolve_route(id, 5000));
			wait_readable(channel->fd);
		}
		if (steps >= 3) {
			cm_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
			OK(rdma_create_qp(id, NULL, &attr));
		}
		if (steps >= 4) {
			OK(rdma_connect(id, &param));
			wait_readable(listening->fd); /* and nobody answers */
		}
		if (id->qp)
			rdma_destroy_qp(id);
		OK(rdma_destroy_id(id));
		CHECK(!is_readable(channel->fd));
	}
	OK(rdma_destroy_id(listener)); /* with the request that nobody has fetched */
	CHECK(!is_readable(listening->fd));
	rdma_destroy_event_channel(listening);
	rdma_destroy_event_channel(channel);
}

struct destroyer {
	struct rdma_cm_id *id;
	int ended;
};

static void *destroy(void *argument)
{
	struct destroyer *d = argument;

	OK(rdma_destroy_id(d->id));
	__atomic_store_n(&d->ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* To destroy an id waits until its events are acknowledged. */
static void destroy_waits(void)
{
	struct rdma_event_channel *channel;
	struct sockaddr_in to = loopback(7777);
	struct destroyer d = {0};
	struct rdma_cm_event *event;
	pthread_t thread;

	CHECK(channel = rdma_create_event_channel());
	OK(rdma_create_id(channel, &d.id, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(d.id, NULL, (struct sockaddr *)&to, 5000));
	event = cm_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(pthread_create(&thread, NULL, destroy, &d));
	for (int i = 0; i < 100; i++)
		sched_yield();
	EQ(__atomic_load_n(&d.ended, __ATOMIC_SEQ_CST), 0);
	OK(rdma_ack_cm_event(event));
	OK(pthread_join(thread, NULL));
	rdma_destroy_event_channel(channel);
}

/* Calls in the wrong order. */
static void wrong_order(void)
{
	struct rdma_conn_param param = {0};
	struct rdma_event_channel *channel;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct rdma_cm_id *id;

	CHECK(channel = rdma_create_event_channel());
	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(rdma_connect(id, &param) == -1);
	CHECK(rdma_accept(id, &param) == -1);
	CHECK(rdma_reject(id, NULL, 0) == -1);
	CHECK(rdma_disconnect(id) == -1);
	FAILS(rdma_create_qp(id, NULL, &attr), EINVAL); /* of no device yet */
	OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void devices(void)
{
	struct ibv_context **list;
	int n = -1;

	CHECK(list = rdma_get_devices(&n));
	EQ(n, 1);
	CHECK(list[0] != NULL && list[1] == NULL);
	EQ(strcmp(ibv_get_device_name(list[0]->device), "urnic0"), 0);
	rdma_free_devices(list);
	CHECK(list = rdma_get_devices(NULL));
	rdma_free_devices(list);
}

int main(void)
{
	channels();
	members();
	bind_addr();
	port_again();
	resolve();
	refused();
	destroy_in_each_state();
	destroy_waits();
	wrong_order();
	devices();
	return 0;
}
