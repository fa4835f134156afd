/*
 * What the files of rsockets share.
 *
 * An rsocket is known by a number: that of a descriptor of its own, so that no other
 * descriptor of the process has it. It stands on an rdma_cm id with its own channel, and,
 * once it connects, a queue pair with one completion queue and its own domain.
 *
 * Nothing works for an rsocket but calls: each looks first at what has come (rs_process).
 * Who has to wait joins the waiters of the rsocket, arms its completion queue, and polls
 * its descriptors and one of the thread's own. Who takes an event away that others may
 * wait for tells them (rs_tell_waiters).
 */
#ifndef URNIC_RSOCKET_H
#define URNIC_RSOCKET_H

#include <poll.h>
#include <sys/uio.h>

#include <rdma/rsocket.h>

#include "cm.h"
#include "rsocket_wire.h"

enum {
	RS_SPARE = 8,            /* requests of either queue that no data use: grants, and ends */
	RS_MOST_WRITE = 64 << 10, /* bytes of one Write */
	RS_LEAST_ROOM = 2048,    /* bytes of the send buffer that an rsocket has free which is writable */
};

/* A work request's wr_id: a receive's is this bit and its index, others have the bytes of the outbox and the places. */
#define RS_WR_RECEIVE ((uint64_t)1 << 63)

enum rs_state {
	RS_NEW,
	RS_LISTENING,
	RS_RESOLVING, /* the address, and then the route */
	RS_CONNECTING,
	RS_ACCEPTING,
	RS_CONNECTED,
	RS_FAILED, /* it has never been connected */
};

/* Who waits for an rsocket. */
struct rs_waiter {
	int fd; /* an eventfd of the thread's */
	struct rs_waiter *next;
};

/* A connection that a listener has not given to the program yet. */
struct rs_request {
	struct rdma_cm_id *id;
	struct rs_hello hello;
	struct rs_request *next;
};

/* A region of riomap. */
struct rs_region {
	struct ibv_mr *mr; /* NULL: it is gone, and the peer has not been told */
	uint64_t offset;
	int index;  /* of the peer's mapping; -1: it is for this side only */
	bool untold;
	struct rs_region *next;
};

/* What programs set; an accepted rsocket has its listener's. */
struct rs_settings {
	uint32_t sndbuf, rcvbuf;
	uint32_t sq, rq, inline_data, mappings;
	int reuse, v6only, nodelay, keepalive, keepidle, oobinline;
	struct linger linger;
};

struct rsocket {
	int number, domain;
	bool datagram; /* it is a UDP socket: see rsocket_datagram.c */
	uint32_t refs; /* under the table's lock */

	pthread_mutex_t lock; /* of what follows */
	enum rs_state state;
	int error;        /* why it has failed or ended; SO_ERROR tells it once */
	bool nonblocking;
	bool closed;      /* by rclose */
	bool asked;       /* rconnect has said EINPROGRESS */
	struct rs_settings set;
	struct rs_waiter *waiters;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;

	/* A listener. */
	struct rs_request *requests;
	int backlog, queued;

	/* The queue pair and its memory: from connecting on. */
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	bool armed;
	bool behind; /* more has come than one call looks at */
	void *memory;
	size_t memory_size;
	struct ibv_mr *open_mr, *ring_mr, *local_mr; /* targets and mappings; the ring; the rest */
	struct rs_target *targets;  /* of the peer's halves: the peer writes them */
	struct rs_mapping *mappings; /* behind them: the peer's regions */
	uint8_t *ring;              /* what is received */
	uint32_t *messages;         /* one for each receive */
	uint8_t *outbox;            /* what is sent, a ring as well */

	/* What this side receives. */
	uint32_t in_at, in_ready;  /* bytes that wait for the program in the ring, from in_at on */
	uint32_t in_open;          /* bytes that the peer may still write */
	uint32_t in_read;          /* bytes that were read and not yet opened again */
	uint16_t in_count, in_told; /* messages that have come; the count when the last grant was given */
	uint32_t heard;            /* messages of any kind */
	bool in_over;              /* the peer sends no more */
	bool in_shut;              /* this side has shut down reading */

