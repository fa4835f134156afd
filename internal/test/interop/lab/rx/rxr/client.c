#include "peer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rx_connection *dial(void)
{
    struct rx_securityClass *class;
    struct rx_connection *c;
    int index = RX_SECIDX_NULL;
    if (opt.security < 0)
        class = rxnull_NewClientSecurityObject();
    else {
        char ticket[MAXKTCTICKETLEN];
        int length, kvno;
        make_ticket(ticket, &length, &kvno);
        class = rxkad_NewClientSecurityObject(opt.security, &session_key, kvno, length, ticket);
        index = RX_SECIDX_KAD;
    }
    c = rx_NewConnection(opt.address.s_addr, htons(opt.port), opt.service, class, index);
    if (opt.dead)
        rx_SetConnDeadTime(c, opt.dead);
    if (opt.idle)
        rx_SetConnIdleDeadTime(c, opt.idle);
    if (opt.hard)
        rx_SetConnHardDeadTime(c, opt.hard);
    return c;
}

int32_t stream(struct rx_connection *c, enum operation o, uint64_t length)
{
    struct RXR_how how = opt.how;
    struct RXR_seen given = { 0 }, taken = { 0 }, seen = { 0 };
    struct rx_call *call = rx_NewCall(c);
    int32_t code;
    how.length = length;
    code = o == PUT ? StartRXR_Put(call, &how) : o == GET ? StartRXR_Get(call, &how) : StartRXR_Both(call, &how);
    if (!code && o != GET)
        code = give(call, &how, &given, false);
    if (!code && o != PUT)
        code = take(call, &how, &taken, false);
    if (!code)
        code = o == PUT ? EndRXR_Put(call, &seen) : o == GET ? EndRXR_Get(call, &seen) : EndRXR_Both(call, &seen);
    code = rx_EndCall(call, code);
    if (!code && (taken.bad || seen.bad || seen.length != length)) {
        printf("damaged: of %" PRIu64 " bytes the server saw %" PRIu64 ", %" PRIu64 " bad, and the client %" PRIu64 " bad\n",
               length, (uint64_t)seen.length, (uint64_t)seen.bad, (uint64_t)taken.bad);
        code = -999;
    }
    return code;
}

int32_t whoami(struct rx_connection *c, bool print)
{
    RXR_id id;
    int32_t code;
    memset(&id, 0, sizeof id);
    code = RXR_WhoAmI(c, &id);
    if (!code && print)
        printf("index %d level %d kvno %d expires %u name '%s' instance '%s' cell '%s'\n", id.secindex, id.level, id.kvno,
               id.expires, id.name, id.instance, id.cell);
    return code;
}

/* any makes a call of any operation. */
static int32_t any(struct rx_connection *c, int opcode, const char *arguments)
{
    unsigned char b[4096];
    uint32_t word = htonl(opcode);
    struct rx_call *call = rx_NewCall(c);
    int n = unhex(arguments, b, sizeof b);
    rx_Write(call, (char *)&word, sizeof word);
    if (n)
        rx_Write(call, (char *)b, n);
    while ((n = rx_Read(call, (char *)b, sizeof b)) > 0)
        for (int i = 0; i < n; i++)
            printf("%02x", b[i]);
    printf("\n");
    return rx_EndCall(call, 0);
}

static int32_t command(struct rx_connection *c, int count, char **words)
{
    const char *name = count ? words[0] : "";
    long long amount = count > 1 ? atoll(words[1]) : 1;
    afs_uint32 slept;
    int32_t code = 0;
    if (!strcmp(name, "null"))
        for (long long i = 0; i < amount && !code; i++)
            code = RXR_Null(c);
    else if (!strcmp(name, "echo"))
        code = echo(c, amount);
    else if (!strcmp(name, "put"))
        code = stream(c, PUT, amount);
    else if (!strcmp(name, "get"))
        code = stream(c, GET, amount);
    else if (!strcmp(name, "both"))
        code = stream(c, BOTH, amount);
    else if (!strcmp(name, "fail"))
        code = RXR_Fail(c, amount);
    else if (!strcmp(name, "slow"))
        code = RXR_Slow(c, amount, &slept);
    else if (!strcmp(name, "whoami"))
        code = whoami(c, true);
    else if (!strcmp(name, "all"))
        code = check_all(c);
    else if (!strcmp(name, "call"))
        code = any(c, amount, count > 2 ? words[2] : "");
    else if (!strcmp(name, "perf") && count > 2)
        code = perf(c, words[1], atof(words[2]), count > 3 ? atoi(words[3]) : 1);
    else if (!strcmp(name, "sleep"))
        usleep(amount * 1000);
    else
        die("no such command", name);
    return code;
}

/* call_all carries out commands, which commas separate. */
int call_all(int count, char **words)
{
    struct rx_connection *c;
    int32_t code = 0;
    int from = 0;
    if (!opt.address.s_addr)
        opt.address.s_addr = htonl(INADDR_LOOPBACK);
    open_library(0);
    c = dial();
    for (int i = 0; i <= count; i++)
        if (i == count || !strcmp(words[i], ",")) {
            double begun = now();
            code = command(c, i - from, words + from);
            printf("%s: code %d %s after %.3f s\n", words[from], code, meaning(code), now() - begun);
            from = i + 1;
        }
    rx_DestroyConnection(c);
    rx_Finalize();
    return code != 0;
}

const char *meaning(int32_t code)
{
    static const struct { int32_t code; const char *meaning; } codes[] = {
        { 0, "ok" }, { RX_CALL_DEAD, "CALL_DEAD" }, { RX_INVALID_OPERATION, "INVALID_OPERATION" },
        { RX_CALL_TIMEOUT, "CALL_TIMEOUT" }, { RX_EOF, "EOF" }, { RX_PROTOCOL_ERROR, "PROTOCOL_ERROR" },
        { RX_USER_ABORT, "USER_ABORT" }, { RX_RESTARTING, "RESTARTING" },
        { RXGEN_CC_UNMARSHAL, "CC_UNMARSHAL" }, { RXGEN_SS_UNMARSHAL, "SS_UNMARSHAL" }, { RXGEN_DECODE, "DECODE" },
        { RXGEN_OPCODE, "OPCODE" }, { -999, "data is damaged" },
        { 19270400, "rxkad: inconsistency" }, { 19270402, "rxkad: level" }, { 19270405, "rxkad: no auth" },
        { 19270407, "rxkad: bad ticket" }, { 19270408, "rxkad: unknown key" }, { 19270409, "rxkad: expired" },
        { 19270410, "rxkad: sealed data" },
    };
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return codes[i].meaning;
    return "";
}
