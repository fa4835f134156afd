/*
 * The contract between the two halves of the drop-in library.
 *
 * liburnic.so is C: it presents rdma-core's ABI (structs and versioned symbols of
 * libibverbs and librdmacm), and does what needs no RNIC. It loads the other half when
 * a program first asks for a device, so that programs which never do, and children
 * that fork before, have no Go runtime.
 *
 * liburnic-engine.so is Go: package main in this directory, over urnic/internal/dropin.
 * All that it exports is listed in URNIC_ENGINE below.
 *
 * Objects of the engine are named by handles, numbers above 0; 0 stands for none. What
 * can fail returns 0 or an errno. Nothing here blocks, unless it says so: whoever waits does
 * so in C, on file descriptors that the engine makes readable. Structs whose comment
 * says that they are rdma-core's have the layout of its ABI; abi.c compares them.
 */
#ifndef URNIC_ENGINE_H
#define URNIC_ENGINE_H

#include <stdint.h>

#define URNIC_ENGINE_VERSION 8

/* Most devices of a process. */
#define URNIC_MAX_DEVICES 16

/* What a process has set: "NAME=value" strings, NULL at the end. */
struct urnic_setup {
	uint32_t version; /* URNIC_ENGINE_VERSION */
	uint32_t generation; /* of the engine: how many forks lie between it and the first one */
	const char *const *settings; /* URNIC_LOG, URNIC_STRICT, ...: see docs/drop-in.md */
};

/* A device, as all contexts see it. */
struct urnic_device {
	char name[64];
	char version[64];   /* of the engine, human-readable */
	uint64_t guid;      /* in network byte order: node and system image */
	uint32_t iwarp;     /* 1: it is an RNIC; 0: it says to be an Ethernet RDMA device */
	uint32_t strict;
	uint32_t max_qp, max_qp_wr, max_sge, max_sge_rd, max_inline;
	uint32_t max_cq, max_cqe, max_mr, max_pd, max_mw;
	uint32_t max_srq, max_srq_wr, max_srq_sge;
	uint32_t max_rd_atomic; /* IRD and ORD */
	uint32_t gids;          /* entries of the first port's GID table now */
	uint32_t ports;
	uint32_t bound;         /* 1: each port has an address of its own; 0: it has all of the host's */
	uint32_t qkey_violations; /* datagrams with a wrong Q_Key so far */
	uint64_t max_mr_size;
	uint64_t max_msg_size;
};

/* One entry of the GID table: an address of this host. */
struct urnic_gid {
	uint8_t raw[16]; /* IPv4 addresses are mapped: ::ffff:a.b.c.d */
	uint32_t ifindex;
	uint32_t reserved;
};

/* An asynchronous event. */
struct urnic_async {
	uint32_t type; /* enum ibv_event_type */
	uint32_t reserved;
	uint64_t cookie; /* of the CQ, QP or SRQ; the number of the port */
};

/* rdma-core's: struct ibv_sge, ibv_mw_bind_info, ibv_send_wr, ibv_recv_wr, ibv_wc. */
struct urnic_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

struct urnic_recv_wr {
	uint64_t wr_id;
	struct urnic_recv_wr *next;
	struct urnic_sge *sg_list;
	int32_t num_sge;
};

struct urnic_send_wr {
	uint64_t wr_id;
	struct urnic_send_wr *next;
	struct urnic_sge *sg_list;
	int32_t num_sge;
	uint32_t opcode;
	uint32_t send_flags;
	uint32_t imm_or_rkey; /* immediate data (network byte order), or rkey to invalidate */
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
		struct {
			void *ah; /* struct ibv_ah: its handle is the engine's */
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
	} wr;
	uint32_t remote_srqn;
	union {
		struct {
			void *mw; /* struct ibv_mw: its handle is the engine's */
			uint32_t rkey;
			struct {
				void *mr; /* struct ibv_mr: its handle is the engine's */
				uint64_t addr;
				uint64_t length;
				uint32_t access;
			} bind_info;
		} bind_mw;
		struct {
			void *hdr;
			uint16_t hdr_sz;
			uint16_t mss;
		} tso;
	};
};

