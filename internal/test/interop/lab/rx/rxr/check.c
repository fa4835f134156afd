#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t echo(struct rx_connection *c, int length)
{
    RXR_bytes in, out = { 0 };
    int32_t code;
    in.RXR_bytes_len = length;
    in.RXR_bytes_val = malloc(length + 1);
    for (int i = 0; i < length; i++)
        in.RXR_bytes_val[i] = pattern[i % PIECE];
    code = RXR_Echo(c, &in, &out);
    if (!code && (out.RXR_bytes_len != (u_int)length || memcmp(in.RXR_bytes_val, out.RXR_bytes_val, length)))
        code = -999;
    free(in.RXR_bytes_val);
    xdr_free((xdrproc_t)xdr_RXR_bytes, &out); /* the library has its own empty block */
    return code;
}

static int failures;

static void check(const char *what, int length, int32_t code, int32_t want)
{
    failures += code != want;
    printf("%-7s %s %d: code %d %s\n", code == want ? "ok" : "FAILED", what, length, code, meaning(code));
}

int32_t check_all(struct rx_connection *c)
{
    static const int lengths[] = { 0, 1, 3, 4, 1000, 1404, 1408, 1412, 1413, 5000, 65536, 1000000 };
    afs_uint32 slept;
    int32_t code;
    check("null", 0, RXR_Null(c), 0);
    code = whoami(c, true);
    check("whoami", 0, code == RXGEN_OPCODE ? 0 : code, 0); /* Linux's peer has none */
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        check("echo", lengths[i], echo(c, lengths[i]), 0);
        check("put", lengths[i], stream(c, PUT, lengths[i]), 0);
        check("get", lengths[i], stream(c, GET, lengths[i]), 0);
        check("both", lengths[i], stream(c, BOTH, lengths[i]), 0);
    }
    check("fail", 12345, RXR_Fail(c, 12345), 12345);
    check("fail", -7777, RXR_Fail(c, -7777), -7777);
    check("fail", 13, RXR_Fail(c, 13), 13);
    check("slow", 1000, RXR_Slow(c, 1000, &slept), 0);
    opt.how.fail_code = 4711;
    opt.how.fail_at = 50000;
    check("put, aborted amid it", 200000, stream(c, PUT, 200000), 4711);
    check("get, aborted amid it", 200000, stream(c, GET, 200000), 4711);
    opt.how.fail_code = 0;
    opt.how.pause_ms = 500;
    opt.how.pause_at = 50000;
    check("put, reader stops", 200000, stream(c, PUT, 200000), 0);
    check("get, writer stops", 200000, stream(c, GET, 200000), 0);
    opt.how.pause_ms = 0;
    opt.quit = 20000;
    check("put, given up", 200000, stream(c, PUT, 200000), RX_USER_ABORT);
    check("get, given up", 200000, stream(c, GET, 200000), RX_USER_ABORT);
    opt.quit = -1;
    check("null", 0, RXR_Null(c), 0);
    return failures ? -998 : 0;
}
