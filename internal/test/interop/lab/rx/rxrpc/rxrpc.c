#define _GNU_SOURCE
#include "rxrpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "rxrpc server [-p PORT] [-service ID] [-des HEX] [-sec LEVEL]   serves until it is ended\n"
    "rxrpc client [-a ADDR] [-p PORT] [-service ID] [-key KEY -sec LEVEL] [-upgrade] [-quit N]\n"
    "             [-pause MS -pauseat N] [-failcode CODE -failat N] COMMAND\n"
    "  null [N] | echo N | put N | get N | both N | fail CODE | slow MS | par N (calls at once) | all\n"
    "rxrpc token -key KEY afs@CELL COMMAND...   runs a command that has this token, for kAFS\n"
    "A LEVEL is clear, auth or crypt. A KEY is what `rxr ticket` prints: KVNO:END:SESSIONKEY:TICKET.\n"
    "The kernel's server opens only old tickets, with the DES key -des, version 2.\n";

struct options opt = { .address = "10.0.2.2", .port = 7077, .service = 2077, .level = -1, .des = "0123456789abcdef", .quit = -1 };
unsigned char pattern[2 * PIECE]; /* it repeats after PIECE bytes */

void die(const char *what)
{
    perror(what);
    exit(1);
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int unhex(const char *s, unsigned char *b, int most)
{
    int n = 0;
    unsigned v;
    for (; s[0] && s[1] && n < most && sscanf(s, "%2x", &v) == 1; s += 2)
        b[n++] = v;
    return n;
}

void put32(unsigned char *p, uint32_t v)
{
    v = htonl(v);
    memcpy(p, &v, 4);
}

uint32_t get32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return ntohl(v);
}

void put64(unsigned char *p, uint64_t v)
{
    put32(p, v >> 32);
    put32(p + 4, v);
}

uint64_t get64(const unsigned char *p) { return (uint64_t)get32(p) << 32 | get32(p + 4); }

uint64_t mismatches(const unsigned char *p, uint64_t n)
{
    uint64_t bad = 0;
    for (uint64_t i = 0; i < n; i++)
        bad += p[i] != pattern[i % PIECE];
    return bad;
}

static bool is6(void) { return opt.address && strchr(opt.address, ':'); }

/* address is of a service at a host, or at all of this one's addresses if host is NULL. */
struct sockaddr_rxrpc address(const char *host, int port, int service)
{
    struct sockaddr_rxrpc s = { .srx_family = AF_RXRPC, .srx_service = service, .transport_type = SOCK_DGRAM };
    if (is6()) {
        s.transport_len = sizeof s.transport.sin6;
        s.transport.sin6.sin6_family = AF_INET6;
        s.transport.sin6.sin6_port = htons(port);
        if (host)
            inet_pton(AF_INET6, host, &s.transport.sin6.sin6_addr);
    } else {
        s.transport_len = sizeof s.transport.sin;
        s.transport.sin.sin_family = AF_INET;
        s.transport.sin.sin_port = htons(port);
        if (host)
            inet_pton(AF_INET, host, &s.transport.sin.sin_addr);
    }
    return s;
}

int open_socket(void)
{
    int fd = socket(AF_RXRPC, SOCK_DGRAM, is6() ? PF_INET6 : PF_INET);
    if (fd < 0)
        die("socket");
    return fd;
}

long add_key(const char *type, const char *description, const void *payload, size_t length, long ring)
{
    long key = syscall(SYS_add_key, type, description, payload, length, ring);
    if (key < 0)
        die(type);
    return key;
}

/* add_token adds opt.key as aklog would. All but the session key and the ticket is in the
 * machine's order of bytes. */
void add_token(const char *description, long ring)
{
    enum { HEAD = 24, LONGEST = 12000 };
    static unsigned char payload[HEAD + LONGEST];
    const uint32_t version = 1;
    const uint16_t security = 2;
    uint32_t kvno, end;
    uint16_t length;
    char session[17];
    int ticket;
    if (sscanf(opt.key, "%u:%u:%16[0-9a-f]:%n", &kvno, &end, session, &ticket) != 3) {
        fputs(usage, stderr);
        exit(2);
    }
    length = unhex(opt.key + ticket, payload + HEAD, LONGEST);
    memcpy(payload, &version, 4);
    memcpy(payload + 4, &security, 2);
    memcpy(payload + 6, &length, 2);
    memcpy(payload + 8, &end, 4);
    memcpy(payload + 12, &kvno, 4);
    unhex(session, payload + 16, 8);
    add_key("rxrpc", description, payload, HEAD + length, ring);
}

int with_token(int count, char **words)
{
    enum { JOIN_SESSION_KEYRING = 1, SESSION_KEYRING = -3 };
    if (count < 2 || !opt.key) {
        fputs(usage, stderr);
        return 2;
    }
    if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL) < 0)
        die("keyctl");
    add_token(words[0], SESSION_KEYRING);
    execvp(words[1], words + 1);
    die(words[1]);
}

static int level(const char *name)
{
    static const char *const names[] = { "clear", "auth", "crypt" };
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i]))
            return i;
    return -1;
}

static bool option(const char *name, const char *value)
{
    if (!strcmp(name, "a"))
        opt.address = value;
    else if (!strcmp(name, "p"))
        opt.port = atoi(value);
    else if (!strcmp(name, "service"))
        opt.service = atoi(value);
    else if (!strcmp(name, "des"))
        opt.des = value;
    else if (!strcmp(name, "key"))
        opt.key = value;
    else if (!strcmp(name, "sec"))
        opt.level = level(value);
    else if (!strcmp(name, "quit"))
        opt.quit = atol(value);
    else if (!strcmp(name, "pause"))
        opt.how.pause_ms = atoi(value);
    else if (!strcmp(name, "pauseat"))
        opt.how.pause_at = atoi(value);
    else if (!strcmp(name, "failcode"))
        opt.how.fail_code = atoi(value);
    else if (!strcmp(name, "failat"))
        opt.how.fail_at = atoi(value);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "";
    int i;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (i = 0; i < 2 * PIECE; i++)
        pattern[i] = i * 31 + (i >> 8);
    for (i = 2; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-upgrade")) {
            opt.upgrade = true;
            continue;
        }
        if (i + 1 == argc || !option(argv[i] + 1, argv[i + 1])) {
            fputs(usage, stderr);
            return 2;
        }
        i++;
    }
    if (!strcmp(role, "server") && i == argc) {
        if (!is6())
            opt.address = NULL;
        return serve();
    }
    if (!strcmp(role, "client") && i < argc)
        return call_once(argc - i, argv + i);
    if (!strcmp(role, "token"))
        return with_token(argc - i, argv + i);
    fputs(usage, stderr);
    return 2;
}
