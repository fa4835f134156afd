/* The device as one that programs of RoCE expect: URNIC_TRANSPORT=ethernet. */
#include "test.h"

int main(void)
{
	struct ibv_device **devices;
	struct ibv_context *context;
	struct ibv_gid_entry entry;
	struct ibv_port_attr attr;
	struct pair p;

	OK(setenv("URNIC_TRANSPORT", "ethernet", 1));
	CHECK(devices = ibv_get_device_list(NULL));
	EQ(devices[0]->node_type, IBV_NODE_CA);
	EQ(devices[0]->transport_type, IBV_TRANSPORT_IB);
	CHECK(context = ibv_open_device(devices[0]));
	ibv_free_device_list(devices);
	OK(ibv_query_port(context, 1, &attr));
	EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	OK(ibv_query_gid_ex(context, 1, 0, &entry, 0));
	EQ(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	OK(ibv_close_device(context));

	for (int how = BY_CM; how <= BY_GID; how++) {
		pair_open(&p, &(struct plan){.how = (enum how)how});
		recv_at(&p.b, 1, 0, 64);
		post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 64);
		done(p.a.scq, 2, IBV_WC_SEND);
		done(p.b.rcq, 1, IBV_WC_RECV);
		pair_close(&p);
	}
	return 0;
}
