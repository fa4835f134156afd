/*
 * The device: finding it, and its attributes.
 *
 * There is one, always at the same address: programs may keep pointers to it after they
 * have freed the list. Its paths in sysfs do not exist.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

#define IBDEV_PATH "/sys/class/infiniband/" URNIC_DEVICE_NAME

/*
 * The provider libraries of rdma-core look for a pointer to their own functions behind
 * ibv_device, to see whether a device is theirs (mlx5dv_is_supported): they must find NULL.
 */
static struct {
	struct ibv_device device;
	char none[512];
} the;

static struct urnic_device info;
static bool known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fill(void)
{
	struct ibv_device *d = &the.device;

	info.name[sizeof(info.name) - 1] = 0;
	d->node_type = info.iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
	d->transport_type = info.iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	memcpy(d->name, info.name, sizeof(info.name));
	/* Not uverbs0: that may be there, and another device's. */
	strcpy(d->dev_name, "uverbs-" URNIC_DEVICE_NAME);
	strcpy(d->dev_path, "/sys/class/infiniband_verbs/uverbs-" URNIC_DEVICE_NAME);
	strcpy(d->ibdev_path, IBDEV_PATH);
}

const struct urnic_device *urnic_device_info(void)
{
	const struct urnic_engine *e = urnic_engine();
	int err = 0;

	if (!e)
		return NULL;
	pthread_mutex_lock(&lock);
	if (!known) {
		err = e->device(&info);
		if (!err) {
			fill();
			known = true;
		}
	}
	pthread_mutex_unlock(&lock);
	return err ? urnic_null(err) : &info;
}

struct ibv_device *urnic_ibv_device(void)
{
	return urnic_device_info() ? &the.device : NULL;
}

URNIC_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device *device = urnic_ibv_device();
	struct ibv_device **list;

	if (num_devices)
		*num_devices = 0;
	if (!device)
		return NULL;
	list = calloc(2, sizeof(struct ibv_device *));
	if (!list)
		return NULL;
	list[0] = device;
	if (num_devices)
		*num_devices = 1;
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
	const struct urnic_device *d = device ? urnic_device_info() : NULL;

	return d ? d->guid : 0;
}

URNIC_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return device ? 0 : -1;
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
	a->max_pkeys = 1;
	a->phys_port_cnt = 1;
}

URNIC_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct urnic_device *d;

	if (!context || !attr)
		return urnic_fail(EINVAL);
	d = urnic_device_info();
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
	d = urnic_device_info();
	if (!d)
		return errno;
	memset(&a, 0, sizeof(a));
	attributes(d, &a.orig_attr);
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	a.phys_port_cnt_ex = 1;
	/* A newer program knows of more than this library. */
	if (len > sizeof(a)) {
		memset((char *)attr + sizeof(a), 0, len - sizeof(a));
		len = sizeof(a);
	}
	memcpy(attr, &a, len);
	return 0;
}
