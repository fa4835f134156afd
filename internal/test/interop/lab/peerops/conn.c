/* One connection: its verbs objects, and the loop that reports what happens on it. */
#include "peerops.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Requests that came while another connection was being served. */
static struct request { struct rdma_cm_id *id; unsigned char private[512]; uint8_t length; } waiting[64];
static int first, count;

struct sockaddr *address(void)
{
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM }, *ai;
    int rc = getaddrinfo(opt.addr, opt.port, &hints, &ai);
    if (rc) {
        fprintf(stderr, "peerops: address %s port %s: %s\n", opt.addr, opt.port, gai_strerror(rc));
        exit(2);
    }
    return ai->ai_addr;
}

void setup(struct conn *c, struct rdma_cm_id *id)
{
    c->id = id;
    if (!(c->pd = ibv_alloc_pd(id->verbs)) || !(c->pd2 = ibv_alloc_pd(id->verbs)))
        die("ibv_alloc_pd");
    if (!(c->channel = ibv_create_comp_channel(id->verbs)))
        die("ibv_create_comp_channel");
    int recvs = opt.recvs ? opt.recvs : 1;
    c->send_cq = ibv_create_cq(id->verbs, QUEUE + 1, NULL, c->channel, 0);
    c->recv_cq = ibv_create_cq(id->verbs, recvs + 1, NULL, c->channel, 0);
    if (!c->send_cq || !c->recv_cq)
        die("ibv_create_cq");
    struct ibv_qp_init_attr attr = {
        .send_cq = c->send_cq, .recv_cq = c->recv_cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
        .cap = { .max_send_wr = QUEUE, .max_recv_wr = recvs, .max_send_sge = 4, .max_recv_sge = 1 },
    };
    if (rdma_create_qp(id, c->pd, &attr))
        die("rdma_create_qp");
    register_memory(c);
    for (int i = 0; i < opt.recvs; i++)
        post_receive(c, i);
    for (int i = 0; i < REGIONS; i++)
        say("region name=%s addr=%#llx stag=%#010x length=%zu", region_names[i],
            (unsigned long long)(uintptr_t)c->region[i].mem, c->region[i].mr->rkey, c->region[i].mr->length);
}

void teardown(struct conn *c)
{
    rdma_destroy_qp(c->id);
    release_memory(c);
    ibv_destroy_cq(c->send_cq);
    ibv_destroy_cq(c->recv_cq);
    ibv_destroy_comp_channel(c->channel);
    ibv_dealloc_pd(c->pd);
    ibv_dealloc_pd(c->pd2);
    rdma_destroy_id(c->id);
}

/* What -d asks for: "advert", "none", or bytes in hex. Good until the next call. */
const void *private_data(const struct conn *c, uint8_t *length)
{
    static union { struct advert advert; unsigned char bytes[255]; } data;
    size_t n = strlen(opt.private) / 2;
    if (!strcmp(opt.private, "none") || (!strcmp(opt.private, "advert") && !c)) {
        n = 0;
    } else if (!strcmp(opt.private, "advert")) {
        data.advert = advertise(c);
        n = sizeof data.advert;
    } else {
        bool ok = n <= sizeof data.bytes && strspn(opt.private, "0123456789abcdefABCDEF") == 2 * n;
        for (size_t i = 0; ok && i < n; i++)
            sscanf(opt.private + 2 * i, "%2hhx", &data.bytes[i]);
        if (!ok || opt.private[2 * n]) {
            fprintf(stderr, "peerops: -d wants advert, none or at most 255 octets in hex\n");
            exit(2);
        }
    }
    *length = n;
    return n ? &data : NULL;
}

/* Takes the peer's private data for an advert if it has the length of one. */
void learn_remote(struct conn *c, const void *data, size_t length)
{
    if (length < sizeof c->remote)
        return;
    memcpy(&c->remote, data, sizeof c->remote);
    for (int i = 0; i < REGIONS; i++)
        say("remote name=%s addr=%#llx stag=%#010x length=%u", region_names[i],
            (unsigned long long)be64toh(c->remote.region[i].addr), be32toh(c->remote.region[i].stag),
            be32toh(c->remote.region[i].length));
}

bool seen(const struct conn *c, enum rdma_cm_event_type type) { return c->events >> type & 1; }

/* Whether the connection has ended, or never came about. */
bool over(const struct conn *c)
{
    enum { ENDS = 1 << RDMA_CM_EVENT_DISCONNECTED | 1 << RDMA_CM_EVENT_CONNECT_ERROR | 1 << RDMA_CM_EVENT_UNREACHABLE |
        1 << RDMA_CM_EVENT_REJECTED | 1 << RDMA_CM_EVENT_ADDR_ERROR | 1 << RDMA_CM_EVENT_ROUTE_ERROR };
    return c->events & ENDS;
}

