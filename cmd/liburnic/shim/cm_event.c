/*
 * Event channels: fetching, counting and acknowledging events, and what an event changes
 * in its id before the program sees it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm.h"

pthread_mutex_t cm_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t cm_acked = PTHREAD_COND_INITIALIZER;

URNIC_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	const struct urnic_engine *engine = urnic_engine();
	struct cm_channel *channel;
	int32_t fd;
	int err;

	if (!engine)
		return NULL;
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return urnic_null(ENOMEM);
	err = engine->evch_create(&channel->handle, &fd);
	if (err) {
		free(channel);
		return urnic_null(err);
	}
	channel->channel.fd = fd;
	return &channel->channel;
}

/*
 * Frees a channel, but not at once. Programs have a thread for events that nobody ends,
 * and destroy the channel while it waits; rping does. From the kernel it does not come
 * back. Here it may just look at the channel, and must find that there is none.
 */
static void bury(struct cm_channel *channel)
{
	static struct cm_channel *graves[64];
	static unsigned int next;
	struct cm_channel *old;

	pthread_mutex_lock(&cm_lock);
	channel->gone = true;
	old = graves[next];
	graves[next] = channel;
	next = (next + 1) % (sizeof(graves) / sizeof(graves[0]));
	pthread_mutex_unlock(&cm_lock);
	free(old);
}

URNIC_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	const struct urnic_engine *engine = urnic_engine();
	struct cm_channel *c;
	uint32_t handle;

	if (!channel)
		return;
	c = cm_channel(channel);
	handle = c->handle;
	c->nonblocking = fcntl(channel->fd, F_GETFL) & O_NONBLOCK;
	if (!engine)
		close(channel->fd); /* in a child: its copy */
	bury(c);
	if (engine)
		engine->evch_destroy(handle);
}

/* Makes the id of a request: 0, or an errno, and the request is rejected. Under cm_lock. */
static int new_id(const struct urnic_engine *engine, struct cm_id *listener, const struct urnic_cm_event *from,
		  struct cm_id **out)
{
	struct cm_id *id;
	int err;

	/* The id of a synchronous listener has a channel of its own. */
	err = cm_id_make(listener->sync ? NULL : listener->id.channel, listener->id.context, listener->id.ps,
			 listener->id.qp_type, &id);
	if (err) {
		engine->id_destroy(from->new_id);
		return err;
	}
	id->handle = from->new_id;
	id->passive = true;
	id->responder_resources = from->responder_resources > UINT8_MAX ? UINT8_MAX : from->responder_resources;
	id->initiator_depth = from->initiator_depth > UINT8_MAX ? UINT8_MAX : from->initiator_depth;
	if (id->sync)
		err = engine->id_migrate(id->handle, cm_channel(id->id.channel)->handle);
	if (!err)
		err = engine->id_set_cookie(id->handle, (uintptr_t)id);
	if (!err)
		err = cm_refresh(id);
	if (err) {
		engine->id_destroy(id->handle); /* nobody could answer it */
		cm_id_free(id);
		return err;
	}
	cm_routed(id);
	*out = id;
	return 0;
}

/* Copies the private data of an event, and returns how many bytes the ABI can say: MPA carries more. */
static uint8_t copy_private_data(struct cm_event *out, const struct urnic_cm_event *from)
{
	uint32_t len = from->private_data_len;

	if (len > sizeof(out->private_data))
		len = sizeof(out->private_data);
	memcpy(out->private_data, from->private_data, len);
	return (uint8_t)len;
}

static void copy_conn(struct cm_event *out, const struct urnic_cm_event *from)
{
	struct rdma_conn_param *conn = &out->event.param.conn;
	uint8_t len = copy_private_data(out, from);

	conn->private_data = len ? out->private_data : NULL;
	conn->private_data_len = len;
	conn->responder_resources =
		from->responder_resources > UINT8_MAX ? UINT8_MAX : from->responder_resources;
	conn->initiator_depth = from->initiator_depth > UINT8_MAX ? UINT8_MAX : from->initiator_depth;
	conn->qp_num = from->qp_num;
}

/* How to reach the queue pair that an event names. */
static int copy_ud(struct cm_event *out, struct cm_id *id, const struct urnic_cm_event *from)
{
	struct rdma_ud_param *ud = &out->event.param.ud;
	uint8_t len = copy_private_data(out, from);

	ud->private_data = len ? out->private_data : NULL;
	ud->private_data_len = len;
	ud->qp_num = from->qp_num;
	ud->qkey = from->qkey;
	if (from->type == RDMA_CM_EVENT_MULTICAST_JOIN) {
		ud->private_data = out->group->context;
		return cm_joined(id, out->group, &ud->ah_attr);
	}
	cm_ah_attr(id, &id->id.route.addr.addr.ibaddr.dgid, &ud->ah_attr);
	return 0;
}

/*
 * Carries an event out on its id, and writes what the program gets: 0, or an errno, and
 * there is nothing for the program. Under cm_lock.
 */
