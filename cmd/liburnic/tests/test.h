/*
 * What the test programs share: checks, and two connected queue pairs in one process.
 *
 * A program ends with status 1 and one line at the first check that fails. It says
 * nothing if all hold.
 */
#ifndef TEST_H
#define TEST_H

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

/* How long anything may take that comes for certain. Nothing here takes a hundredth of it, on an idle machine. */
#define PATIENCE_MS 120000

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* fail says where and what, and ends the program. */
__attribute__((noreturn, format(printf, 3, 4))) void fail(const char *file, int line, const char *format, ...);

#define FAIL(...) fail(__FILE__, __LINE__, __VA_ARGS__)

/* CHECK wants something to be true. */
#define CHECK(what)                                                                                                    \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		if (!(what))                                                                                           \
			FAIL("not so: %s (errno %d, %s)", #what, errno, strerror(errno));                              \
	} while (0)

/* EQ wants a number. */
#define EQ(got, want)                                                                                                  \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		long long got_ = (long long)(got), want_ = (long long)(want);                                          \
		if (got_ != want_)                                                                                     \
			FAIL("%s is %lld, not %lld = %s (errno %d, %s)", #got, got_, want_, #want, errno,              \
			     strerror(errno));                                                                         \
	} while (0)

/* OK wants 0: of what returns 0 or an errno, or 0 or -1 with errno. */
#define OK(call) EQ(call, 0)

/* FAILS wants -1 and an errno, as rdma_cm's calls give. */
#define FAILS(call, want)                                                                                              \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		int got_ = (call), error_ = errno;                                                                     \
		if (got_ != -1 || error_ != (want))                                                                    \
			FAIL("%s gives %d with errno %d (%s), not -1 with %d (%s)", #call, got_, error_,               \
			     strerror(error_), want, strerror(want));                                                  \
	} while (0)

/* NONE wants NULL and an errno. */
#define NONE(call, want)                                                                                               \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		const void *got_ = (call);                                                                             \
		int error_ = errno;                                                                                    \
		if (got_ != NULL || error_ != (want))                                                                  \
			FAIL("%s gives %p with errno %d (%s), not NULL with %d (%s)", #call, got_, error_,             \
			     strerror(error_), want, strerror(want));                                                  \
	} while (0)

/* How two ends are connected. */
enum how {
	BY_CM, /* by rdma_cm over 127.0.0.1 */
	BY_GID, /* by ibv_modify_qp, two contexts */
};

/* What is wanted of a pair; 0 stands for what is common. */
struct plan {
	enum how how;
	struct ibv_qp_cap cap; /* 16 requests of 4 elements each, 64 bytes inline */
	int cqe; /* 64 */
	bool channels; /* each end has a completion channel, for both queues */
	bool srq; /* each end has a shared receive queue */
	bool sig_all;
	uint64_t wc_flags; /* not 0: the queues are of ibv_create_cq_ex */
	uint64_t send_ops; /* not 0: the queue pair is of ibv_create_qp_ex */
	int rd_atomic; /* 4 each way; -1: none */
	int access; /* of queue pairs by GID: all remote rights; -1: none */
};

#define MEMORY 65536

/* What pair_open sets: 7 and 12 (0.64 ms), unless a test has set others. */
extern uint8_t rnr_retry, min_rnr_timer;

/* One end of a pair. Its memory is registered with all rights. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct rdma_event_channel *events; /* by rdma_cm */
	struct rdma_cm_id *id;
};

struct pair {
	struct end a, b; /* a has dialled */
	struct rdma_cm_id *listener;
};

#define ALL_ACCESS                                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

void pair_open(struct pair *p, const struct plan *plan);
void pair_close(struct pair *p);

/* The parts of pair_open, for whoever wants something between. */
void pair_unconnected(struct pair *p, const struct plan *plan); /* by GID: in the state INIT */
void qp_to_init(struct ibv_qp *qp, int access);
void qp_to_rtr(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t qpn, int rd_atomic);
void qp_to_rts(struct ibv_qp *qp, int rd_atomic);

/* open_device opens the first device. */
struct ibv_context *open_device(void);

/* loopback returns 127.0.0.1 with a port, in host order. */
struct sockaddr_in loopback(uint16_t port);

/* cm_event wants an event of this type and status 0, and returns it. */
struct rdma_cm_event *cm_event_at(const char *file, int line, struct rdma_event_channel *channel,
				  enum rdma_cm_event_type type);
#define cm_event(channel, type) cm_event_at(__FILE__, __LINE__, channel, type)

/* cm_take wants the same, and acknowledges it. */
#define cm_take(channel, type) OK(rdma_ack_cm_event(cm_event(channel, type)))

/* wait_wc returns the next completion. */
struct ibv_wc wait_wc_at(const char *file, int line, struct ibv_cq *cq);
#define wait_wc(cq) wait_wc_at(__FILE__, __LINE__, cq)

/* want_wc wants the next completion to be of this request, status and, if that is 0, opcode. */
struct ibv_wc want_wc_at(const char *file, int line, struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
			 enum ibv_wc_opcode opcode);
#define want_wc(cq, wr_id, status, opcode) want_wc_at(__FILE__, __LINE__, cq, wr_id, status, opcode)

/* done waits for a success. */
#define done(cq, wr_id, opcode) want_wc(cq, wr_id, IBV_WC_SUCCESS, opcode)

/* empty wants no completion now. */
#define empty(cq)                                                                                                      \
	do {                                                                                                           \
		struct ibv_wc none_;                                                                                   \
		EQ(ibv_poll_cq(cq, 1, &none_), 0);                                                                     \
	} while (0)

/* wait_readable waits until a descriptor is readable; is_readable asks. */
void wait_readable_at(const char *file, int line, int fd);
#define wait_readable(fd) wait_readable_at(__FILE__, __LINE__, fd)
bool is_readable(int fd);

/* want_event takes the next asynchronous event, which has to be of this type. */
struct ibv_async_event want_event_at(const char *file, int line, struct ibv_context *context, enum ibv_event_type type);
#define want_event(context, type) want_event_at(__FILE__, __LINE__, context, type)

/* sge names bytes of an end's memory. */
struct ibv_sge sge(const struct end *e, size_t offset, uint32_t length);

/* recv_at posts a receive of bytes of the end's memory. */
void recv_at(struct end *e, uint64_t wr_id, size_t offset, uint32_t length);

/* A request of one element, which post sends. */
struct op {
	enum ibv_wr_opcode opcode;
	uint64_t wr_id;
	size_t offset; /* in the end's memory */
	uint32_t length;
	uint32_t lkey; /* if not the end's */
	unsigned int flags; /* besides IBV_SEND_SIGNALED */
	bool unsignaled;
	uint64_t remote;
	uint32_t rkey;
	uint32_t imm; /* or the rkey to invalidate */
	uint64_t compare_add, swap;
};
int try_post(struct end *e, const struct op *op);
#define post(e, ...) OK(try_post(e, &(struct op){__VA_ARGS__}))

/* The TO of an byte of an end's memory. */
static inline uint64_t to(const struct end *e, size_t offset)
{
	return (uintptr_t)e->memory + offset;
}

#endif
