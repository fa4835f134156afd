/*
 * peerops: a verbs program that plays one side of an iWARP connection, in either
 * role, and says on standard output what happened, one line each. README.md has
 * the command line and the lines.
 */
#ifndef PEEROPS_H
#define PEEROPS_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BIG = 4 << 20,      /* the read-write region, and the longest message */
    SMALL = 8192,       /* the other regions */
    QUEUE = 128,        /* send queue; half of it is used at a time */
    FOREVER = 3600000,  /* ms; longer than any test */
    EXIT_CONNECT = 3,   /* no connection came about */
    EXIT_CHECK = 4,     /* data was not what it should be, or did not come */
};

/* The regions that each side has, in the order of struct advert. */
enum { RW, WONLY, RONLY, LOCAL, OTHERPD, REGIONS };
extern const char *const region_names[REGIONS];

/* What private data carries by default: the sender's regions, all big-endian. */
struct advert {
    struct { uint64_t addr; uint32_t stag, length; } region[REGIONS];
} __attribute__((packed));

struct region { char *mem; struct ibv_mr *mr; };

struct conn {
    struct rdma_cm_id *id;
    struct ibv_pd *pd, *pd2;
    struct ibv_comp_channel *channel;
    struct ibv_cq *send_cq, *recv_cq;
    struct region region[REGIONS];
    struct region msg, sink, recv;  /* source of what is sent, target of Reads, receives */
    uint32_t recv_size;
    struct advert remote;
    int ord;
    unsigned events;                /* the cm events seen, a bit each */
    uint64_t sends, recvs;          /* completions so far */
    bool failed;                    /* one of them was not a success */
    bool quiet;                     /* successes are not reported */
};

/* The options of both roles. */
struct options {
    const char *addr, *port, *private, *op;
    uint32_t size;
    int times;                      /* size and times as the op's own default: 0 */
    int ird, ord, recvs, recv_size, wait, linger, delay, kill_after, await_recvs;
    bool bare;
    int connections;
    bool reject, early;
};

extern struct options opt;
extern struct rdma_event_channel *cm;
extern int exit_status;

/* report.c */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void die(const char *what);
const char *hex(const void *data, size_t length);
uint32_t fnv(const void *data, size_t length);
const char *event_name(enum rdma_cm_event_type type);
void say_completion(const struct conn *c, const char *queue, const struct ibv_wc *wc);
void say_async(struct ibv_context *context);
void open_kernel_log(void);
int kernel_log_fd(void);
void say_terminates(void);

/* memory.c */
enum pattern { IN_REGION, IN_MESSAGE };
void fill(char *mem, size_t length, enum pattern p);
bool matches(const char *mem, size_t length, enum pattern p);
void register_memory(struct conn *c);
void release_memory(struct conn *c);
struct advert advertise(const struct conn *c);
void say_memory(const struct conn *c);
void post_receive(struct conn *c, uint64_t slot);

/* conn.c */
struct sockaddr *address(void);
void setup(struct conn *c, struct rdma_cm_id *id);
void teardown(struct conn *c);
const void *private_data(const struct conn *c, uint8_t *length);
void learn_remote(struct conn *c, const void *data, size_t length);
bool seen(const struct conn *c, enum rdma_cm_event_type type);
bool over(const struct conn *c);
void pump(struct conn *c, int ms, bool (*done)(const struct conn *));
struct rdma_cm_id *next_request(struct conn *c);
void arm_kill(void);

/* ops.c */
void list_ops(void);
bool known_op(const char *name);
bool post(struct conn *c, struct ibv_send_wr *wr);
void run_op(struct conn *c);

/* rping.c */
void play_rping(struct conn *c);

int serve(void);
int call(void);

#endif
