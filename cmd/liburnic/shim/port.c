/*
 * The ports, and their table of partition keys.
 */
#include <arpa/inet.h>
#include <string.h>

#include "shim.h"

#define PHYS_STATE_DISABLED 3
#define PHYS_STATE_LINK_UP 5
#define WIDTH_4X 2
#define SPEED_10_GBPS 4

#define PKEY_DEFAULT 0xffff

/* Attributes up to and with flags: all that the function ibv_query_port may write, because programs that
 * are older than port_cap_flags2 call it with their struct. */
#define COMPAT_LEN (offsetof(struct ibv_port_attr, flags) + 1)

int urnic_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t len)
{
	const struct urnic_device *d;
	const struct urnic_engine *e;
	struct ibv_port_attr a;
	struct urnic_gid gid;
	uint32_t gids = 0;

	if (!context || !attr)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	d = urnic_device_info(context->device);
	if (!d || !urnic_has_port(context, port_num))
		return urnic_fail(EINVAL);
	/* Afresh: addresses come and go. */
	while (!e->gid(urnic_device_index(context->device), port_num, gids, &gid))
		gids++;

	a = (struct ibv_port_attr){
		.state = gids ? IBV_PORT_ACTIVE : IBV_PORT_DOWN, /* no interface is up that has its address */
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = (int)gids,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = d->max_msg_size > UINT32_MAX ? UINT32_MAX : (uint32_t)d->max_msg_size,
		.qkey_viol_cntr = d->qkey_violations,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		/* There is no link: what siw says, which has none either. */
		.active_width = WIDTH_4X,
		.active_speed = SPEED_10_GBPS,
		.phys_state = gids ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		/* The GID of the peer is the only address there is. */
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	if (len > sizeof(a)) {
		memset((char *)attr + sizeof(a), 0, len - sizeof(a));
		len = sizeof(a);
	}
	memcpy(attr, &a, len);
	return 0;
}

URNIC_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return urnic_query_port(context, port_num, (struct ibv_port_attr *)attr, COMPAT_LEN);
}

URNIC_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	if (!context || !pkey || !urnic_has_port(context, port_num) || index != 0)
		return urnic_minus(EINVAL);
	*pkey = htons(PKEY_DEFAULT);
	return 0;
}

URNIC_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	if (!context || !urnic_has_port(context, port_num) || pkey != htons(PKEY_DEFAULT))
		return urnic_minus(EINVAL);
	return 0;
}
