/* Messages that are answered, numbered, and counted. */
#include "rdspeer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rds.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned char buf[LONGEST], want[LONGEST];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* open_sockets returns them ready to be polled. */
static struct pollfd *open_sockets(void)
{
    struct pollfd *s = calloc(opt.sockets, sizeof *s);
    for (int i = 0; i < opt.sockets; i++)
        s[i] = (struct pollfd){ .fd = open_socket(i), .events = POLLIN };
    say("ready sockets=%d", opt.sockets);
    return s;
}

static ssize_t take(int s, int flags, union address *from)
{
    socklen_t n = sizeof *from;
    ssize_t got = recvfrom(s, buf, sizeof buf, flags, &from->any, &n);
    if (got < 0 && errno != EAGAIN)
        die("recvfrom");
    return got;
}

void echo(void)
{
    struct pollfd *s = open_sockets();
    for (;;) {
        if (poll(s, opt.sockets, -1) < 0)
            die("poll");
        for (int i = 0; i < opt.sockets; i++) {
            union address from;
            ssize_t n;
            while (s[i].revents & POLLIN && (n = take(s[i].fd, MSG_DONTWAIT, &from)) >= 0)
                if (sendto(s[i].fd, buf, n, 0, &from.any, length(&from)) != n)
                    die("sendto");
        }
    }
}

void ask(void)
{
    struct pollfd *s = open_sockets();
    uint64_t number = 0;
    for (long c = 0; c < opt.count; c++)
        for (int k = 0; k < opt.size_count; k++) {
            ssize_t size = opt.sizes[k];
            for (int i = 0; i < opt.sockets; i++) {
                union address to = address(opt.peer, opt.peer_port + i);
                fill(buf, size, number + i);
                if (sendto(s[i].fd, buf, size, 0, &to.any, length(&to)) != size)
                    die("sendto");
            }
            for (int i = 0; i < opt.sockets; i++, number++) {
                union address from;
                if (take(s[i].fd, 0, &from) != size || !holds(buf, size, number)) {
                    say("wrong size=%zd number=%llu", size, (unsigned long long)number);
                    exit(4);
                }
            }
            say("echoed size=%zd sockets=%d", size, opt.sockets);
        }
    say("end echoes=%llu", (unsigned long long)number);
}

void ping(void)
{
    int s = open_socket(0);
    union address to = address(opt.peer, 0), from;
    for (long c = 0; c < opt.count; c++) {
        double t = now();
        if (sendto(s, "", 0, 0, &to.any, length(&to)) != 0)
            die("sendto");
        ssize_t n = take(s, 0, &from);
        say("pong size=%zd port=%d us=%.0f", n, ntohs(from.v4.sin_port), (now() - t) * 1e6);
    }
}

/* drain takes what there is besides data: that ports are free again. */
static void drain(int s)
{
    unsigned char control[256];
    struct msghdr m = { .msg_control = control, .msg_controllen = sizeof control };
    while (recvmsg(s, &m, MSG_DONTWAIT) >= 0) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
            if (c->cmsg_level == SOL_RDS && c->cmsg_type == RDS_CMSG_CONG_UPDATE) {
                uint64_t ports;
                memcpy(&ports, CMSG_DATA(c), sizeof ports);
                say("update ports=%#llx", (unsigned long long)ports);
            }
        m.msg_controllen = sizeof control;
    }
}

