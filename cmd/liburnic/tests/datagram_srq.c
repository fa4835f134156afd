/* Shared receive queues for datagrams and unreliable connections: URNIC_TRANSPORT=ethernet. */
#include "test.h"

enum { QKEY = 0x1234, GRH = 40, LENGTH = 100, BIG = 20000 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_srq *srq;
static uint8_t memory[6 * BIG];

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state, int more, struct ibv_qp_attr attr)
{
	attr.qp_state = state;
	OK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | more));
}

static struct ibv_qp *create(enum ibv_qp_type type, bool shares)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = shares ? srq : NULL,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp;

	CHECK(qp = ibv_create_qp(pd, &attr));
	CHECK(qp->srq == (shares ? srq : NULL));
	to_state(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
		 (struct ibv_qp_attr){.port_num = 1, .qkey = QKEY});
	return qp;
}

static void receive(uint64_t id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory + (id + 1) * BIG, .length = BIG, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	OK(ibv_post_srq_recv(srq, &wr, &bad));
}

static void send_to(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t length)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = length, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 99, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	OK(ibv_post_send(qp, &wr, &bad));
	done(cq, 99, IBV_WC_SEND);
}

/* The oldest receive takes the message, and says which queue pair it came to. */
static void got(const struct ibv_qp *to, uint64_t id, uint32_t skip, uint32_t length)
{
	struct ibv_wc wc = wait_wc(cq);

	EQ(wc.status, IBV_WC_SUCCESS);
	EQ(wc.wr_id, id);
	EQ(wc.qp_num, to->qp_num);
	EQ(wc.byte_len, skip + length);
	OK(memcmp(memory + (id + 1) * BIG + skip, memory, length));
}

static void want_async(enum ibv_event_type type, const struct ibv_qp *qp)
{
	struct ibv_async_event event = want_event(context, type);

	CHECK(qp ? event.element.qp == qp : event.element.srq == srq);
	ibv_ack_async_event(&event);
}

static void datagrams(void)
{
	struct ibv_ah_attr attr = {.port_num = 1};
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_qp *from = create(IBV_QPT_UD, false), *to[2] = {create(IBV_QPT_UD, true), create(IBV_QPT_UD, true)};
	struct ibv_qp *all[] = {from, to[0], to[1]};
	struct ibv_ah *ah;

	for (int i = 0; i < 3; i++)
		to_state(all[i], IBV_QPS_RTR, 0, (struct ibv_qp_attr){0});
	to_state(from, IBV_QPS_RTS, IBV_QP_SQ_PSN, (struct ibv_qp_attr){0});
	CHECK(ah = ibv_create_ah(pd, &attr));
	for (uint64_t i = 1; i < 4; i++) /* receive 0 was there before */
		receive(i);
	OK(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	for (uint64_t i = 0; i < 4; i++) {
		send_to(from, ah, to[i % 2]->qp_num, LENGTH);
		got(to[i % 2], i, GRH, LENGTH);
		if (i == 2)
			want_async(IBV_EVENT_SRQ_LIMIT_REACHED, NULL); /* one is left */
		else
			CHECK(!is_readable(context->async_fd));
	}
	EQ(ibv_destroy_srq(srq), EBUSY);
	OK(ibv_modify_qp(to[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	want_async(IBV_EVENT_QP_LAST_WQE_REACHED, to[0]);
	OK(ibv_destroy_ah(ah));
	for (int i = 0; i < 3; i++)
		OK(ibv_destroy_qp(all[i]));
}

static void connections(void)
{
	struct ibv_qp *from = create(IBV_QPT_UC, false), *to = create(IBV_QPT_UC, true);
	const struct ibv_qp *peer[] = {to, from};
	struct ibv_qp *both[] = {from, to};

	for (int i = 0; i < 2; i++)
		to_state(both[i], IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
			 (struct ibv_qp_attr){.path_mtu = IBV_MTU_1024, .dest_qp_num = peer[i]->qp_num, .ah_attr = {.port_num = 1}});
	to_state(from, IBV_QPS_RTS, IBV_QP_SQ_PSN, (struct ibv_qp_attr){0});
	for (uint64_t i = 0; i < 4; i++)
		receive(i);
	for (uint64_t i = 0; i < 4; i++) {
		send_to(from, NULL, 0, BIG);
		got(to, i, 0, BIG);
	}
	OK(ibv_destroy_qp(from));
	OK(ibv_destroy_qp(to));
}

int main(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_qp_init_attr rc = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_qp *qp, *reliable;

	OK(setenv("URNIC_TRANSPORT", "ethernet", 1));
	context = open_device();
	CHECK(pd = ibv_alloc_pd(context));
	CHECK(cq = ibv_create_cq(context, 64, NULL, NULL, 0));
	CHECK(mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	for (int i = 0; i < BIG; i++)
		memory[i] = (uint8_t)(i * 3);
	CHECK(srq = ibv_create_srq(pd, &attr));
	receive(0);
	datagrams();
	connections();
	/* One for both reliable and unreliable queue pairs is not there. */
	rc.send_cq = rc.recv_cq = cq;
	rc.srq = srq;
	qp = create(IBV_QPT_UC, true);
	NONE(ibv_create_qp(pd, &rc), EOPNOTSUPP);
	OK(ibv_destroy_qp(qp));
	CHECK(reliable = ibv_create_qp(pd, &rc));
	rc.qp_type = IBV_QPT_UD;
	NONE(ibv_create_qp(pd, &rc), EOPNOTSUPP);
	OK(ibv_destroy_qp(reliable));
	OK(ibv_destroy_srq(srq));
	OK(ibv_dereg_mr(mr));
	OK(ibv_destroy_cq(cq));
	OK(ibv_dealloc_pd(pd));
	OK(ibv_close_device(context));
	return 0;
}
