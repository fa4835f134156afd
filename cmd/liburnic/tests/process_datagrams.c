/* A child of fork has none of its parent's UDP sockets: they go with the parent. URNIC_TRANSPORT=ethernet. */
#include "process.h"

int main(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	int before = sockets();
	struct ibv_context *context;
	struct ibv_qp *qp;
	struct ibv_pd *pd;

	OK(setenv("URNIC_TRANSPORT", "ethernet", 1));
	context = open_device();
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(attr.send_cq = attr.recv_cq = ibv_create_cq(context, 4, NULL, NULL, 0));
	CHECK(qp = ibv_create_qp(pd, &attr));
	CHECK(sockets() > before);
	ends(child(sockets), before);
	OK(ibv_destroy_qp(qp));
	OK(ibv_destroy_cq(attr.send_cq));
	OK(ibv_dealloc_pd(pd));
	OK(ibv_close_device(context));
	return 0;
}
