/*
 * What the files of liburnic.so share: the objects that programs hold, and what each
 * file offers to the others.
 *
 * Every object begins with rdma-core's struct, which is all that a program knows of it.
 * The member handle of that struct is the engine's handle, where there is such a member
 * (PD, MR, MW, CQ, SRQ, QP). MRs and MWs are rdma-core's structs alone.
 *
 * Functions are written under their plain names and marked URNIC_EXPORT; liburnic.map
 * gives each its version. What is not marked is hidden (-fvisibility=hidden).
 */
#ifndef URNIC_SHIM_H
#define URNIC_SHIM_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "../engine.h"

/* verbs.h hides these three functions behind macros of the same name. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define URNIC_EXPORT __attribute__((visibility("default")))

/* The object of type whose member ptr points to. */
#define urnic_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/*
 * load.c: urnic_engine loads and opens the engine if need be. It returns NULL with errno
 * set if it cannot be loaded, or in a child that was forked after it was.
 *
 * urnic_live is the same for the data path. A thread finds the table in a variable of its
 * own, after its first call, which gives the thread what Go code and signals want of it.
 */
const struct urnic_engine *urnic_engine(void);
extern __attribute__((visibility("hidden"), tls_model("initial-exec"))) __thread const struct urnic_engine *urnic_here;
#define urnic_live (urnic_here ? urnic_here : urnic_engine())

/* load.c: how many engines lie behind this process's, in those that it was forked from. An engine has at most as many. */
#define URNIC_MAX_GENERATION 64
uint32_t urnic_generation(void);

/* spin.c: notes that this thread has polled a CQ and found n completions. It may wait there. */
void urnic_polled(const struct urnic_engine *e, uint32_t cq, int n);

/* spin.c: counts this thread's polls anew. Who posts does not only poll. */
void urnic_spin_anew(void);

/* Sets errno and returns err, for calls that return an errno. */
static inline int urnic_fail(int err)
{
	errno = err;
	return err;
}

/* Sets errno and returns -1, for calls that return so. */
static inline int urnic_minus(int err)
{
	errno = err;
	return -1;
}

/* Sets errno and returns NULL, for calls that make an object. */
static inline void *urnic_null(int err)
{
	errno = err;
	return NULL;
}

/*
 * load.c: tells once, at every level of URNIC_LOG, that the program asks for what the device has
 * not. Returns EOPNOTSUPP.
 */
int urnic_unsupported(const char *what);

/*
 * async.c: waits until fd is readable. 0, or -1 with errno: EAGAIN if the program has set
 * O_NONBLOCK on it, EINTR if a handler without SA_RESTART ran. It is a cancellation point:
 * hold no lock.
 */
int urnic_wait(int fd);

/* async.c: whether a call that poll(2) waits for continues after a signal, as read(2) would. */
bool urnic_restarts(void);

/*
 * async.c: pthread_cond_wait, which is a cancellation point. It unlocks the mutex if the
 * thread is cancelled.
 */
void urnic_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

/* async.c: waits until the program has acked the async events that it has fetched of an object which the
 * engine has destroyed. */
void urnic_await_cq_acks(struct ibv_cq *cq);
void urnic_await_qp_acks(struct ibv_qp *qp);
void urnic_await_srq_acks(struct ibv_srq *srq);

/* view.c: whether the program sees the device in sysfs. */
bool urnic_view(void);

/* device.c: the devices, the same for ever: how many there are, 0 with errno set; the one at an index; the index
 * of one; what the engine says of it. NULL with errno set: it is none. */
uint32_t urnic_devices(void);
struct ibv_device *urnic_ibv_device(uint32_t index);
uint32_t urnic_device_index(const struct ibv_device *device);
const struct urnic_device *urnic_device_info(const struct ibv_device *device);

/* device.c: whether a device has a port of that number. */
bool urnic_has_port(const struct ibv_context *context, uint32_t port_num);

/* context.c: the context of a device that all rdma_cm ids share, never closed. NULL with errno set. */
struct ibv_context *urnic_cm_context(uint32_t device);

/* gid.c: the device and port that have an address. 0, or ENODEV if none has. */
int urnic_find_gid(const union ibv_gid *gid, uint32_t *device, uint8_t *port);

