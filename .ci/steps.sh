# What .ci/run and .ci/verify share: functions that run a step, and say how it went. Sourced, with
# $logs set.

# Without the checkout's path in what is compiled, a fresh clone finds in the cache what another checkout has
# compiled.
GOFLAGS="$(go env GOFLAGS 2>/dev/null) -trimpath"
export GOFLAGS

# step NAME COMMAND...: runs a command, with its output in a log, and prints a line: how long it took, and
# how many seconds of the processors. Its status is that of the command.
step() {
    local name=$1 start=$SECONDS rc before
    log=$logs/$1.log
    shift
    computed
    before=$cpu
    # In the background, so that a trap can end it, as a job: in a process group with all that it starts.
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    set +m
    running=$!
    wait "$running"
    rc=$?
    running=
    computed
    took=$((SECONDS - start))
    if [ $rc = 0 ]; then
        printf 'ok    %-12s %5d s, %5d of CPU  %s\n' "$name" $took $((cpu - before)) "$(figures "$log")"
    else
        printf 'FAIL  %-12s %5d s  status %d; the end of %s:\n' "$name" $took $rc "$log"
        grep -v '^go: downloading ' "$log" | tail -n 120 | cut -c1-300
    fi
    return $rc
}

# figures says in a few words what a log tells.
figures() {
    grep -hE '^[0-9]+ tests passed in |^[0-9]+ issues\.|^[a-z]+ [0-9.]+%$|^[0-9]+ of [0-9]+ |^No vulnerabilities found|^the .* can.t be reached from here' "$1" |
        tail -n 8 | paste -sd';' | sed 's/;/; /g'
}

# computed sets cpu to the seconds of the processors that this shell's steps have taken.
computed() {
    local f
    read -r -a f <"/proc/$BASHPID/stat"
    cpu=$(((f[15] + f[16]) / 100))
}

# packages installs what is missing of the machine's packages.
packages() {
    local missing=() p
    for p in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
    done
    [ ${#missing[@]} != 0 ] || return 0
    echo "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends "${missing[@]}" ||
        { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; }
}

# verified prints what .ci/verified has of each step, and how many commits ago that was.
verified() {
    local name how minutes commit date ago
    while read -r name how minutes commit date; do
        case $name in '' | '#'*) continue ;; esac
        ago=$(git rev-list --count "${commit%+}..HEAD" 2>/dev/null) || ago='?'
        printf '      %-12s %-6s %3s min, %s commits ago (%s, %s)\n' "$name" "$how" "$minutes" "$ago" "$commit" "$date"
    done < <(cat .ci/verified 2>/dev/null)
}

# interrupted ends what runs, and the shell.
interrupted() {
    trap - EXIT INT TERM
    [ -z "$running" ] || kill -- "-$running" 2>/dev/null
    exit "$1"
}
running=
trap 'interrupted $?' EXIT
trap 'interrupted 130' INT
trap 'interrupted 143' TERM
