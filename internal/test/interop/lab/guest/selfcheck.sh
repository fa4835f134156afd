#!/bin/bash
# Run in the guest by the host's `selfcheck`: siw against siw over a veth pair, with
# the tools of rdma-core and with peerops in both roles.
# shellcheck source-path=SCRIPTDIR source=netns.sh
. netns.sh
rc=0
topo 1500

# expect NAME PATTERN FILE...: whether a line of the files matches.
expect() {
    if grep -qE "$2" "${@:3}"; then
        echo "ok      $1"
    else
        echo "FAILED  $1: no '$2' in:"
        sed 's/^/        /' "${@:3}"
        rc=1
    fi
}

# both "SERVERARGS" "CLIENTARGS": peerops on both sides; lines in srv and cli.
both() {
    local addr=${ADDR:-10.9.0.2}
    # shellcheck disable=SC2086 # lists of words
    { B peerops server -a "$addr" $1 >/tmp/srv 2>&1 & }
    wait_listen B 7174
    # shellcheck disable=SC2086
    A peerops client -a "$addr" -w 100 $2 >/tmp/cli 2>&1
    wait $!
} 2>/tmp/killed

B rping -s -a 10.9.0.2 -C 3 >/tmp/srv 2>&1 &
wait_listen B 7174
A rping -c -a 10.9.0.2 -C 3 -v >/tmp/cli 2>&1
wait $!
expect 'rping' 'ping data: rdma-ping-2' /tmp/cli

# Client, then server, against the other's memory.
while IFS='|' read -r op side pattern; do
    both '' "-l 200 $op"
    expect "client: $op" "$pattern" "/tmp/$side"
done <<'END'
send|srv|RECV bytes=64 fnv=.*data=message
send-se|srv|RECV bytes=64 fnv=.*data=message
send-inv|srv|RECV bytes=64 fnv=.*data=message
send-inv-write|cli|terminate control=1100
send-inv-badkey|srv|REM_INV_REQ_ERR
send-norecv|srv|terminate control=2102
send-toolong|srv|LOC_LEN_ERR
write|cli|check op=write result=ok
write 4194304|cli|check op=write result=ok
write-gather 6000|srv|region=rw changed=0-5999
write-send|srv|RECV bytes=32 .*data=message
write-badkey|cli|terminate control=1100
write-oob|cli|terminate control=1101
write-cross|cli|terminate control=1101
write-noperm|cli|terminate control=1100
write-otherpd|cli|terminate control=1102
read|cli|check op=read result=ok
read 100000 40|cli|check op=read result=ok
read-badkey|cli|terminate control=1000
read-oob|cli|terminate control=1001
read-noperm|cli|wr=100 status=SUCCESS op=RDMA_READ
read-otherpd|cli|terminate control=1003
close|srv|event=DISCONNECTED
busy-close|srv|event=DISCONNECTED
busy-die|srv|event=DISCONNECTED
END
while IFS='|' read -r op side pattern; do
    both "-l 200 $op" "-d advert -l 5000 send"
    expect "server: $op" "$pattern" "/tmp/$side"
done <<'END'
send|cli|RECV bytes=64 fnv=.*data=message
write|srv|check op=write result=ok
read|srv|check op=read result=ok
write-badkey|srv|terminate control=1100
close|cli|event=DISCONNECTED
die|cli|event=DISCONNECTED
END
both 'send 100' '-r 1 send'
expect 'server: a Send in answer to one' 'RECV bytes=100 ' /tmp/cli
both '-k 300' '-t 5000 wait'
expect 'server: dies after 300 ms' 'event=DISCONNECTED' /tmp/cli
both '-j -d 6e6f' 'send'
expect 'server: rejects with private data' 'event=REJECTED .*private=6e6f' /tmp/cli
both '-d 6869' '-d 796f -o 3 -i 5 close'
expect 'private data, IRD and ORD to the server' 'CONNECT_REQUEST status=0 responder_resources=3 initiator_depth=5 private=796f' /tmp/srv
expect 'private data to the client' 'ESTABLISHED .*private=6869' /tmp/cli
ADDR=fd09::2 both '' 'write 100000'
expect 'IPv6' 'check op=write result=ok' /tmp/cli
exit $rc
