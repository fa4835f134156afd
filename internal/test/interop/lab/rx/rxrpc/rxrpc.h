/* The reference service (rxr/rxr.xg) on Linux's AF_RXRPC. */
#include <arpa/inet.h>
#include <linux/rxrpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { PIECE = 65536, PENDING = 10 /* calls that the kernel accepts before we do: net.rxrpc.max_backlog */ };
enum { OP_NULL = 1, OP_ECHO, OP_PUT, OP_GET, OP_FAIL, OP_SLOW, OP_WHOAMI, OP_BOTH };
enum { USER_ABORT = -6, SS_UNMARSHAL = -453, NO_OPCODE = -454, BAD_OPCODE = -455, DAMAGED = -999 };

/* How a stream goes, see rxr.xg. */
struct how {
    uint64_t length;
    uint32_t pause_ms, pause_at;
    int32_t fail_code;
    uint32_t fail_at;
};
enum { HOW_SIZE = 24, SEEN_SIZE = 20 };

/* What the command line says. */
struct options {
    const char *address;
    int port, service;
    int level;                      /* -1: what the kernel does by itself */
    const char *des, *key;
    bool upgrade;
    long quit;                      /* the client gives up after so many bytes; -1 does not */
    struct how how;
};
extern struct options opt;
extern unsigned char pattern[2 * PIECE];

/* rxrpc.c */
__attribute__((noreturn)) void die(const char *what);
int unhex(const char *s, unsigned char *b, int most);
double now(void);
void put32(unsigned char *p, uint32_t v);
uint32_t get32(const unsigned char *p);
void put64(unsigned char *p, uint64_t v);
uint64_t get64(const unsigned char *p);
uint64_t mismatches(const unsigned char *p, uint64_t n);
struct sockaddr_rxrpc address(const char *host, int port, int service);
int open_socket(void);
long add_key(const char *type, const char *description, const void *payload, size_t length, long ring);
void add_token(const char *description, long ring);

/* message.c: control messages say which call a message is of, and what it is. */
struct control { char b[256]; int length; };
void add(struct control *c, int type, const void *p, int length);
int send_message(int fd, const struct control *c, const struct sockaddr_rxrpc *to, const void *p, int n, int flags);
int send_data(int fd, unsigned long call, const void *p, size_t n, bool more);
void send_abort(int fd, unsigned long call, int32_t code);

/* What one recvmsg has brought. */
struct message {
    unsigned long call;
    int n, flags;
    bool has_call, new_call, acked, busy;
    int32_t abort, network, local;  /* codes; 0: none */
    unsigned char b[PIECE];
};
int receive(int fd, struct message *m);

/* The roles. */
int serve(void);
int call_once(int count, char **words);
int with_token(int count, char **words);
