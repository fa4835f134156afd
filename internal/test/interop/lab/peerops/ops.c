/* The operations that either side can carry out against the other's regions. */
#include "peerops.h"

#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NOTHING = -1, MADE_UP = -2 };    /* for a region: an STag that nobody has */

/* Where in the region the access lies. */
enum place { START, BEYOND, BEFORE, ACROSS, WRAP };

enum {
    SOLICITED = 1,  /* Send with Solicited Event */
    CHECK = 2,      /* data can be checked */
    GATHER = 4,     /* three pieces instead of one */
    THEN_SEND = 8,  /* a Send behind it */
    THEN_WRITE = 16, /* a Write behind it, with the STag just invalidated */
    NO_WAIT = 32,   /* does not wait for completions */
    DIE = 64,       /* kills itself instead */
};

static const struct op {
    const char *name;
    enum ibv_wr_opcode code;
    int region;
    enum place place;
    int flags;
    uint32_t size;
    int times;
} ops[] = {
    { "send", IBV_WR_SEND, NOTHING, START, 0, 64, 1 },
    { "send-se", IBV_WR_SEND, NOTHING, START, SOLICITED, 64, 1 },
    { "send-inv", IBV_WR_SEND_WITH_INV, RW, START, 0, 64, 1 },
    { "send-se-inv", IBV_WR_SEND_WITH_INV, RW, START, SOLICITED, 64, 1 },
    { "send-inv-write", IBV_WR_SEND_WITH_INV, RW, START, THEN_WRITE, 64, 1 },
    { "send-inv-badkey", IBV_WR_SEND_WITH_INV, MADE_UP, START, 0, 64, 1 },
    { "send-norecv", IBV_WR_SEND, NOTHING, START, 0, 64, 64 },
    { "send-toolong", IBV_WR_SEND, NOTHING, START, 0, 262144, 1 },
    { "write", IBV_WR_RDMA_WRITE, RW, START, CHECK, 64, 1 },
    { "write-gather", IBV_WR_RDMA_WRITE, RW, START, CHECK | GATHER, 6000, 1 },
    { "write-send", IBV_WR_RDMA_WRITE, RW, START, CHECK | THEN_SEND, 64, 1 },
    { "write-badkey", IBV_WR_RDMA_WRITE, MADE_UP, START, 0, 64, 1 },
    { "write-oob", IBV_WR_RDMA_WRITE, WONLY, BEYOND, 0, 64, 1 },
    { "write-before", IBV_WR_RDMA_WRITE, WONLY, BEFORE, 0, 64, 1 },
    { "write-cross", IBV_WR_RDMA_WRITE, WONLY, ACROSS, 0, 64, 1 },
    { "write-wrap", IBV_WR_RDMA_WRITE, RW, WRAP, 0, 64, 1 },
    { "write-noperm", IBV_WR_RDMA_WRITE, RONLY, START, 0, 64, 1 },
    { "write-local", IBV_WR_RDMA_WRITE, LOCAL, START, 0, 64, 1 },
    { "write-otherpd", IBV_WR_RDMA_WRITE, OTHERPD, START, 0, 64, 1 },
    { "read", IBV_WR_RDMA_READ, RW, START, CHECK, 64, 1 },
    { "read-badkey", IBV_WR_RDMA_READ, MADE_UP, START, 0, 64, 1 },
    { "read-oob", IBV_WR_RDMA_READ, RONLY, BEYOND, 0, 64, 1 },
    { "read-before", IBV_WR_RDMA_READ, RONLY, BEFORE, 0, 64, 1 },
    { "read-cross", IBV_WR_RDMA_READ, RONLY, ACROSS, 0, 64, 1 },
    { "read-wrap", IBV_WR_RDMA_READ, RW, WRAP, 0, 64, 1 },
    { "read-noperm", IBV_WR_RDMA_READ, WONLY, START, 0, 64, 1 },
    { "read-local", IBV_WR_RDMA_READ, LOCAL, START, 0, 64, 1 },
    { "read-otherpd", IBV_WR_RDMA_READ, OTHERPD, START, 0, 64, 1 },
    { "busy-close", IBV_WR_RDMA_WRITE, RW, START, NO_WAIT, 262144, 32 },
    { "busy-die", IBV_WR_RDMA_WRITE, RW, START, NO_WAIT | DIE, 262144, 32 },
};

void list_ops(void)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        fprintf(stderr, " %s", ops[i].name);
    fprintf(stderr, " rping wait close err die\n");
}

static const struct op *find(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(name, ops[i].name))
            return &ops[i];
    return NULL;
}

bool known_op(const char *name)
{
    return find(name) || !strcmp(name, "rping") || !strcmp(name, "wait") || !strcmp(name, "close") || !strcmp(name, "err") || !strcmp(name, "die");
}

static uint64_t target;     /* how many send completions are waited for */

static bool sent(const struct conn *c) { return c->sends >= target || over(c); }

/* Posts one work request; false if the provider refuses it. */
bool post(struct conn *c, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    int rc = ibv_post_send(c->id->qp, wr, &bad);
    if (rc)
        say("refused what=post wr=%llu errno=%d", (unsigned long long)wr->wr_id, rc < 0 ? -rc : rc);
    return rc == 0;
}

