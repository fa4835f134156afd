#include "peer.h"

#include <stdio.h>
#include <string.h>

extern int tkt_MakeTicket(char *, int *, struct ktc_encryptionKey *, char *, char *, char *, afs_uint32, afs_uint32,
                          struct ktc_encryptionKey *, afs_uint32, char *, char *);
extern int tkt_MakeTicket5(char *, int *, int, int *, void *, size_t, char *, char *, char *, afs_uint32, afs_uint32,
                           struct ktc_encryptionKey *, char *, char *);

/* Keys of the service. Those with the encryption type 0 are DES keys, for old tickets. */
static struct { int kvno, enctype, length; unsigned char key[64]; } keys[8];
static int key_count;

struct ktc_encryptionKey session_key = { { 0x13, 0x57, (char)0x9b, (char)0xdf, 0x20, 0x46, (char)0x8a, (char)0xce } };

/* add_key reads KVNO:ENCTYPE:HEX. */
void add_key(const char *text)
{
    int hex;
    if (key_count == sizeof keys / sizeof keys[0])
        die("too many keys", NULL);
    if (sscanf(text, "%d:%d:%n", &keys[key_count].kvno, &keys[key_count].enctype, &hex) != 2)
        die("a key is KVNO:ENCTYPE:HEX", text);
    keys[key_count].length = unhex(text + hex, keys[key_count].key, sizeof keys[0].key);
    key_count++;
}

/* default_keys are those of the lab. */
void default_keys(void)
{
    if (key_count)
        return;
    add_key("1:18:00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0");
    add_key("2:0:0123456789abcdef");
}

int find_des(void *rock, int kvno, struct ktc_encryptionKey *key)
{
    size_t length = sizeof *key;
    (void)rock;
    return find_kerberos(NULL, kvno, 0, key, &length);
}

int find_kerberos(void *rock, int kvno, int enctype, void *key, size_t *length)
{
    (void)rock;
    for (int i = 0; i < key_count; i++)
        if (keys[i].kvno == kvno && keys[i].enctype == enctype && (size_t)keys[i].length <= *length) {
            *length = keys[i].length;
            memcpy(key, keys[i].key, *length);
            return 0;
        }
    return 1;
}

/* make_ticket makes one with the first key of its kind. ticket has room for MAXKTCTICKETLEN bytes. */
void make_ticket(char *ticket, int *length, int *kvno)
{
    int i, failed;
    for (i = 0; i < key_count && (keys[i].enctype == 0) != opt.old; i++)
        ;
    if (i == key_count)
        die("no key for such a ticket", NULL);
    *length = MAXKTCTICKETLEN;
    *kvno = keys[i].kvno;
    if (opt.old)
        failed = tkt_MakeTicket(ticket, length, (void *)keys[i].key, opt.user, opt.instance, opt.cell, opt.start, opt.end,
                                &session_key, 0, "afs", "");
    else
        failed = tkt_MakeTicket5(ticket, length, keys[i].enctype, kvno, keys[i].key, keys[i].length, opt.user, opt.instance,
                                 opt.cell, opt.start, opt.end, &session_key, "afs", opt.cell);
    if (failed)
        die("the library makes no such ticket", NULL);
}

static void print_hex(const void *p, int n)
{
    for (int i = 0; i < n; i++)
        printf("%02x", ((const unsigned char *)p)[i]);
}

/* print_ticket prints what rxrpc takes as a key: KVNO:END:SESSIONKEY:TICKET. */
void print_ticket(void)
{
    char ticket[MAXKTCTICKETLEN];
    int length, kvno;
    make_ticket(ticket, &length, &kvno);
    printf("%d:%u:", kvno, opt.end);
    print_hex(&session_key, sizeof session_key);
    printf(":");
    print_hex(ticket, length);
    printf("\n");
}
