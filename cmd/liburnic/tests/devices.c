/* Several devices, and ports, each with an address of its own: URNIC_DEVICES and URNIC_DEVICE. */
#include "test.h"

/* The device of an address: its index and its port. */
static const struct {
	const char *address;
	int device;
	uint8_t port;
} bound[] = {{"127.0.0.1", 0, 1}, {"127.0.0.2", 1, 1}, {"127.0.0.3", 1, 2}};

static struct sockaddr_in at(const char *address)
{
	struct sockaddr_in a = loopback(0);

	EQ(inet_pton(AF_INET, address, &a.sin_addr), 1);
	return a;
}

static void list(struct ibv_context **contexts)
{
	static const char *const names[] = {"mlx5_7", "mlx5_8"};
	struct ibv_device **devices;
	struct ibv_device_attr attr[2];
	int n;

	CHECK(devices = ibv_get_device_list(&n));
	EQ(n, 2);
	CHECK(!devices[2]);
	for (int i = 0; i < n; i++) {
		EQ(strcmp(ibv_get_device_name(devices[i]), names[i]), 0);
		EQ(ibv_get_device_index(devices[i]), i);
		CHECK(strstr(devices[i]->ibdev_path, names[i]));
		CHECK(contexts[i] = ibv_open_device(devices[i]));
		CHECK(contexts[i]->device == devices[i]);
		OK(ibv_query_device(contexts[i], &attr[i]));
		EQ(attr[i].phys_port_cnt, i + 1);
		CHECK(attr[i].node_guid == ibv_get_device_guid(devices[i]));
	}
	CHECK(attr[0].node_guid != attr[1].node_guid);
	CHECK(strcmp(devices[0]->dev_name, devices[1]->dev_name) != 0);
	ibv_free_device_list(devices);

	struct ibv_device foreign = {.name = "mlx5_7"};
	NONE(ibv_open_device(&foreign), ENODEV);
	EQ(ibv_get_device_index(&foreign), -1);
}

static void ports(struct ibv_context **contexts)
{
	struct ibv_gid_entry entries[8];
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	for (size_t i = 0; i < COUNT(bound); i++) {
		struct sockaddr_in a = at(bound[i].address);

		OK(ibv_query_port(contexts[bound[i].device], bound[i].port, &port));
		EQ(port.state, IBV_PORT_ACTIVE);
		EQ(port.gid_tbl_len, 1);
		OK(ibv_query_gid(contexts[bound[i].device], bound[i].port, 0, &gid));
		EQ(memcmp(gid.raw + 12, &a.sin_addr, 4), 0);
		FAILS(ibv_query_gid(contexts[bound[i].device], bound[i].port, 1, &gid), EINVAL);
		OK(ibv_query_pkey(contexts[bound[i].device], bound[i].port, 0, &pkey));
	}
	EQ(ibv_query_port(contexts[0], 2, &port), EINVAL);
	EQ(ibv_query_port(contexts[1], 3, &port), EINVAL);
	EQ(ibv_query_port(contexts[1], 0, &port), EINVAL);
	CHECK(ibv_query_pkey(contexts[0], 2, 0, &pkey) != 0);
	EQ(ibv_query_gid_table(contexts[0], entries, COUNT(entries), 0), 1);
	EQ(ibv_query_gid_table(contexts[1], entries, COUNT(entries), 0), 2);
	EQ(entries[1].port_num, 2);
	EQ(entries[1].gid_index, 0);
}

/* An id is at the device that has its address. */
static void ids(void)
{
	struct rdma_event_channel *channel;
	struct ibv_context **contexts;
	struct rdma_cm_id *id;
	int n;

	CHECK(channel = rdma_create_event_channel());
	CHECK(contexts = rdma_get_devices(&n));
	EQ(n, 2);
	for (size_t i = 0; i < COUNT(bound); i++) {
		struct sockaddr_in a = at(bound[i].address);

		OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
		OK(rdma_bind_addr(id, (struct sockaddr *)&a));
		CHECK(id->verbs == contexts[bound[i].device]);
		EQ(id->port_num, bound[i].port);
		CHECK(id->pd && id->pd->context == id->verbs);
		OK(rdma_destroy_id(id));
	}
	struct sockaddr_in nobody = at("127.0.0.9");

	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	FAILS(rdma_bind_addr(id, (struct sockaddr *)&nobody), ENODEV);
	OK(rdma_destroy_id(id));

	/* Addresses that no device has lead nowhere. */
	struct rdma_cm_event *event;
	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(id, (struct sockaddr *)&nobody, (struct sockaddr *)&nobody, 1000));
	OK(rdma_get_cm_event(channel, &event));
	EQ(event->event, RDMA_CM_EVENT_ADDR_ERROR);
	EQ(event->status, -ENODEV);
	OK(rdma_ack_cm_event(event));
	OK(rdma_destroy_id(id));
	rdma_free_devices(contexts);
	rdma_destroy_event_channel(channel);
}

