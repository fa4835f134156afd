#include "peer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char pattern[2 * PIECE]; /* it repeats after PIECE bytes */

void make_pattern(void)
{
    for (int i = 0; i < 2 * PIECE; i++)
        pattern[i] = i * 31 + (i >> 8);
}

static uint64_t mismatches(const char *b, int n, uint64_t at)
{
    const char *want = pattern + at % PIECE;
    uint64_t bad = 0;
    if (memcmp(b, want, n))
        for (int i = 0; i < n; i++)
            bad += b[i] != want[i];
    return bad;
}

/* piece is the length of the next piece: they end where the stream stops or fails. */
static int piece(const struct RXR_how *h, uint64_t at)
{
    uint64_t n = h->length - at;
    if (n > PIECE)
        n = PIECE;
    if (at < h->pause_at && at + n > h->pause_at)
        n = h->pause_at - at;
    if (at < h->fail_at && at + n > h->fail_at)
        n = h->fail_at - at;
    return n;
}

/* border does what is to be done at a place of the stream, and returns the code to abort with. */
static int32_t border(const struct RXR_how *h, uint64_t at, bool server)
{
    if (!server)
        return opt.quit >= 0 && at >= (uint64_t)opt.quit ? RX_USER_ABORT : 0;
    if (h->pause_ms && at == h->pause_at)
        usleep(h->pause_ms * 1000);
    return h->fail_code && at == h->fail_at ? h->fail_code : 0;
}

int32_t take(struct rx_call *call, const struct RXR_how *how, struct RXR_seen *seen, bool server)
{
    char *b = malloc(PIECE);
    int32_t code;
    while (!(code = border(how, seen->length, server)) && seen->length < how->length) {
        int n = piece(how, seen->length);
        if (rx_Read(call, b, n) != n) {
            code = rx_Error(call) ? rx_Error(call) : RXGEN_SS_UNMARSHAL;
            break;
        }
        seen->bad += mismatches(b, n, seen->length);
        seen->length += n;
    }
    free(b);
    return code;
}

int32_t give(struct rx_call *call, const struct RXR_how *how, struct RXR_seen *seen, bool server)
{
    int32_t code;
    while (!(code = border(how, seen->length, server)) && seen->length < how->length) {
        int n = piece(how, seen->length);
        if (rx_Write(call, pattern + seen->length % PIECE, n) != n)
            return rx_Error(call) ? rx_Error(call) : RX_PROTOCOL_ERROR;
        seen->length += n;
    }
    return code;
}