static void take_cm_event(struct conn *c)
{
    struct rdma_cm_event *e;
    if (rdma_get_cm_event(cm, &e))
        die("rdma_get_cm_event");
    const struct rdma_conn_param *p = &e->param.conn;
    if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST || e->event == RDMA_CM_EVENT_ESTABLISHED || e->event == RDMA_CM_EVENT_REJECTED)
        say("cm event=%s status=%d responder_resources=%d initiator_depth=%d private=%s", event_name(e->event), e->status,
            p->responder_resources, p->initiator_depth, hex(p->private_data, p->private_data ? p->private_data_len : 0));
    else
        say("cm event=%s status=%d", event_name(e->event), e->status);
    if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        if (count == sizeof waiting / sizeof *waiting) {
            fprintf(stderr, "peerops: too many connection requests at once\n");
            exit(1);
        }
        struct request *r = &waiting[(first + count++) % (sizeof waiting / sizeof *waiting)];
        r->id = e->id;
        r->length = p->private_data ? p->private_data_len : 0;
        if (r->length)
            memcpy(r->private, p->private_data, r->length);
    } else if (e->id == c->id) {
        c->events |= 1u << e->event;
        if (e->event == RDMA_CM_EVENT_ESTABLISHED) {
            arm_kill();
            /* The passive side knows these from the request. */
            if (opt.connections == 0) {
                c->ord = p->initiator_depth;
                learn_remote(c, p->private_data, p->private_data_len);
            }
        }
    }
    rdma_ack_cm_event(e);
}

static void drain(struct conn *c)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(c->send_cq, 1, &wc) == 1) {
        if (!c->quiet || wc.status != IBV_WC_SUCCESS)
            say_completion(c, "send", &wc);
        c->sends++;
        c->failed |= wc.status != IBV_WC_SUCCESS;
    }
    while (ibv_poll_cq(c->recv_cq, 1, &wc) == 1) {
        if (!c->quiet || wc.status != IBV_WC_SUCCESS)
            say_completion(c, "recv", &wc);
        c->recvs++;
        c->failed |= wc.status != IBV_WC_SUCCESS;
    }
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Reports what happens until done says so or ms milliseconds have passed. */
void pump(struct conn *c, int ms, bool (*done)(const struct conn *))
{
    int64_t end = now() + ms;
    for (;;) {
        if (c->channel) {
            ibv_req_notify_cq(c->send_cq, 0);
            ibv_req_notify_cq(c->recv_cq, 0);
            drain(c);
        }
        if (done && done(c))
            return;
        int64_t left = end - now();
        if (left < 0)
            return;
        struct pollfd p[] = {
            { .fd = cm->fd, .events = POLLIN },
            { .fd = kernel_log_fd(), .events = POLLIN },
            { .fd = c->channel ? c->channel->fd : -1, .events = POLLIN },
            { .fd = c->channel ? c->id->verbs->async_fd : -1, .events = POLLIN },
        };
        if (poll(p, 4, left) < 0 && errno != EINTR)
            die("poll");
        if (p[0].revents)
            take_cm_event(c);
        if (p[1].revents)
            say_terminates();
        if (p[2].revents) {
            struct ibv_cq *cq;
            void *context;
            if (!ibv_get_cq_event(c->channel, &cq, &context))
                ibv_ack_cq_events(cq, 1);
        }
        if (p[3].revents)
            say_async(c->id->verbs);
    }
}

static bool requested(const struct conn *c) { (void)c; return count > 0; }

/* Waits for a connection request, for ever, and takes over what it carries. */
struct rdma_cm_id *next_request(struct conn *c)
{
    while (count == 0)
        pump(c, FOREVER, requested);
    struct request *r = &waiting[first];
    first = (first + 1) % (sizeof waiting / sizeof *waiting);
    count--;
    learn_remote(c, r->private, r->length);
    return r->id;
}

static void kill_self(int signal)
{
    (void)signal;
    if (write(1, "dying\n", 6) == 6)
        raise(SIGKILL);
    raise(SIGKILL);
}

/* -k: once established, live that long and no longer. */
void arm_kill(void)
{
    if (opt.kill_after < 0)
        return;
    struct itimerval t = { .it_value = { opt.kill_after / 1000, opt.kill_after % 1000 * 1000 + 1 } };
    signal(SIGALRM, kill_self);
    setitimer(ITIMER_REAL, &t, NULL);
}
