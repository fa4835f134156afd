#include "peer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int rx_intentionallyDroppedPacketsPer100, rx_UdpBufSize;

static const char usage[] =
    "rxr server [OPTIONS]                                        serves until it is ended\n"
    "rxr client [OPTIONS] COMMAND [ARGS] [, COMMAND [ARGS]]...   commands on one connection\n"
    "rxr ticket [OPTIONS]                                        prints a ticket and its session key\n"
    "\n"
    "Both:    -a ADDR -p PORT -service ID -window PACKETS -nojumbo -mtu BYTES -udpbuf BYTES -drop PERCENT\n"
    "         -key KVNO:ENCTYPE:HEX (ENCTYPE 0: DES)\n"
    "Server:  -threads N -level clear|auth|crypt (the least that it takes) -nonull -reach\n"
    "Client:  -sec null|clear|auth|crypt -old (ticket; default: Kerberos 5) -user NAME[.INSTANCE][@CELL]\n"
    "         -start TIME -end TIME -dead S -idle S -hard S\n"
    "         -pause MS -pauseat N -failcode CODE -failat N   what the server does in put, get, both\n"
    "         -quit N   the client gives up put or get after N bytes\n"
    "\n"
    "Commands: null [N] | echo N | put N | get N | both N | fail CODE | slow MS | whoami | sleep MS\n"
    "          all                 every operation, checked\n"
    "          call OPCODE [HEX]   any operation of any service; prints the reply in hex\n"
    "          perf null SECONDS [THREADS] | perf put MIB [THREADS] | perf get MIB [THREADS]\n"
    "Status: 0, or 1 if the last command has failed, 2 if the command line is wrong.\n";

struct options opt = { .port = 7077, .service = 2077, .threads = 8, .security = -1, .user = "rxref", .cell = "rx.test", .quit = -1 };

void die(const char *what, const char *which)
{
    fprintf(stderr, "rxr: %s%s%s\n", what, which ? ": " : "", which ? which : "");
    exit(2);
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
    for (; s[0] && s[1]; s += 2) {
        unsigned v;
        if (n == most || sscanf(s, "%2x", &v) != 1)
            die("hex is wrong or too long", s);
        b[n++] = v;
    }
    return n;
}

static int level(const char *name)
{
    static const char *const names[] = { "null", "clear", "auth", "crypt" };
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i]))
            return i - 1;
    die("a level is null, clear, auth or crypt", name);
}

/* user reads NAME[.INSTANCE][@CELL]. */
static void user(const char *text)
{
    char *at, *dot;
    snprintf(opt.user, sizeof opt.user, "%s", text);
    opt.instance[0] = 0;
    if ((at = strchr(opt.user, '@'))) {
        *at = 0;
        snprintf(opt.cell, sizeof opt.cell, "%s", at + 1);
    }
    if ((dot = strchr(opt.user, '.'))) {
        *dot = 0;
        snprintf(opt.instance, sizeof opt.instance, "%s", dot + 1);
    }
}

static bool flag(const char *name)
{
    static const struct { const char *name; bool *set; } flags[] = {
        { "nojumbo", &opt.nojumbo }, { "nonull", &opt.nonull }, { "reach", &opt.reach }, { "old", &opt.old },
    };
    for (unsigned i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (!strcmp(name, flags[i].name))
            return *flags[i].set = true;
    return false;
}

static bool number(const char *name, const char *value)
{
    static const struct { const char *name; void *set; } numbers[] = {
        { "p", &opt.port }, { "service", &opt.service }, { "window", &opt.window }, { "mtu", &opt.mtu },
        { "udpbuf", &opt.udpbuf }, { "drop", &opt.drop }, { "threads", &opt.threads },
        { "start", &opt.start }, { "end", &opt.end }, { "dead", &opt.dead }, { "idle", &opt.idle }, { "hard", &opt.hard },
        { "pause", &opt.how.pause_ms }, { "pauseat", &opt.how.pause_at },
        { "failcode", &opt.how.fail_code }, { "failat", &opt.how.fail_at },
    };
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!strcmp(name, numbers[i].name)) {
            *(int32_t *)numbers[i].set = strtoll(value, NULL, 0); /* all have 32 bits */
            return true;
        }
    return false;
}

/* options reads what begins with "-", and returns how many words those were. */
static int options(int count, char **words)
{
    int i;
    for (i = 0; i < count && words[i][0] == '-'; i++) {
        const char *name = words[i] + 1, *value;
        if (flag(name))
            continue;
        if (++i == count)
            die("no value", name);
        value = words[i];
        if (number(name, value))
            continue;
        else if (!strcmp(name, "a")) {
            if (!inet_aton(value, &opt.address))
                die("no address", value);
        } else if (!strcmp(name, "level"))
            opt.level = level(value);
        else if (!strcmp(name, "sec"))
            opt.security = level(value);
        else if (!strcmp(name, "quit"))
            opt.quit = atoll(value);
        else if (!strcmp(name, "user"))
            user(value);
        else if (!strcmp(name, "key"))
            add_key(value);
        else
            die("no such option", name);
    }
    default_keys();
    if (!opt.start)
        opt.start = time(NULL) - 300;
    if (!opt.end)
        opt.end = opt.start + 36000;
    return i;
}

/* open_library opens a client's port if port is 0. */
void open_library(int port)
{
    if (opt.udpbuf)
        rx_UdpBufSize = opt.udpbuf;
    if (rx_InitHost(port ? opt.address.s_addr : htonl(INADDR_ANY), htons(port)))
        die("the port can't be had", NULL);
    if (opt.nojumbo)
        rx_SetNoJumbo();
    if (opt.mtu)
        rx_SetMaxMTU(opt.mtu);
    if (opt.window) {
        rx_SetMaxReceiveWindow(opt.window);
        rx_SetMaxSendWindow(opt.window);
    }
    rx_intentionallyDroppedPacketsPer100 = opt.drop;
}

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "";
    int i = options(argc > 2 ? argc - 2 : 0, argv + 2) + 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    make_pattern();
    if (!strcmp(role, "server") && i >= argc)
        return serve();
    if (!strcmp(role, "client") && i < argc)
        return call_all(argc - i, argv + i);
    if (!strcmp(role, "ticket") && i >= argc) {
        print_ticket();
        return 0;
    }
    fputs(usage, stderr);
    return 2;
}
