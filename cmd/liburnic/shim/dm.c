/*
 * Memory of the device, which is the process's own: an adapter's is faster, and here nothing
 * is. What counts is that programs which use it run.
 */
#include <stdlib.h>
#include <string.h>

#include "adapter.h"

struct urnic_dm {
	struct ibv_dm dm;
	char *memory;
	size_t length;
	uint32_t uses; /* regions of it; atomic */
};

static uint64_t taken; /* bytes of all; atomic */

static struct urnic_dm *of(struct ibv_dm *dm)
{
	return urnic_container(dm, struct urnic_dm, dm);
}

void urnic_dm_use(struct urnic_dm *dm, int change)
{
	__atomic_add_fetch(&dm->uses, (uint32_t)change, __ATOMIC_ACQ_REL);
}

/* What programs may copy at a time is a number of words, of adapters' memory. */
#define WORD 4

static bool holds(const struct urnic_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static bool may_copy(const struct urnic_dm *dm, uint64_t offset, size_t length)
{
	return offset % WORD == 0 && length % WORD == 0 && holds(dm, offset, length);
}

static int copy_to(struct ibv_dm *dm, uint64_t dm_offset, const void *host_addr, size_t length)
{
	if (!may_copy(of(dm), dm_offset, length))
		return urnic_fail(EFAULT);
	memcpy(of(dm)->memory + dm_offset, host_addr, length);
	return 0;
}

static int copy_from(void *host_addr, struct ibv_dm *dm, uint64_t dm_offset, size_t length)
{
	if (!may_copy(of(dm), dm_offset, length))
		return urnic_fail(EFAULT);
	memcpy(host_addr, of(dm)->memory + dm_offset, length);
	return 0;
}

/* The largest alignment that a program may want: a huge page's. */
#define MAX_LOG_ALIGN 21

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	size_t align = 64;
	struct urnic_dm *dm;
	void *memory;
	int err;

	if (!attr || attr->comp_mask || !attr->length || attr->log_align_req > MAX_LOG_ALIGN)
		return urnic_null(EINVAL);
	if (attr->length > URNIC_MAX_DM || __atomic_add_fetch(&taken, attr->length, __ATOMIC_ACQ_REL) > URNIC_MAX_DM) {
		if (attr->length <= URNIC_MAX_DM)
			__atomic_sub_fetch(&taken, attr->length, __ATOMIC_ACQ_REL);
		return urnic_null(ENOMEM);
	}
	if (align < (size_t)1 << attr->log_align_req)
		align = (size_t)1 << attr->log_align_req;
	dm = calloc(1, sizeof(*dm));
	err = dm ? posix_memalign(&memory, align, attr->length) : ENOMEM;
	if (!err) {
		memset(memory, 0, attr->length);
		dm->dm = (struct ibv_dm){
			.context = context,
			.memcpy_to_dm = copy_to,
			.memcpy_from_dm = copy_from,
		};
		dm->memory = memory;
		dm->length = attr->length;
	}
	if (err) {
		free(dm);
		__atomic_sub_fetch(&taken, attr->length, __ATOMIC_ACQ_REL);
		return urnic_null(err);
	}
	return &dm->dm;
}

static int free_dm(struct ibv_dm *dm)
{
	struct urnic_dm *d = of(dm);

	if (__atomic_load_n(&d->uses, __ATOMIC_ACQUIRE))
		return urnic_fail(EBUSY);
	__atomic_sub_fetch(&taken, d->length, __ATOMIC_ACQ_REL);
	free(d->memory);
	free(d);
	return 0;
}

/* A region of device memory counts from 0. */
static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
				unsigned int access)
{
	struct urnic_dm *d = of(dm);
	struct ibv_mr *mr;

	if (!(access & IBV_ACCESS_ZERO_BASED) || !holds(d, dm_offset, length))
		return urnic_null(EINVAL);
	if (length)
		mr = urnic_reg_mr(pd, d->memory + dm_offset, length, 0, access);
	else /* it has keys, and nothing that a peer may touch */
		mr = urnic_reg_mr(pd, d->memory, 1, 0, IBV_ACCESS_ZERO_BASED);
	if (!mr)
		return NULL;
	mr->length = length;
	mr->addr = NULL; /* it is the device's */
	urnic_container(mr, struct urnic_region, mr)->dm = d;
	urnic_dm_use(d, 1);
	return mr;
}

void urnic_set_dm_ops(struct verbs_context *v)
{
	if (!urnic_is_adapter())
		return;
	v->alloc_dm = alloc_dm;
	v->free_dm = free_dm;
	v->reg_dm_mr = reg_dm_mr;
}
