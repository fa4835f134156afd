/*
 * What the files of librdmacm's half share: channels, ids and events as they are behind
 * the structs that programs know.
 */
#ifndef URNIC_CM_H
#define URNIC_CM_H

#include <netinet/in.h>
#include <sys/socket.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "shim.h"

/* A multicast group of an id, from rdma_join_multicast until rdma_leave_multicast. */
struct cm_group {
	struct cm_group *next;
	struct sockaddr_storage addr;
	void *context;
	union ibv_gid gid;
	uint32_t unacked; /* of its event: under cm_lock */
	bool sends_only;  /* it receives nothing */
	bool attached;    /* the queue pair does */
};

struct cm_channel {
	struct rdma_event_channel channel;
	uint32_t handle;
	bool gone, nonblocking; /* it has been destroyed, and so it was then: under cm_lock */
};

/* An id. The engine knows its address as the cookie. */
struct cm_id {
	struct rdma_cm_id id;
	uint32_t handle;
	uint32_t unacked; /* events that were fetched, and not yet acked: under cm_lock */
	bool sync;        /* calls wait for their event; the channel is the id's own */
	bool active;      /* it has called rdma_connect */
	bool passive;     /* a request has made it */
	bool established; /* that event has been fetched, and that of its end has not */
	uint8_t responder_resources, initiator_depth; /* of the request that made the id */
	uint8_t ack_timeout; /* RDMA_OPTION_ID_ACK_TIMEOUT, or 0 */
	struct cm_group *groups; /* under cm_lock */
	struct ibv_sa_path_rec path; /* what route.path_rec points to, in Ethernet mode */

	/* Of rdma_create_ep for a listener: what rdma_get_request makes queue pairs of. */
	struct ibv_qp_init_attr *init_attr;
};

/* An event that has been fetched. Its private data is in it, and goes with the ack. */
struct cm_event {
	struct rdma_cm_event event;
	struct cm_id *owner;    /* whose unacked counts it: of a request, the listener */
	struct cm_group *group; /* whose unacked counts it too, or NULL */
	uint8_t private_data[UINT8_MAX];
};

static inline struct cm_channel *cm_channel(struct rdma_event_channel *channel)
{
	return urnic_container(channel, struct cm_channel, channel);
}

static inline struct cm_id *cm_id(struct rdma_cm_id *id)
{
	return urnic_container(id, struct cm_id, id);
}

static inline struct cm_event *cm_event(struct rdma_cm_event *event)
{
	return urnic_container(event, struct cm_event, event);
}

/*
 * cm_event.c: cm_lock guards every id's unacked, and is held from when an event is
 * fetched until it is counted: an id cannot go in between. cm_acked is signalled when an
 * unacked becomes 0. Nothing that blocks is done under it but waiting for that.
 */
extern __attribute__((visibility("hidden"))) pthread_mutex_t cm_lock;
extern __attribute__((visibility("hidden"))) pthread_cond_t cm_acked;

void cm_forget_event(struct cm_id *id); /* acks id->event, if there is one */
int cm_complete(struct cm_id *id);      /* of a synchronous id: waits for the call's event; 0 or -1 */

/* cm_id.c: 0 or an errno. */
int cm_id_make(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	       enum ibv_qp_type type, struct cm_id **out); /* has no handle yet */
void cm_id_free(struct cm_id *id);

/* cm_address.c: what an id knows of addresses. */
socklen_t cm_sockaddr_len(const struct sockaddr *addr); /* 0: not of a family that we have */
int cm_refresh(struct cm_id *id);                       /* asks the engine, and binds to the device; 0 or errno */
void cm_routed(struct cm_id *id);                       /* the route has been resolved */
void cm_to_gid(const struct sockaddr *addr, union ibv_gid *gid);

/* cm_device.c: whether devices say to be RNICs; the PD of who gives none, NULL with errno set. */
bool cm_iwarp(void);
struct ibv_pd *cm_default_pd(uint32_t device);

/* qpn.c: the handle of the queue pair of a number, which the program has made itself; 0: there is none. */
uint32_t urnic_qpn_handle(uint32_t qpn);

/* Whether an id is of RDMA_PS_UDP: it has no connections, but finds queue pairs of datagrams. */
static inline bool cm_is_datagram(const struct cm_id *id)
{
	return id->id.qp_type == IBV_QPT_UD;
}

/* cm_group.c: the event of a group that has been fetched, 0 or an errno; under cm_lock. */
int cm_joined(struct cm_id *id, struct cm_group *group, struct ibv_ah_attr *ah);
void cm_forget_groups(struct cm_id *id);

/* datagram.c: how to reach a GID from one of ours. */
void cm_ah_attr(struct cm_id *id, const union ibv_gid *dgid, struct ibv_ah_attr *attr);

#endif
