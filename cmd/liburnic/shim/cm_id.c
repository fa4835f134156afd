/* Ids: making, binding, resolving, moving between channels, destroying. */
#include <stdlib.h>

#include "cm.h"

int cm_id_make(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	       enum ibv_qp_type type, struct cm_id **out)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return ENOMEM;
	id->sync = !channel;
	id->id.channel = channel ? channel : rdma_create_event_channel();
	if (!id->id.channel) {
		free(id);
		return errno;
	}
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = type;
	*out = id;
	return 0;
}

void cm_id_free(struct cm_id *id)
{
	if (id->sync)
		rdma_destroy_event_channel(id->id.channel);
	cm_forget_groups(id);
	free(id->init_attr);
	free(id);
}

URNIC_EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
				enum rdma_port_space ps)
{
	const struct urnic_engine *engine = urnic_engine();
	enum ibv_qp_type type = IBV_QPT_RC;
	struct cm_id *made;
	int err;

	if (!engine)
		return -1;
	if (!id)
		return urnic_minus(EINVAL);
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB:
		break;
	case RDMA_PS_UDP:
		if (cm_iwarp())
			return urnic_minus(urnic_unsupported("rdma_create_id: RDMA_PS_UDP is for unreliable datagrams, "
							     "which iWARP does not have: use RDMA_PS_TCP"));
		type = IBV_QPT_UD;
		break;
	case RDMA_PS_IPOIB:
		return urnic_minus(urnic_unsupported("rdma_create_id: RDMA_PS_IPOIB is for IP over InfiniBand: "
						     "use RDMA_PS_UDP or RDMA_PS_TCP"));
	default:
		return urnic_minus(EINVAL);
	}
	err = cm_id_make(channel, context, ps, type, &made);
	if (err)
		return urnic_minus(err);
	err = (type == IBV_QPT_UD ? engine->id_create_datagram : engine->id_create)(
		cm_channel(made->id.channel)->handle, (uintptr_t)made, &made->handle);
	if (err) {
		cm_id_free(made);
		return urnic_minus(err);
	}
	*id = &made->id;
	return 0;
}

URNIC_EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
	const struct urnic_engine *engine = urnic_engine();
	struct cm_id *i;
	int err;

	if (!engine)
		return -1;
	if (!id)
		return urnic_minus(EINVAL);
	i = cm_id(id);
	if (i->sync)
		cm_forget_event(i);
	pthread_mutex_lock(&cm_lock);
	err = engine->id_destroy(i->handle);
	while (!err && i->unacked)
		urnic_cond_wait(&cm_acked, &cm_lock);
	pthread_mutex_unlock(&cm_lock);
	if (err)
		return urnic_minus(err);
	cm_id_free(i);
	return 0;
}

URNIC_EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	const struct urnic_engine *engine = urnic_engine();
	socklen_t len = cm_sockaddr_len(addr);
	int err;

	if (!engine)
		return -1;
	if (!len)
		return urnic_minus(EINVAL);
	err = engine->id_bind(cm_id(id)->handle, addr, len);
	if (!err)
		err = cm_refresh(cm_id(id));
	return err ? urnic_minus(err) : 0;
}

URNIC_EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
				   int timeout_ms)
{
	const struct urnic_engine *engine = urnic_engine();
	socklen_t src_len = cm_sockaddr_len(src_addr), dst_len = cm_sockaddr_len(dst_addr);
	int err;

	if (!engine)
		return -1;
	if (!dst_len || (src_addr && !src_len) || timeout_ms < 0)
		return urnic_minus(EINVAL);
	err = engine->id_resolve_addr(cm_id(id)->handle, src_addr, src_len, dst_addr, dst_len, timeout_ms);
	return err ? urnic_minus(err) : cm_complete(cm_id(id));
}

URNIC_EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	const struct urnic_engine *engine = urnic_engine();
	int err;

	if (!engine)
		return -1;
	if (timeout_ms < 0)
		return urnic_minus(EINVAL);
	err = engine->id_resolve_route(cm_id(id)->handle, timeout_ms);
	return err ? urnic_minus(err) : cm_complete(cm_id(id));
}

URNIC_EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	const struct urnic_engine *engine = urnic_engine();
	int err;

	if (!engine)
		return -1;
	if (!optval || optlen > UINT32_MAX)
		return urnic_minus(EINVAL);
	err = engine->id_set_option(cm_id(id)->handle, level, optname, optval, optlen);
	if (!err && level == RDMA_OPTION_ID && optname == RDMA_OPTION_ID_ACK_TIMEOUT)
		cm_id(id)->ack_timeout = *(const uint8_t *)optval;
	return err ? urnic_minus(err) : 0;
}

URNIC_EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	const struct urnic_engine *engine = urnic_engine();
	struct rdma_event_channel *old = id->channel;
	struct cm_id *i = cm_id(id);
	bool sync = !channel, was_sync = i->sync;
	int err;

	if (!engine)
		return -1;
	if (sync)
		channel = rdma_create_event_channel();
	if (!channel)
		return -1;
	if (was_sync)
		cm_forget_event(i);
	pthread_mutex_lock(&cm_lock);
	err = engine->id_migrate(i->handle, cm_channel(channel)->handle);
	if (!err) {
		id->channel = channel;
		i->sync = sync;
		/* What was fetched from the old channel belongs there: it is acked first. */
		while (i->unacked)
			urnic_cond_wait(&cm_acked, &cm_lock);
	}
	pthread_mutex_unlock(&cm_lock);
	if (err && sync)
		rdma_destroy_event_channel(channel);
	else if (!err && was_sync)
		rdma_destroy_event_channel(old);
	return err ? urnic_minus(err) : 0;
}
