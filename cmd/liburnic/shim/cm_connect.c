/* Connections: listening, asking, answering, ending; and the calls of who manages its queue pair itself. */
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "cm.h"

static uint8_t most_reads(void)
{
	const struct urnic_device *device = urnic_device_info(urnic_ibv_device(0));

	return device && device->max_rd_atomic < UINT8_MAX ? device->max_rd_atomic : UINT8_MAX - 1;
}

/* A limit on Reads that the program gives: its own, or the usual if it says that it has none. */
static int limit(const uint8_t *wanted, uint8_t usual, uint32_t *out)
{
	_Static_assert(RDMA_MAX_RESP_RES == RDMA_MAX_INIT_DEPTH, "both stand for the most that there is");
	*out = wanted && *wanted != RDMA_MAX_RESP_RES ? *wanted : usual;
	return *out > most_reads() ? EINVAL : 0;
}

/* Takes the program's private data, if it gives any. Reports whether they are there. */
static bool private_data(const struct rdma_conn_param *from, const void **data, uint32_t *len)
{
	if (!from || !from->private_data_len)
		return true;
	*data = from->private_data;
	*len = from->private_data_len;
	return from->private_data != NULL;
}

/* What the engine gets of the program's parameters, which may be NULL: 0 or an errno. */
static int conn_param(struct cm_id *id, const struct rdma_conn_param *from, uint8_t responder_resources,
		      uint8_t initiator_depth, struct urnic_conn_param *out)
{
	memset(out, 0, sizeof(*out));
	if (limit(from ? &from->responder_resources : NULL, responder_resources, &out->responder_resources) ||
	    limit(from ? &from->initiator_depth : NULL, initiator_depth, &out->initiator_depth))
		return EINVAL;
	out->rnr_retry = from ? from->rnr_retry_count : 7;
	if (!private_data(from, &out->private_data, &out->private_data_len))
		return EINVAL;
	if (id->id.qp)
		out->qp = id->id.qp->handle;
	else if (from)
		out->qp = urnic_qpn_handle(from->qp_num);
	return out->qp ? 0 : EINVAL;
}

/* The same of an id of RDMA_PS_UDP. */
static int service_param(struct cm_id *id, const struct rdma_conn_param *from, struct urnic_service_param *out)
{
	memset(out, 0, sizeof(*out));
	if (!private_data(from, &out->private_data, &out->private_data_len))
		return EINVAL;
	if (id->id.qp)
		out->qp_num = id->id.qp->qp_num;
	else if (from)
		out->qp_num = from->qp_num;
	return 0;
}

URNIC_EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	const struct urnic_engine *engine = urnic_engine();
	int err;

	if (!engine)
		return -1;
	err = engine->id_listen(cm_id(id)->handle, backlog < 0 ? 0 : backlog);
	if (!err)
		err = cm_refresh(cm_id(id));
	return err ? urnic_minus(err) : 0;
}

URNIC_EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	const struct urnic_engine *engine = urnic_engine();
	struct cm_id *i = cm_id(id);
	struct urnic_service_param service;
	struct urnic_conn_param p;
	int err;

	if (!engine)
		return -1;
	if (cm_is_datagram(i))
		err = service_param(i, param, &service);
	else
		err = conn_param(i, param, most_reads(), most_reads(), &p);
	if (err)
		return urnic_minus(err);
	i->active = true;
	err = cm_is_datagram(i) ? engine->id_resolve_service(i->handle, &service) : engine->id_connect(i->handle, &p);
	return err ? urnic_minus(err) : cm_complete(i);
}

static uint8_t lesser(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

URNIC_EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	const struct urnic_engine *engine = urnic_engine();
	struct cm_id *i = cm_id(id);
	struct urnic_service_param service;
	struct urnic_conn_param p;
	int err;

	if (!engine)
		return -1;
	if (cm_is_datagram(i)) { /* there is no connection, and no event of one */
		err = service_param(i, param, &service);
		if (!err)
			err = engine->id_serve(i->handle, &service);
		return err ? urnic_minus(err) : 0;
	}
	err = conn_param(i, param, lesser(i->responder_resources, most_reads()),
			 lesser(i->initiator_depth, most_reads()), &p);
	if (!err)
		err = engine->id_accept(i->handle, &p);
	return err ? urnic_minus(err) : cm_complete(i);
}

