/* The command line, and the two roles. */
#include "peerops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options opt = {
    .port = "7174", .ird = 16, .ord = 16, .recvs = 8, .recv_size = 4096, .size = UINT32_MAX,
    .wait = 10000, .linger = 500, .kill_after = -1,
};
struct rdma_event_channel *cm;
int exit_status;

static void usage(void)
{
    fprintf(stderr,
        "usage: peerops server -a ADDR [OPTIONS] [-c CONNECTIONS] [-j] [-e] [OP [SIZE [TIMES]]]\n"
        "       peerops client -a ADDR [OPTIONS] [-r RECVS] OP [SIZE [TIMES]]\n"
        "  -a ADDR -p PORT    where to listen or to connect (port 7174)\n"
        "  -i IRD -o ORD      offered in the MPA start-up (16, 16)\n"
        "  -d DATA            private data: advert, none, or octets in hex (server: advert, client: none)\n"
        "  -n N -s SIZE       how many receives of which size are posted (8, 4096)\n"
        "  -t MS -l MS        how long to wait for a completion (10000), and after OP for trouble (500)\n"
        "  -w MS              how long to wait before OP (0)\n"
        "  -k MS              kill -9 itself that long after the connection is established\n"
        "  -b                 bare: do not check data with a Read of our own\n"
        "server:\n"
        "  -c N               connections to serve, one after the other (1)\n"
        "  -j                 reject every request, with the private data\n"
        "  -e                 do OP early, not after the first receive\n"
        "client:\n"
        "  -r N               after OP, wait for N receives\n"
        "ops:");
    list_ops();
    exit(2);
}

static int number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 0);
    if (*end || end == text || n < 0 || n > 1 << 30) {
        fprintf(stderr, "peerops: '%s' is not a number\n", text);
        exit(2);
    }
    return n;
}

static void parse(int argc, char **argv)
{
    bool server = !strcmp(argv[0], "server");
    opt.connections = server;
    opt.private = server ? "advert" : "none";
    int o;
    while ((o = getopt(argc, argv, server ? "a:p:i:o:d:n:s:t:l:w:k:bc:je" : "a:p:i:o:d:n:s:t:l:w:k:br:")) != -1)
        switch (o) {
        case 'a': opt.addr = optarg; break;
        case 'p': opt.port = optarg; break;
        case 'i': opt.ird = number(optarg); break;
        case 'o': opt.ord = number(optarg); break;
        case 'd': opt.private = optarg; break;
        case 'n': opt.recvs = number(optarg); break;
        case 's': opt.recv_size = number(optarg); break;
        case 't': opt.wait = number(optarg); break;
        case 'l': opt.linger = number(optarg); break;
        case 'w': opt.delay = number(optarg); break;
        case 'k': opt.kill_after = number(optarg); break;
        case 'b': opt.bare = true; break;
        case 'c': opt.connections = number(optarg); break;
        case 'j': opt.reject = true; break;
        case 'e': opt.early = true; break;
        case 'r': opt.await_recvs = number(optarg); break;
        default: usage();
        }
    if (optind < argc)
        opt.op = argv[optind++];
    if (optind < argc)
        opt.size = number(argv[optind++]);
    if (optind < argc)
        opt.times = number(argv[optind++]);
    if (optind < argc || !opt.addr || (!server && !opt.op))
        usage();
    if (opt.op && !known_op(opt.op)) {
        fprintf(stderr, "peerops: no op '%s'; there are:", opt.op);
        list_ops();
        exit(2);
    }
    if (opt.size != UINT32_MAX && opt.size > BIG) {
        fprintf(stderr, "peerops: SIZE is at most %d\n", BIG);
        exit(2);
    }
    uint8_t length;
    private_data(NULL, &length);
}

static bool is_established(const struct conn *c) { return seen(c, RDMA_CM_EVENT_ESTABLISHED) || over(c); }
static bool got_receive(const struct conn *c) { return c->recvs > 0 || over(c); }
static bool got_receives(const struct conn *c) { return c->recvs >= (uint64_t)opt.await_recvs || over(c); }
static bool is_resolved(const struct conn *c) { return seen(c, RDMA_CM_EVENT_ADDR_RESOLVED) || over(c); }
static bool has_route(const struct conn *c) { return seen(c, RDMA_CM_EVENT_ROUTE_RESOLVED) || over(c); }

