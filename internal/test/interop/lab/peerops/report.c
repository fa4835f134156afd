/* What peerops prints. A line is a word and key=value pairs; no value has spaces. */
#include "peerops.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int kernel_log = -1;

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void die(const char *what)
{
    say("error what=%s errno=%d", what, errno);
    fprintf(stderr, "peerops: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* The data in hex, "-" for none; good until the next call. */
const char *hex(const void *data, size_t length)
{
    static char text[2 * 512 + 1];
    const unsigned char *p = data;
    if (length == 0)
        return "-";
    if (length > 512)
        length = 512;
    for (size_t i = 0; i < length; i++)
        sprintf(text + 2 * i, "%02x", p[i]);
    return text;
}

/* FNV-1a, 32 bits. */
uint32_t fnv(const void *data, size_t length)
{
    uint32_t h = 2166136261u;
    for (const unsigned char *p = data, *end = p + length; p < end; p++)
        h = (h ^ *p) * 16777619u;
    return h;
}

/* The name without its prefix: RDMA_CM_EVENT_ESTABLISHED is ESTABLISHED. */
const char *event_name(enum rdma_cm_event_type type)
{
    return rdma_event_str(type) + strlen("RDMA_CM_EVENT_");
}

static const char *status_name(enum ibv_wc_status status)
{
    static const char *const names[] = {
        [IBV_WC_SUCCESS] = "SUCCESS", [IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
        [IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR", [IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
        [IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR", [IBV_WC_MW_BIND_ERR] = "MW_BIND_ERR",
        [IBV_WC_BAD_RESP_ERR] = "BAD_RESP_ERR", [IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
        [IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR", [IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
        [IBV_WC_REM_OP_ERR] = "REM_OP_ERR", [IBV_WC_FATAL_ERR] = "FATAL_ERR",
        [IBV_WC_GENERAL_ERR] = "GENERAL_ERR",
    };
    return status < COUNT(names) && names[status] ? names[status] : "OTHER";
}

static const char *opcode_name(enum ibv_wc_opcode opcode)
{
    switch ((int)opcode) {
    case IBV_WC_SEND: return "SEND";
    case IBV_WC_RDMA_WRITE: return "RDMA_WRITE";
    case IBV_WC_RDMA_READ: return "RDMA_READ";
    case IBV_WC_RECV: return "RECV";
    default: return "OTHER";
    }
}

/* A failed completion has only its work request and status to tell. */
void say_completion(const struct conn *c, const char *queue, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS) {
        say("completion queue=%s wr=%llu status=%s", queue, (unsigned long long)wc->wr_id, status_name(wc->status));
        return;
    }
    if (wc->opcode != IBV_WC_RECV) {
        say("completion queue=%s wr=%llu status=SUCCESS op=%s", queue, (unsigned long long)wc->wr_id, opcode_name(wc->opcode));
        return;
    }
    const char *data = c->recv.mem + wc->wr_id * c->recv_size;
    say("completion queue=%s wr=%llu status=SUCCESS op=RECV bytes=%u fnv=%08x data=%s", queue,
        (unsigned long long)wc->wr_id, wc->byte_len, fnv(data, wc->byte_len),
        matches(data, wc->byte_len, IN_MESSAGE) ? "message" : "other");
}

void say_async(struct ibv_context *context)
{
    static const char *const names[] = {
        [IBV_EVENT_CQ_ERR] = "CQ_ERR", [IBV_EVENT_QP_FATAL] = "QP_FATAL", [IBV_EVENT_QP_REQ_ERR] = "QP_REQ_ERR",
        [IBV_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR", [IBV_EVENT_COMM_EST] = "COMM_EST",
        [IBV_EVENT_SQ_DRAINED] = "SQ_DRAINED",
    };
    struct ibv_async_event e;
    if (ibv_get_async_event(context, &e))
        return;
    if (e.event_type < COUNT(names) && names[e.event_type])
        say("async event=%s", names[e.event_type]);
    else
        say("async event=%d", e.event_type);
    ibv_ack_async_event(&e);
}

/* siw tells nobody but the kernel's log which Terminate it received, and it takes the
 * layer from the low half of the octet and the type from the high one, against RFC
 * 5040 section 4.8. So we say what the first two octets were on the wire. */
void open_kernel_log(void)
{
    kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
    if (kernel_log >= 0)
        lseek(kernel_log, 0, SEEK_END);
}

int kernel_log_fd(void) { return kernel_log; }

void say_terminates(void)
{
    char line[2048];
    ssize_t n;
    while (kernel_log >= 0 && (n = read(kernel_log, line, sizeof line - 1)) > 0) {
        int layer, type, code;
        line[n] = 0;
        const char *text = strstr(line, "got TERMINATE.");
        if (text && sscanf(text, "got TERMINATE. layer %d, type %d, code %d", &layer, &type, &code) == 3)
            say("terminate control=%x%x%02x", type, layer, code);
    }
}
