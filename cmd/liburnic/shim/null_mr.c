/* A region that reads as zeros, and drops what is written, at any address. It has an lkey only. */
#include <stdlib.h>

#include "adapter.h"

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	const struct urnic_engine *e;
	struct urnic_mr made = {0};
	struct urnic_region *r;
	int err;

	if (!pd)
		return urnic_null(EINVAL);
	e = urnic_engine();
	if (!e)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	err = e->null_mr_alloc(pd->handle, &made);
	if (err) {
		free(r);
		return urnic_null(err);
	}
	r->mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.length = SIZE_MAX,
		.handle = made.mr,
		.lkey = made.stag,
	};
	r->access = IBV_ACCESS_LOCAL_WRITE;
	urnic_pd_use(pd, 1);
	return &r->mr;
}

void urnic_set_null_ops(struct verbs_context *v)
{
	if (urnic_is_adapter())
		v->alloc_null_mr = alloc_null_mr;
}
