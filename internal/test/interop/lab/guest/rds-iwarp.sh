#!/bin/bash
# RDS over siw on eth1, the interface of `up -t`.
#   rds-iwarp.sh up [NAME=VALUE...]   NAMEs are those of net.rds.ib: flow_control, max_recv_wr, ...
#   rds-iwarp.sh down                 without it; every socket must be closed
set -e
case $1 in
up)
    # Both sides of RDS send as soon as they are connected: with an RTR, none is too early.
    echo 1 >/sys/module/siw/parameters/peer_to_peer
    # What is sent without copying may change under the CRC, as headers are used again.
    echo 0 >/sys/module/siw/parameters/zcopy_tx
    [ -d /sys/class/infiniband/siw1 ] || rdma link add siw1 type siw netdev eth1
    modprobe rds_rdma iwarp=1 credits=1
    shift
    for setting; do sysctl -qw "net.rds.ib.$setting"; done
    ;;
down)
    for m in rds_rdma rds; do [ ! -d /sys/module/$m ] || rmmod $m; done
    [ ! -d /sys/class/infiniband/siw1 ] || rdma link delete siw1
    echo 0 >/sys/module/siw/parameters/peer_to_peer
    echo 1 >/sys/module/siw/parameters/zcopy_tx
    ;;
*)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
