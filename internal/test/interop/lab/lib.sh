# shellcheck shell=bash
# Sourced by the lab's commands: where things are, how to say what is wrong, and
# whether a guest is alive.
set -euo pipefail

LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${URNIC_LAB_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or URNIC_LAB_CACHE}/.cache}/urnic-lab}
[[ $CACHE = /* ]] || CACHE=$PWD/$CACHE

say() { echo "lab: $*" >&2; }
die() { say "$*"; exit 1; }

# usage: prints the comment at the head of the command and ends it.
usage() {
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

# guest NAME: sets RUN, the directory of this checkout's guest of that name, and
# OUT, the directory it shares with the guest.
guest() {
    [[ $1 =~ ^[A-Za-z0-9_.-]+$ ]] || die "a guest's name is made of letters, digits, '_', '.' and '-'; '$1' is not"
    RUN=$CACHE/run/$(printf %s "$LAB" | cksum | cut -d' ' -f1)/$1
    # shellcheck disable=SC2034 # for who sources this
    OUT=$RUN/out
}

# alive: whether the guest runs. QEMU holds an exclusive lock on RUN/lock as long
# as it lives, so that a pid file left behind proves nothing and needs no care.
alive() { [ -e "$RUN/lock" ] && ! flock -n -s "$RUN/lock" true; }
