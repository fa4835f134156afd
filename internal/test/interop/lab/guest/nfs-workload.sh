#!/bin/sh
# Does to a directory what programs do to a file system, and checks what comes of it:
# "ok NAME" or "FAILED NAME" with a trace, a line for each check, and what it all took.
# Fails if a check did. Nothing but sh, coreutils, find, cmp and diff is wanted, so it runs
# in the guest on a mount of NFS, and anywhere on any directory.
#   nfs-workload.sh [OPTION]... DIR
#   -s MIB       size of large files (64)
#   -n FILES     how many large files (2)
#   -e ENTRIES   of the large directory (2000)
#   -t FANOUT    of the tree's directories (4)
#   -w WRITERS   that are at work together (4)
#   -p PARTS     which parts, by commas (all): files sizes direct tree dirs rename links
#                truncate sparse attr concurrent remount
#   -r COMMAND   what mounts DIR anew, for "remount", which else only reads again
#   -k           keeps the files
# Everything happens in DIR/workload, which must not exist. "direct" goes around the
# client's cache. Checks that only root can make are "skip" when someone else runs them.
set -u
export LC_ALL=C
umask 022

mib=64 large=2 entries=2000 fanout=4 writers=4 remount='' keep=''
all=files,sizes,direct,tree,dirs,rename,links,truncate,sparse,attr,concurrent,remount
parts=$all
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while getopts s:n:e:t:w:p:r:k o; do
    case $o in
    s) mib=$OPTARG ;;
    n) large=$OPTARG ;;
    e) entries=$OPTARG ;;
    t) fanout=$OPTARG ;;
    w) writers=$OPTARG ;;
    p) parts=$OPTARG ;;
    r) remount=$OPTARG ;;
    k) keep=yes ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# = 1 ] || usage
for part in $(echo "$parts" | tr , ' '); do
    case ",$all," in
    *",$part,"*) ;;
    *) usage ;;
    esac
done
dir=$1/workload
tmp=$(mktemp -d) || exit 1
trap 'cd /; rm -rf "$tmp"' EXIT
trap 'exit 143' INT TERM
mkdir "$dir" && cd "$dir" || exit 1
checks=0 failed=0 begin=$(date +%s)

# check NAME COMMAND...: one check. The first command that fails in it is its end.
check() {
    what=$1 start=$(date +%s)
    shift
    (set -ex; "$@") >"$tmp/log" 2>&1
    rc=$? checks=$((checks + 1))
    if [ $rc = 0 ]; then
        echo "ok      $what ($(($(date +%s) - start)) s)"
    else
        failed=$((failed + 1))
        echo "FAILED  $what: status $rc, after:"
        tail -n 15 "$tmp/log" | cut -c1-300 | sed 's/^/        /'
    fi
}

# refused COMMAND...: that the command fails. is ACTUAL EXPECTED: that they are equal.
refused() { ! "$@"; }
is() { [ "$1" = "$2" ]; }
# forget FILE: drops what the client has cached of it, so that reading asks the server.
forget() { dd if="$1" iflag=nocache count=0; }
# same FILE FILE: compares, the first one being asked for from the server.
same() { forget "$1"; cmp "$1" "$2"; }

# state: what there is in the working directory: for each thing its type, rights, owner
# and name, for files also links, size, and time of modification, and the contents.
state() {
    find . ! -type f ! -type l -exec stat -c '%F %a %u %g %n' {} + | sort
    find . -type l -exec stat -c '%F %u %g %N' {} + | sort
    find . -type f -exec stat -c '%F %a %u %g %h %s %y %n' {} + | sort
    find . -type f -exec sha256sum {} + | sort -k 2
}

# --- files: large ones, and pieces of them

