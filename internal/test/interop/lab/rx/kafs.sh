#!/bin/bash
# Mounts a volume of AFS with the kernel's own client, kAFS, and runs a command in it.
#   kafs.sh [-k KEY] CELL SERVER VOLUME COMMAND...
# SERVER is the volume location server of the cell. KEY is a token as rxrpc takes it; without
# one the kernel is nobody in particular.
set -e
modprobe -a rxrpc kafs fcrypt pcbc
if [ "$1" = -k ]; then
    # The command goes on with the token in its session keyring.
    exec rxrpc token -key "$2" "afs@$3" "$0" "${@:3}"
fi
[ $# -ge 4 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
grep -qw "$1" /proc/fs/afs/cells || echo "add $1 $2" >/proc/fs/afs/cells
mkdir -p /mnt/afs
mount -t afs "%$1:$3." /mnt/afs
trap 'cd /; umount /mnt/afs' EXIT
cd /mnt/afs
"${@:4}"
