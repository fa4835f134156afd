/*
 * What datagrams and multicast need, and iWARP has not: address handles, multicast groups,
 * addresses of Ethernet.
 */
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "cm.h"

#define DATAGRAMS "iWARP has no datagrams, and so no address handles and no multicast: use queue pairs of IBV_QPT_RC"

URNIC_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	const struct urnic_engine *e;
	struct urnic_ah_attr want = {0};
	struct ibv_ah *ah;
	int err;

	if (!urnic_is_adapter())
		return urnic_null(urnic_unsupported("ibv_create_ah: " DATAGRAMS));
	if (!pd || !attr || !urnic_has_port(pd->context, attr->port_num))
		return urnic_null(EINVAL);
	e = urnic_engine();
	if (!e)
		return NULL;
	want.is_global = attr->is_global != 0;
	want.sgid_index = attr->grh.sgid_index;
	want.port = attr->port_num;
	memcpy(want.dgid, attr->grh.dgid.raw, sizeof(want.dgid));
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	err = e->ah_create(pd->handle, &want, &ah->handle);
	if (err) {
		free(ah);
		return urnic_null(err);
	}
	ah->context = pd->context;
	ah->pd = pd;
	urnic_pd_use(pd, 1);
	return ah;
}

/* The index of a GID of a port, or -1. */
static int index_of(struct ibv_context *context, uint8_t port_num, const union ibv_gid *gid)
{
	union ibv_gid own;

	for (int i = 0; !ibv_query_gid(context, port_num, i, &own); i++)
		if (!memcmp(&own, gid, sizeof(own)))
			return i;
	return -1;
}

void cm_ah_attr(struct cm_id *id, const union ibv_gid *dgid, struct ibv_ah_attr *attr)
{
	uint8_t port = id->id.port_num ? id->id.port_num : 1;
	int own = id->id.verbs ? index_of(id->id.verbs, port, &id->id.route.addr.addr.ibaddr.sgid) : -1;

	memset(attr, 0, sizeof(*attr));
	attr->port_num = port;
	attr->is_global = 1;
	attr->grh.dgid = *dgid;
	attr->grh.sgid_index = own < 0 ? 0 : (uint8_t)own;
	attr->grh.hop_limit = 64;
}

/* The way back to the sender of what wc reports: the GRH has its GID, and to which of ours it was sent. */
URNIC_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
				     struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	int own;

	if (!urnic_is_adapter())
		return urnic_minus(urnic_unsupported("ibv_init_ah_from_wc: " DATAGRAMS));
	if (!context || !wc || !ah_attr || !urnic_has_port(context, port_num))
		return urnic_minus(EINVAL);
	memset(ah_attr, 0, sizeof(*ah_attr));
	ah_attr->dlid = wc->slid;
	ah_attr->sl = wc->sl;
	ah_attr->src_path_bits = wc->dlid_path_bits;
	ah_attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	if (!grh)
		return urnic_minus(EINVAL);
	own = index_of(context, port_num, &grh->dgid);
	ah_attr->is_global = 1;
	ah_attr->grh.dgid = grh->sgid;
	ah_attr->grh.sgid_index = own < 0 ? 0 : (uint8_t)own; /* a group has none */
	ah_attr->grh.hop_limit = 64;
	return 0;
}

URNIC_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
						  uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (!urnic_is_adapter())
		return urnic_null(urnic_unsupported("ibv_create_ah_from_wc: " DATAGRAMS));
	if (!pd)
		return urnic_null(EINVAL);
	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

URNIC_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	const struct urnic_engine *e;
	int err;

	if (!urnic_is_adapter())
		return urnic_fail(urnic_unsupported("ibv_destroy_ah: " DATAGRAMS));
	if (!ah)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->ah_destroy(ah->handle);
	if (err)
		return urnic_fail(err);
	urnic_pd_use(ah->pd, -1);
	free(ah);
	return 0;
}

/* The GID says which group it is; there are no LIDs. */
URNIC_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	const struct urnic_engine *e;
	int err;

	(void)lid;
	if (!urnic_is_adapter())
		return urnic_fail(urnic_unsupported("ibv_attach_mcast: " DATAGRAMS));
	if (!qp || !gid)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->qp_attach(qp->handle, gid->raw);
	return err ? urnic_fail(err) : 0;
}

URNIC_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	const struct urnic_engine *e;
	int err;

	(void)lid;
	if (!urnic_is_adapter())
		return urnic_fail(urnic_unsupported("ibv_detach_mcast: " DATAGRAMS));
	if (!qp || !gid)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->qp_detach(qp->handle, gid->raw);
	return err ? urnic_fail(err) : 0;
}

/* Returns an errno below 0. */
URNIC_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
					     uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context;
	(void)attr;
	(void)eth_mac;
	(void)vid;
	return -urnic_fail(urnic_unsupported("ibv_resolve_eth_l2_from_gid: " DATAGRAMS));
}