large_write() {
    cp "$tmp/large" large1
    for i in $(seq 2 "$large"); do
        # The same octets, turned by an odd number, in blocks that are odd as well.
        { tail -c +4098 "$tmp/large"; head -c 4097 "$tmp/large"; } | dd of="large$i" bs=70001 iflag=fullblock conv=fsync
    done
    is "$(cat large* | wc -c)" $((large * mib << 20))
}
large_read() {
    same large1 "$tmp/large"
    for i in $(seq 2 "$large"); do
        forget "large$i"
        is "$({ tail -c 4097 "large$i"; head -c -4097 "large$i"; } | sha256sum)" "$(sha256sum <"$tmp/large")"
    done
}
odd_reads() {
    for bs in 1000 4099 131073; do
        forget large1
        dd if=large1 bs=$bs skip=3 count=5 >"$tmp/a"
        dd if="$tmp/large" bs=$bs skip=3 count=5 >"$tmp/b"
        cmp "$tmp/a" "$tmp/b"
    done
}
overwrite() {
    head -c 1048576 "$tmp/large" >"$tmp/a"
    cp "$tmp/a" over
    for bs in 1 777 4096 70001; do
        forget over
        for f in over "$tmp/a"; do dd if="$tmp/large" of="$f" bs=$bs seek=7 skip=2 count=3 conv=notrunc; done
    done
    same over "$tmp/a"
}
append() {
    : >"$tmp/a"
    for i in $(seq 60); do
        echo "line $i of what is appended" | tee -a "$tmp/a" >>append
    done
    same append "$tmp/a"
}
part_files() {
    check "$large files of $mib MiB are written" large_write
    check 'they are read back' large_read
    check 'pieces at odd places are read' odd_reads
    check 'pieces at odd places are overwritten' overwrite
    check 'lines are appended' append
}

# --- sizes: around what goes inline and what in chunks, and around round-up

around() {
    mkdir sizes
    for n in 0 1024 3600 4096 131072 1048576; do
        for d in -4 -3 -1 0 1 2; do
            [ $((n + d)) -lt 0 ] || [ $((n + d)) -gt $((mib << 20)) ] || echo $((n + d))
        done
    done | sort -nu >"$tmp/sizes"
    while read -r n; do head -c "$n" "$tmp/large" >"sizes/$n"; done <"$tmp/sizes"
    while read -r n; do
        forget "sizes/$n"
        head -c "$n" "$tmp/large" | cmp - "sizes/$n"
    done <"$tmp/sizes"
}
part_sizes() { check 'files of 0 octets to 1 MiB' around; }

# --- direct: every write and read of the program is one of the protocol's, or several

direct() {
    dd if="$tmp/large" of=direct bs="$1" count="$2" oflag=direct
    dd if=direct bs="$1" iflag=direct >"$tmp/a"
    head -c $(($1 * $2)) "$tmp/large" | cmp - "$tmp/a"
    rm direct
}
part_direct() {
    check 'without cache, 1 MiB at a time' direct 1048576 $((mib < 8 ? mib : 8))
    check 'without cache, 4 KiB at a time' direct 4096 40
    if dd if="$tmp/large" of=odd bs=1001 count=1 oflag=direct 2>/dev/null; then
        check 'without cache, 1 to 5000 octets at a time' direct_odd
    else
        echo "skip    without cache, odd sizes: this file system has only whole pages"
    fi
    rm -f odd
}
direct_odd() { for bs in 1 3 996 997 1001 4095 4097 5000; do direct $bs 4; done; }

# --- tree

grow() { # DIR: a tree four levels deep, its files of many sizes
    mkdir "$1"
    n=0
    for a in $(seq "$fanout"); do
        for b in $(seq "$fanout"); do
            mkdir -p "$1/$a/$b/deep"
            for d in "$1/$a" "$1/$a/$b" "$1/$a/$b/deep"; do
                n=$((n + 1))
                [ -e "$d/file" ] || head -c $((n * n * 37)) "$tmp/large" >"$d/file"
            done
            for c in $(seq 2 "$fanout"); do echo "$a $b $c" >"$1/$a/$b/deep/file $c"; done
        done
    done
}
tree_write() {
    grow "$tmp/tree"
    cp -a "$tmp/tree" tree
}
tree_read() {
    find tree -type f | while read -r f; do forget "$f"; done
    (cd "$tmp/tree" && state) >"$tmp/a"
    (cd tree && state) >"$tmp/b"
    diff "$tmp/a" "$tmp/b"
}
tree_prune() {
    for d in "$tmp/tree" tree; do
        rm -r "$d/1"
        mv "$d/2/2" "$d/moved"
        cp -a "$d/moved" "$d/2/again"
        find "$d" -name 'file 2' -exec rm {} +
        find "$d" -name file -exec touch -d '2020-02-02 02:02:02.123456789' {} +
    done
    tree_read
}
part_tree() {
    check 'a tree is copied' tree_write
    check 'it is like the original' tree_read
    check 'and after the same changes to both' tree_prune
    check 'the tree is removed' rm -r tree
}

