/* Protection domains, thread domains and parent domains. */
#include "test.h"

static void busy(struct ibv_context *context)
{
	static uint8_t memory[4096];
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	CHECK(pd = ibv_alloc_pd(context));
	CHECK(pd->context == context);
	CHECK(mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	EQ(ibv_dealloc_pd(pd), EBUSY);
	OK(ibv_dereg_mr(mr));
	OK(ibv_dealloc_pd(pd));
}

static void many(struct ibv_context *context)
{
	struct ibv_pd *pds[200];

	for (size_t i = 0; i < COUNT(pds); i++) {
		CHECK(pds[i] = ibv_alloc_pd(context));
		CHECK(i == 0 || pds[i]->handle != pds[i - 1]->handle);
	}
	for (size_t i = 0; i < COUNT(pds); i++)
		OK(ibv_dealloc_pd(pds[i]));
}

/* A parent domain stands for the domain that it is of, wherever that goes. */
static void parent(struct ibv_context *context)
{
	static uint8_t memory[4096];
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_qp_init_attr qp_attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
						   .max_recv_sge = 1},
					   .qp_type = IBV_QPT_RC};
	struct ibv_pd *pd, *parent, *without;
	struct ibv_td *td;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};

	CHECK(pd = ibv_alloc_pd(context));
	CHECK(td = ibv_alloc_td(context, &td_attr));
	CHECK(td->context == context);
	attr.pd = pd;
	attr.td = td;
	CHECK(parent = ibv_alloc_parent_domain(context, &attr));
	CHECK(parent->context == context);
	attr.td = NULL;
	CHECK(without = ibv_alloc_parent_domain(context, &attr));

	EQ(ibv_dealloc_pd(pd), EBUSY);
	EQ(ibv_dealloc_td(td), EBUSY);
	CHECK(mr = ibv_reg_mr(parent, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	CHECK(mw = ibv_alloc_mw(parent, IBV_MW_TYPE_2));
	CHECK(srq = ibv_create_srq(parent, &srq_attr));
	CHECK(qp_attr.send_cq = qp_attr.recv_cq = ibv_create_cq(context, 4, NULL, NULL, 0));
	CHECK(qp = ibv_create_qp(parent, &qp_attr));
	CHECK(qp->pd == parent);
	EQ(ibv_dealloc_pd(parent), EBUSY);
	OK(ibv_destroy_qp(qp));
	OK(ibv_destroy_cq(qp_attr.send_cq));
	OK(ibv_destroy_srq(srq));
	OK(ibv_dealloc_mw(mw));
	OK(ibv_dereg_mr(mr));
	OK(ibv_dealloc_pd(without));
	OK(ibv_dealloc_pd(parent));
	OK(ibv_dealloc_td(td));
	OK(ibv_dealloc_pd(pd));
}

static void wrong_use(struct ibv_context *context)
{
	struct ibv_td_init_attr td_attr = {.comp_mask = 1};
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_pd *pd;

	NONE(ibv_alloc_td(context, &td_attr), EINVAL);
	NONE(ibv_alloc_parent_domain(context, &attr), EINVAL); /* of no domain */
	CHECK(pd = ibv_alloc_pd(context));
	attr.pd = pd;
	attr.comp_mask = 1U << 31;
	NONE(ibv_alloc_parent_domain(context, &attr), EINVAL);
	OK(ibv_dealloc_pd(pd));
}

int main(void)
{
	struct ibv_context *context = open_device();

	busy(context);
	many(context);
	parent(context);
	wrong_use(context);
	OK(ibv_close_device(context));
	return 0;
}