static int deliver(const struct urnic_engine *engine, const struct urnic_cm_event *from, struct cm_event *out)
{
	struct cm_id *id = (struct cm_id *)(uintptr_t)from->cookie, *made;
	int err;

	if (!id)
		return ENOENT; /* of a request that nobody has fetched */
	out->event.id = &id->id;
	out->event.event = (enum rdma_cm_event_type)from->type;
	out->event.status = from->status;
	switch (out->event.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = cm_refresh(id);
		if (err) {
			out->event.event = RDMA_CM_EVENT_ADDR_ERROR;
			out->event.status = -err;
		}
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		cm_routed(id);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		err = new_id(engine, id, from, &made);
		if (err)
			return err;
		out->event.id = &made->id;
		out->event.listen_id = &id->id;
		if (cm_is_datagram(made))
			copy_ud(out, made, from);
		else
			copy_conn(out, from);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		out->group = (struct cm_group *)(uintptr_t)from->group;
		err = copy_ud(out, id, from);
		if (err) {
			out->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
			out->event.status = -err;
		}
		out->group->unacked++;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (cm_is_datagram(id)) {
			copy_ud(out, id, from);
			break;
		}
		id->established = true;
		cm_refresh(id);
		/*
		 * Who manages its queue pair itself gets the peer's response first, and
		 * calls rdma_establish: on InfiniBand and RoCE. On iWARP the RNIC does it.
		 */
		if (id->active && !id->id.qp && !cm_iwarp())
			out->event.event = RDMA_CM_EVENT_CONNECT_RESPONSE;
		copy_conn(out, from);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		id->established = false;
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		if (cm_is_datagram(id))
			copy_ud(out, id, from);
		break;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		copy_conn(out, from);
		break;
	default:
		break;
	}
	out->owner = id;
	id->unacked++;
	return 0;
}

/* The channel's next event, if it has one: 0 or an errno. */
static int next(const struct urnic_engine *engine, struct cm_channel *channel, struct cm_event *out)
{
	struct urnic_cm_event from;
	int err;

	do {
		pthread_mutex_lock(&cm_lock);
		err = channel->gone ? EBADF : engine->evch_next(channel->handle, &from);
		if (err) {
			pthread_mutex_unlock(&cm_lock);
			return err;
		}
		err = deliver(engine, &from, out);
		pthread_mutex_unlock(&cm_lock);
	} while (err);
	return 0;
}

/* Whether a wait has failed because another thread has destroyed the channel. Leaves errno alone. */
static bool is_gone(struct cm_channel *channel)
{
	bool gone;

	pthread_mutex_lock(&cm_lock);
	gone = channel->gone;
	pthread_mutex_unlock(&cm_lock);
	return gone;
}

/* As one that waits for a channel that has been destroyed does in the kernel. It can be cancelled. */
__attribute__((noreturn)) static void pause_for_ever(void)
{
	for (;;)
		pause();
}

URNIC_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	const struct urnic_engine *engine = urnic_engine();
	struct cm_event *out;
	int err;

	if (!engine)
		return -1;
	if (!channel || !event)
		return urnic_minus(EINVAL);
	for (;;) {
		/* Before the event is fetched: it cannot be put back. */
		out = calloc(1, sizeof(*out));
		if (!out)
			return urnic_minus(ENOMEM);
		err = next(engine, cm_channel(channel), out);
		if (!err)
			break;
		free(out);
		if (err == EBADF && !cm_channel(channel)->nonblocking)
			pause_for_ever();
		if (err != EAGAIN)
			return urnic_minus(err);
		if (urnic_wait(channel->fd) && !is_gone(cm_channel(channel)))
			return -1;
	}
	*event = &out->event;
	return 0;
}

URNIC_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct cm_event *e;

	if (!event)
		return urnic_minus(EINVAL);
	e = cm_event(event);
	pthread_mutex_lock(&cm_lock);
	if (e->group)
		e->group->unacked--;
	if (--e->owner->unacked == 0 || e->group)
		pthread_cond_broadcast(&cm_acked);
	pthread_mutex_unlock(&cm_lock);
	free(e);
	return 0;
}

void cm_forget_event(struct cm_id *id)
{
	if (!id->id.event)
		return;
	rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
}

int cm_complete(struct cm_id *id)
{
	struct rdma_cm_event *event;

	if (!id->sync)
		return 0;
	cm_forget_event(id);
	if (rdma_get_cm_event(id->id.channel, &event))
		return -1;
	id->id.event = event;
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return urnic_minus(ECONNREFUSED);
	return urnic_minus(event->status < 0 ? -event->status : event->status);
}

#define EVENTS(X)                                                                                                      \
	X(ADDR_RESOLVED)                                                                                               \
	X(ADDR_ERROR)                                                                                                  \
	X(ROUTE_RESOLVED)                                                                                              \
	X(ROUTE_ERROR)                                                                                                 \
	X(CONNECT_REQUEST)                                                                                             \
	X(CONNECT_RESPONSE)                                                                                            \
	X(CONNECT_ERROR)                                                                                               \
	X(UNREACHABLE)                                                                                                 \
	X(REJECTED)                                                                                                    \
	X(ESTABLISHED)                                                                                                 \
	X(DISCONNECTED)                                                                                                \
	X(DEVICE_REMOVAL)                                                                                              \
	X(MULTICAST_JOIN)                                                                                              \
	X(MULTICAST_ERROR)                                                                                             \
	X(ADDR_CHANGE)                                                                                                 \
	X(TIMEWAIT_EXIT)

URNIC_EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
	switch (event) {
#define NAME(name)                                                                                                     \
	case RDMA_CM_EVENT_##name:                                                                                     \
		return "RDMA_CM_EVENT_" #name;
		EVENTS(NAME)
#undef NAME
	default:
		return "UNKNOWN EVENT";
	}
}
