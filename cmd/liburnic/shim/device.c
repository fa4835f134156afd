/*
 * The devices: finding them, and their attributes.
 *
 * They are always at the same addresses: programs may keep pointers to them after they
 * have freed the list. Their paths in sysfs exist in the program's view only (view.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"

/*
 * The provider libraries of rdma-core look for a pointer to their own functions behind
 * ibv_device, to see whether a device is theirs (mlx5dv_is_supported): they must find NULL.
 */
static struct known_device {
	struct ibv_device device;
	char none[512];
} all[URNIC_MAX_DEVICES];

static struct urnic_device infos[URNIC_MAX_DEVICES];
static uint32_t count; /* 0: not known yet. Atomic: written once, under lock, after all else */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fill(uint32_t index)
{
	struct urnic_device *info = &infos[index];
	struct ibv_device *d = &all[index].device;

	info->name[sizeof(info->name) - 1] = 0;
	d->node_type = info->iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
	d->transport_type = info->iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	memcpy(d->name, info->name, sizeof(info->name));
	/* Without a view, not uverbs0: that may be there, and another device's. */
	if (urnic_view())
		snprintf(d->dev_name, sizeof(d->dev_name), "uverbs%u", index);
	else
		snprintf(d->dev_name, sizeof(d->dev_name), "uverbs-%.56s", info->name);
	snprintf(d->dev_path, sizeof(d->dev_path), "/sys/class/infiniband_verbs/%.63s", d->dev_name);
	snprintf(d->ibdev_path, sizeof(d->ibdev_path), "/sys/class/infiniband/%.63s", info->name);
}

/* Asks the engine for all devices: 0 or an errno. Under lock. */
static int find_all(const struct urnic_engine *e)
{
	uint32_t n = 0;
	int err = 0;

	while (n < URNIC_MAX_DEVICES && !(err = e->device(n, &infos[n])))
		fill(n++);
	if (err && (err != ENODEV || n == 0))
		return err;
	__atomic_store_n(&count, n, __ATOMIC_RELEASE);
	return 0;
}

uint32_t urnic_devices(void)
{
	const struct urnic_engine *e = urnic_engine(); /* each thread's: see urnic_live */
	int err = 0;

	if (!e)
		return 0;
	if (!__atomic_load_n(&count, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&lock);
		if (!count)
			err = find_all(e);
		pthread_mutex_unlock(&lock);
	}
	if (err)
		errno = err;
	return err ? 0 : count;
}

struct ibv_device *urnic_ibv_device(uint32_t index)
{
	uint32_t n = urnic_devices();

	if (n && index >= n)
		errno = ENODEV;
	return index < n ? &all[index].device : NULL;
}

uint32_t urnic_device_index(const struct ibv_device *device)
{
	for (uint32_t i = 0; i < URNIC_MAX_DEVICES; i++)
		if (device == &all[i].device)
			return i;
	return URNIC_MAX_DEVICES;
}

const struct urnic_device *urnic_device_info(const struct ibv_device *device)
{
	uint32_t n = urnic_devices(), index = urnic_device_index(device);

	if (n && index >= n)
		errno = ENODEV;
	return index < n ? &infos[index] : NULL;
}

bool urnic_has_port(const struct ibv_context *context, uint32_t port_num)
{
	const struct urnic_device *d = urnic_device_info(context->device);

	return d && port_num >= 1 && port_num <= d->ports;
}

URNIC_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	uint32_t n = urnic_devices();
	struct ibv_device **list;

	if (num_devices)
		*num_devices = 0;
	if (!n)
		return NULL;
	list = calloc(n + 1, sizeof(struct ibv_device *));
	if (!list)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		list[i] = &all[i].device;
	if (num_devices)
		*num_devices = (int)n;
	return list;
}

URNIC_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

URNIC_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device ? device->name : urnic_null(EINVAL);
}

URNIC_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	const struct urnic_device *d = device ? urnic_device_info(device) : NULL;

	return d ? d->guid : 0;
}

