/* Datagrams, address handles and multicast: URNIC_TRANSPORT=ethernet. */
#include "test.h"

enum { QKEY = 0x1234, GRH = 40, LENGTH = 100 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t memory[8192];

static struct ibv_qp *open_qp(uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UD,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | (send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = pd,
		.send_ops_flags = send_ops,
	};
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;

	CHECK(qp = ibv_create_qp_ex(context, &attr));
	EQ(qp->qp_type, IBV_QPT_UD);
	OK(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	to.qp_state = IBV_QPS_RTR;
	OK(ibv_modify_qp(qp, &to, IBV_QP_STATE));
	to.qp_state = IBV_QPS_RTS;
	OK(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN));
	OK(ibv_query_qp(qp, &to, IBV_QP_QKEY, &init));
	EQ(to.qkey, QKEY);
	EQ(init.qp_type, IBV_QPT_UD);
	return qp;
}

static void receive(struct ibv_qp *qp, uint64_t id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory + 4096, .length = 4096, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	OK(ibv_post_recv(qp, &wr, &bad));
}

static struct ibv_wc next(uint64_t id)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	EQ(n, 1);
	EQ(wc.wr_id, id);
	EQ(wc.status, IBV_WC_SUCCESS);
	return wc;
}

static void sent(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = LENGTH, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	OK(ibv_post_send(qp, &wr, &bad));
	next(1);
}

static struct ibv_wc got(const struct ibv_qp *from, uint64_t id)
{
	struct ibv_wc wc = next(id);

	EQ(wc.opcode, IBV_WC_RECV);
	EQ(wc.byte_len, GRH + LENGTH);
	EQ(wc.src_qp, from->qp_num);
	CHECK(wc.wc_flags & IBV_WC_GRH);
	OK(memcmp(memory + 4096 + GRH, memory, LENGTH));
	return wc;
}

/* The answer to a datagram goes where its GRH says. */
static void answer(struct ibv_qp *qp, struct ibv_wc *wc, uint32_t from)
{
	struct ibv_grh *grh = (struct ibv_grh *)(memory + 4096);
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	OK(ibv_init_ah_from_wc(context, 1, wc, grh, &attr));
	EQ(attr.is_global, 1);
	OK(memcmp(&attr.grh.dgid, &grh->sgid, 16));
	CHECK(ah = ibv_create_ah_from_wc(pd, wc, grh, 1));
	sent(qp, ah, from);
	OK(ibv_destroy_ah(ah));
}

static void extended(struct ibv_ah *ah, struct ibv_qp *to)
{
	struct ibv_qp *qp = open_qp(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_wc wc;

	receive(to, 7);
	ibv_wr_start(ex);
	ex->wr_id = 5;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(ex, htonl(77));
	ibv_wr_set_ud_addr(ex, ah, to->qp_num, QKEY);
	ibv_wr_set_inline_data(ex, memory, 10);
	OK(ibv_wr_complete(ex));
	next(5);
	wc = next(7);
	EQ(wc.byte_len, GRH + 10);
	EQ(ntohl(wc.imm_data), 77);
	ibv_wr_start(ex);
	ibv_wr_set_ud_addr(ex, ah, to->qp_num, QKEY);
	CHECK(ibv_wr_complete(ex) != 0); /* of no request */
	OK(ibv_destroy_qp(qp));
}

static void multicast(struct ibv_qp *from, struct ibv_qp *to)
{
	union ibv_gid group = {.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 192, 9, 9}}, own = {0};
	struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1, .grh = {.dgid = group}};
	struct ibv_ah *ah;

	for (int i = 0; !ibv_query_gid(context, 1, i, &own) && own.raw[12] != 127; i++)
		attr.grh.sgid_index = (uint8_t)(i + 1);
	EQ(own.raw[12], 127); /* that of the loopback interface, which is always there */
	OK(ibv_attach_mcast(to, &group, 0));
	CHECK(ah = ibv_create_ah(pd, &attr));
	receive(to, 9);
	sent(from, ah, 0xffffff);
	got(from, 9);
	OK(ibv_destroy_ah(ah));
	OK(ibv_detach_mcast(to, &group, 0));
	EQ(ibv_detach_mcast(to, &group, 0), EINVAL);
	EQ(ibv_attach_mcast(to, &own, 0), EINVAL);
}

int main(void)
{
	struct ibv_ah_attr attr = {.port_num = 1};
	struct ibv_device_attr device;
	struct ibv_qp *a, *b;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	OK(setenv("URNIC_TRANSPORT", "ethernet", 1));
	context = open_device();
	OK(ibv_query_device(context, &device));
	CHECK(device.max_ah > 0 && device.max_mcast_grp > 0);
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(cq = ibv_create_cq(context, 64, NULL, NULL, 0));
	CHECK(mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	for (int i = 0; i < LENGTH; i++)
		memory[i] = (uint8_t)(i * 3);
	a = open_qp(0);
	b = open_qp(0);
	CHECK(ah = ibv_create_ah(pd, &attr));
	receive(b, 2);
	sent(a, ah, b->qp_num);
	wc = got(a, 2);
	receive(a, 3);
	answer(b, &wc, a->qp_num);
	got(b, 3);
	extended(ah, b);
	multicast(a, b);
	EQ(ibv_dealloc_pd(pd), EBUSY);
	OK(ibv_destroy_ah(ah));
	NONE(ibv_create_ah(pd, &(struct ibv_ah_attr){.port_num = 2}), EINVAL);
	OK(ibv_destroy_qp(a));
	OK(ibv_destroy_qp(b));
	OK(ibv_dereg_mr(mr));
	OK(ibv_destroy_cq(cq));
	OK(ibv_dealloc_pd(pd));
	OK(ibv_close_device(context));
	return 0;
}