# --- dirs: listings

listed() { # DIR: has it the names in tmp/names
    find "$1" -mindepth 1 | sed "s,^$1/,," | sort | diff - "$tmp/names"
}
few() {
    mkdir few
    : >"$tmp/names"
    is "$(ls -A few)" ''
    listed few
    refused mkdir few
    mkdir few/sub
    echo 1 >few/one
    printf 'one\nsub\n' >"$tmp/names"
    listed few
    refused rmdir few
    refused rmdir few/one
    refused rm few/sub
    refused cat few/none
    refused mkdir few/none/sub
    refused mkdir few/one/sub
    rm few/one
    rmdir few/sub few
}
names() {
    mkdir names
    long=$(printf %0255d 0)
    for f in "$long" ' a b ' '-x' '#*?"\$' "$(printf '\303\251\342\202\254')" '...'; do
        printf '%s\n' "$f"
    done | sort >"$tmp/names"
    while IFS= read -r f; do printf '%s\n' "$f" >"names/$f"; done <"$tmp/names"
    while IFS= read -r f; do is "$(cat "names/$f")" "$f"; done <"$tmp/names"
    listed names
    refused touch "names/x$long"
    rm -r names
}
number() { seq -f 'an entry among many others, number %.0f' "$@"; }
many() {
    mkdir many
    number "$entries" | tr '\n' '\0' | (cd many && xargs -0 touch)
    number "$entries" | sort >"$tmp/names"
    listed many
}
many_attr() {
    # shellcheck disable=SC2012 # the format of ls is what counts
    is "$(ls -l many | grep -c '^-rw-r--r-- ')" "$entries"
}
many_less() {
    number 1 2 "$entries" | tr '\n' '\0' | (cd many && xargs -0 rm)
    number 2 2 "$entries" | sort >"$tmp/names"
    listed many
}
part_dirs() {
    check 'an empty directory, a small one, and what is refused' few
    check 'names of all kinds' names
    check "$entries files are made and listed" many
    check 'they are listed with attributes' many_attr
    check 'half of them are removed' many_less
    check 'and the rest' rm -r many
}

# --- rename

rename_file() {
    echo a >a
    inode=$(stat -c %i a)
    mv a b
    refused stat a
    is "$(cat b)" a
    echo c >c
    mv -f b c
    is "$(cat c)" a
    is "$(stat -c %i c)" "$inode"
    mkdir d
    mv c d/
    refused mv -T d/c d
    refused mv none x
    is "$(cat d/c)" a
    rm -r d
}
rename_dir() {
    mkdir -p a/sub b/sub
    echo x >a/sub/file
    mv a b/a
    is "$(cat b/a/sub/file)" x
    refused mv b b/sub/b
    refused mv -T b/sub b/a
    mv -T b/a/sub b/sub
    is "$(cat b/sub/file)" x
    is "$(ls b/a)" ''
    (cd b/a && is "$(cd .. && ls)" "$(printf 'a\nsub')")
    echo y >y
    refused mv -T b y
    rm -r b y
}
rename_open() {
    echo still here >a
    exec 3<a
    rm a
    is "$(cat <&3)" 'still here'
    exec 3<&-
    refused stat a
    echo new >a
    exec 3<a
    echo newer >b
    mv b a
    is "$(cat <&3)" new
    exec 3<&-
    is "$(cat a)" newer
    rm a
}
part_rename() {
    check 'files are renamed, also over others' rename_file
    check 'directories are renamed, also over empty ones' rename_dir
    check 'files that are open are removed and replaced' rename_open
}

# --- links

symlinks() {
    mkdir s
    echo x >s/file
    ln -s file s/rel
    ln -s "$PWD/s/file" s/abs
    ln -s nowhere s/dangling
    ln -s . s/dot
    ln -s loop s/loop
    long=$(printf '%0100d/' 1 2 3 4 5 6 7 8 9)
    ln -s "$long" s/long
    is "$(readlink s/long)" "$long"
    is "$(cat s/rel s/abs s/dot/dot/rel)" "$(printf 'x\nx\nx')"
    is "$(readlink s/dangling)" nowhere
    is "$(stat -c '%F %s' s/dangling)" 'symbolic link 7'
    refused cat s/dangling
    refused cat s/loop
    refused ln -s x s/file
    echo y >s/dangling
    is "$(cat s/nowhere)" y
    rm s/rel
    is "$(cat s/file)" x
    rm -r s
}
hard_links() {
    mkdir h
    echo x >h/a
    for i in $(seq 10); do ln h/a "h/l$i"; done
    is "$(stat -c %h h/a)" 11
    is "$(stat -c %i h/l7)" "$(stat -c %i h/a)"
    echo y >>h/l3
    forget h/l9
    is "$(cat h/l9)" "$(printf 'x\ny')"
    chmod 600 h/l2
    is "$(stat -c %a h/a)" 600
    rm h/a h/l1
    is "$(stat -c %h h/l10)" 9
    is "$(cat h/l10)" "$(printf 'x\ny')"
    refused ln h h/dir
    refused ln h/l4 h/l5
    rm -r h
}
part_links() {
    check 'symbolic links' symlinks
    check 'hard links' hard_links
}

