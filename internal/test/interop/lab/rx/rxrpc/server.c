#include "rxrpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CALLS = 1024 };

/* The request of a call, as far as it is here. */
static struct request { unsigned char *b; size_t n, room; } requests[MOST_CALLS];

/* charge gives the kernel the number of a call that it may accept. */
static void charge(int fd, unsigned long call)
{
    struct control c = { .length = 0 };
    add(&c, RXRPC_USER_CALL_ID, &call, sizeof call);
    add(&c, RXRPC_CHARGE_ACCEPT, NULL, 0);
    if (send_message(fd, &c, NULL, NULL, 0, 0) < 0)
        perror("charge");
}

/* stream sends a reply's stream; false if the call has ended. */
static bool stream(int fd, unsigned long call, const struct how *h)
{
    for (uint64_t at = 0; at < h->length;) {
        uint64_t n = h->length - at > PIECE ? PIECE : h->length - at;
        if (at < h->pause_at && at + n > h->pause_at)
            n = h->pause_at - at;
        if (at < h->fail_at && at + n > h->fail_at)
            n = h->fail_at - at;
        if (send_data(fd, call, pattern + at % PIECE, n, true) != (int)n)
            return false;
        at += n;
        if (h->pause_ms && at == h->pause_at)
            usleep(h->pause_ms * 1000);
        if (h->fail_code && at == h->fail_at) {
            send_abort(fd, call, h->fail_code);
            return false;
        }
    }
    return true;
}

static struct how how_of(const unsigned char *p)
{
    return (struct how){ get64(p), get32(p + 8), get32(p + 12), get32(p + 16), get32(p + 20) };
}

/* answer_stream answers Put, Get and Both. */
static void answer_stream(int fd, unsigned long call, int op, const unsigned char *p, size_t n)
{
    unsigned char seen[SEEN_SIZE];
    struct how how;
    uint64_t bad = 0;
    double begun = now();
    if (n < HOW_SIZE) {
        send_abort(fd, call, SS_UNMARSHAL);
        return;
    }
    how = how_of(p);
    if (op != OP_GET) {
        if (n - HOW_SIZE != how.length) {
            send_abort(fd, call, SS_UNMARSHAL);
            return;
        }
        bad = mismatches(p + HOW_SIZE, how.length);
        how = (struct how){ .length = how.length }; /* the other stream neither stops nor fails */
    }
    if (op != OP_PUT && !stream(fd, call, &how))
        return;
    put64(seen, how.length);
    put64(seen + 8, bad);
    put32(seen + 16, (now() - begun) * 1e6);
    send_data(fd, call, seen, sizeof seen, false);
}

/* answer answers a request that is whole. */
static void answer(int fd, unsigned long call, const struct request *r)
{
    const unsigned char *p = r->b + 4;
    size_t n = r->n - 4;
    if (r->n < 4) {
        send_abort(fd, call, NO_OPCODE);
        return;
    }
    uint32_t op = get32(r->b);
    if (n < 4 && op >= OP_ECHO && op <= OP_SLOW) {
        send_abort(fd, call, SS_UNMARSHAL);
        return;
    }
    switch (op) {
    case OP_NULL:
        send_data(fd, call, NULL, 0, false);
        return;
    case OP_ECHO:
        send_data(fd, call, p, n, false);
        return;
    case OP_FAIL:
        if (get32(p))
            send_abort(fd, call, get32(p));
        else
            send_data(fd, call, NULL, 0, false);
        return;
    case OP_SLOW:
        usleep(get32(p) * 1000);
        send_data(fd, call, p, 4, false);
        return;
    case OP_PUT:
    case OP_GET:
    case OP_BOTH:
        answer_stream(fd, call, op, p, n);
        return;
    default:
        send_abort(fd, call, BAD_OPCODE);
    }
}

/* obey does what a stream to the server is to meet amid it; false if the call has ended. before
 * is how much of the request was here before the last piece. */
static bool obey(int fd, unsigned long call, const struct request *r, size_t before)
{
    const size_t head = 4 + HOW_SIZE;
    struct how how;
    if (r->n < head || (get32(r->b) != OP_PUT && get32(r->b) != OP_BOTH))
        return true;
    how = how_of(r->b + 4);
    if (how.pause_ms && r->n >= head + how.pause_at && before < head + how.pause_at)
        usleep(how.pause_ms * 1000);
    if (how.fail_code && r->n >= head + how.fail_at) {
        send_abort(fd, call, how.fail_code);
        return false;
    }
    return true;
}

static void add_service_key(int service, long ring)
{
    char description[32];
    unsigned char des[8];
    unhex(opt.des, des, sizeof des);
    snprintf(description, sizeof description, "%d:2", service);
    add_key("rxrpc_s", description, des, sizeof des, ring);
}

static int listen_at(void)
{
    enum { PROCESS_KEYRING = -2, SOL = 272 };
    const char ring_name[] = "rxrpc-server";
    int fd = open_socket();
    long ring = add_key("keyring", ring_name, NULL, 0, PROCESS_KEYRING);
    struct sockaddr_rxrpc s = address(NULL, opt.port, opt.service);
    add_service_key(opt.service, ring);
    if (setsockopt(fd, SOL, RXRPC_SECURITY_KEYRING, ring_name, strlen(ring_name)))
        die("RXRPC_SECURITY_KEYRING");
    if (opt.level >= 0 && setsockopt(fd, SOL, RXRPC_MIN_SECURITY_LEVEL, &opt.level, sizeof opt.level))
        die("RXRPC_MIN_SECURITY_LEVEL");
    if (bind(fd, (void *)&s, sizeof s))
        die("bind");
    if (listen(fd, PENDING))
        die("listen");
    return fd;
}

/* handle handles what the socket has brought of a call. */
static void handle(int fd, const struct message *m)
{
    struct request *r = &requests[m->call];
    size_t before = r->n;
    if (m->abort || m->network || m->local || m->acked) { /* the call has ended: its number is free */
        if (!m->acked)
            printf("ended call=%lu abort=%d network=%d local=%d\n", m->call, m->abort, m->network, m->local);
        r->n = 0;
        charge(fd, m->call);
        return;
    }
    if (r->n + m->n > r->room) {
        r->room = (r->n + m->n) * 2;
        r->b = realloc(r->b, r->room);
    }
    memcpy(r->b + r->n, m->b, m->n);
    r->n += m->n;
    if (!obey(fd, m->call, r, before))
        r->n = 0;
    else if (!(m->flags & MSG_MORE)) { /* MSG_EOR would come when the call is over */
        answer(fd, m->call, r);
        r->n = 0;
    }
}

int serve(void)
{
    static struct message m;
    unsigned long next = 0;
    int fd = listen_at();
    while (next < PENDING)
        charge(fd, next++);
    printf("serving service=%d port=%d\n", opt.service, opt.port);
    for (;;) {
        if (receive(fd, &m)) {
            if (errno != EINTR && errno != ENODATA)
                perror("recvmsg");
        } else if (m.has_call)
            handle(fd, &m);
        else if (m.new_call && next < MOST_CALLS)
            charge(fd, next++);
    }
}