/* Ends the connection from our side, if the peer has not, and tells how it was left. */
static void finish(struct conn *c)
{
    if (!over(c))
        rdma_disconnect(c->id);
    pump(c, opt.wait, over);
    /* What comes last: flushed work requests, a Terminate in the kernel's log. */
    pump(c, 100, NULL);
    say_memory(c);
    teardown(c);
}

static void serve_one(struct rdma_cm_id *id, struct conn *c)
{
    uint8_t length;
    setup(c, id);
    struct rdma_conn_param p = { .responder_resources = opt.ird, .initiator_depth = opt.ord };
    p.private_data = private_data(c, &length);
    p.private_data_len = length;
    c->ord = opt.ord;
    if (rdma_accept(id, &p)) {
        /* The peer has gone, or asks for what cannot be had. */
        say("refused what=accept errno=%d", errno);
        teardown(c);
        return;
    }
    pump(c, opt.wait, is_established);
    if (opt.op && strcmp(opt.op, "wait")) {
        /* "MPA Responder mode implementations MUST receive and validate at least one
         * FPDU before sending any" (RFC 5044 section 7.1.2). siw leaves that to us. */
        if (!opt.early)
            pump(c, FOREVER, got_receive);
        if (!over(c))
            run_op(c);
        pump(c, opt.linger, over);
    } else {
        pump(c, FOREVER, over);
    }
    finish(c);
}

int serve(void)
{
    struct rdma_cm_id *listener;
    if (rdma_create_id(cm, &listener, NULL, RDMA_PS_TCP))
        die("rdma_create_id");
    if (rdma_bind_addr(listener, address()))
        die("rdma_bind_addr");
    if (rdma_listen(listener, 16))
        die("rdma_listen");
    say("listening addr=%s port=%s", opt.addr, opt.port);
    for (int i = 1; i <= opt.connections; i++) {
        struct conn c = { 0 };
        uint8_t length;
        struct rdma_cm_id *id = next_request(&c);
        if (opt.reject) {
            const void *data = private_data(NULL, &length);
            say("reject result=%d", rdma_reject(id, data, length));
            rdma_destroy_id(id);
        } else {
            serve_one(id, &c);
        }
        say("end connection=%d", i);
    }
    return exit_status;
}

int call(void)
{
    struct conn c = { 0 };
    uint8_t length;
    if (rdma_create_id(cm, &c.id, NULL, RDMA_PS_TCP))
        die("rdma_create_id");
    if (rdma_resolve_addr(c.id, NULL, address(), opt.wait))
        die("rdma_resolve_addr");
    pump(&c, opt.wait + 1000, is_resolved);
    if (!seen(&c, RDMA_CM_EVENT_ADDR_RESOLVED))
        return EXIT_CONNECT;
    if (rdma_resolve_route(c.id, opt.wait))
        die("rdma_resolve_route");
    pump(&c, opt.wait + 1000, has_route);
    if (!seen(&c, RDMA_CM_EVENT_ROUTE_RESOLVED))
        return EXIT_CONNECT;
    setup(&c, c.id);
    struct rdma_conn_param p = { .responder_resources = opt.ird, .initiator_depth = opt.ord };
    p.private_data = private_data(&c, &length);
    p.private_data_len = length;
    if (rdma_connect(c.id, &p)) {
        /* siw connects before it returns: nobody listens there. */
        say("refused what=connect errno=%d", errno);
        return EXIT_CONNECT;
    }
    pump(&c, opt.wait + 10000, is_established);
    if (!seen(&c, RDMA_CM_EVENT_ESTABLISHED))
        return EXIT_CONNECT;
    run_op(&c);
    if (!strcmp(opt.op, "wait"))
        pump(&c, opt.wait, opt.await_recvs ? got_receives : over);
    else if (opt.await_recvs)
        pump(&c, opt.wait, got_receives);
    if (strncmp(opt.op, "busy", 4))
        pump(&c, opt.linger, over);
    finish(&c);
    return exit_status;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2 || (strcmp(argv[1], "server") && strcmp(argv[1], "client")))
        usage();
    parse(argc - 1, argv + 1);
    open_kernel_log();
    if (!(cm = rdma_create_event_channel()))
        die("rdma_create_event_channel");
    return strcmp(argv[1], "server") ? call() : serve();
}