# --- truncate and sparse

cut_and_grow() {
    head -c 300001 "$tmp/large" | tee trunc >"$tmp/a"
    for n in 300000 131073 131072 262144 4097 1 0 70001; do
        truncate -s "$n" trunc "$tmp/a"
        is "$(stat -c %s trunc)" "$n"
        same trunc "$tmp/a"
    done
    echo x >trunc
    is "$(cat trunc)" x
    : >trunc
    is "$(stat -c %s trunc)" 0
    rm trunc
}
holes() {
    for f in sparse "$tmp/a"; do
        rm -f "$f"
        for at in 0 3 40 1000; do
            dd if="$tmp/large" of="$f" bs=4099 count=1 seek="$at" conv=notrunc
        done
        truncate -s 5000001 "$f"
    done
    is "$(stat -c %s sparse)" 5000001
    same sparse "$tmp/a"
    rm sparse
}
beyond() { # 32 bits
    echo end | dd of=sparse bs=1 seek=4294967290
    echo beyond | dd of=sparse bs=1 seek=6442450944 conv=notrunc
    is "$(stat -c %s sparse)" 6442450951
    forget sparse
    is "$(tail -c 7 sparse)" beyond
    is "$(dd if=sparse bs=10 skip=429496729 count=1 | tr '\0' .)" "$(printf 'end\n......')"
    is "$(dd if=sparse bs=1M skip=5000 count=1 | tr -d '\0' | wc -c)" 0
    rm sparse
}
part_truncate() { check 'files are cut and grown' cut_and_grow; }
part_sparse() {
    check 'holes read as zeros' holes
    check 'octets beyond 4 GiB' beyond
}

# --- attr

modes() {
    echo x >m
    for mode in 0 400 755 640 1644 4755 777; do
        chmod "$mode" m
        is "$(stat -c %a m)" "$mode"
    done
    mkdir -m 1777 md
    is "$(stat -c %a md)" 1777
    (umask 027; echo x >u; mkdir ud)
    is "$(stat -c %a u ud)" "$(printf '640\n750')"
    rm -r m md u ud
}
dates() {
    echo x >t
    for time in '2001-02-03 04:05:06.789000000' '1970-01-01 00:00:01.000000000' '2037-12-31 23:59:59.000001000'; do
        TZ=UTC0 touch -m -d "$time" t
        is "$(TZ=UTC0 stat -c %y t)" "$time +0000"
        TZ=UTC0 touch -a -d "$time" t
        is "$(TZ=UTC0 stat -c %x t)" "$time +0000"
    done
    touch t
    [ "$(stat -c %Y t)" -gt 1600000000 ]
    touch -d 2001-01-01 t
    echo y >>t
    [ "$(stat -c %Y t)" -gt 1600000000 ]
    mkdir td
    touch -d 2001-01-01 td
    echo x >td/x
    [ "$(stat -c %Y td)" -gt 1600000000 ]
    rm -r t td
}
kinds() {
    mkfifo fifo
    is "$(stat -c %F fifo)" fifo
    echo through the pipe >fifo &
    is "$(cat fifo)" 'through the pipe'
    [ "$(stat -f -c %b .)" -gt 0 ]
    df . >"$tmp/a"
    rm fifo
}
owners() {
    echo x >o
    chown 1234:5678 o
    chgrp 99 o
    is "$(stat -c %u:%g o)" 1234:99
    ln -s x ol
    chown -h 7:8 ol
    is "$(stat -c %u:%g ol)" 7:8
    rm o ol
}
rights() {
    mkdir -m 755 r
    echo x | tee r/mine >r/all
    chmod 600 r/mine
    as="chroot --userspec=65534:65534 / "
    $as cat "$PWD/r/all"
    refused $as cat "$PWD/r/mine"
    refused $as touch "$PWD/r/new"
    refused $as chmod 777 "$PWD/r/all"
    chmod 1777 r
    $as touch "$PWD/r/new"
    is "$(stat -c %u:%g r/new)" 65534:65534
    refused $as rm -f "$PWD/r/mine"
    rm -r r
}
devices() {
    mknod null c 1 3
    is "$(stat -c '%F %t %T' null)" 'character special file 1 3'
    mknod block b 7 200
    is "$(stat -c '%F %t %T' block)" 'block special file 7 c8'
    rm null block
}
part_attr() {
    check 'rights' modes
    check 'times' dates
    check 'pipes, and the room on the file system' kinds
    if [ "$(id -u)" = 0 ]; then
        check 'owners' owners
        check 'devices' devices
    else
        echo 'skip    owners and devices: only root may'
    fi
    if chroot --userspec=65534:65534 / test -r "$PWD/." 2>/dev/null; then
        check 'what others may not' rights
    else
        echo 'skip    what others may not: nobody else gets here'
    fi
}

