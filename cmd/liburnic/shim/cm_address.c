/*
 * What an id knows of its addresses, its device and its route, as route.addr tells it.
 */
#include <string.h>

#include "cm.h"

socklen_t cm_sockaddr_len(const struct sockaddr *addr)
{
	if (!addr)
		return 0;
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

/* The GID of an address: the address, mapped if it is IPv4. */
void cm_to_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (addr->sa_family == AF_INET6) {
		memcpy(gid->raw, &((const struct sockaddr_in6 *)addr)->sin6_addr, sizeof(gid->raw));
	} else if (addr->sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, &((const struct sockaddr_in *)addr)->sin_addr, 4);
	}
}

static bool is_wildcard(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	case AF_INET6:
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
	default:
		return true;
	}
}

int cm_refresh(struct cm_id *id)
{
	const struct urnic_engine *engine = urnic_engine();
	struct rdma_addr *addr = &id->id.route.addr;
	struct urnic_addrs addrs;
	uint32_t device;
	uint8_t port;
	int err;

	if (!engine)
		return errno;
	err = engine->id_addrs(id->handle, &addrs);
	if (err)
		return err;
	_Static_assert(sizeof(addrs.local) == sizeof(addr->src_storage), "urnic_addrs holds sockaddr_storage");
	memcpy(&addr->src_storage, addrs.local, sizeof(addr->src_storage));
	memcpy(&addr->dst_storage, addrs.peer, sizeof(addr->dst_storage));
	if (is_wildcard(&addr->src_addr))
		return 0; /* bound to a port at most, not to the device */
	cm_to_gid(&addr->src_addr, &addr->addr.ibaddr.sgid);
	cm_to_gid(&addr->dst_addr, &addr->addr.ibaddr.dgid);
	addr->addr.ibaddr.pkey = htons(0xffff);
	if (id->id.verbs)
		return 0;
	err = urnic_find_gid(&addr->addr.ibaddr.sgid, &device, &port);
	if (err)
		return err;
	id->id.verbs = urnic_cm_context(device);
	if (!id->id.verbs)
		return errno;
	id->id.port_num = port;
	if (!id->id.pd)
		id->id.pd = cm_default_pd(device);
	return id->id.pd ? 0 : errno;
}

void cm_routed(struct cm_id *id)
{
	struct ibv_sa_path_rec *path = &id->path;

	/* An RNIC has no path records. */
	if (cm_iwarp())
		return;
	memset(path, 0, sizeof(*path));
	path->sgid = id->id.route.addr.addr.ibaddr.sgid;
	path->dgid = id->id.route.addr.addr.ibaddr.dgid;
	path->pkey = htons(0xffff);
	path->hop_limit = 64;
	path->reversible = 1;
	path->numb_path = 1;
	path->mtu_selector = path->rate_selector = path->packet_life_time_selector = 2; /* exactly */
	path->mtu = IBV_MTU_4096;
	path->rate = IBV_RATE_10_GBPS;
	path->packet_life_time = 18; /* 4.096 us << 18: about a second */
	id->id.route.path_rec = path;
	id->id.route.num_paths = 1;
}

URNIC_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port; /* at the same place in sockaddr_in6 */
}

URNIC_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id->route.addr.dst_sin.sin_port;
}
