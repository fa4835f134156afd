/* Multicast groups of ids of RDMA_PS_UDP. */
#include <stdlib.h>
#include <string.h>

#include "cm.h"

int cm_joined(struct cm_id *id, struct cm_group *group, struct ibv_ah_attr *ah)
{
	int err;

	cm_ah_attr(id, &group->gid, ah);
	if (!id->id.qp || group->sends_only || group->attached)
		return 0;
	err = ibv_attach_mcast(id->id.qp, &group->gid, 0);
	group->attached = !err;
	return err;
}

void cm_forget_groups(struct cm_id *id)
{
	struct cm_group *next;

	for (; id->groups; id->groups = next) {
		next = id->groups->next;
		free(id->groups);
	}
}

static int join(struct rdma_cm_id *id, const struct sockaddr *addr, bool sends_only, void *context)
{
	const struct urnic_engine *engine = urnic_engine();
	socklen_t len = cm_sockaddr_len(addr);
	struct cm_group *group;
	struct cm_id *i;
	int err;

	if (!engine)
		return -1;
	if (!id || !len)
		return urnic_minus(EINVAL);
	if (cm_iwarp())
		return urnic_minus(urnic_unsupported("rdma_join_multicast: iWARP has no datagrams, and so no multicast"));
	i = cm_id(id);
	group = calloc(1, sizeof(*group));
	if (!group)
		return urnic_minus(ENOMEM);
	memcpy(&group->addr, addr, len);
	cm_to_gid(addr, &group->gid);
	group->context = context;
	group->sends_only = sends_only;
	pthread_mutex_lock(&cm_lock);
	err = engine->id_join(i->handle, addr, len, (uintptr_t)group);
	if (!err) {
		group->next = i->groups;
		i->groups = group;
	}
	pthread_mutex_unlock(&cm_lock);
	if (!err)
		return cm_complete(i);
	free(group);
	return urnic_minus(err);
}

URNIC_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return join(id, addr, false, context);
}

URNIC_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	const uint32_t both = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	if (!attr || attr->comp_mask != both || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return urnic_minus(EINVAL);
	return join(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
}

URNIC_EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	const struct urnic_engine *engine = urnic_engine();
	socklen_t len = cm_sockaddr_len(addr);
	struct cm_group **at, *group;
	int err = 0;

	if (!engine)
		return -1;
	if (!id || !len)
		return urnic_minus(EINVAL);
	pthread_mutex_lock(&cm_lock);
	for (at = &cm_id(id)->groups; *at && memcmp(&(*at)->addr, addr, len) != 0; at = &(*at)->next)
		;
	group = *at;
	if (!group) {
		pthread_mutex_unlock(&cm_lock);
		return urnic_minus(EADDRNOTAVAIL);
	}
	*at = group->next;
	engine->id_leave(cm_id(id)->handle, (uintptr_t)group);
	if (id->qp && group->attached)
		err = ibv_detach_mcast(id->qp, &group->gid, 0);
	while (group->unacked)
		urnic_cond_wait(&cm_acked, &cm_lock);
	pthread_mutex_unlock(&cm_lock);
	free(group);
	return err ? urnic_minus(err) : 0;
}
