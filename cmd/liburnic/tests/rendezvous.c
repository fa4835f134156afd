/* Queue pairs that programs connect themselves, by numbers and GIDs: when, to whom, and when nobody is there. */
#include "test.h"

static union ibv_gid gid_of(struct end *e, int index)
{
	union ibv_gid gid;

	OK(ibv_query_gid(e->context, 1, index, &gid));
	return gid;
}

static void exchange(struct pair *p)
{
	recv_at(&p->b, 1, 0, 8);
	recv_at(&p->a, 2, 0, 8);
	post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 8);
	post(&p->b, .opcode = IBV_WR_SEND, .wr_id = 4, .length = 8);
	done(p->a.scq, 3, IBV_WC_SEND);
	done(p->b.scq, 4, IBV_WC_SEND);
	done(p->b.rcq, 1, IBV_WC_RECV);
	done(p->a.rcq, 2, IBV_WC_RECV);
}

/* Either may be first to know its peer, and may have posted already. */
static void orders(void)
{
	for (int order = 0; order < 2; order++) {
		union ibv_gid gid;
		struct pair p;
		struct end *first, *second;

		pair_unconnected(&p, &(struct plan){0});
		first = order ? &p.a : &p.b;
		second = order ? &p.b : &p.a;
		gid = gid_of(&p.a, 0);
		qp_to_rtr(first->qp, &gid, second->qp->qp_num, 4);
		qp_to_rts(first->qp, 4);
		recv_at(second, 2, 0, 8);
		post(first, .opcode = IBV_WR_SEND, .wr_id = 1, .length = 8);
		empty(first->scq); /* the peer does not know us yet */
		qp_to_rtr(second->qp, &gid, first->qp->qp_num, 4);
		qp_to_rts(second->qp, 4);
		done(first->scq, 1, IBV_WC_SEND);
		done(second->rcq, 2, IBV_WC_RECV);
		exchange(&p);
		pair_close(&p);
	}
}

/* A queue pair that is its own peer, as programs have it that flush memory by a Read of their own. */
static void itself(void)
{
	union ibv_gid gid;
	struct pair p;

	pair_unconnected(&p, &(struct plan){0});
	gid = gid_of(&p.a, 0);
	qp_to_rtr(p.a.qp, &gid, p.a.qp->qp_num, 4);
	qp_to_rts(p.a.qp, 4);
	recv_at(&p.a, 1, 100, 8);
	p.a.memory[0] = 0x51;
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	done(p.a.scq, 2, IBV_WC_SEND);
	done(p.a.rcq, 1, IBV_WC_RECV);
	EQ(p.a.memory[100], 0x51);
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 3, .offset = 200, .length = 8, .remote = to(&p.a, 0),
	     .rkey = p.a.mr->rkey);
	done(p.a.scq, 3, IBV_WC_RDMA_READ);
	EQ(p.a.memory[200], 0x51);
	post(&p.a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr_id = 4, .offset = 304, .length = 8, .remote = to(&p.a, 0),
	     .rkey = p.a.mr->rkey, .compare_add = 1);
	done(p.a.scq, 4, IBV_WC_FETCH_ADD);
	EQ(p.a.memory[0], 0x52);
	pair_close(&p);
}

/* Each address of the table leads to this host. */
static void each_gid(void)
{
	struct ibv_gid_entry entries[256];
	struct ibv_context *context = open_device();
	ssize_t n = ibv_query_gid_table(context, entries, COUNT(entries), 0);

	CHECK(n >= 1);
	OK(ibv_close_device(context));
	for (ssize_t i = 0; i < n && i < 8; i++) {
		struct ibv_qp_attr attr = {
			.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_1024,
			.max_dest_rd_atomic = 1,
			.min_rnr_timer = 12,
			.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = entries[i].gid}},
		};
		struct pair p;

		pair_unconnected(&p, &(struct plan){0});
		attr.ah_attr.grh.sgid_index = (uint8_t)entries[i].gid_index;
		for (int j = 0; j < 2; j++) {
			attr.dest_qp_num = j ? p.a.qp->qp_num : p.b.qp->qp_num;
			OK(ibv_modify_qp(j ? p.b.qp : p.a.qp, &attr,
					 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
			qp_to_rts(j ? p.b.qp : p.a.qp, 1);
		}
		exchange(&p);
		pair_close(&p);
	}
}

/* Without a global route, the peer is on this host. */
static void without_grh(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 1,
				   .ah_attr = {.port_num = 1}};
	struct pair p;

	pair_unconnected(&p, &(struct plan){0});
	for (int j = 0; j < 2; j++) {
		attr.dest_qp_num = j ? p.a.qp->qp_num : p.b.qp->qp_num;
		OK(ibv_modify_qp(j ? p.b.qp : p.a.qp, &attr,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
		qp_to_rts(j ? p.b.qp : p.a.qp, 1);
	}
	exchange(&p);
	pair_close(&p);
}

/* Nobody is there: the first request says so, the rest are flushed. */
static void nobody(void)
{
	union ibv_gid gid;
	struct pair p;

	pair_unconnected(&p, &(struct plan){0});
	gid = gid_of(&p.a, 0);
	recv_at(&p.a, 1, 0, 8);
	qp_to_rtr(p.a.qp, &gid, (1023 << 14) | 5, 4); /* of a process that is not there */
	qp_to_rts(p.a.qp, 4);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 3, .length = 8);
	want_wc(p.a.scq, 2, IBV_WC_RETRY_EXC_ERR, 0);
	want_wc(p.a.scq, 3, IBV_WC_WR_FLUSH_ERR, 0);
	want_wc(p.a.rcq, 1, IBV_WC_WR_FLUSH_ERR, 0);
	pair_close(&p);
}

/* To give up while nothing has come of it yet. */
static void given_up(void)
{
	union ibv_gid gid;
	struct pair p;

	for (int i = 0; i < 3; i++) {
		pair_unconnected(&p, &(struct plan){0});
		gid = gid_of(&p.a, 0);
		recv_at(&p.a, 1, 0, 8);
		qp_to_rtr(p.a.qp, &gid, p.b.qp->qp_num, 4); /* b never will */
		if (i == 1)
			OK(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
		if (i == 1)
			want_wc(p.a.rcq, 1, IBV_WC_WR_FLUSH_ERR, 0);
		if (i == 2)
			OK(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
		pair_close(&p);
	}
}

/* Many at once, between the same two contexts. */
static void many(void)
{
	struct pair pairs[16];
	union ibv_gid gid;

	for (size_t i = 0; i < COUNT(pairs); i++)
		pair_unconnected(&pairs[i], &(struct plan){0});
	gid = gid_of(&pairs[0].a, 0);
	for (size_t i = 0; i < COUNT(pairs); i++) {
		qp_to_rtr(pairs[i].a.qp, &gid, pairs[i].b.qp->qp_num, 4);
		qp_to_rts(pairs[i].a.qp, 4);
	}
	for (size_t i = COUNT(pairs); i-- > 0;) {
		qp_to_rtr(pairs[i].b.qp, &gid, pairs[i].a.qp->qp_num, 4);
		qp_to_rts(pairs[i].b.qp, 4);
	}
	for (size_t i = 0; i < COUNT(pairs); i++) {
		exchange(&pairs[i]);
		pair_close(&pairs[i]);
	}
}

int main(void)
{
	orders();
	itself();
	each_gid();
	without_grh();
	nobody();
	given_up();
	many();
	return 0;
}
