/* The memory of one connection: the regions a peer may reach, or may not, and the
 * buffers of our own messages. */
#include "peerops.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

const char *const region_names[REGIONS] = { "rw", "wonly", "ronly", "local", "otherpd" };

/* Both patterns repeat after 64 KiB. */
enum { PERIOD = 65536 };

static const char *pattern(enum pattern p)
{
    static char block[2][PERIOD];
    if (!block[p][1])
        for (unsigned i = 0; i < PERIOD; i++)
            block[p][i] = (char)(p == IN_REGION ? i * 7 + (i >> 8) : i * 3 + (i >> 8) + 1);
    return block[p];
}

void fill(char *mem, size_t length, enum pattern p)
{
    for (size_t i = 0; i < length; i += PERIOD)
        memcpy(mem + i, pattern(p), length - i < PERIOD ? length - i : PERIOD);
}

bool matches(const char *mem, size_t length, enum pattern p)
{
    for (size_t i = 0; i < length; i += PERIOD)
        if (memcmp(mem + i, pattern(p), length - i < PERIOD ? length - i : PERIOD))
            return false;
    return true;
}

static struct region make(struct ibv_pd *pd, size_t length, int access)
{
    void *mem = NULL;
    struct region r = { 0 };
    if (posix_memalign(&mem, 4096, length))
        die("posix_memalign");
    r.mem = mem;
    if (!(r.mr = ibv_reg_mr(pd, mem, length, access)))
        die("ibv_reg_mr");
    return r;
}

void register_memory(struct conn *c)
{
    enum { L = IBV_ACCESS_LOCAL_WRITE, W = L | IBV_ACCESS_REMOTE_WRITE, R = IBV_ACCESS_REMOTE_READ };
    c->region[RW] = make(c->pd, BIG, W | R);
    c->region[WONLY] = make(c->pd, SMALL, W);
    c->region[RONLY] = make(c->pd, SMALL, R);
    c->region[LOCAL] = make(c->pd, SMALL, L);
    c->region[OTHERPD] = make(c->pd2, SMALL, W | R);
    for (int i = 0; i < REGIONS; i++)
        fill(c->region[i].mem, c->region[i].mr->length, IN_REGION);
    c->msg = make(c->pd, BIG, L);
    fill(c->msg.mem, BIG, IN_MESSAGE);
    /* iWARP names a Read's sink to the peer by an STag that this may write to. */
    c->sink = make(c->pd, BIG, W);
    c->recv_size = opt.recv_size;
    c->recv = make(c->pd, (size_t)opt.recvs * opt.recv_size + 1, L);
}

static void release(struct region *r)
{
    ibv_dereg_mr(r->mr);
    free(r->mem);
}

void release_memory(struct conn *c)
{
    for (int i = 0; i < REGIONS; i++)
        release(&c->region[i]);
    release(&c->msg);
    release(&c->sink);
    release(&c->recv);
}

struct advert advertise(const struct conn *c)
{
    struct advert a;
    for (int i = 0; i < REGIONS; i++) {
        const struct ibv_mr *mr = c->region[i].mr;
        a.region[i].addr = htobe64((uintptr_t)mr->addr);
        a.region[i].stag = htobe32(mr->rkey);
        a.region[i].length = htobe32((uint32_t)mr->length);
    }
    return a;
}

/* Says which bytes of our regions are no longer what they were. */
void say_memory(const struct conn *c)
{
    const char *was = pattern(IN_REGION);
    for (int i = 0; i < REGIONS; i++) {
        const char *mem = c->region[i].mem;
        size_t first = 0, last = c->region[i].mr->length;
        if (matches(mem, last, IN_REGION)) {
            say("memory region=%s changed=none", region_names[i]);
            continue;
        }
        while (mem[first] == was[first % PERIOD])
            first++;
        while (mem[last - 1] == was[(last - 1) % PERIOD])
            last--;
        say("memory region=%s changed=%zu-%zu fnv=%08x", region_names[i], first, last - 1, fnv(mem + first, last - first));
    }
}

void post_receive(struct conn *c, uint64_t slot)
{
    struct ibv_sge s = { (uintptr_t)c->recv.mem + slot * c->recv_size, c->recv_size, c->recv.mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &s, .num_sge = 1 }, *bad;
    if (ibv_post_recv(c->id->qp, &wr, &bad))
        die("ibv_post_recv");
}
