/*
 * Thread domains and parent domains. The engine locks what threads share, and shares
 * nothing more for knowing that a program has one thread: both are thin.
 */
#include <stdlib.h>

#include "shim.h"

static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr)
{
	struct urnic_td *td;

	if (!init_attr || init_attr->comp_mask)
		return urnic_null(EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = context;
	return &td->td;
}

static int dealloc_td(struct ibv_td *td)
{
	struct urnic_td *t = urnic_container(td, struct urnic_td, td);

	if (__atomic_load_n(&t->uses, __ATOMIC_ACQUIRE))
		return urnic_fail(EBUSY);
	free(t);
	return 0;
}

/* The program's allocators are never asked: there is no memory that a device shares. */
#define PARENT_DOMAIN_MASK (IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct urnic_pd *pd, *parent;

	if (!attr || !attr->pd || (attr->comp_mask & ~(uint32_t)PARENT_DOMAIN_MASK) || attr->pd->context != context ||
	    (attr->td && attr->td->context != context))
		return urnic_null(EINVAL);
	parent = urnic_container(attr->pd, struct urnic_pd, pd);
	if (parent->parent) /* of a parent domain none is made */
		return urnic_null(EINVAL);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->pd.context = context;
	pd->pd.handle = attr->pd->handle;
	pd->parent = parent;
	urnic_pd_use(attr->pd, 1);
	if (attr->td) {
		pd->td = urnic_container(attr->td, struct urnic_td, td);
		__atomic_add_fetch(&pd->td->uses, 1, __ATOMIC_ACQ_REL);
	}
	return &pd->pd;
}

void urnic_release_parent(struct urnic_pd *pd)
{
	urnic_pd_use(&pd->parent->pd, -1);
	if (pd->td)
		__atomic_sub_fetch(&pd->td->uses, 1, __ATOMIC_ACQ_REL);
}

void urnic_set_td_ops(struct verbs_context *v)
{
	v->alloc_td = alloc_td;
	v->dealloc_td = dealloc_td;
	v->alloc_parent_domain = alloc_parent_domain;
}
