#include "rdspeer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rds.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct options opt = { .sockets = 1, .count = 1, .sizes = { 64 }, .size_count = 1, .sndbuf = 8 << 20 };

static const char usage[] =
    "rdspeer COMMAND -a ADDRESS [-p PORT] [-A PEER] [-P PORT] [-n SOCKETS] [-c COUNT] [-s SIZE[,SIZE]...]\n"
    "        [-T TOS] [-b RCVBUF] [-B SNDBUF] [-w MS] [-o]\n"
    "  echo   sends what comes back to where it came from, until it is ended\n"
    "  ask    sends COUNT messages of each SIZE from each socket, each after the echo of the one before\n"
    "  ping   sends COUNT pings, each after the answer to the one before\n"
    "  send   sends COUNT numbered messages from each socket, and stays until it is ended\n"
    "  recv   receives COUNT numbered messages in all, or until it is ended (SIGTERM), and says for each pair of sockets what came\n"
    "  offer  maps SIZE bytes, and asks the peer to write them (-o: for one use)\n"
    "  serve  writes COUNT times what it is asked to write, then answers\n"
    "Socket i of SOCKETS has PORT+i, and sends to PEER's PORT+i.\n";

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void die(const char *what)
{
    say("error what=%s errno=%d (%s)", what, errno, strerror(errno));
    exit(1);
}

union address address(const char *host, int port)
{
    union address a;
    memset(&a, 0, sizeof a);
    if (inet_pton(AF_INET, host, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons(port);
    } else if (inet_pton(AF_INET6, host, &a.v6.sin6_addr) == 1) {
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons(port);
    } else {
        fprintf(stderr, "rdspeer: %s is no address\n", host);
        exit(2);
    }
    return a;
}

socklen_t length(const union address *a)
{
    return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

int open_socket(int index)
{
    int s = socket(AF_RDS, SOCK_SEQPACKET, 0);
    if (s < 0)
        die("socket");
    union address a = address(opt.own, opt.port ? opt.port + index : 0);
    if (bind(s, &a.any, length(&a)))
        die("bind");
    unsigned char tos = opt.tos;
    if (tos && ioctl(s, SIOCRDSSETTOS, &tos))
        die("SIOCRDSSETTOS");
    if (setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &opt.sndbuf, sizeof opt.sndbuf))
        die("SO_SNDBUFFORCE");
    if (opt.rcvbuf && setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &opt.rcvbuf, sizeof opt.rcvbuf))
        die("SO_RCVBUFFORCE");
    return s;
}

static void parse_sizes(char *list)
{
    opt.size_count = 0;
    for (char *s = strtok(list, ","); s && opt.size_count < MOST_SIZES; s = strtok(NULL, ","))
        opt.sizes[opt.size_count++] = strtoul(s, NULL, 0);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); bool peer; } commands[] = {
        { "echo", echo, false }, { "ask", ask, true }, { "ping", ping, true }, { "send", send_numbered, true },
        { "recv", receive_numbered, false }, { "offer", offer, true }, { "serve", serve, false },
    };
    int o;
    while ((o = getopt(argc, argv, "a:p:A:P:n:c:s:T:b:B:w:o")) != -1)
        switch (o) {
        case 'a': opt.own = optarg; break;
        case 'p': opt.port = atoi(optarg); break;
        case 'A': opt.peer = optarg; break;
        case 'P': opt.peer_port = atoi(optarg); break;
        case 'n': opt.sockets = atoi(optarg); break;
        case 'c': opt.count = atol(optarg); break;
        case 's': parse_sizes(optarg); break;
        case 'T': opt.tos = atoi(optarg); break;
        case 'b': opt.rcvbuf = atoi(optarg); break;
        case 'B': opt.sndbuf = atoi(optarg); break;
        case 'w': opt.wait_ms = atoi(optarg); break;
        case 'o': opt.once = true; break;
        default: fputs(usage, stderr); return 2;
        }
    for (size_t i = 0; optind < argc && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[optind], commands[i].name)) {
            bool sizes = opt.size_count > 0;
            for (int k = 0; k < opt.size_count; k++)
                sizes = sizes && opt.sizes[k] <= LONGEST;
            if (!opt.own || (commands[i].peer && !opt.peer) || opt.sockets < 1 || !sizes)
                break;
            commands[i].run();
            return 0;
        }
    fputs(usage, stderr);
    return 2;
}
