/* Endpoints: an id and its queue pair, made in one call of what rdma_getaddrinfo has found. */
#include <stdlib.h>

#include "cm.h"

#define RESOLVE_MS 2000 /* for the address, and again for the route */

/* Remembers what rdma_get_request makes queue pairs of. */
static int passive(struct rdma_cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   const struct ibv_qp_init_attr *attr)
{
	struct cm_id *i = cm_id(id);

	if (rdma_bind_addr(id, res->ai_src_addr))
		return -1;
	if (!attr)
		return 0;
	i->init_attr = malloc(sizeof(*attr));
	if (!i->init_attr)
		return urnic_minus(ENOMEM);
	*i->init_attr = *attr;
	i->init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	if (pd)
		id->pd = pd;
	return 0;
}

static int active(struct rdma_cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) ||
	    rdma_resolve_route(id, RESOLVE_MS))
		return -1;
	if (!attr)
		return 0;
	attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return rdma_create_qp(id, pd, attr);
}

URNIC_EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
				struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *made;
	int err;

	if (!id || !res)
		return urnic_minus(EINVAL);
	if (res->ai_qp_type != IBV_QPT_RC && res->ai_qp_type != 0 && (res->ai_qp_type != IBV_QPT_UD || cm_iwarp()))
		return urnic_minus(urnic_unsupported("rdma_create_ep: the only type is IBV_QPT_RC: iWARP has no datagrams"));
	if (rdma_create_id(NULL, &made, NULL, (enum rdma_port_space)res->ai_port_space))
		return -1;
	if (res->ai_flags & RAI_PASSIVE)
		err = passive(made, res, pd, qp_init_attr);
	else
		err = active(made, res, pd, qp_init_attr);
	if (err) {
		err = errno;
		rdma_destroy_ep(made);
		return urnic_minus(err);
	}
	*id = made;
	return 0;
}

URNIC_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
