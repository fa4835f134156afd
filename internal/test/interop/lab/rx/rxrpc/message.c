#include "rxrpc.h"

#include <stdio.h>
#include <string.h>

enum { LEVEL = 272 /* SOL_RXRPC */ };

void add(struct control *c, int type, const void *p, int length)
{
    struct cmsghdr *h = (void *)(c->b + c->length);
    memset(h, 0, CMSG_SPACE(length));
    h->cmsg_level = LEVEL;
    h->cmsg_type = type;
    h->cmsg_len = CMSG_LEN(length);
    if (length)
        memcpy(CMSG_DATA(h), p, length);
    c->length += CMSG_SPACE(length);
}

int send_message(int fd, const struct control *c, const struct sockaddr_rxrpc *to, const void *p, int n, int flags)
{
    struct iovec v = { (void *)p, n };
    struct msghdr m = { .msg_name = (void *)to, .msg_namelen = to ? sizeof *to : 0, .msg_iov = &v, .msg_iovlen = 1,
                        .msg_control = (void *)c->b, .msg_controllen = c->length };
    return sendmsg(fd, &m, flags);
}

int send_data(int fd, unsigned long call, const void *p, size_t n, bool more)
{
    struct control c = { .length = 0 };
    add(&c, RXRPC_USER_CALL_ID, &call, sizeof call);
    return send_message(fd, &c, NULL, p, n, more ? MSG_MORE : 0);
}

void send_abort(int fd, unsigned long call, int32_t code)
{
    struct control c = { .length = 0 };
    add(&c, RXRPC_USER_CALL_ID, &call, sizeof call);
    add(&c, RXRPC_ABORT, &code, sizeof code);
    if (send_message(fd, &c, NULL, NULL, 0, 0) < 0)
        perror("abort");
}

int receive(int fd, struct message *m)
{
    struct control c;
    struct iovec v = { m->b, sizeof m->b };
    struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = c.b, .msg_controllen = sizeof c.b };
    memset(m, 0, offsetof(struct message, b));
    m->n = recvmsg(fd, &h, 0);
    if (m->n < 0)
        return -1;
    m->flags = h.msg_flags;
    for (struct cmsghdr *p = CMSG_FIRSTHDR(&h); p; p = CMSG_NXTHDR(&h, p)) {
        if (p->cmsg_level != LEVEL)
            continue;
        switch (p->cmsg_type) {
        case RXRPC_USER_CALL_ID:
            memcpy(&m->call, CMSG_DATA(p), sizeof m->call);
            m->has_call = true;
            break;
        case RXRPC_ABORT:
            memcpy(&m->abort, CMSG_DATA(p), sizeof m->abort);
            break;
        case RXRPC_NET_ERROR:
            memcpy(&m->network, CMSG_DATA(p), sizeof m->network);
            break;
        case RXRPC_LOCAL_ERROR:
            memcpy(&m->local, CMSG_DATA(p), sizeof m->local);
            break;
        case RXRPC_NEW_CALL:
            m->new_call = true;
            break;
        case RXRPC_ACK:
            m->acked = true;
            break;
        case RXRPC_BUSY:
            m->busy = true;
            break;
        }
    }
    return 0;
}
