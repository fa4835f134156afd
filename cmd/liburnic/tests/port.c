/* The port, its GID table and its partition keys. */
#include "test.h"

#include <ifaddrs.h>
#include <net/if.h>

/* The function behind the macro is what programs of old headers call. */
#undef ibv_query_port

static void port(struct ibv_context *context)
{
	struct ibv_port_attr attr, old;

	memset(&attr, 0xff, sizeof(attr));
	OK(___ibv_query_port(context, 1, &attr));
	EQ(attr.state, IBV_PORT_ACTIVE);
	EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	CHECK(attr.max_mtu >= IBV_MTU_1024 && attr.max_mtu <= IBV_MTU_4096);
	CHECK(attr.active_mtu >= IBV_MTU_1024 && attr.active_mtu <= attr.max_mtu);
	CHECK(attr.gid_tbl_len >= 1);
	EQ(attr.pkey_tbl_len, 1);
	EQ(attr.lid, 0);
	CHECK(attr.max_msg_sz >= 1U << 30);
	EQ(attr.phys_state, 5); /* LinkUp */
	CHECK(attr.active_width != 0 && attr.active_speed != 0);
	EQ(attr.port_cap_flags2, 0);

	memset(&old, 0xee, sizeof(old));
	OK(ibv_query_port(context, 1, (struct _compat_ibv_port_attr *)&old));
	EQ(memcmp(&old, &attr, offsetof(struct ibv_port_attr, port_cap_flags2)), 0);
	EQ(old.port_cap_flags2, 0xeeee); /* the old struct does not have it */

	EQ(___ibv_query_port(context, 0, &attr), EINVAL);
	EQ(___ibv_query_port(context, 2, &attr), EINVAL);
	CHECK(ibv_query_port(context, 2, (struct _compat_ibv_port_attr *)&old) != 0);
}

static bool has(const struct ibv_gid_entry *entries, ssize_t n, const union ibv_gid *gid, unsigned int ifindex)
{
	for (ssize_t i = 0; i < n; i++)
		if (memcmp(&entries[i].gid, gid, sizeof(*gid)) == 0 && entries[i].ndev_ifindex == ifindex)
			return true;
	return false;
}

/* The table has each address of the host. */
static void gids(struct ibv_context *context)
{
	struct ibv_gid_entry entries[1024], one;
	struct ibv_port_attr attr;
	struct ifaddrs *addrs;
	union ibv_gid gid;
	ssize_t n;

	OK(___ibv_query_port(context, 1, &attr));
	n = ibv_query_gid_table(context, entries, COUNT(entries), 0);
	CHECK(n >= 1 && n <= attr.gid_tbl_len);
	for (ssize_t i = 0; i < n; i++) {
		EQ(entries[i].port_num, 1);
		CHECK((int)entries[i].gid_index < attr.gid_tbl_len);
		OK(ibv_query_gid(context, 1, (int)entries[i].gid_index, &gid));
		EQ(memcmp(&gid, &entries[i].gid, sizeof(gid)), 0);
		memset(&one, 0, sizeof(one));
		OK(ibv_query_gid_ex(context, 1, entries[i].gid_index, &one, 0));
		EQ(memcmp(&one, &entries[i], sizeof(one)), 0);
	}

	OK(getifaddrs(&addrs));
	for (struct ifaddrs *a = addrs; a; a = a->ifa_next) {
		if (!a->ifa_addr || !(a->ifa_flags & IFF_UP))
			continue;
		if (a->ifa_addr->sa_family == AF_INET) {
			memset(&gid, 0, sizeof(gid));
			gid.raw[10] = gid.raw[11] = 0xff;
			memcpy(gid.raw + 12, &((struct sockaddr_in *)a->ifa_addr)->sin_addr, 4);
		} else if (a->ifa_addr->sa_family == AF_INET6) {
			memcpy(gid.raw, &((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr, 16);
		} else {
			continue;
		}
		CHECK(has(entries, n, &gid, if_nametoindex(a->ifa_name)));
	}
	freeifaddrs(addrs);

	FAILS(ibv_query_gid(context, 1, 100000, &gid), EINVAL);
	FAILS(ibv_query_gid(context, 1, -1, &gid), EINVAL);
	CHECK(ibv_query_gid(context, 2, 0, &gid) != 0);
	CHECK(ibv_query_gid_ex(context, 1, 100000, &one, 0) != 0);
	CHECK(ibv_query_gid_ex(context, 1, 0, &one, 1) > 0); /* no flag has a meaning */
	EQ(ibv_query_gid_table(context, entries, COUNT(entries), 1), -EINVAL);

	/* The array has to have room for all entries. */
	EQ(ibv_query_gid_table(context, entries, (size_t)n, 0), n);
	memset(entries, 0xee, sizeof(entries));
	for (ssize_t few = 0; few < n; few++)
		EQ(ibv_query_gid_table(context, entries, (size_t)few, 0), -EINVAL);
	memset(&one, 0xee, sizeof(one));
	EQ(memcmp(&entries[n - 1], &one, sizeof(one)), 0); /* nothing is written behind its end */
	EQ(ibv_query_gid_table(context, NULL, COUNT(entries), 0), -EINVAL);
}

static void pkeys(struct ibv_context *context)
{
	__be16 pkey = 0;

	OK(ibv_query_pkey(context, 1, 0, &pkey));
	EQ(pkey, 0xffff);
	EQ(ibv_get_pkey_index(context, 1, htons(0xffff)), 0);
	CHECK(ibv_get_pkey_index(context, 1, htons(0x1234)) < 0);
	CHECK(ibv_query_pkey(context, 1, 1, &pkey) != 0);
	CHECK(ibv_query_pkey(context, 2, 0, &pkey) != 0);
}

int main(void)
{
	struct ibv_context *context = open_device();

	port(context);
	gids(context);
	pkeys(context);
	OK(ibv_close_device(context));
	return 0;
}
