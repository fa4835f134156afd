/*
 * Paging on demand. The RNIC reads and writes memory as the process does, so that the kernel
 * brings pages in when they are used: a region of that kind only leaves out that they are
 * brought in when it is registered.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "adapter.h"

void urnic_paging_caps(struct ibv_odp_caps *caps)
{
	caps->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
					       IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
}

/* Returns 0, or EFAULT if a part of the range is not mapped. */
static int prefetch(uint64_t addr, uint64_t length, int advice)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = addr & ~(page - 1);
	uint64_t len = (addr + length - start + page - 1) & ~(page - 1);

	if (!length || !madvise((void *)(uintptr_t)start, len, advice))
		return 0;
	if (errno == EINVAL) /* a kernel that does not know the advice: pages come when they are used */
		return madvise((void *)(uintptr_t)start, len, MADV_WILLNEED) ? EFAULT : 0;
	return EFAULT;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list,
		     uint32_t num_sges)
{
	unsigned int access = 0;
	int how = MADV_POPULATE_READ, err;

	(void)pd;
	switch (advice) {
	case IBV_ADVISE_MR_ADVICE_PREFETCH:
		break;
	case IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		how = MADV_POPULATE_WRITE;
		access = IBV_ACCESS_LOCAL_WRITE;
		break;
	case IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		how = MADV_WILLNEED;
		break;
	default:
		return ENOTSUP;
	}
	if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !sg_list || !num_sges)
		return EINVAL;
	for (uint32_t i = 0; i < num_sges; i++) {
		err = urnic_find_region(sg_list[i].lkey, sg_list[i].addr, sg_list[i].length, access);
		if (!err)
			err = prefetch(sg_list[i].addr, sg_list[i].length, how);
		if (err)
			return err;
	}
	return 0;
}

void urnic_set_paging_ops(struct verbs_context *v)
{
	if (urnic_is_adapter())
		v->advise_mr = advise_mr;
}