URNIC_EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	const struct urnic_engine *engine = urnic_engine();
	int err;

	if (!engine)
		return -1;
	if (private_data_len && !private_data)
		return urnic_minus(EINVAL);
	err = engine->id_reject(cm_id(id)->handle, private_data, private_data_len);
	return err ? urnic_minus(err) : 0;
}

/* MPA's Reply has one bit for a rejection, and no reason. */
URNIC_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return rdma_reject(id, private_data, private_data_len);
}

URNIC_EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	const struct urnic_engine *engine = urnic_engine();
	struct cm_id *i = cm_id(id);
	int err;

	if (!engine)
		return -1;
	if (cm_is_datagram(i))
		return urnic_minus(EINVAL); /* there is no connection */
	if (i->sync && !i->established)
		return urnic_minus(EINVAL); /* the event that it would wait for has been, or does not come */
	err = engine->id_disconnect(i->handle);
	return err ? urnic_minus(err) : cm_complete(i);
}

/* MPA's Reply is all that there is: a connection whose response has come is established. */
URNIC_EXPORT int rdma_establish(struct rdma_cm_id *id)
{
	if (id->qp || !cm_id(id)->active || !cm_id(id)->established)
		return urnic_minus(EINVAL);
	return 0;
}

/* iWARP needs no help to find that a connection is established: Linux ignores this too. */
URNIC_EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)event;
	return id && (cm_id(id)->active || cm_id(id)->passive) ? 0 : urnic_minus(EINVAL);
}

URNIC_EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct cm_id *l = cm_id(listen);
	struct ibv_qp_init_attr attr;
	struct rdma_cm_event *event;
	int err;

	if (!l->sync || !id)
		return urnic_minus(EINVAL);
	cm_forget_event(l);
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	if (event->status || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		err = event->status < 0 ? -event->status : EINVAL;
		rdma_ack_cm_event(event);
		return urnic_minus(err);
	}
	if (l->init_attr) {
		attr = *l->init_attr;
		if (rdma_create_qp(event->id, listen->pd, &attr)) {
			err = errno;
			rdma_destroy_id(event->id); /* which rejects the request */
			rdma_ack_cm_event(event);
			return urnic_minus(err);
		}
	}
	*id = event->id;
	(*id)->event = event;
	return 0;
}

/*
 * The attributes for the program's own ibv_modify_qp, as Linux gives them for iWARP: the
 * connection brings all others.
 */
URNIC_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	if (!id || !qp_attr || !qp_attr_mask)
		return urnic_minus(EINVAL);
	qp_attr->port_num = id->port_num ? id->port_num : 1;
	if (id->qp_type == IBV_QPT_UD) {
		qp_attr->pkey_index = 0;
		qp_attr->qkey = RDMA_UDP_QKEY;
		qp_attr->sq_psn = 0;
		*qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
		return 0;
	}
	switch (qp_attr->qp_state) {
	case IBV_QPS_INIT:
	case IBV_QPS_RTR:
		qp_attr->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		*qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
		break;
	case IBV_QPS_RTS:
		*qp_attr_mask = IBV_QP_STATE;
		if (cm_id(id)->ack_timeout && urnic_is_adapter()) {
			qp_attr->timeout = cm_id(id)->ack_timeout;
			*qp_attr_mask |= IBV_QP_TIMEOUT;
		}
		break;
	default:
		return urnic_minus(EINVAL);
	}
	return 0;
}

/* MPA does not carry enhanced connection establishment: none can be offered, and no peer offers any. */
URNIC_EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return urnic_minus(EINVAL);
	return urnic_minus(EOPNOTSUPP);
}

URNIC_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return urnic_minus(EINVAL);
	memset(ece, 0, sizeof(*ece)); /* vendor 0: none */
	return 0;
}
