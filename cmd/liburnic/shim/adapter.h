/*
 * What InfiniBand adapters have and RNICs have not, and software can have: for the transport
 * ethernet without URNIC_STRICT.
 */
#ifndef URNIC_ADAPTER_H
#define URNIC_ADAPTER_H

#include "shim.h"

/* Says whether the device is such an adapter. */
static inline bool urnic_is_adapter(void)
{
	const struct urnic_device *d = urnic_device_info(urnic_ibv_device(0)); /* they are all alike */

	return d && !d->iwarp && !d->strict;
}

/* mr.c: registers memory. */
struct ibv_mr *urnic_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access);

/* A region, and what goes with it. */
struct urnic_region {
	struct ibv_mr mr;
	void *mapping; /* unmapped when the region is gone; NULL: the memory is the program's own */
	size_t mapped;
	struct urnic_dm *dm; /* what it is a region of, or NULL */
	unsigned int access;
};

/* null_mr.c */
void urnic_set_null_ops(struct verbs_context *v);

/* dm.c: memory of the device. */
#define URNIC_MAX_DM ((uint64_t)64 << 20) /* of one device */
void urnic_dm_use(struct urnic_dm *dm, int change);
void urnic_set_dm_ops(struct verbs_context *v);

/* paging.c: paging on demand, and ibv_advise_mr. */
#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
void urnic_paging_caps(struct ibv_odp_caps *caps);
void urnic_set_paging_ops(struct verbs_context *v);

/* clock.c: the device's clock, which counts nanoseconds. */
#define URNIC_CLOCK_KHZ 1000000
uint64_t urnic_clock_ns(void);
uint64_t urnic_clock_wall_ns(void); /* since 1970 */
void urnic_set_clock_ops(struct verbs_context *v);

/* import.c: what a program can import by the descriptor of a context. */
struct urnic_shared {
	enum urnic_kind { URNIC_PD, URNIC_MR } kind;
	uint32_t handle;
	uint64_t family; /* of the context */
	struct ibv_mr mr; /* of a region */
	unsigned int access;
};

/* Makes what can be imported: 0 or an errno. It is changed by unsharing it first. */
int urnic_share(struct urnic_shared what);
void urnic_unshare(enum urnic_kind kind, uint32_t handle);

/* Makes a context one that can be imported: 0 or an errno. Leaving says whether the engine's is of no more use. */
int urnic_found_family(struct urnic_context *ctx);
bool urnic_leave_family(struct urnic_context *ctx);

/* Says whether there is such an object of the family, and what of a region is known. */
bool urnic_find_pd(uint32_t handle, uint64_t family);
bool urnic_find_mr(uint32_t handle, uint64_t family, struct ibv_mr *mr);

/* Says whether there is a region of lkey that holds a range and has rights: 0, or the errno of ibv_advise_mr. */
int urnic_find_region(uint32_t lkey, uint64_t addr, uint64_t length, unsigned int access);

#endif
