/* RDMA_PS_UDP and groups by rdma_cm: URNIC_TRANSPORT=ethernet. */
#include "test.h"

#define GROUP "239.77.1.2"

static struct sockaddr_in address(const char *ip, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	EQ(inet_pton(AF_INET, ip, &a.sin_addr), 1);
	return a;
}

/* A synchronous id with a queue pair and a receive, bound to 127.0.0.1. */
struct party {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char memory[256];
};

static void queue_pair(struct party *e)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_init_attr rc = attr, got;
	struct ibv_qp_attr state;

	rc.qp_type = IBV_QPT_RC;
	FAILS(rdma_create_qp(e->id, NULL, &rc), EINVAL);
	OK(rdma_create_qp(e->id, NULL, &attr));
	OK(ibv_query_qp(e->id->qp, &state, IBV_QP_STATE | IBV_QP_QKEY, &got));
	EQ(state.qp_state, IBV_QPS_RTS);
	EQ(state.qkey, RDMA_UDP_QKEY);
	e->mr = rdma_reg_msgs(e->id, e->memory, sizeof(e->memory));
	CHECK(e->mr);
	for (int i = 0; i < 4; i++)
		OK(rdma_post_recv(e->id, (void *)(uintptr_t)i, e->memory, sizeof(e->memory), e->mr));
}

static void close_party(struct party *e)
{
	OK(rdma_dereg_mr(e->mr));
	rdma_destroy_ep(e->id);
}

static void send_to(struct party *e, const struct rdma_ud_param *to, uint32_t qkey, const char *text)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(e->memory + 128), .length = strlen(text) + 1, .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_ah_attr attr = to->ah_attr;
	struct ibv_wc wc;

	strcpy(e->memory + 128, text);
	wr.wr.ud.ah = ibv_create_ah(e->id->pd, &attr);
	CHECK(wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = qkey;
	OK(ibv_post_send(e->id->qp, &wr, &bad));
	EQ(rdma_get_send_comp(e->id, &wc), 1);
	EQ(wc.status, IBV_WC_SUCCESS);
	OK(ibv_destroy_ah(wr.wr.ud.ah));
}

static void want(struct party *e, const char *text)
{
	struct ibv_wc wc;

	EQ(rdma_get_recv_comp(e->id, &wc), 1);
	EQ(wc.status, IBV_WC_SUCCESS);
	if (strcmp(e->memory + sizeof(struct ibv_grh), text))
		FAIL("%s has come, not %s", e->memory + sizeof(struct ibv_grh), text);
	OK(rdma_post_recv(e->id, NULL, e->memory, sizeof(e->memory), e->mr));
}

/* Endpoints of rdma_getaddrinfo's; a server answers, or rejects. */
static void service(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP}, *res;
	struct rdma_conn_param param = {.private_data = "hello", .private_data_len = 6};
	struct rdma_cm_id *listener;
	struct party server = {0}, client = {0};
	char port[8];

	OK(rdma_getaddrinfo("127.0.0.1", NULL, &hints, &res));
	EQ(res->ai_qp_type, IBV_QPT_UD);
	OK(rdma_create_ep(&listener, res, NULL, NULL));
	rdma_freeaddrinfo(res);
	OK(rdma_listen(listener, 4));
	snprintf(port, sizeof(port), "%d", ntohs(rdma_get_src_port(listener)));
	hints.ai_flags = 0;
	OK(rdma_getaddrinfo("127.0.0.1", port, &hints, &res));
	/* The client asks by events, as this thread is the server, too. */
	for (int rejected = 0; rejected < 2; rejected++) {
		struct rdma_event_channel *channel = rdma_create_event_channel();
		struct rdma_cm_event *event;

		CHECK(channel);
		OK(rdma_create_ep(&client.id, res, NULL, NULL));
		queue_pair(&client);
		OK(rdma_migrate_id(client.id, channel));
		OK(rdma_connect(client.id, &param));
		OK(rdma_get_request(listener, &server.id));
		EQ(server.id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		EQ(server.id->event->param.ud.private_data_len, 6);
		OK(strcmp(server.id->event->param.ud.private_data, "hello"));
		if (rejected) {
			OK(rdma_reject(server.id, "no", 3));
			OK(rdma_get_cm_event(channel, &event));
			EQ(event->event, RDMA_CM_EVENT_UNREACHABLE);
			EQ(event->status, 2);
			OK(strcmp(event->param.ud.private_data, "no"));
			rdma_destroy_ep(server.id);
		} else {
			queue_pair(&server);
			OK(rdma_accept(server.id, NULL));
			OK(rdma_get_cm_event(channel, &event));
			EQ(event->event, RDMA_CM_EVENT_ESTABLISHED);
			EQ(event->param.ud.qp_num, server.id->qp->qp_num);
			EQ(event->param.ud.qkey, RDMA_UDP_QKEY);
			EQ(event->param.ud.ah_attr.is_global, 1);
			send_to(&client, &event->param.ud, RDMA_UDP_QKEY + 1, "wrong");
			send_to(&client, &event->param.ud, event->param.ud.qkey, "right");
			want(&server, "right");
			FAILS(rdma_disconnect(client.id), EINVAL);
			close_party(&server);
		}
		OK(rdma_ack_cm_event(event));
		close_party(&client);
		rdma_destroy_event_channel(channel);
	}
	rdma_freeaddrinfo(res);
	rdma_destroy_ep(listener);
}

