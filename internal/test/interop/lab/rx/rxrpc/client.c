#include "rxrpc.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fd;
static struct sockaddr_rxrpc peer;
static unsigned long last_call;

/* request sends a head, then n bytes of the pattern, as far as opt.quit. */
static int request(unsigned long call, const unsigned char *head, int head_length, uint64_t n)
{
    struct control c = { .length = 0 };
    int64_t total = head_length + n;
    add(&c, RXRPC_USER_CALL_ID, &call, sizeof call);
    if (opt.upgrade)
        add(&c, RXRPC_UPGRADE_SERVICE, NULL, 0);
    if (opt.quit < 0)
        add(&c, RXRPC_TX_LENGTH, &total, sizeof total);
    if (send_message(fd, &c, &peer, head, head_length, n ? MSG_MORE : 0) < 0)
        return -1;
    for (uint64_t at = 0; at < n;) {
        uint64_t piece = n - at > PIECE ? PIECE : n - at;
        if (opt.quit >= 0 && at + piece > (uint64_t)opt.quit) {
            send_abort(fd, call, USER_ABORT);
            return 0;
        }
        if (send_data(fd, call, pattern + at % PIECE, piece, at + piece < n) < 0)
            return -1;
        at += piece;
    }
    return 0;
}

/* answer collects a reply, and returns its length, or -1 with what has ended the call in code. */
static int64_t answer(unsigned long call, unsigned char **reply, int32_t *code)
{
    enum { PATIENCE_MS = 120000 };
    static struct message m;
    size_t room = PIECE, n = 0;
    *reply = malloc(room);
    *code = 0;
    do {
        struct pollfd readable = { fd, POLLIN, 0 };
        if (poll(&readable, 1, PATIENCE_MS) == 0 || receive(fd, &m)) {
            *code = -1000 - errno;
            return -1;
        }
        if (m.call != call) {
            printf("other call=%lu\n", m.call);
            m.flags = 0;
            continue;
        }
        if (m.abort || m.network || m.local || m.busy) {
            printf("ended abort=%d network=%d local=%d busy=%d\n", m.abort, m.network, m.local, m.busy);
            *code = m.abort ? m.abort : -1000 - (m.network ? m.network : m.local);
            return -1;
        }
        if (n + m.n > room)
            *reply = realloc(*reply, room = (n + m.n) * 2);
        memcpy(*reply + n, m.b, m.n);
        n += m.n;
    } while (!(m.flags & MSG_EOR));
    return n;
}

/* head writes a request's opcode and arguments, and returns their length. */
static int head(unsigned char *b, int op, uint64_t n)
{
    put32(b, op);
    if (op == OP_NULL)
        return 4;
    if (op == OP_ECHO || op == OP_FAIL || op == OP_SLOW) {
        put32(b + 4, n);
        return 8;
    }
    put64(b + 4, n);
    put32(b + 12, opt.how.pause_ms);
    put32(b + 16, opt.how.pause_at);
    put32(b + 20, opt.how.fail_code);
    put32(b + 24, opt.how.fail_at);
    return 4 + HOW_SIZE;
}

/* right reports whether a reply is what it should be. */
static bool right(int op, uint64_t n, const unsigned char *p, int64_t length)
{
    switch (op) {
    case OP_ECHO:
        return length == 4 + (((int64_t)n + 3) & ~3) && get32(p) == n && !mismatches(p + 4, n);
    case OP_SLOW:
        return length == 4 && get32(p) == n;
    case OP_PUT:
        return length == SEEN_SIZE && get64(p) == n && get64(p + 8) == 0;
    case OP_GET:
    case OP_BOTH:
        return length == (int64_t)n + SEEN_SIZE && !mismatches(p, n) && get64(p + n) == n && get64(p + n + 8) == 0;
    default:
        return length == 0;
    }
}

/* call makes a call, and returns the code it has ended with. */
static int32_t call(int op, uint64_t n)
{
    unsigned char b[4 + HOW_SIZE], *reply = NULL;
    uint64_t stream = op == OP_ECHO ? (n + 3) & ~3ull : op == OP_PUT || op == OP_BOTH ? n : 0;
    int32_t code;
    if (request(++last_call, b, head(b, op, n), stream) < 0)
        perror("sendmsg"); /* the reply tells why */
    int64_t length = answer(last_call, &reply, &code);
    if (length >= 0 && !right(op, n, reply, length))
        code = DAMAGED;
    free(reply);
    return code;
}