void send_numbered(void)
{
    struct pollfd *s = open_sockets();
    long *sent = calloc(opt.sockets, sizeof *sent);
    int *hash = calloc(opt.sockets, sizeof *hash);
    bool *congested = calloc(opt.sockets, sizeof *congested);
    long left = opt.count * opt.sockets;
    int on = 1;
    for (int i = 0; i < opt.sockets; i++) {
        if (setsockopt(s[i].fd, SOL_RDS, RDS_CONG_MONITOR, &on, sizeof on))
            die("RDS_CONG_MONITOR");
        hash[i] = hash_begin();
    }
    while (left > 0) {
        bool went = false;
        for (int i = 0; i < opt.sockets; i++) {
            size_t size = opt.sizes[(sent[i] + i) % opt.size_count];
            union address to = address(opt.peer, opt.peer_port + i);
            if (sent[i] == opt.count)
                continue;
            fill(want, size, sent[i]);
            if (sendto(s[i].fd, want, size, MSG_DONTWAIT, &to.any, length(&to)) == (ssize_t)size) {
                if (congested[i])
                    say("uncongested socket=%d sent=%ld", i, sent[i]);
                congested[i] = false;
                hash_add(hash[i], want, size);
                went = true;
                sent[i]++;
                left--;
            } else if (errno == ENOBUFS) {
                if (!congested[i])
                    say("congested socket=%d sent=%ld", i, sent[i]);
                congested[i] = true;
            } else if (errno != EAGAIN) {
                die("sendto");
            }
            drain(s[i].fd);
        }
        if (!went)
            poll(s, opt.sockets, 5);
    }
    for (int i = 0; i < opt.sockets; i++)
        say("pair from=%d to=%d messages=%ld sha256=%s", opt.port + i, opt.peer_port + i, sent[i], hash_end(hash[i]));
    say("sent messages=%ld", opt.count * opt.sockets);
    /* A socket that is closed drops what is not acknowledged. */
    pause();
}

/* A pair of sockets, and what has come from the one to the other. */
struct pair {
    union address from;
    int socket, hash;
    uint64_t first, next, doubled, lost, wrong, bytes;
    long messages;
};

static struct pair *pair_of(struct pair **pairs, int *count, const union address *from, int socket)
{
    static int last;
    if (last < *count && (*pairs)[last].socket == socket && !memcmp(&(*pairs)[last].from, from, length(from)))
        return *pairs + last;
    for (last = 0; last < *count; last++)
        if ((*pairs)[last].socket == socket && !memcmp(&(*pairs)[last].from, from, length(from)))
            return *pairs + last;
    *pairs = realloc(*pairs, (*count + 1) * sizeof **pairs);
    struct pair *p = *pairs + (*count)++;
    memset(p, 0, sizeof *p);
    memcpy(&p->from, from, length(from));
    p->socket = socket;
    p->hash = hash_begin();
    return p;
}

static void note(struct pair *p, size_t size)
{
    uint64_t number = number_of(buf, size, p->next);
    if (!p->messages++)
        p->first = number;
    p->bytes += size;
    p->wrong += !holds(buf, size, number);
    hash_add(p->hash, buf, size);
    if (number < p->next) {
        p->doubled++;
        return;
    }
    p->lost += number - p->next;
    p->next = number + 1;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
    (void)signal;
    ended = 1;
}

void receive_numbered(void)
{
    sigaction(SIGTERM, &(struct sigaction){ .sa_handler = end }, NULL);
    struct pollfd *s = open_sockets();
    struct pair *pairs = NULL;
    int count = 0;
    long got = 0;
    usleep(opt.wait_ms * 1000);
    while (got < opt.count) {
        int some = poll(s, opt.sockets, ended ? 0 : 1000);
        if (some < 0 && errno != EINTR)
            die("poll");
        if (some <= 0 && ended)
            break;
        for (int i = 0; some > 0 && i < opt.sockets; i++) {
            union address from;
            ssize_t n;
            while (s[i].revents & POLLIN && got < opt.count && (n = take(s[i].fd, MSG_DONTWAIT, &from)) >= 0) {
                note(pair_of(&pairs, &count, &from, i), n);
                got++;
            }
        }
    }
    for (int i = 0; i < count; i++) {
        struct pair *p = pairs + i;
        say("pair from=%d to=%d messages=%ld bytes=%llu first=%llu lost=%llu doubled=%llu wrong=%llu sha256=%s", ntohs(p->from.v4.sin_port), opt.port + p->socket,
            p->messages, (unsigned long long)p->bytes, (unsigned long long)p->first, (unsigned long long)p->lost, (unsigned long long)p->doubled, (unsigned long long)p->wrong, hash_end(p->hash));
    }
    say("end messages=%ld pairs=%d", got, count);
}