static struct rdma_ud_param join(struct party *e, bool sends_only, struct sockaddr_in *group)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = sends_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = (struct sockaddr *)group,
	};

	OK(rdma_join_multicast_ex(e->id, &attr, e));
	EQ(e->id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	CHECK(e->id->event->param.ud.private_data == e);
	EQ(e->id->event->param.ud.qp_num, 0xffffff);
	EQ(e->id->event->param.ud.qkey, RDMA_UDP_QKEY);
	return e->id->event->param.ud;
}

/* Who has left a group gets nothing of it any more; who only sends gets nothing. */
static void groups(void)
{
	struct sockaddr_in from = address("127.0.0.1", 0), group = address(GROUP, 0), other = address("239.77.1.3", 0);
	struct rdma_ud_param to, direct;
	struct party a = {0}, b = {0};
	struct party *ends[] = {&a, &b};

	for (size_t i = 0; i < COUNT(ends); i++) {
		OK(rdma_create_id(NULL, &ends[i]->id, NULL, RDMA_PS_UDP));
		OK(rdma_bind_addr(ends[i]->id, (struct sockaddr *)&from));
		queue_pair(ends[i]);
	}
	FAILS(rdma_join_multicast(b.id, (struct sockaddr *)&from, NULL), EINVAL);
	FAILS(rdma_leave_multicast(b.id, (struct sockaddr *)&group), EADDRNOTAVAIL);
	to = join(&a, true, &group);
	join(&b, false, &group);
	send_to(&a, &to, to.qkey, "to the group");
	want(&b, "to the group");
	FAILS(rdma_leave_multicast(b.id, (struct sockaddr *)&other), EADDRNOTAVAIL);
	OK(rdma_ack_cm_event(b.id->event)); /* leaving waits for that */
	b.id->event = NULL;
	OK(rdma_leave_multicast(b.id, (struct sockaddr *)&group));
	send_to(&a, &to, to.qkey, "to nobody");
	direct = to;
	direct.qp_num = b.id->qp->qp_num;
	memset(&direct.ah_attr.grh.dgid, 0, sizeof(direct.ah_attr.grh.dgid));
	direct.ah_attr.grh.dgid.raw[10] = direct.ah_attr.grh.dgid.raw[11] = 0xff;
	memcpy(direct.ah_attr.grh.dgid.raw + 12, &from.sin_addr, 4);
	send_to(&a, &direct, to.qkey, "directly");
	want(&b, "directly");
	close_party(&a);
	close_party(&b);
}

int main(void)
{
	setenv("URNIC_TRANSPORT", "ethernet", 1);
	service();
	groups();
	return 0;
}
