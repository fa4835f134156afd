/*
 * What datagrams and multicast need, and iWARP has not: address handles, multicast groups,
 * addresses of Ethernet.
 */
#include "shim.h"

#define DATAGRAMS "iWARP has no datagrams, and so no address handles and no multicast: use queue pairs of IBV_QPT_RC"

URNIC_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	(void)attr;
	return urnic_null(urnic_unsupported("ibv_create_ah: " DATAGRAMS));
}

URNIC_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
				     struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	(void)context;
	(void)port_num;
	(void)wc;
	(void)grh;
	(void)ah_attr;
	return urnic_minus(urnic_unsupported("ibv_init_ah_from_wc: " DATAGRAMS));
}

URNIC_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
						  uint8_t port_num)
{
	(void)pd;
	(void)wc;
	(void)grh;
	(void)port_num;
	return urnic_null(urnic_unsupported("ibv_create_ah_from_wc: " DATAGRAMS));
}

URNIC_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return urnic_fail(urnic_unsupported("ibv_destroy_ah: " DATAGRAMS));
}

URNIC_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return urnic_fail(urnic_unsupported("ibv_attach_mcast: " DATAGRAMS));
}

URNIC_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return urnic_fail(urnic_unsupported("ibv_detach_mcast: " DATAGRAMS));
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