struct urnic_wc {
	uint64_t wr_id;
	uint32_t status;
	uint32_t opcode;
	uint32_t vendor_err; /* layer, type and code of the Terminate, as on the wire, or 0 */
	uint32_t byte_len;
	uint32_t imm_or_rkey;
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t wc_flags;
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
};

/* A memory region: what the caller wants, and what it gets. */
struct urnic_mr {
	uint64_t addr, length;
	uint64_t iova;   /* the TO of the first byte */
	uint32_t access; /* enum ibv_access_flags */
	uint32_t mr;     /* out: handle */
	uint32_t stag;   /* out: lkey and rkey */
	uint32_t reserved;
};

/* A bind of a type 1 window, by ibv_bind_mw. */
struct urnic_bind {
	uint64_t wr_id;
	uint64_t addr, length;
	uint32_t mw, mr; /* handles; mr may be 0 if length is */
	uint32_t access;
	uint32_t send_flags;
	uint32_t rkey; /* out: the new one */
	uint32_t reserved;
};

struct urnic_srq_attr {
	uint32_t max_wr, max_sge, limit;
};

struct urnic_qp_init {
	uint64_t cookie;
	uint32_t send_cq, recv_cq, srq; /* handles */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline; /* in and out */
	uint32_t sq_sig_all;
	uint32_t qp;  /* out: handle */
	uint32_t qpn; /* out: 24 bits, of no other queue pair on this host */
	uint32_t type; /* enum ibv_qp_type: RC, UC or UD */
};

/* Where datagrams go. */
struct urnic_ah_attr {
	uint32_t is_global; /* 0: to this host */
	uint32_t sgid_index;
	uint8_t dgid[16];
	uint32_t port, reserved;
};

/* What of struct ibv_qp_attr matters, with its masks and states. */
struct urnic_qp_attr {
	uint32_t state, cur_state;
	uint32_t path_mtu;
	uint32_t qkey, rq_psn, sq_psn, dest_qpn;
	uint32_t access;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	uint32_t is_global;
	uint8_t dgid[16];
	uint32_t sgid_index;
	uint32_t dlid;
	uint32_t pkey_index, port_num;
	uint32_t max_rd_atomic, max_dest_rd_atomic;
	uint32_t min_rnr_timer, timeout, retry_cnt, rnr_retry;
	uint32_t sq_draining; /* out: it is in the state SQD, and requests that were begun have not completed */
	uint32_t sqd_notify;  /* in: tell IBV_EVENT_SQ_DRAINED */
};

struct urnic_conn_param {
	const void *private_data;
	uint32_t private_data_len;
	uint32_t responder_resources; /* IRD */
	uint32_t initiator_depth;     /* ORD */
	uint32_t qp;                  /* handle */
	uint32_t rnr_retry;           /* of the peer's Sends, as with rdma_cm of Linux */
	uint32_t reserved;
};

/* What a queue pair of datagrams says with a connect or an accept. */
struct urnic_service_param {
	const void *private_data;
	uint32_t private_data_len;
	uint32_t qp_num;
};

/* An event of connection management. */
struct urnic_cm_event {
	uint64_t cookie; /* of the id; of a request: of the id that listens */
	uint64_t group;  /* cookie of the group, of RDMA_CM_EVENT_MULTICAST_JOIN */
	uint32_t type;   /* enum rdma_cm_event_type */
	int32_t status;  /* 0, or an errno below 0, or why the peer has rejected */
	uint32_t new_id; /* of a request: the handle of its id, which has no cookie yet */
	uint32_t responder_resources, initiator_depth;
	uint32_t qp_num, qkey;
	uint32_t private_data_len;
	uint8_t private_data[512];
};

