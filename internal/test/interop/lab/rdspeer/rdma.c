/* Memory that is offered by a cookie, and written by one. */
#include "rdspeer.h"

#include <errno.h>
#include <linux/rds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ASIDE = 64 }; /* where memory begins in its page */

static unsigned char *memory(size_t size)
{
    unsigned char *p = mmap(NULL, size + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die("mmap");
    return p + ASIDE;
}

/* post sends text with one control message. */
static ssize_t post(int s, const union address *to, const char *text, int type, const void *data, size_t n)
{
    union { struct cmsghdr align; unsigned char bytes[256]; } control;
    struct iovec iov = { (char *)text, strlen(text) };
    struct msghdr m = { .msg_name = (void *)to, .msg_namelen = length(to), .msg_iov = &iov, .msg_iovlen = 1,
                        .msg_control = &control, .msg_controllen = CMSG_SPACE(n) };
    memset(&control, 0, sizeof control);
    control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n), .cmsg_level = SOL_RDS, .cmsg_type = type };
    memcpy(CMSG_DATA(&control.align), data, n);
    return sendmsg(s, &m, 0);
}

/* next receives a message or a notification; it returns the length, and what came with it. */
static ssize_t next(int s, char *text, size_t size, union address *from, uint64_t *cookie, struct rds_rdma_notify *done)
{
    union { struct cmsghdr align; unsigned char bytes[256]; } control;
    struct iovec iov = { text, size - 1 };
    struct msghdr m = { .msg_name = from, .msg_namelen = sizeof *from, .msg_iov = &iov, .msg_iovlen = 1,
                        .msg_control = &control, .msg_controllen = sizeof control };
    ssize_t n = recvmsg(s, &m, 0);
    if (n < 0)
        die("recvmsg");
    text[n] = 0;
    *cookie = 0;
    done->status = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level == SOL_RDS && c->cmsg_type == RDS_CMSG_RDMA_DEST)
            memcpy(cookie, CMSG_DATA(c), sizeof *cookie);
        if (c->cmsg_level == SOL_RDS && c->cmsg_type == RDS_CMSG_RDMA_STATUS)
            memcpy(done, CMSG_DATA(c), sizeof *done);
    }
    return n;
}

void offer(void)
{
    int s = open_socket(0);
    union address to = address(opt.peer, opt.peer_port), from;
    for (long c = 0; c < opt.count; c++)
        for (int k = 0; k < opt.size_count; k++) {
            size_t size = opt.sizes[k];
            unsigned char *mem = memory(size);
            uint64_t cookie = 0, other;
            struct rds_rdma_notify done;
            struct rds_get_mr_args map = {
                .vec = { (uintptr_t)mem, size }, .cookie_addr = (uintptr_t)&cookie,
                .flags = RDS_RDMA_READWRITE | (opt.once ? RDS_RDMA_USE_ONCE : 0),
            };
            char text[64];
            snprintf(text, sizeof text, "write %zu", size);
            /* Memory is mapped for a connection, which the first try begins to make. */
            while (post(s, &to, text, RDS_CMSG_RDMA_MAP, &map, sizeof map) < 0) {
                if (errno != EAGAIN)
                    die("sendmsg");
                usleep(50000);
            }
            next(s, text, sizeof text, &from, &other, &done);
            say("offered size=%zu cookie=%#llx memory=%s reply=%s", size, (unsigned long long)cookie,
                holds(mem, size, size) ? "ok" : "wrong", text);
            struct rds_free_mr_args unmap = { .cookie = cookie, .flags = RDS_RDMA_INVALIDATE };
            if (!opt.once && setsockopt(s, SOL_RDS, RDS_FREE_MR, &unmap, sizeof unmap))
                die("RDS_FREE_MR");
        }
    say("end");
}

void serve(void)
{
    int s = open_socket(0);
    say("ready sockets=1");
    for (long c = 0; c < opt.count;) {
        char text[64];
        union address from;
        uint64_t cookie, other;
        struct rds_rdma_notify done;
        size_t size;
        next(s, text, sizeof text, &from, &cookie, &done);
        if (!cookie || sscanf(text, "write %zu", &size) != 1)
            continue;
        c++;
        unsigned char *mem = memory(size);
        fill(mem, size, size);
        struct rds_iovec local = { (uintptr_t)mem, size };
        struct rds_rdma_args args = {
            .cookie = cookie, .remote_vec = { 0, size }, .local_vec_addr = (uintptr_t)&local, .nr_local = 1,
            .flags = RDS_RDMA_READWRITE | RDS_RDMA_NOTIFY_ME, .user_token = 0x500 + c,
        };
        if (post(s, &from, "done", RDS_CMSG_RDMA_ARGS, &args, sizeof args) < 0)
            die("sendmsg");
        next(s, text, sizeof text, &from, &other, &done);
        say("written size=%zu cookie=%#llx token=%#llx status=%d", size, (unsigned long long)cookie, (unsigned long long)done.user_token, done.status);
    }
    say("end");
}
