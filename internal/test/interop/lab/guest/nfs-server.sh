#!/bin/bash
# Run in a guest: the kernel's NFS server, of NFSv3 and MOUNTv3 alone.
#   nfs-server.sh start [-t THREADS] [-m MIB] [-d DISK]
#                               returns when it answers
#   nfs-server.sh stop [-k]     kills every connection and forgets the exports; without -k
#                               the files are gone as well
#
# Ports: NFS 20049 (RDMA) and 2049 (TCP), MOUNT 20048 (TCP), rpcbind 111. Exports, each a
# tmpfs of its own: /export/rw and /export/ro, open to every address and port, the second
# read only; no squashing of root in either. /export/ro has the file "readme".
#   -t THREADS   of nfsd (8)
#   -m MIB       the room in /export/rw (500)
#   -d DISK      what /export/rw is in place of a tmpfs: an ext4, which is made if the disk is
#                blank; stop leaves its files
set -euo pipefail

die() { echo "nfs-server.sh: $*" >&2; exit 1; }

# export_tmpfs NAME OPTION SIZE: mounts a tmpfs, unless it is there, and lists it.
export_tmpfs() {
    mkdir -p "/export/$1"
    mountpoint -q "/export/$1" || mount -t tmpfs -o "mode=755,size=$3" tmpfs "/export/$1"
    # A tmpfs has no UUID to make file handles of; a number has to be given.
    echo "/export/$1 *($2,sync,insecure,no_root_squash,no_subtree_check,fsid=$4)"
}

start() {
    local threads=8 mib=500 disk='' o
    while getopts t:m:d: o; do
        case $o in
        t) threads=$OPTARG ;;
        m) mib=$OPTARG ;;
        d) disk=$OPTARG ;;
        *) exit 2 ;;
        esac
    done
    modprobe -a nfsd rpcrdma
    mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
    # rpc.mountd looks up the names of its clients.
    grep -q '^10.0.2.2 ' /etc/hosts || echo '10.0.2.2 host' >>/etc/hosts
    if [ -n "$disk" ]; then
        mkdir -p /export/rw
        blkid -p "$disk" >/dev/null || mkfs.ext4 -q "$disk"
        mountpoint -q /export/rw || mount "$disk" /export/rw
    fi
    {
        export_tmpfs rw rw "${mib}m" 1
        export_tmpfs ro ro 8m 2
    } >/etc/exports
    echo 'This file is to be read.' >/export/ro/readme
    mkdir -p /run/rpcbind
    pgrep -x rpcbind >/dev/null || rpcbind -w
    exportfs -ra
    # 10 s of grace is the least that the kernel takes; it concerns only locks.
    rpc.nfsd -N 4 -V 3 --grace-time=10 --lease-time=10 --rdma=20049 "$threads"
    grep -q '^rdma 20049' /proc/fs/nfsd/portlist || die "nfsd does not listen on RDMA: $(dmesg | tail -n 3)"
    pgrep -x rpc.mountd >/dev/null || rpc.mountd -p 20048 -u
    rpcinfo -T tcp 127.0.0.1 nfs 3 >/dev/null
    rpcinfo -T tcp 127.0.0.1 mountd 3 >/dev/null
}

stop() {
    rpc.nfsd 0
    pkill -x rpc.mountd || true
    exportfs -f
    [ "$*" = -k ] || umount /export/rw /export/ro
    exportfs -uaf 2>/dev/null || true
}

case ${1-} in
start | stop) "$@" ;;
*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