/* The addresses of an id: struct sockaddr_storage each; family 0: not known yet. */
struct urnic_addrs {
	uint8_t local[128];
	uint8_t peer[128];
};

/*
 * The engine's exports: result, name (urnic_engine_NAME), parameters.
 *
 * open comes first and once; it gives ELIBBAD if the halves are of different versions. A context has its own objects; its async_fd is readable
 * while async_next has something. The descriptors that the engine gives out are
 * eventfds: non-blocking waits are poll(2)'s; whoever reads them spoils them. *_next return
 * EAGAIN if there is nothing.
 *
 * *_destroy and *_free return EBUSY while others use the object. qp_destroy and
 * mr_dereg wait until nothing touches memory any more.
 *
 * cq_poll returns how many completions it wrote, or an errno below 0; it drives the
 * sockets of the queue's connections. cq_await waits until there is a completion for it, at
 * most so many microseconds. cq_resize and the *_create round up, and tell.
 */
#define URNIC_ENGINE(X)                                                                                                \
	X(int, open, (const struct urnic_setup *setup))                                                                \
	X(void, log, (uint32_t level, const char *message)) /* 1 error, 2 warning, 3 information, 4 debugging */       \
	X(int, device, (uint32_t index, struct urnic_device *out)) /* ENODEV: there are not so many */                 \
	X(int, gid, (uint32_t device, uint32_t port, uint32_t index, struct urnic_gid *out))                           \
	X(int, context_open, (uint32_t device, uint64_t cookie, uint32_t *ctx, int32_t *async_fd))                     \
	X(int, context_close, (uint32_t ctx))                                                                          \
	X(int, async_next, (uint32_t ctx, struct urnic_async *out))                                                    \
	X(int, pd_alloc, (uint32_t ctx, uint32_t *pd))                                                                 \
	X(int, pd_free, (uint32_t pd))                                                                                 \
	X(int, mr_reg, (uint32_t pd, struct urnic_mr *mr))                                                             \
	X(int, null_mr_alloc, (uint32_t pd, struct urnic_mr *mr))                                                      \
	X(int, mr_rereg, (uint32_t mr, uint32_t flags, uint32_t pd, struct urnic_mr *in_out))                          \
	X(int, mr_dereg, (uint32_t mr))                                                                                \
	X(int, mw_alloc, (uint32_t pd, uint32_t type, uint32_t *mw, uint32_t *rkey))                                   \
	X(int, mw_bind, (uint32_t qp, struct urnic_bind *bind))                                                        \
	X(int, mw_free, (uint32_t mw))                                                                                 \
	X(int, channel_create, (uint32_t ctx, uint32_t *channel, int32_t *fd))                                         \
	X(int, channel_next, (uint32_t channel, uint64_t *cq_cookie))                                                  \
	X(int, channel_destroy, (uint32_t channel))                                                                    \
	X(int, cq_create, (uint32_t ctx, uint32_t *entries, uint32_t channel, uint64_t cookie, uint32_t *cq))          \
	X(int, cq_resize, (uint32_t cq, uint32_t *entries))                                                            \
	X(int, cq_poll, (uint32_t cq, int32_t n, struct urnic_wc *wcs))                                                \
	X(void, cq_await, (uint32_t cq, uint32_t most))                                                                \
	X(int, cq_arm, (uint32_t cq, uint32_t solicited_only))                                                         \
	X(int, cq_destroy, (uint32_t cq))                                                                              \
	X(int, srq_create, (uint32_t pd, struct urnic_srq_attr *attr, uint64_t cookie, uint32_t *srq, uint32_t *num))  \
	X(int, srq_modify, (uint32_t srq, const struct urnic_srq_attr *attr, uint32_t mask)) /* ibv_srq_attr_mask */   \
	X(int, srq_query, (uint32_t srq, struct urnic_srq_attr *out))                                                  \
	X(int, srq_post_recv, (uint32_t srq, struct urnic_recv_wr *wr, struct urnic_recv_wr **bad))                    \
	X(int, srq_destroy, (uint32_t srq))                                                                            \
	X(int, qp_create, (uint32_t pd, struct urnic_qp_init *init))                                                   \
	X(int, qp_modify, (uint32_t qp, const struct urnic_qp_attr *attr, uint32_t mask)) /* ibv_qp_attr_mask */       \
	X(int, qp_query, (uint32_t qp, struct urnic_qp_attr *out))                                                     \
	X(int, qp_post_send, (uint32_t qp, struct urnic_send_wr *wr, struct urnic_send_wr **bad))                      \
	X(int, qp_post_all, (uint32_t qp, struct urnic_send_wr *wr)) /* all of the list, or none */                    \
	X(int, qp_post_recv, (uint32_t qp, struct urnic_recv_wr *wr, struct urnic_recv_wr **bad))                      \
	X(int, qp_destroy, (uint32_t qp))                                                                              \
	X(void, leave, (void)) /* the process exits: closes connections; takes leave_patience at most */               \
	X(uint32_t, leave_patience, (void)) /* ms */                                                                   \
	X(int, ah_create, (uint32_t pd, const struct urnic_ah_attr *attr, uint32_t *ah))                               \
	X(int, ah_destroy, (uint32_t ah))                                                                              \
	X(int, qp_attach, (uint32_t qp, const void *gid)) /* 16 bytes: a multicast group */                           \
	X(int, qp_detach, (uint32_t qp, const void *gid))                                                              \
	X(int, evch_create, (uint32_t *evch, int32_t *fd))                                                             \
	X(int, evch_next, (uint32_t evch, struct urnic_cm_event *out))                                                 \
	X(int, evch_destroy, (uint32_t evch))                                                                          \
	X(int, id_create, (uint32_t evch, uint64_t cookie, uint32_t *id))                                              \
	X(int, id_set_cookie, (uint32_t id, uint64_t cookie))                                                          \
	X(int, id_migrate, (uint32_t id, uint32_t evch)) /* with the events that nobody has fetched */                 \
	X(int, id_addrs, (uint32_t id, struct urnic_addrs *out))                                                       \
	X(int, id_bind, (uint32_t id, const void *addr, uint32_t addr_len))                                            \
	X(int, id_resolve_addr, (uint32_t id, const void *src, uint32_t src_len, const void *dst, uint32_t dst_len,    \
				 uint32_t timeout_ms))                                                                 \
	X(int, id_resolve_route, (uint32_t id, uint32_t timeout_ms))                                                   \
	X(int, id_listen, (uint32_t id, uint32_t backlog))                                                             \
	X(int, id_connect, (uint32_t id, const struct urnic_conn_param *param))                                        \
	X(int, id_accept, (uint32_t id, const struct urnic_conn_param *param))                                         \
	X(int, id_reject, (uint32_t id, const void *private_data, uint32_t len))                                       \
	X(int, id_disconnect, (uint32_t id))                                                                           \
	X(int, id_set_option, (uint32_t id, uint32_t level, uint32_t name, const void *value, uint32_t len))           \
	X(int, id_create_datagram, (uint32_t evch, uint64_t cookie, uint32_t *id)) /* of RDMA_PS_UDP */                \
	X(int, id_resolve_service, (uint32_t id, const struct urnic_service_param *param))                             \
	X(int, id_serve, (uint32_t id, const struct urnic_service_param *param))                                       \
	X(int, id_join, (uint32_t id, const void *addr, uint32_t addr_len, uint64_t cookie)) /* only tells */          \
	X(int, id_leave, (uint32_t id, uint64_t cookie))                                                               \
	X(int, id_destroy, (uint32_t id)) /* its events that nobody has fetched are gone */

#define URNIC_DECLARE(result, name, params) result urnic_engine_##name params;
#define URNIC_MEMBER(result, name, params) result(*name) params;

/* The exports as a table, for whoever loads the engine at run time. */
struct urnic_engine {
	URNIC_ENGINE(URNIC_MEMBER)
};

#endif
