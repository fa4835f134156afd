/* RDMA_OPTION_ID_ACK_TIMEOUT becomes the timeout of the queue pair: URNIC_TRANSPORT=ethernet. */
#include "test.h"

static uint8_t timeout_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	OK(ibv_query_qp(qp, &attr, IBV_QP_TIMEOUT, &init));
	return attr.timeout;
}

static void set(struct rdma_cm_id *id, uint8_t timeout)
{
	OK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)));
}

int main(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
	struct sockaddr_in at = loopback(0);
	struct rdma_cm_id *listener, *id, *request, *datagrams;
	struct rdma_event_channel *a, *b;
	struct rdma_cm_event *event;
	uint8_t timeout = 32;
	int mask;

	OK(setenv("URNIC_TRANSPORT", "ethernet", 1));
	CHECK(a = rdma_create_event_channel());
	CHECK(b = rdma_create_event_channel());
	OK(rdma_create_id(b, &listener, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(listener, (struct sockaddr *)&at));
	OK(rdma_listen(listener, 1));
	at.sin_port = rdma_get_src_port(listener);
	OK(rdma_create_id(a, &id, NULL, RDMA_PS_TCP));
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)), EINVAL); /* 5 bits */
	set(id, 20);
	OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, 5000));
	cm_take(a, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(id, 5000));
	cm_take(a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	OK(rdma_create_qp(id, NULL, &attr));
	EQ(timeout_of(id->qp), 0); /* not connected */
	OK(rdma_init_qp_attr(id, &rts, &mask));
	CHECK(mask & IBV_QP_TIMEOUT);
	EQ(rts.timeout, 20);
	OK(rdma_connect(id, &param));
	event = cm_event(b, RDMA_CM_EVENT_CONNECT_REQUEST);
	request = event->id;
	OK(rdma_ack_cm_event(event));
	attr.send_cq = attr.recv_cq = NULL;
	OK(rdma_create_qp(request, NULL, &attr));
	set(request, 9);
	OK(rdma_accept(request, &param));
	cm_take(a, RDMA_CM_EVENT_ESTABLISHED);
	cm_take(b, RDMA_CM_EVENT_ESTABLISHED);
	EQ(timeout_of(id->qp), 20);
	EQ(timeout_of(request->qp), 9);

	/* Without it, there is no word of a timeout; datagrams have none. */
	OK(rdma_init_qp_attr(listener, &rts, &mask));
	EQ(mask & IBV_QP_TIMEOUT, 0);
	OK(rdma_create_id(a, &datagrams, NULL, RDMA_PS_UDP));
	timeout = 9;
	FAILS(rdma_set_option(datagrams, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)), EINVAL);

	OK(rdma_disconnect(id));
	rdma_destroy_qp(id);
	rdma_destroy_qp(request);
	OK(rdma_destroy_id(datagrams));
	OK(rdma_destroy_id(id));
	OK(rdma_destroy_id(request));
	OK(rdma_destroy_id(listener));
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
	return 0;
}
