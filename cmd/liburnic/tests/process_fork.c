/*
 * Children of fork have verbs of their own, whether they were forked before the first verb or later, and
 * hold none of their parent's connections open.
 */
#include "process.h"

#include <poll.h>
#include <sys/wait.h>

static struct pair shared;
static int ready[2];

static int with_own_verbs(void)
{
	use_verbs();
	return 6;
}

/* What is the parent's fails in a child that was forked after its parent had opened the device, and stays the parent's. */
static void not_its_own(void)
{
	struct ibv_wc wc;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad = NULL;
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;

	CHECK(!ibv_alloc_pd(shared.a.context));
	CHECK(!ibv_reg_mr(shared.a.pd, shared.a.memory, 8, 0));
	CHECK(!ibv_create_comp_channel(shared.a.context));
	CHECK(!ibv_create_cq(shared.a.context, 1, NULL, NULL, 0));
	CHECK(ibv_poll_cq(shared.a.scq, 1, &wc) < 0);
	CHECK(ibv_post_send(shared.a.qp, &wr, &bad) > 0);
	CHECK(bad == &wr);
	CHECK(ibv_post_recv(shared.a.qp, &recv, &bad_recv) > 0);
	CHECK(ibv_req_notify_cq(shared.a.scq, 0) != 0);
	CHECK(ibv_destroy_qp(shared.a.qp) != 0);
	CHECK(ibv_destroy_cq(shared.a.scq) != 0);
	CHECK(ibv_dereg_mr(shared.a.mr) != 0);
	CHECK(rdma_disconnect(shared.a.id) != 0);
}

/* Such a child has verbs of its own, with as many objects as its parent has, which are not taken for them. */
static int late(void)
{
	struct pair own;

	not_its_own();
	pair_open(&own, &(struct plan){.how = BY_CM});
	traffic(&own, 4);
	not_its_own();
	traffic(&own, 4);
	pair_close(&own);
	return 7;
}

/* So does its child. */
static int grandchild(void)
{
	use_verbs();
	ends(child(late), 7);
	use_verbs();
	return 8;
}

/* A child has its own sockets only: it must not make its parent's peers wait. */
static int counts_sockets(void)
{
	return sockets();
}

static uint16_t ports[2];

/* Reports whether a socket of this process is bound to one of the ports. */
static int holds_ports(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_storage at = {0};
		socklen_t len = sizeof(at);
		uint16_t port;

		if (getsockname(fd, (struct sockaddr *)&at, &len) || (at.ss_family != AF_INET && at.ss_family != AF_INET6))
			continue;
		port = ntohs(((struct sockaddr_in *)&at)->sin_port); /* where IPv6 has it, too */
		n += port && (port == ports[0] || port == ports[1]);
	}
	return n;
}

/* Sockets that have a port and nothing else: of an id that is bound, and of the process itself. */
static void bound_only(void)
{
	struct sockaddr_in any = loopback(0);
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

	CHECK(events = rdma_create_event_channel());
	OK(rdma_create_id(events, &id, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(id, (struct sockaddr *)&any));
	ports[0] = ntohs(rdma_get_src_port(id));
	OK(rdma_create_qp(id, NULL, &attr));
	CHECK(id->qp->qp_num >> 14);
	ports[1] = 21000 + (id->qp->qp_num >> 14) - 1;
	EQ(holds_ports(), 2);
	ends(child(holds_ports), 0);
	EQ(holds_ports(), 2);
	rdma_destroy_qp(id);
	OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(events);
}

/* The one that listens, and whose peer is gone when its process is, whatever children it has. */
static int listens(void)
{
	struct sockaddr_in any = loopback(0);
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *id;
	struct rdma_conn_param param = {0};
	struct rdma_cm_event *event;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	uint16_t port;

	CHECK(events = rdma_create_event_channel());
	OK(rdma_create_id(events, &listener, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(listener, (struct sockaddr *)&any));
	OK(rdma_listen(listener, 1));
	port = ntohs(rdma_get_src_port(listener));
	EQ(write(ready[1], &port, sizeof(port)), sizeof(port));
	event = cm_event(events, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = event->id;
	OK(rdma_ack_cm_event(event));
	OK(rdma_create_qp(id, NULL, &attr));
	OK(rdma_accept(id, &param));
	cm_take(events, RDMA_CM_EVENT_ESTABLISHED);
	cm_take(events, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	OK(rdma_destroy_id(id));
	OK(rdma_destroy_id(listener));
	rdma_destroy_event_channel(events);
	return 9;
}

static int survivor[2];

/* Connects, has a child that outlives it, and ends without a word. */
static int connects(void)
{
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct rdma_conn_param param = {0};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct sockaddr_in to;
	uint16_t port;
	char c;

	EQ(read(ready[0], &port, sizeof(port)), sizeof(port));
	to = loopback(port);
	CHECK(events = rdma_create_event_channel());
	OK(rdma_create_id(events, &id, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000));
	cm_take(events, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(id, 5000));
	cm_take(events, RDMA_CM_EVENT_ROUTE_RESOLVED);
	OK(rdma_create_qp(id, NULL, &attr));
	OK(rdma_connect(id, &param));
	cm_take(events, RDMA_CM_EVENT_ESTABLISHED);
	if (fork() == 0) {
		close(survivor[1]);
		_exit(read(survivor[0], &c, 1) == 0 ? 0 : 1); /* until the test ends */
	}
	_exit(10);
}

int main(void)
{
	pid_t early, listening, connecting;

	/* Before the first verb: all have their own. */
	ends(child(with_own_verbs), 6);
	OK(pipe(ready));
	OK(pipe(survivor));
	listening = child(listens);
	connecting = child(connects);
	ends(connecting, 10);
	ends(listening, 9); /* it was told, and connecting's child lives */
	close(survivor[1]);

	bound_only();
	pair_open(&shared, &(struct plan){.how = BY_CM});
	traffic(&shared, 4);
	CHECK(sockets() > 2);
	ends(child(counts_sockets), 0);
	ends(child(late), 7);
	ends(child(grandchild), 8);
	early = child(late);
	traffic(&shared, 100); /* the parent does not mind */
	ends(early, 7);
	pair_close(&shared);
	return 0;
}
