/* rdma_cm without events of the program's own: synchronous ids, rdma_create_ep, rdma_get_request, and migration. */
#include "test.h"

#include <netdb.h>
#include <pthread.h>

static struct ibv_qp_init_attr common(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 16},
	};
}

static char *port_of(struct rdma_cm_id *id)
{
	static char text[8];

	snprintf(text, sizeof(text), "%u", ntohs(rdma_get_src_port(id)));
	return text;
}

/* The server of one connection, in a thread: it answers one message, and hears of the end. */
static void *serve(void *argument)
{
	struct rdma_cm_id *listener = argument, *id;
	uint8_t buffer[16];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	OK(rdma_get_request(listener, &id));
	CHECK(id->qp != NULL && id->pd != NULL && id->send_cq != NULL && id->recv_cq != NULL);
	CHECK(id->event != NULL && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	EQ(id->event->param.conn.private_data_len, 5);
	EQ(memcmp(id->event->param.conn.private_data, "hello", 5), 0);
	CHECK(mr = rdma_reg_msgs(id, buffer, sizeof(buffer)));
	OK(rdma_post_recv(id, NULL, buffer, sizeof(buffer), mr));
	OK(rdma_accept(id, NULL));
	EQ(rdma_get_recv_comp(id, &wc), 1);
	EQ(wc.status, IBV_WC_SUCCESS);
	OK(rdma_post_send(id, NULL, buffer, sizeof(buffer), NULL, IBV_SEND_INLINE));
	EQ(rdma_get_send_comp(id, &wc), 1);
	EQ(wc.status, IBV_WC_SUCCESS);
	OK(rdma_disconnect(id));
	OK(rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
	return NULL;
}

/* rdma_client and rdma_server of the examples, in one process. */
static void endpoints(int family, const char *node)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST, .ai_family = family, .ai_port_space = RDMA_PS_TCP};
	struct rdma_conn_param param = {.private_data = "hello", .private_data_len = 5};
	struct ibv_qp_init_attr attr = common();
	struct rdma_cm_id *listener, *id;
	struct rdma_addrinfo *info;
	uint8_t message[16] = "a question", answer[16];
	pthread_t server;
	struct ibv_mr *mr, *sink;
	struct ibv_wc wc;

	OK(rdma_getaddrinfo(node, NULL, &hints, &info));
	OK(rdma_create_ep(&listener, info, NULL, &attr));
	rdma_freeaddrinfo(info);
	CHECK(listener->qp == NULL); /* the queue pairs are the requests' */
	OK(rdma_listen(listener, 0));
	OK(pthread_create(&server, NULL, serve, listener));

	hints.ai_flags = RAI_NUMERICHOST;
	OK(rdma_getaddrinfo(node, port_of(listener), &hints, &info));
	attr = common();
	OK(rdma_create_ep(&id, info, NULL, &attr));
	rdma_freeaddrinfo(info);
	CHECK(id->qp != NULL && id->verbs != NULL && id->pd != NULL);
	EQ(rdma_get_local_addr(id)->sa_family, family ? family : AF_INET);
	CHECK(mr = rdma_reg_msgs(id, message, sizeof(message)));
	CHECK(sink = rdma_reg_msgs(id, answer, sizeof(answer)));
	OK(rdma_post_recv(id, NULL, answer, sizeof(answer), sink));
	OK(rdma_connect(id, &param));
	CHECK(id->event == NULL || id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	OK(rdma_post_send(id, NULL, message, sizeof(message), mr, 0));
	EQ(rdma_get_send_comp(id, &wc), 1);
	EQ(wc.status, IBV_WC_SUCCESS);
	EQ(rdma_get_recv_comp(id, &wc), 1);
	EQ(wc.status, IBV_WC_SUCCESS);
	EQ(wc.byte_len, 16);
	EQ(memcmp(message, answer, 16), 0);
	OK(rdma_disconnect(id));
	OK(pthread_join(server, NULL));
	OK(rdma_dereg_mr(mr));
	OK(rdma_dereg_mr(sink));
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void *refuse(void *argument)
{
	struct rdma_cm_id *id;

	OK(rdma_get_request(argument, &id));
	OK(rdma_reject(id, "no", 2));
	rdma_destroy_ep(id);
	return NULL;
}

/* A synchronous connect fails with an errno, and the event tells the rest. */
static void refused(void)
{
	struct ibv_qp_init_attr attr = common();
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *listener, *id;
	struct sockaddr_in any = loopback(0), to;
	pthread_t server;

	OK(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP));
	CHECK(listener->channel != NULL); /* one of its own */
	OK(rdma_bind_addr(listener, (struct sockaddr *)&any));
	OK(rdma_listen(listener, 1));
	OK(pthread_create(&server, NULL, refuse, listener));
	to = loopback(ntohs(rdma_get_src_port(listener)));
	OK(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000)); /* returns when it is done */
	CHECK(id->event != NULL);
	EQ(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(id, 5000));
	EQ(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	OK(rdma_create_qp(id, NULL, &attr));
	FAILS(rdma_connect(id, &param), ECONNREFUSED);
	CHECK(id->event != NULL);
	EQ(id->event->event, RDMA_CM_EVENT_REJECTED);
	EQ(id->event->param.conn.private_data_len, 2);
	OK(pthread_join(server, NULL));
	rdma_destroy_ep(id);
	OK(rdma_destroy_id(listener));
}

/* An endpoint becomes asynchronous when it moves to a channel of the program, and back. */
static void migrate(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *info;
	struct sockaddr_in to;
	struct rdma_event_channel *first, *second;
	struct ibv_qp_init_attr attr = common();
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *listener, *id;

	OK(rdma_getaddrinfo("127.0.0.1", NULL, &hints, &info));
	OK(rdma_create_ep(&listener, info, NULL, NULL));
	rdma_freeaddrinfo(info);
	OK(rdma_listen(listener, 0));
	to = loopback(ntohs(rdma_get_src_port(listener)));
	CHECK(first = rdma_create_event_channel());
	CHECK(second = rdma_create_event_channel());
	OK(rdma_migrate_id(listener, first));
	CHECK(listener->channel == first);

	OK(rdma_create_id(second, &id, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000));
	wait_readable(second->fd);
	{
		struct rdma_event_channel *third; /* an event that nobody has fetched goes along */

		CHECK(third = rdma_create_event_channel());
		OK(rdma_migrate_id(id, third));
		CHECK(!is_readable(second->fd));
		cm_take(third, RDMA_CM_EVENT_ADDR_RESOLVED);
		OK(rdma_migrate_id(id, second));
		rdma_destroy_event_channel(third);
	}
	OK(rdma_resolve_route(id, 5000));
	cm_take(second, RDMA_CM_EVENT_ROUTE_RESOLVED);
	OK(rdma_create_qp(id, NULL, &attr));
	OK(rdma_connect(id, &param));
	{
		struct rdma_cm_event *event = cm_event(first, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *request = event->id;

		attr = common();
		CHECK(request->channel == first);
		OK(rdma_ack_cm_event(event));
		OK(rdma_create_qp(request, NULL, &attr));
		OK(rdma_migrate_id(request, NULL)); /* to a channel of its own: it waits now */
		OK(rdma_accept(request, &param));
		cm_take(second, RDMA_CM_EVENT_ESTABLISHED);
		OK(rdma_disconnect(request));
		rdma_destroy_ep(request);
	}
	cm_take(second, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	OK(rdma_destroy_id(id));
	OK(rdma_destroy_id(listener));
	rdma_destroy_event_channel(first);
	rdma_destroy_event_channel(second);
}

static void addrinfo(void)
{
	struct rdma_addrinfo hints = {0}, *info;
	struct sockaddr_in *sin;

	OK(rdma_getaddrinfo("127.0.0.1", "7471", NULL, &info));
	EQ(info->ai_family, AF_INET);
	EQ(info->ai_qp_type, IBV_QPT_RC);
	EQ(info->ai_port_space, RDMA_PS_TCP);
	EQ(info->ai_dst_len, sizeof(*sin));
	sin = (struct sockaddr_in *)info->ai_dst_addr;
	EQ(sin->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	EQ(ntohs(sin->sin_port), 7471);
	rdma_freeaddrinfo(info);

	hints.ai_flags = RAI_PASSIVE;
	hints.ai_port_space = RDMA_PS_TCP;
	OK(rdma_getaddrinfo(NULL, "7471", &hints, &info)); /* all addresses */
	CHECK(info->ai_src_addr != NULL && info->ai_dst_addr == NULL);
	CHECK(info->ai_flags & RAI_PASSIVE);
	rdma_freeaddrinfo(info);

	hints = (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST | RAI_FAMILY, .ai_family = AF_INET6,
				       .ai_port_space = RDMA_PS_TCP};
	OK(rdma_getaddrinfo("::1", "7471", &hints, &info));
	EQ(info->ai_family, AF_INET6);
	EQ(info->ai_dst_len, sizeof(struct sockaddr_in6));
	rdma_freeaddrinfo(info);

	{
		struct sockaddr_in from = loopback(0); /* with an address of this side */

		hints = (struct rdma_addrinfo){.ai_src_addr = (struct sockaddr *)&from, .ai_src_len = sizeof(from),
					       .ai_port_space = RDMA_PS_TCP};
		OK(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &info));
		EQ(info->ai_src_len, sizeof(from));
		EQ(((struct sockaddr_in *)info->ai_src_addr)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
		rdma_freeaddrinfo(info);
	}
	hints = (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP};
	CHECK(rdma_getaddrinfo("no.such.host.invalid", "7471", &hints, &info) != 0);
}

/* A server without rdma_create_ep, and its own protection domain for the endpoints. */
static void own_domain(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP}, *info;
	struct ibv_qp_init_attr attr = common();
	struct ibv_context **devices;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;

	CHECK(devices = rdma_get_devices(NULL));
	CHECK(pd = ibv_alloc_pd(devices[0]));
	OK(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &info));
	OK(rdma_create_ep(&id, info, pd, &attr));
	CHECK(id->pd == pd && id->qp->pd == pd);
	CHECK(id->send_cq != NULL && id->qp->send_cq == id->send_cq && id->send_cq_channel != NULL);
	CHECK(id->recv_cq != NULL && id->qp->recv_cq == id->recv_cq && id->recv_cq_channel != NULL);
	rdma_destroy_ep(id);
	OK(ibv_dealloc_pd(pd));
	rdma_free_devices(devices);
	rdma_freeaddrinfo(info);
}

int main(void)
{
	endpoints(AF_INET, "127.0.0.1");
	endpoints(AF_INET6, "::1");
	refused();
	migrate();
	addrinfo();
	own_domain();
	return 0;
}