/* A context. Its verbs_context comes last, for what precedes that grows downwards. */
struct urnic_context {
	uint32_t handle;
	uint64_t family; /* import.c: contexts that were imported from one are of its family; 0: none can be */
	bool imported;
	pthread_mutex_t async; /* held while an async event is fetched and counted */
	struct verbs_context verbs;
};

static inline struct urnic_context *urnic_context(struct ibv_context *context)
{
	return urnic_container(context, struct urnic_context, verbs.context);
}

/* context.c: fills in what programs see of a context. */
void urnic_context_fill(struct urnic_context *ctx, struct ibv_device *device, int async_fd);

/* A PD, or a parent domain: a PD that has the handle of another. */
struct urnic_pd {
	struct ibv_pd pd;
	struct urnic_pd *parent; /* NULL: it is no parent domain */
	struct urnic_td *td;
	uint32_t uses; /* objects of it, and parent domains made of it; atomic */
};

struct urnic_td {
	struct ibv_td td;
	uint32_t uses; /* parent domains that hold it; atomic */
};

struct urnic_channel {
	struct ibv_comp_channel channel;
	uint32_t handle;
	pthread_mutex_t lock; /* held while an event is fetched and counted */
};

/* A CQ. Events that programs have fetched are counted here, those that they have acked in ibv_cq. */
struct urnic_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex; /* begins as ibv_cq does */
	};
	uint32_t comp_events;  /* under the lock of the channel */
	uint32_t async_events; /* under async of the context */

	/* Of ibv_create_cq_ex. */
	bool single_threaded;
	pthread_mutex_t poll; /* from start_poll to end_poll */
	struct ibv_wc wc;     /* what the read functions read */
	bool timed;
	uint64_t ticks, wallclock; /* when wc was taken, if timed */
};

struct urnic_srq {
	struct ibv_srq srq;
	uint32_t number;
	uint32_t async_events; /* as a CQ's */
};

struct urnic_builder; /* qp_ex.c: work requests between wr_start and wr_complete */

struct urnic_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex; /* begins with ibv_qp */
	};
	struct ibv_qp_cap cap;
	int sq_sig_all;
	uint32_t async_events; /* as a CQ's */
	struct urnic_builder *builder; /* NULL: it has no ibv_wr_* */
};

/* What the context's tables of functions are filled with: each file sets its own. */
void urnic_set_mw_ops(struct verbs_context *v);
void urnic_set_td_ops(struct verbs_context *v);
void urnic_set_cq_ops(struct verbs_context *v);
void urnic_set_srq_ops(struct verbs_context *v);
void urnic_set_qp_ops(struct verbs_context *v);
void urnic_set_post_ops(struct verbs_context *v);

/* port.c: ibv_query_port for a program that knows len bytes of the attributes. */
int urnic_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t len);

/* device.c: ibv_query_device_ex. */
int urnic_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t len);

/* qpn.c: queue pairs by number, for rdma_connect. urnic_qpn_add returns 0 or an errno. */
int urnic_qpn_add(struct ibv_qp *qp);
void urnic_qpn_remove(struct ibv_qp *qp);

/* pd.c: counts an object that is of pd, or is so no longer. */
void urnic_pd_use(struct ibv_pd *pd, int change);

/* td.c: lets go of what a parent domain was made of. */
void urnic_release_parent(struct urnic_pd *pd);

/* channel.c: counts a CQ that uses channel (which may be NULL) or no longer does; waits until the program has
 * acked the completion events that it has fetched of a CQ which the engine has destroyed. */
void urnic_channel_use(struct ibv_comp_channel *channel, int change);
void urnic_await_comp_acks(struct ibv_cq *cq);

/* cq_ex.c: makes cq one that start_poll and its like poll; timed: completions have a time. */
void urnic_cq_extend(struct urnic_cq *cq, bool single_threaded, bool timed);

/* qp_ex.c: gives qp the functions of ibv_wr_*: 0 or an errno. And takes them. */
int urnic_qp_extend(struct urnic_qp *qp, uint64_t send_ops);
void urnic_qp_unextend(struct urnic_qp *qp);

#endif
