#include "peer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

afs_int32 SRXR_Null(struct rx_call *call)
{
    (void)call;
    return 0;
}

afs_int32 SRXR_Echo(struct rx_call *call, RXR_bytes *in, RXR_bytes *out)
{
    (void)call;
    *out = *in;
    memset(in, 0, sizeof *in);
    return 0;
}

afs_int32 SRXR_Put(struct rx_call *call, RXR_how *how, RXR_seen *seen)
{
    double begun = now();
    afs_int32 code = take(call, how, seen, true);
    seen->usec = (now() - begun) * 1e6;
    return code;
}

afs_int32 SRXR_Get(struct rx_call *call, RXR_how *how, RXR_seen *seen)
{
    double begun = now();
    afs_int32 code = give(call, how, seen, true);
    seen->usec = (now() - begun) * 1e6;
    return code;
}

afs_int32 SRXR_Both(struct rx_call *call, RXR_how *how, RXR_seen *seen)
{
    struct RXR_how back = { .length = how->length };
    struct RXR_seen given = { 0 };
    double begun = now();
    afs_int32 code = take(call, how, seen, true);
    if (!code)
        code = give(call, &back, &given, true);
    seen->usec = (now() - begun) * 1e6;
    return code;
}

afs_int32 SRXR_Fail(struct rx_call *call, afs_int32 code)
{
    (void)call;
    return code;
}

afs_int32 SRXR_Slow(struct rx_call *call, afs_uint32 ms, afs_uint32 *slept)
{
    (void)call;
    usleep(ms * 1000);
    *slept = ms;
    return 0;
}

afs_int32 SRXR_WhoAmI(struct rx_call *call, RXR_id *id)
{
    struct rx_connection *conn = rx_ConnectionOf(call);
    char name[MAXKTCNAMELEN] = "", instance[MAXKTCNAMELEN] = "", cell[MAXKTCREALMLEN] = "";
    rxkad_level level = -1;
    afs_uint32 expires = 0;
    afs_int32 kvno = 0;
    id->secindex = rx_SecurityClassOf(conn);
    if (id->secindex == RX_SECIDX_KAD) {
        afs_int32 code = rxkad_GetServerInfo(conn, &level, &expires, name, instance, cell, &kvno);
        if (code)
            return code;
    }
    id->level = level;
    id->expires = expires;
    id->kvno = kvno;
    id->name = strdup(name);
    id->instance = strdup(instance);
    id->cell = strdup(cell);
    return 0;
}

int serve(void)
{
    struct rx_securityClass *classes[3] = { 0 };
    struct rx_service *service;
    open_library(opt.port);
    if (!opt.nonull)
        classes[RX_SECIDX_NULL] = rxnull_NewServerSecurityObject();
    classes[RX_SECIDX_KAD] = rxkad_NewKrb5ServerSecurityObject(opt.level, NULL, find_des, find_kerberos, NULL);
    service = rx_NewService(0, opt.service, "rxr", classes, 3, RXR_ExecuteRequest);
    if (!service)
        die("no service", NULL);
    rx_SetMinProcs(service, 2);
    rx_SetMaxProcs(service, opt.threads);
    rx_SetCheckReach(service, opt.reach);
    printf("serving %d on port %d\n", opt.service, opt.port);
    rx_StartServer(1);
    return 0;
}
