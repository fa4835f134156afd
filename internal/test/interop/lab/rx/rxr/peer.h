/* The reference peer: client and server of rxr.xg on OpenAFS's Rx library. */
#include <afs/param.h>
#include <afs/stds.h>
#include <inttypes.h>
#include <rx/rx.h>
#include <rx/rx_null.h>
#include <rx/rxkad.h>
#include <rx/xdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "rxr.h"

enum { PIECE = 65536, MOST_NAME = 64 };

/* What the command line says. */
struct options {
    int port, service;
    struct in_addr address;     /* the server's, or the one that it binds to */
    int window, mtu, udpbuf, drop;
    bool nojumbo;
    /* server */
    int threads;
    int level;                  /* the least */
    bool nonull, reach;
    /* client */
    int security;               /* a level, or -1 for null */
    bool old;                   /* ticket */
    char user[MOST_NAME], instance[MOST_NAME], cell[MOST_NAME];
    uint32_t start, end;        /* of the ticket */
    int dead, idle, hard;       /* seconds */
    struct RXR_how how;
    int64_t quit;               /* the client gives up after so many bytes; -1 does not */
};
extern struct options opt;

/* rxr.c */
__attribute__((noreturn)) void die(const char *what, const char *which);
int unhex(const char *s, unsigned char *b, int most);
double now(void);
void open_library(int port);

/* key.c */
void add_key(const char *text);
void default_keys(void);
void make_ticket(char *ticket, int *length, int *kvno);
void print_ticket(void);
extern struct ktc_encryptionKey session_key;
int find_des(void *rock, int kvno, struct ktc_encryptionKey *key);
int find_kerberos(void *rock, int kvno, int enctype, void *key, size_t *length);

/* stream.c: the bytes of a stream. Each moves as many as how says, and returns the code of
 * the call. The server obeys what how says besides; the client gives up at opt.quit. */
extern char pattern[2 * PIECE];
void make_pattern(void);
int32_t take(struct rx_call *call, const struct RXR_how *how, struct RXR_seen *seen, bool server);
int32_t give(struct rx_call *call, const struct RXR_how *how, struct RXR_seen *seen, bool server);

/* server.c */
int serve(void);

/* client.c */
enum operation { PUT, GET, BOTH };
struct rx_connection *dial(void);
int32_t stream(struct rx_connection *c, enum operation o, uint64_t length);
int32_t whoami(struct rx_connection *c, bool print);
int call_all(int count, char **words);
const char *meaning(int32_t code);

/* check.c, perf.c: the code is 0 if all is well. */
int32_t echo(struct rx_connection *c, int length);
int32_t check_all(struct rx_connection *c);
int32_t perf(struct rx_connection *c, const char *what, double amount, int threads);