/* Connects two ids of two devices; the one of the request is at the device that was called. */
static void connecting(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *client;
	struct rdma_cm_event *event;
	struct sockaddr_in from = at("127.0.0.1"), to = at("127.0.0.3"), any = {.sin_family = AF_INET};

	CHECK(channel = rdma_create_event_channel());
	OK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	OK(rdma_bind_addr(listener, (struct sockaddr *)&any));
	CHECK(!listener->verbs);
	OK(rdma_listen(listener, 1));
	to.sin_port = rdma_get_src_port(listener);

	OK(rdma_create_id(channel, &client, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(client, (struct sockaddr *)&from, (struct sockaddr *)&to, 1000));
	cm_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	EQ(strcmp(client->verbs->device->name, "mlx5_7"), 0);
	OK(rdma_resolve_route(client, 1000));
	cm_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	OK(rdma_create_qp(client, NULL, &init));
	OK(rdma_connect(client, NULL));
	event = cm_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	EQ(strcmp(event->id->verbs->device->name, "mlx5_8"), 0);
	EQ(event->id->port_num, 2);
	struct rdma_cm_id *asked = event->id;
	OK(rdma_ack_cm_event(event));
	OK(rdma_reject(asked, NULL, 0));
	OK(rdma_get_cm_event(channel, &event));
	EQ(event->event, RDMA_CM_EVENT_REJECTED);
	OK(rdma_ack_cm_event(event));
	OK(rdma_destroy_id(asked));
	rdma_destroy_qp(client);
	OK(rdma_destroy_id(client));

	/* The listener is at all addresses, and no device is at this one: nobody hears of the request. */
	EQ(inet_pton(AF_INET, "127.0.0.9", &to.sin_addr), 1);
	OK(rdma_create_id(channel, &client, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(client, (struct sockaddr *)&from, (struct sockaddr *)&to, 1000));
	cm_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(client, 1000));
	cm_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	OK(rdma_create_qp(client, NULL, &init));
	OK(rdma_connect(client, NULL));
	OK(rdma_get_cm_event(channel, &event));
	EQ(event->event, RDMA_CM_EVENT_REJECTED);
	OK(rdma_ack_cm_event(event));
	rdma_destroy_qp(client);
	OK(rdma_destroy_id(client));
	OK(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
}

/* A queue pair of the second port is connected from its address, without rdma_cm. */
static void by_gid(struct ibv_context *context)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 3};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	CHECK(qp);
	EQ(ibv_modify_qp(qp, &attr, mask), EINVAL);
	attr.port_num = 2;
	OK(ibv_modify_qp(qp, &attr, mask));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.ah_attr = {.is_global = 1, .port_num = 2, .grh = {.sgid_index = 1}},
	};
	OK(ibv_query_gid(context, 2, 0, &attr.ah_attr.grh.dgid));
	mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	EQ(ibv_modify_qp(qp, &attr, mask), EINVAL); /* that port has one GID */
	attr.ah_attr.grh.sgid_index = 0;
	OK(ibv_modify_qp(qp, &attr, mask));
	OK(ibv_destroy_qp(qp));
	OK(ibv_destroy_cq(cq));
	OK(ibv_dealloc_pd(pd));
}

int main(int argc, char **argv)
{
	struct ibv_context *contexts[2];

	if (argc == 1) {
		OK(setenv("URNIC_DEVICES", "127.0.0.1,127.0.0.2+127.0.0.3", 1));
		OK(setenv("URNIC_DEVICE", "mlx5_7", 1));
		execl("/proc/self/exe", argv[0], "again", NULL);
		FAIL("execl: %s", strerror(errno));
	}
	list(contexts);
	ports(contexts);
	ids();
	connecting();
	by_gid(contexts[1]);
	for (size_t i = 0; i < COUNT(contexts); i++)
		OK(ibv_close_device(contexts[i]));
	return 0;
}
