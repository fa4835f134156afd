/* Options of ids, attributes of queue pairs that the program makes itself, and what is rarely used. */
#include "test.h"

static void options(void)
{
	struct rdma_event_channel *channel;
	struct sockaddr_in sin = loopback(0);
	struct rdma_cm_id *id, *again;
	uint8_t tos = 0x20, timeout = 14;
	int yes = 1;

	CHECK(channel = rdma_create_event_channel());
	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	OK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	OK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
	OK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)));
	OK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)));
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, 1), EINVAL); /* its size */
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, 1000, &yes, sizeof(yes)), ENOSYS);
	FAILS(rdma_set_option(id, 1000, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)), ENOSYS);
	/* Two ids may bind to one port if both say so. */
	OK(rdma_bind_addr(id, (struct sockaddr *)&sin));
	sin.sin_port = rdma_get_src_port(id);
	OK(rdma_create_id(channel, &again, NULL, RDMA_PS_TCP));
	OK(rdma_set_option(again, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
	OK(rdma_bind_addr(again, (struct sockaddr *)&sin));
	OK(rdma_destroy_id(again));
	OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* IPv6 only: with AFONLY, the IPv4 port of the same number stays free. */
static void afonly(void)
{
	struct rdma_event_channel *channel;
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct rdma_cm_id *a, *b;
	int yes = 1;

	CHECK(channel = rdma_create_event_channel());
	OK(rdma_create_id(channel, &a, NULL, RDMA_PS_TCP));
	OK(rdma_create_id(channel, &b, NULL, RDMA_PS_TCP));
	OK(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)));
	OK(rdma_bind_addr(a, (struct sockaddr *)&six));
	OK(rdma_listen(a, 1));
	four.sin_port = rdma_get_src_port(a);
	OK(rdma_bind_addr(b, (struct sockaddr *)&four));
	OK(rdma_listen(b, 1));
	OK(rdma_destroy_id(a));
	OK(rdma_destroy_id(b));
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

/* step brings a queue pair that rdma_cm did not make to a state, as rdma_init_qp_attr(3) says. */
static void step(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0;

	OK(rdma_init_qp_attr(id, &attr, &mask));
	CHECK(mask & IBV_QP_STATE);
	EQ(attr.qp_state, state);
	OK(ibv_modify_qp(qp, &attr, mask));
}

/*
 * A program that makes its queue pairs by ibv_create_qp and has rdma_cm connect them, by
 * their number.
 */
static void own_queue_pairs(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct rdma_event_channel *a, *b;
	struct rdma_cm_id *listener, *id, *request;
	struct sockaddr_in any = loopback(0);
	struct rdma_cm_event *event;
	struct end ea = {0}, eb = {0};
	bool establish;

	CHECK(a = rdma_create_event_channel());
	CHECK(b = rdma_create_event_channel());
	OK(rdma_create_id(b, &listener, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(listener, (struct sockaddr *)&any));
	OK(rdma_listen(listener, 1));
	id = resolved(a, ntohs(rdma_get_src_port(listener)));

	ea.context = eb.context = id->verbs;
	CHECK(ea.pd = ibv_alloc_pd(id->verbs));
	CHECK(ea.memory = calloc(1, MEMORY));
	CHECK(ea.mr = ibv_reg_mr(ea.pd, ea.memory, MEMORY, ALL_ACCESS));
	CHECK(ea.scq = attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0));
	eb = ea;
	CHECK(ea.qp = ibv_create_qp(ea.pd, &attr));
	CHECK(eb.qp = ibv_create_qp(ea.pd, &attr));

	step(id, ea.qp, IBV_QPS_INIT);
	param.qp_num = ea.qp->qp_num;
	OK(rdma_connect(id, &param));
	event = cm_event(b, RDMA_CM_EVENT_CONNECT_REQUEST);
	request = event->id;
	OK(rdma_ack_cm_event(event));
	step(request, eb.qp, IBV_QPS_INIT);
	recv_at(&eb, 1, 0, 8);
	step(request, eb.qp, IBV_QPS_RTR);
	step(request, eb.qp, IBV_QPS_RTS);
	param.qp_num = eb.qp->qp_num;
	OK(rdma_accept(request, &param));
	wait_readable(a->fd);
	OK(rdma_get_cm_event(a, &event));
	EQ(event->status, 0);
	establish = event->event == RDMA_CM_EVENT_CONNECT_RESPONSE; /* InfiniBand's way; iWARP needs no third message */
	CHECK(establish || event->event == RDMA_CM_EVENT_ESTABLISHED);
	OK(rdma_ack_cm_event(event));
	step(id, ea.qp, IBV_QPS_RTR);
	step(id, ea.qp, IBV_QPS_RTS);
	if (establish)
		OK(rdma_establish(id));
	cm_take(b, RDMA_CM_EVENT_ESTABLISHED);
	post(&ea, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = wait_wc(ea.scq);

		EQ(wc.status, IBV_WC_SUCCESS);
		EQ(wc.wr_id, wc.opcode == IBV_WC_SEND ? 2 : 1);
	}
	OK(rdma_disconnect(id));
	OK(rdma_disconnect(request));
	OK(ibv_destroy_qp(ea.qp));
	OK(ibv_destroy_qp(eb.qp));
	OK(ibv_destroy_cq(ea.scq));
	OK(ibv_dereg_mr(ea.mr));
	OK(ibv_dealloc_pd(ea.pd));
	free(ea.memory);
	OK(rdma_destroy_id(id));
	OK(rdma_destroy_id(request));
	OK(rdma_destroy_id(listener));
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
}

/* What is for InfiniBand's connection manager, or for datagrams. */
static void not_here(void)
{
	struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000105)};
	struct rdma_cm_join_mc_attr_ex join = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = (struct sockaddr *)&group,
	};
	struct rdma_event_channel *channel;
	struct ibv_ece ece = {0};
	struct rdma_cm_id *id;

	CHECK(channel = rdma_create_event_channel());
	id = resolved(channel, 7777);
	CHECK(rdma_join_multicast(id, (struct sockaddr *)&group, NULL) == -1);
	CHECK(rdma_join_multicast_ex(id, &join, NULL) == -1);
	CHECK(rdma_leave_multicast(id, (struct sockaddr *)&group) == -1);
	CHECK(rdma_notify(id, IBV_EVENT_COMM_EST) == 0 || errno == EINVAL); /* there is no connection */
	CHECK(rdma_establish(id) == -1);
	FAILS(rdma_set_local_ece(id, &ece), EINVAL); /* of no vendor */
	ece.vendor_id = 0x15b3;
	FAILS(rdma_set_local_ece(id, &ece), EOPNOTSUPP);
	CHECK(rdma_get_remote_ece(id, &ece) == 0 || errno == EINVAL || errno == EOPNOTSUPP);
	OK(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void notify(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_CM});
	CHECK(rdma_notify(p.b.id, IBV_EVENT_COMM_EST) == 0 || errno == EISCONN);
	pair_close(&p);
}

int main(void)
{
	options();
	afonly();
	own_queue_pairs();
	not_here();
	notify();
	return 0;
}