/* Reads length bytes at addr and compares them with what they should be. */
static void check(struct conn *c, const char *what, uint64_t addr, uint32_t stag, uint32_t length, enum pattern want)
{
    struct ibv_sge s = { (uintptr_t)c->sink.mem, length, c->sink.mr->lkey };
    struct ibv_send_wr wr = { .wr_id = 900, .opcode = IBV_WR_RDMA_READ, .sg_list = &s, .num_sge = 1,
        .wr.rdma = { .remote_addr = addr, .rkey = stag } };
    bool reads_back = strcmp(what, "read");
    if (reads_back) {
        if (c->ord == 0)
            return;
        memset(c->sink.mem, 0, length);
        target = c->sends + 1;
        if (!post(c, &wr))
            return;
        pump(c, opt.wait, sent);
    }
    if (c->failed || c->sends < target) {
        say("check op=%s result=none", what);
        exit_status = EXIT_CHECK;
        return;
    }
    bool ok = matches(c->sink.mem, length, want);
    say("check op=%s result=%s fnv=%08x", what, ok ? "ok" : "wrong", fnv(c->sink.mem, length));
    if (!ok)
        exit_status = EXIT_CHECK;
}

static void run(struct conn *c, const struct op *op)
{
    uint32_t size = opt.size != UINT32_MAX ? opt.size : op->size, stag = 0xdeadbe00, length = 0;
    int times = opt.times ? opt.times : op->times;
    uint64_t addr = 0x1000;
    if (op->region >= 0) {
        addr = be64toh(c->remote.region[op->region].addr);
        stag = be32toh(c->remote.region[op->region].stag);
        length = be32toh(c->remote.region[op->region].length);
    }
    switch (op->place) {
    case START: break;
    case BEYOND: addr += length + 16; break;
    case BEFORE: addr -= 4096; break;
    case ACROSS: addr += length - size / 2; break;
    case WRAP: addr = UINT64_MAX - 15; break;
    }

    bool read = op->code == IBV_WR_RDMA_READ;
    struct region *from = read ? &c->sink : &c->msg;
    struct ibv_sge s[3] = { { (uintptr_t)from->mem, size, from->mr->lkey } };
    struct ibv_send_wr wr = { .wr_id = 100, .opcode = op->code, .sg_list = s, .num_sge = size || read ? 1 : 0,
        .send_flags = op->flags & SOLICITED ? IBV_SEND_SOLICITED : 0 };
    if (op->flags & GATHER) {
        for (int i = 0; i < 3; i++)
            s[i] = (struct ibv_sge){ (uintptr_t)from->mem + size / 3 * i, i < 2 ? size / 3 : size - size / 3 * 2, from->mr->lkey };
        wr.num_sge = 3;
    }
    wr.wr.rdma.remote_addr = addr;
    /* rdma-core's siw takes the STag to invalidate from here too, and not from its place. */
    wr.wr.rdma.rkey = stag;
    if (op->code == IBV_WR_SEND_WITH_INV)
        wr.invalidate_rkey = stag;

    if (op->region == NOTHING)
        say("op name=%s size=%u times=%d", op->name, size, times);
    else
        say("op name=%s size=%u times=%d addr=%#llx stag=%#010x", op->name, size, times, (unsigned long long)addr, stag);
    int posted = 0;
    uint64_t before = c->sends;
    for (; posted < times && !over(c); posted++, wr.wr_id++) {
        if (posted >= QUEUE / 2) {
            target = before + posted + 1 - QUEUE / 2;
            pump(c, opt.wait, sent);
        }
        if (!post(c, &wr))
            break;
    }
    if (op->flags & DIE) {
        usleep(2000);
        say("dying");
        raise(SIGKILL);
    }
    if (op->flags & NO_WAIT)
        return;
    target = before + posted;
    pump(c, opt.wait, sent);
    if (op->flags & CHECK && !opt.bare && posted)
        check(c, read ? "read" : "write", addr, stag, size, read ? IN_REGION : IN_MESSAGE);
    if (op->flags & (THEN_SEND | THEN_WRITE)) {
        s[0] = (struct ibv_sge){ (uintptr_t)c->msg.mem, 32, c->msg.mr->lkey };
        wr.wr_id = 500;
        wr.opcode = op->flags & THEN_SEND ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
        wr.num_sge = 1;
        target = c->sends + 1;
        if (post(c, &wr))
            pump(c, opt.wait, sent);
    }
}

/* Carries out opt.op, and returns when its work requests have completed. */
void run_op(struct conn *c)
{
    const struct op *op = find(opt.op);
    if (opt.delay)
        pump(c, opt.delay, over);
    if (op) {
        run(c, op);
    } else if (!strcmp(opt.op, "rping")) {
        play_rping(c);
    } else if (!strcmp(opt.op, "close")) {
        rdma_disconnect(c->id);
    } else if (!strcmp(opt.op, "err")) {
        struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
        say("modify state=ERR result=%d", ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE));
    } else if (!strcmp(opt.op, "die")) {
        say("dying");
        raise(SIGKILL);
    }
}
