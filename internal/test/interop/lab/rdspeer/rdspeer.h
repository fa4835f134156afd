/* A peer over AF_RDS sockets, whatever transport the kernel has for the addresses. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { LONGEST = 1 << 20, MOST_SIZES = 32 };

/* What the command line says. */
struct options {
    const char *own, *peer;     /* addresses */
    int port, peer_port;        /* of the first socket */
    int sockets;
    long count;
    size_t sizes[MOST_SIZES];
    int size_count;
    int tos;
    int wait_ms;                /* before the first message is read */
    int rcvbuf, sndbuf;
    bool once;                  /* mapped memory is for one use */
};
extern struct options opt;

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* rdspeer.c */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
__attribute__((noreturn)) void die(const char *what);
union address address(const char *host, int port);
socklen_t length(const union address *a);
int open_socket(int index);

/* message.c: message NUMBER of so many bytes holds its number, if there is room, and a pattern. */
void fill(unsigned char *p, size_t size, uint64_t number);
bool holds(const unsigned char *p, size_t size, uint64_t number);
uint64_t number_of(const unsigned char *p, size_t size, uint64_t expected);

/* hash.c: the SHA-256 of what is added, as text. */
int hash_begin(void);
void hash_add(int h, const unsigned char *p, size_t n);
const char *hash_end(int h);

/* The commands. */
void echo(void);
void ask(void);
void ping(void);
void send_numbered(void);
void receive_numbered(void);
void offer(void);
void serve(void);
