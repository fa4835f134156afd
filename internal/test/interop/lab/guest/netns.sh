# shellcheck shell=bash
# Sourced in a guest: two network namespaces "a" (10.9.0.1, fd09::1) and "b" (10.9.0.2,
# fd09::2), joined by a veth pair va-vb with siw on both ends.
#   topo [MTU]          make it; offloads are off, so that captures show frames as on a wire
#   A CMD... / B CMD... run a command in a / b
#   cap NAME [FILTER]   start capturing on vb, to $OUT/NAME.pcap
#   endcap              stop capturing
#   wait_listen A PORT  wait until something listens on the port in a / b
OUT=${OUT:-/lab/out}
A() { ip netns exec a "$@"; }
B() { ip netns exec b "$@"; }
topo() {
    local n
    ip netns add a
    ip netns add b
    ip link add va address 02:00:00:00:00:0a mtu "${1:-1500}" netns a type veth \
        peer name vb address 02:00:00:00:00:0b mtu "${1:-1500}" netns b
    for n in a b; do
        ip -n $n link set lo up
        ip -n $n link set v$n up
        ip netns exec $n ethtool -K v$n tso off gso off gro off tx off >/dev/null
        ip netns exec $n sysctl -qw net.ipv6.conf.v$n.accept_dad=0 net.ipv6.conf.v$n.router_solicitations=0
    done
    ip -n a addr add 10.9.0.1/24 dev va
    ip -n b addr add 10.9.0.2/24 dev vb
    ip -n a addr add fd09::1/64 dev va nodad
    ip -n b addr add fd09::2/64 dev vb nodad
    # rdma_cm misses the answer of a neighbour that answers at once: leave nothing to ask.
    ip -n a neigh add 10.9.0.2 lladdr 02:00:00:00:00:0b dev va
    ip -n a neigh add fd09::2 lladdr 02:00:00:00:00:0b dev va
    ip -n b neigh add 10.9.0.1 lladdr 02:00:00:00:00:0a dev vb
    ip -n b neigh add fd09::1 lladdr 02:00:00:00:00:0a dev vb
    A rdma link add siwa type siw netdev va
    B rdma link add siwb type siw netdev vb
}
cap() {
    capname=$1
    shift
    # Into memory first: 9p is slow.
    ip netns exec b tcpdump -i vb -s 0 -B 65536 --immediate-mode -U -w "/tmp/$capname.pcap" "${@:-ip or ip6}" 2>"/tmp/$capname.log" &
    cappid=$!
    until grep -q listening "/tmp/$capname.log"; do sleep 0.05; done
}
endcap() {
    sleep 1
    kill -INT "$cappid"
    wait "$cappid"
    cp "/tmp/$capname.pcap" "$OUT/"
}
wait_listen() {
    for _ in $(seq 200); do
        ! "$1" ss -Hltn "sport = :$2" | grep -q . || return 0
        sleep 0.05
    done
    echo "nothing listens on port $2 in $1" >&2
    return 1
}