	/* What this side sends. */
	struct rs_target out;       /* the rest of the half that is being filled */
	unsigned int next_target;
	uint16_t out_count, out_limit; /* messages that were sent, and that may be */
	uint16_t out_reserve;       /* of them, what is left for grants */
	uint32_t outbox_at, outbox_free;
	uint32_t sq_free;           /* places of the send queue */
	bool out_over;              /* nothing can be sent any more */
	int owed;                   /* an rs_ctrl that is to be sent, or -1 */
	bool said_disconnect;

	/* What the peer has opened for this side to write to. */
	struct rs_target peer_targets;
	unsigned int peer_next;     /* the target that the next half goes to */
	uint64_t peer_mappings;     /* where they are */
	uint32_t peer_mappings_n;
	bool peer_swaps;            /* the peer has the other byte order */
	struct rs_region *regions;

	bool dead;    /* the queue pair has ended: nothing can be posted */
	bool drained; /* and all that the peer has said is known */
};

/*
 * rsocket_table.c: the rsocket of a number, which rs_put gives back, or NULL with errno.
 * rs_make makes one, with one reference, of a UDP socket unless that is -1; rs_remove makes its number nobody's.
 */
struct rsocket *rs_make(int domain, int udp);
struct rsocket *rs_get(int number);  /* of a stream */
struct rsocket *rs_find(int number); /* of a stream; leaves errno alone */
struct rsocket *rs_any(int number);
void rs_put(struct rsocket *rs);
struct rsocket *rs_remove(int number);

/* rsocket_table.c: whether a number is that of a UDP socket, for which the system's calls do. */
bool rs_is_datagram(int number);

/* rsocket_datagram.c: an rsocket of SOCK_DGRAM, by its number, or -1 with errno. */
int rs_make_datagram(int domain, int type, int protocol);
bool rs_of_system(int level);

/* rsocket_table.c: poll(2). In calls that have an rsocket, nothing else is a cancellation point. */
int rs_poll(struct pollfd *p, nfds_t n, int timeout);

/* rsocket_option.c: what an rsocket begins with. */
extern __attribute__((visibility("hidden"))) const struct rs_settings rs_defaults;

/* rsocket_connect.c, under the lock. */
int rs_new_id(struct rsocket *rs);        /* 0 or an errno */
void rs_process_events(struct rsocket *rs);
void rs_drop_requests(struct rsocket *rs);

/* rsocket_endpoint.c, under the lock: makes the queue pair and its memory: 0 or an errno. And frees all. */
int rs_prepare(struct rsocket *rs);
void rs_release(struct rsocket *rs);
void rs_fill_hello(const struct rsocket *rs, struct rs_hello *hello);
bool rs_good_hello(const struct rs_hello *hello, size_t len);
void rs_take_hello(struct rsocket *rs, const struct rs_hello *hello);

/* rsocket_stream.c, under the lock. */
void rs_process(struct rsocket *rs);       /* all that has come; it never waits */
void rs_end(struct rsocket *rs, int error); /* the queue pair has ended */
void rs_pay(struct rsocket *rs);           /* grants, mappings and ends that are due */
uint32_t rs_room(const struct rsocket *rs); /* bytes that one message may have now */

/* Sends what lies at outbox_at: the next bytes of the stream; or into a mapping, of which no message tells. */
void rs_send_data(struct rsocket *rs, uint32_t length);
void rs_send_mapped(struct rsocket *rs, uint64_t addr, uint32_t key, uint32_t length);

/* Whether a counted message may be sent; and sends one, behind a Write of a few bytes. */
bool rs_may_count(const struct rsocket *rs);
void rs_send_mapping(struct rsocket *rs, int index, const struct rs_mapping *mapping);

uint32_t rs_read(struct rsocket *rs, void *to, uint32_t length, uint32_t skip); /* copies what is there */
void rs_consume(struct rsocket *rs, uint32_t length);

/* rsocket_wait.c. */
void rs_tell_waiters(struct rsocket *rs, const struct rs_waiter *but);
short rs_ready(const struct rsocket *rs, short events); /* of poll(2) */
/* Waits, with the lock, which it gives away meanwhile. It may find nothing changed. -1 with errno. */
int rs_wait(struct rsocket *rs, short events);

/* rsocket_map.c: forgets the regions; tells the peer of one that is untold: whether it did. */
void rs_free_regions(struct rsocket *rs);
void rs_tell_regions(struct rsocket *rs);

/* A place in a list of buffers. */
struct rs_cursor {
	const struct iovec *iov;
	size_t n, skip;
};

#endif