# --- concurrent

# together COMMAND...: runs it WRITERS times at once, its last argument the number.
together() {
    pids=
    for i in $(seq "$writers"); do
        "$@" "$i" &
        pids="$pids $!"
    done
    for p in $pids; do wait "$p"; done
}
own_file() { cp "$tmp/part$1" "own$1"; }
own_range() { dd if="$tmp/part$1" of=shared bs=65536 seek=$((($1 - 1) * per * 16)) conv=notrunc,fsync; }
read_whole() { cmp shared "$tmp/whole"; }
own_names() {
    for j in $(seq 20); do
        echo "$1" >"busy/$1.$j"
        mv "busy/$1.$j" "busy/$1-$j"
        [ $((j % 2)) = 0 ] || rm "busy/$1-$j"
    done
}
files_at_once() {
    together own_file
    for i in $(seq "$writers"); do same "own$i" "$tmp/part$i"; done
    rm own*
}
ranges_at_once() {
    : >shared
    together own_range
    same shared "$tmp/whole"
}
reads_at_once() {
    forget shared
    together read_whole
    rm shared
}
names_at_once() {
    mkdir busy
    together own_names
    for i in $(seq "$writers"); do for j in $(seq 2 2 20); do echo "$i-$j"; done; done | sort >"$tmp/names"
    listed busy
    (cd busy && for f in *; do is "$(cat "$f")" "${f%-*}"; done)
    rm -r busy
}
part_concurrent() {
    # Each writer has as many MiB as makes one large file of all.
    per=$((mib / writers > 0 ? mib / writers : 1))
    for i in $(seq "$writers"); do
        head -c $((per << 20)) /dev/urandom >"$tmp/part$i"
        cat "$tmp/part$i" >>"$tmp/whole"
    done
    check "$writers write $per MiB each, to files of their own" files_at_once
    check "$writers write to their parts of a file" ranges_at_once
    check "$writers read it all" reads_at_once
    check "$writers make, rename and remove in one directory" names_at_once
    rm "$tmp"/part* "$tmp/whole"
}

# --- remount: what all the others left is still there

remounted() {
    cd "$dir"
    [ -e large1 ] || cp "$tmp/large" large1
    [ -e few ] || { mkdir few; echo x >few/x; ln -s x few/s; ln few/x few/l; chmod 444 few/x; touch -d 2001-01-01 few/x; }
    state >"$tmp/a"
    cd /
    if [ -n "$remount" ]; then sh -c "$remount"; fi
    cd "$dir"
    find . -type f | while read -r f; do forget "$f"; done
    state >"$tmp/b"
    diff "$tmp/a" "$tmp/b"
}
part_remount() {
    # This shell must not be in the way of umount.
    cd / || exit
    check "everything is still there${remount:+ after it was mounted again}" remounted
    cd "$dir" || exit
}

head -c $((mib << 20)) /dev/urandom >"$tmp/large"
for part in $(echo "$parts" | tr , ' '); do "part_$part"; done
cd / || exit
[ -n "$keep" ] || check 'all is removed' rm -r "$dir"
echo "workload: $checks checks, $failed failed, $(($(date +%s) - begin)) s"
[ $failed = 0 ]
