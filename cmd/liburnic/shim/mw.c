/*
 * Memory windows. Those of type 1 are bound by bind_mw, those of type 2 by a work request.
 */
#include <stdlib.h>

#include "shim.h"

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	const struct urnic_engine *e = urnic_engine();
	struct ibv_mw *mw;
	int err;

	if (!e)
		return NULL;
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return urnic_null(EINVAL);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	err = e->mw_alloc(pd->handle, type, &mw->handle, &mw->rkey);
	if (err) {
		free(mw);
		return urnic_null(err);
	}
	urnic_pd_use(pd, 1);
	return mw;
}

/* verbs.h has checked that the window is of type 1, and that all is of one PD. */
static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	const struct urnic_engine *e = urnic_engine();
	const struct ibv_mw_bind_info *info = &mw_bind->bind_info;
	struct urnic_bind bind = {
		.wr_id = mw_bind->wr_id,
		.addr = info->addr,
		.length = info->length,
		.mw = mw->handle,
		.mr = info->mr ? info->mr->handle : 0,
		.access = info->mw_access_flags,
		.send_flags = mw_bind->send_flags,
	};
	int err;

	if (!e)
		return errno;
	err = e->mw_bind(qp->handle, &bind);
	if (err)
		return urnic_fail(err);
	mw->rkey = bind.rkey;
	return 0;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	const struct urnic_engine *e = urnic_engine();
	int err;

	if (!e)
		return errno;
	err = e->mw_free(mw->handle);
	if (err)
		return urnic_fail(err);
	urnic_pd_use(mw->pd, -1);
	free(mw);
	return 0;
}

void urnic_set_mw_ops(struct verbs_context *v)
{
	v->context.ops.alloc_mw = alloc_mw;
	v->context.ops.bind_mw = bind_mw;
	v->context.ops.dealloc_mw = dealloc_mw;
}
