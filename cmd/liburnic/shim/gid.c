/*
 * The GID table: the addresses of the host.
 */
#include <string.h>

#include "shim.h"

/* What rdma-core's tools take from ibv_query_gid_type; not in its public headers. */
enum ibv_gid_type_sysfs { GID_TYPE_IB_ROCE_V1, GID_TYPE_ROCE_V2 };

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum ibv_gid_type_sysfs *type);

/* The type that programs choose GIDs by: one of an IP address, where they look for that. */
static uint32_t gid_type(const struct urnic_device *d)
{
	return d->iwarp ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
}

/* Entry index of the table: 0 or an errno. */
static int query(struct ibv_context *context, uint32_t port_num, uint32_t index, struct ibv_gid_entry *out)
{
	const struct urnic_device *d;
	struct urnic_gid gid;
	int err;

	if (!context)
		return EINVAL;
	d = urnic_device_info(context->device);
	if (!d)
		return errno;
	err = urnic_engine()->gid(urnic_device_index(context->device), port_num, index, &gid);
	if (err)
		return err;
	*out = (struct ibv_gid_entry){
		.gid_index = index,
		.port_num = port_num,
		.gid_type = gid_type(d),
		.ndev_ifindex = gid.ifindex,
	};
	memcpy(out->gid.raw, gid.raw, sizeof(out->gid.raw));
	return 0;
}

/* Copies an entry to a program whose struct has size bytes. */
static void copy(void *to, const struct ibv_gid_entry *from, size_t size)
{
	memset(to, 0, size);
	memcpy(to, from, size < sizeof(*from) ? size : sizeof(*from));
}

URNIC_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	int err;

	if (!gid || index < 0)
		return urnic_minus(EINVAL);
	err = query(context, port_num, (uint32_t)index, &entry);
	if (err)
		return urnic_minus(err);
	*gid = entry.gid;
	return 0;
}

URNIC_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
				   struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry found;
	int err;

	if (!entry || flags)
		return urnic_fail(EINVAL);
	err = query(context, port_num, gid_index, &found);
	if (err)
		return urnic_fail(err);
	copy(entry, &found, entry_size);
	return 0;
}

URNIC_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
					  size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct urnic_device *d;
	struct ibv_gid_entry found;
	uint32_t n = 0;

	if (!context || !entries || !max_entries || flags)
		return -urnic_fail(EINVAL);
	d = urnic_device_info(context->device);
	if (!d)
		return -errno;
	for (uint32_t port = 1; port <= d->ports; port++)
		for (uint32_t i = 0; !query(context, port, i, &found); i++, n++) {
			if (n == max_entries) /* it has to take all (ibv_query_gid_table(3)) */
				return -urnic_fail(EINVAL);
			copy((char *)entries + n * entry_size, &found, entry_size);
		}
	return n;
}

URNIC_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
				    enum ibv_gid_type_sysfs *type)
{
	struct ibv_gid_entry entry;
	int err;

	if (!type)
		return urnic_minus(EINVAL);
	err = query(context, port_num, index, &entry);
	if (err)
		return urnic_minus(err);
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? GID_TYPE_ROCE_V2 : GID_TYPE_IB_ROCE_V1;
	return 0;
}

/* A device that is not bound has all addresses, those too that are not in its table, such as 127.0.0.2. */
int urnic_find_gid(const union ibv_gid *gid, uint32_t *device, uint8_t *port)
{
	const struct urnic_engine *e = urnic_engine();
	const struct urnic_device *d;
	struct urnic_gid has;

	for (uint32_t i = 0; i < urnic_devices(); i++) {
		d = urnic_device_info(urnic_ibv_device(i));
		if (!d)
			return errno;
		for (uint32_t p = 1; p <= d->ports; p++) {
			*device = i;
			*port = (uint8_t)p;
			if (!d->bound)
				return 0;
			for (uint32_t index = 0; !e->gid(i, p, index, &has); index++)
				if (!memcmp(has.raw, gid->raw, sizeof(has.raw)))
					return 0;
		}
	}
	return ENODEV;
}
