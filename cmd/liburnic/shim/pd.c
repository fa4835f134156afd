/*
 * Protection domains.
 */
#include <stdlib.h>

#include "adapter.h"

/* The engine counts as well, but does not know of parent domains. */
void urnic_pd_use(struct ibv_pd *pd, int change)
{
	struct urnic_pd *p = urnic_container(pd, struct urnic_pd, pd);

	__atomic_add_fetch(&p->uses, (uint32_t)change, __ATOMIC_ACQ_REL);
}

URNIC_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	const struct urnic_engine *e;
	struct urnic_pd *pd;
	int err;

	if (!context)
		return urnic_null(EINVAL);
	e = urnic_engine();
	if (!e)
		return NULL;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->pd.context = context;
	err = e->pd_alloc(urnic_context(context)->handle, &pd->pd.handle);
	if (!err && urnic_is_adapter()) {
		err = urnic_share((struct urnic_shared){
			.kind = URNIC_PD, .handle = pd->pd.handle, .family = urnic_context(context)->family});
		if (err)
			(void)e->pd_free(pd->pd.handle); /* nobody has seen it */
	}
	if (err) {
		free(pd);
		return urnic_null(err);
	}
	return &pd->pd;
}

/* A PD that another context of the process has made. */
URNIC_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct urnic_pd *pd;

	if (!context)
		return urnic_null(EINVAL);
	if (!urnic_is_adapter())
		return urnic_null(urnic_unsupported("ibv_import_pd: there is no device of the kernel to share"));
	if (!urnic_find_pd(pd_handle, urnic_context(context)->family))
		return urnic_null(ENOENT);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->pd.context = context;
	pd->pd.handle = pd_handle;
	return &pd->pd;
}

/* Frees what is known of the PD here, whether it was imported or has been by others: the PD stays. */
URNIC_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	if (pd)
		free(urnic_container(pd, struct urnic_pd, pd));
}

/* Also frees a parent domain: what it was made of stays. */
URNIC_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	const struct urnic_engine *e;
	struct urnic_pd *p;
	int err;

	if (!pd)
		return urnic_fail(EINVAL);
	p = urnic_container(pd, struct urnic_pd, pd);
	if (__atomic_load_n(&p->uses, __ATOMIC_ACQUIRE))
		return urnic_fail(EBUSY);
	if (p->parent) {
		urnic_release_parent(p);
		free(p);
		return 0;
	}
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->pd_free(pd->handle);
	if (err)
		return urnic_fail(err);
	urnic_unshare(URNIC_PD, pd->handle);
	free(p);
	return 0;
}
