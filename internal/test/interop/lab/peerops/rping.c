/* The protocol of rping, which in rdma-core takes 27 to 65,535 octets, for any length. */
#include "peerops.h"

#include <endian.h>
#include <string.h>

/* What rping's Sends tell: the client, where its data are or shall be. The server's
 * mean only that it is the client's turn. */
struct turn { uint64_t addr; uint32_t stag, length; } __attribute__((packed));

static uint64_t taken, wanted;  /* receives that were dealt with, sends that are waited for */

static bool received(const struct conn *c) { return c->recvs > taken || over(c); }
static bool sent(const struct conn *c) { return c->sends >= wanted || over(c); }

/* Waits for the peer's turn to end, and takes what it told. */
static bool take(struct conn *c, struct turn *t)
{
    uint64_t slot = taken % opt.recvs;
    pump(c, opt.wait, received);
    if (c->failed || c->recvs == taken || over(c))
        return false;
    memcpy(t, c->recv.mem + slot * c->recv_size, sizeof *t);
    taken++;
    post_receive(c, slot);
    return true;
}

/* Posts one work request, and waits until it has completed. */
static bool transfer(struct conn *c, enum ibv_wr_opcode code, struct region *from, size_t length, const struct turn *to)
{
    struct ibv_sge s = { (uintptr_t)from->mem, length, from->mr->lkey };
    struct ibv_send_wr wr = { .wr_id = 100, .opcode = code, .sg_list = &s, .num_sge = 1 };
    if (to) {
        wr.wr.rdma.remote_addr = be64toh(to->addr);
        wr.wr.rdma.rkey = be32toh(to->stag);
    }
    wanted = c->sends + 1;
    if (!post(c, &wr))
        return false;
    pump(c, opt.wait, sent);
    return !c->failed && c->sends >= wanted;
}

/* Ends our turn. */
static bool tell(struct conn *c, size_t offset, uint32_t length)
{
    struct turn t = { htobe64((uintptr_t)c->region[RW].mem + offset), htobe32(c->region[RW].mr->rkey), htobe32(length) };
    memcpy(c->msg.mem, &t, sizeof t);
    return transfer(c, IBV_WR_SEND, &c->msg, sizeof t, NULL);
}

/* A round of the server's: reads the client's data, and writes them back. */
static bool serve_round(struct conn *c)
{
    struct turn t;
    if (!take(c, &t) || be32toh(t.length) > BIG)
        return false;
    uint32_t length = be32toh(t.length);
    return transfer(c, IBV_WR_RDMA_READ, &c->sink, length, &t) && tell(c, 0, 0) &&
        take(c, &t) && be32toh(t.length) == length &&
        transfer(c, IBV_WR_RDMA_WRITE, &c->sink, length, &t) && tell(c, 0, 0);
}

/* A round of the client's: the second half of the region becomes like the first. */
static bool call_round(struct conn *c, int round, uint32_t length)
{
    struct turn t;
    char *source = c->region[RW].mem, *sink = source + BIG / 2;
    for (uint32_t i = 0; i < length; i++)
        source[i] = (char)('A' + (round + i) % 58);
    memset(sink, 0, length);
    return tell(c, 0, length) && take(c, &t) && tell(c, BIG / 2, length) && take(c, &t) && !memcmp(source, sink, length);
}

/* Plays rping: the client for opt.times rounds, the server until the client leaves. */
void play_rping(struct conn *c)
{
    uint32_t length = opt.size != UINT32_MAX ? opt.size : 64;
    int rounds = 0;
    taken = 0;
    c->quiet = true;
    if (length > BIG / 2)
        length = BIG / 2;
    say("op name=rping size=%u times=%d", length, opt.times ? opt.times : 1);
    if (opt.connections) {
        while (serve_round(c))
            rounds++;
        pump(c, opt.wait, over);    /* receives are flushed before the event */
    } else {
        while (rounds < (opt.times ? opt.times : 1) && call_round(c, rounds, length))
            rounds++;
    }
    c->quiet = false;
    bool ok = opt.connections ? over(c) && rounds : rounds == (opt.times ? opt.times : 1);
    say("check op=rping result=%s rounds=%d", ok ? "ok" : "wrong", rounds);
    if (!ok)
        exit_status = EXIT_CHECK;
}