static int failures;

static void check(const char *what, int op, int64_t n, int32_t want)
{
    int32_t code = call(op, n);
    failures += code != want;
    printf("%-7s %s %lld: code %d\n", code == want ? "ok" : "FAILED", what, (long long)n, code);
}

static void check_all(void)
{
    static const int lengths[] = { 0, 1, 4, 1000, 1404, 1408, 1412, 1413, 5000, 65536, 300000 };
    check("null", OP_NULL, 0, 0);
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        check("echo", OP_ECHO, lengths[i], 0);
        check("put", OP_PUT, lengths[i], 0);
        check("get", OP_GET, lengths[i], 0);
        check("both", OP_BOTH, lengths[i], 0);
    }
    check("fail", OP_FAIL, 12345, 12345);
    check("fail", OP_FAIL, -7777, -7777);
    check("slow", OP_SLOW, 1000, 0);
    opt.how = (struct how){ .fail_code = 4711, .fail_at = 50000 };
    check("get, aborted amid it", OP_GET, 200000, 4711);
    check("put, aborted amid it", OP_PUT, 200000, 4711);
    opt.how = (struct how){ .pause_ms = 500, .pause_at = 50000 };
    check("put, reader stops", OP_PUT, 200000, 0);
    check("get, writer stops", OP_GET, 200000, 0);
    opt.how = (struct how){ 0 };
    check("null", OP_NULL, 0, 0);
}

/* check_parallel makes calls at once: more than four need a second connection. */
static void check_parallel(int count)
{
    static struct message m;
    unsigned char b[8];
    int ended = 0;
    for (int i = 1; i <= count; i++)
        if (request(i, b, head(b, OP_SLOW, 300), 0) < 0)
            perror("sendmsg");
    while (ended < count) {
        if (receive(fd, &m))
            die("recvmsg");
        if (m.abort || m.network || m.local)
            failures++;
        else if (!(m.flags & MSG_EOR))
            continue;
        printf("%-7s call %lu: code %d\n", m.abort || m.network || m.local ? "FAILED" : "ok", m.call, m.abort);
        ended++;
    }
}

static void dial(void)
{
    enum { PROCESS_KEYRING = -2, SOL = 272 };
    const char key[] = "rxr@rx.test";
    fd = open_socket();
    if (opt.key) {
        add_token(key, PROCESS_KEYRING);
        if (setsockopt(fd, SOL, RXRPC_SECURITY_KEY, key, strlen(key)))
            die("RXRPC_SECURITY_KEY");
        if (opt.level >= 0 && setsockopt(fd, SOL, RXRPC_MIN_SECURITY_LEVEL, &opt.level, sizeof opt.level))
            die("RXRPC_MIN_SECURITY_LEVEL");
    }
    struct sockaddr_rxrpc own = address(NULL, 0, 0);
    if (bind(fd, (void *)&own, sizeof own))
        die("bind");
    peer = address(opt.address, opt.port, opt.service);
}

int call_once(int count, char **words)
{
    static const struct { const char *name; int op; } ops[] = {
        { "null", OP_NULL }, { "echo", OP_ECHO }, { "put", OP_PUT }, { "get", OP_GET },
        { "fail", OP_FAIL }, { "slow", OP_SLOW }, { "both", OP_BOTH },
    };
    long amount = count > 1 ? atol(words[1]) : 1;
    int32_t code = -1;
    double begun = now();
    dial();
    if (!strcmp(words[0], "all") || !strcmp(words[0], "par")) {
        if (words[0][0] == 'a')
            check_all();
        else
            check_parallel(amount);
        code = failures;
    }
    for (unsigned i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (!strcmp(words[0], ops[i].name))
            for (long k = ops[i].op == OP_NULL ? amount : 1; k > 0; k--)
                if ((code = call(ops[i].op, amount)))
                    break;
    printf("end code=%d seconds=%.3f\n", code, now() - begun);
    return code != 0;
}