URNIC_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	uint32_t index = urnic_device_index(device);

	return index < URNIC_MAX_DEVICES ? (int)index : -1;
}

/* What iWARP verbs and the RNIC have of the flags. */
#define DEVICE_CAPS                                                                                                    \
	(IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |                     \
	 IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW_TYPE_2B)

/*
 * The IEEE vendor ID, which programs take for no device if it is 0. It is a locally
 * administered one, "rni": no vendor can be assigned it, and so no program has settings
 * for it. There is one part.
 */
#define VENDOR_ID 0x726e69
#define VENDOR_PART_ID 1

/* A handle of the engine has a place of a table. */
#define MAX_AH (1 << 20)

static void attributes(const struct urnic_device *d, struct ibv_device_attr *a)
{
	memset(a, 0, sizeof(*a));
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", d->version);
	a->node_guid = d->guid;
	a->sys_image_guid = d->guid;
	a->max_mr_size = d->max_mr_size;
	a->vendor_id = VENDOR_ID;
	a->vendor_part_id = VENDOR_PART_ID;
	a->page_size_cap = ~(uint64_t)0xfff;
	a->max_qp = (int)d->max_qp;
	a->max_qp_wr = (int)d->max_qp_wr;
	a->device_cap_flags = DEVICE_CAPS;
	a->max_sge = (int)d->max_sge;
	a->max_sge_rd = (int)d->max_sge_rd;
	a->max_cq = (int)d->max_cq;
	a->max_cqe = (int)d->max_cqe;
	a->max_mr = (int)d->max_mr;
	a->max_pd = (int)d->max_pd;
	a->max_qp_rd_atom = (int)d->max_rd_atomic;
	a->max_qp_init_rd_atom = (int)d->max_rd_atomic;
	a->max_res_rd_atom = (int)(d->max_qp < INT32_MAX / (d->max_rd_atomic + 1) ? d->max_qp * d->max_rd_atomic
										   : INT32_MAX);
	/* RFC 7306 §5.3: atomic to other such operations of this device. */
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_mw = (int)d->max_mw;
	a->max_srq = (int)d->max_srq;
	a->max_srq_wr = (int)d->max_srq_wr;
	a->max_srq_sge = (int)d->max_srq_sge;
	if (urnic_is_adapter()) {
		a->max_ah = MAX_AH;
		a->max_mcast_grp = (int)d->max_qp;
		a->max_mcast_qp_attach = (int)d->max_qp;
		a->max_total_mcast_qp_attach = (int)d->max_qp;
	}
	a->max_pkeys = 1;
	a->phys_port_cnt = (uint8_t)d->ports;
}

URNIC_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct urnic_device *d;

	if (!context || !attr)
		return urnic_fail(EINVAL);
	d = urnic_device_info(context->device);
	if (!d)
		return errno;
	attributes(d, attr);
	return 0;
}

int urnic_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t len)
{
	const struct urnic_device *d;
	struct ibv_device_attr_ex a;

	if (!context || !attr || (input && input->comp_mask) || len < sizeof(attr->orig_attr))
		return urnic_fail(EINVAL);
	d = urnic_device_info(context->device);
	if (!d)
		return errno;
	memset(&a, 0, sizeof(a));
	attributes(d, &a.orig_attr);
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	a.phys_port_cnt_ex = d->ports;
	if (urnic_is_adapter()) {
		urnic_paging_caps(&a.odp_caps);
		a.completion_timestamp_mask = UINT64_MAX;
		a.hca_core_clock = URNIC_CLOCK_KHZ;
		a.max_dm_size = URNIC_MAX_DM;
	}
	/* A newer program knows of more than this library. */
	if (len > sizeof(a)) {
		memset((char *)attr + sizeof(a), 0, len - sizeof(a));
		len = sizeof(a);
	}
	memcpy(attr, &a, len);
	return 0;
}
