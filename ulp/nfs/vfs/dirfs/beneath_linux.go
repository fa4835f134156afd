package dirfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// An opener opens a name in a directory. It follows no link and enters no mount.
type opener func(dir int, name string, flags, mode uint64) (int, error)

// newOpener returns what opens names in a tree, of which root is the root: openat2 or, where
// the system has none or a container forbids it, openat with a look at what was opened.
func newOpener(root int) (opener, error) {
	fd, err := openBeneath(root, ".", unix.O_PATH, 0)
	if err == nil {
		_ = unix.Close(fd)
		return openBeneath, nil
	}
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return nil, err
	}
	return newChecked(root)
}

// resolveFlags is what all opening has in common: one component, below where it begins.
const resolveFlags = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// openBeneath is an opener by openat2.
func openBeneath(dir int, name string, flags, mode uint64) (int, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_LARGEFILE,
		Mode:    mode,
		Resolve: resolveFlags,
	}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_LARGEFILE // openat2 refuses what means nothing
	}
	for tries := 1; ; tries++ {
		fd, err := again(func() (int, error) { return unix.Openat2(dir, name, &how) })
		// A name that is moved to another directory meanwhile looks as if it had led out of
		// this one. The next look tells it from a mount.
		if !errors.Is(err, unix.EXDEV) || tries == mostMoved {
			return fd, err
		}
	}
}

// mostMoved is how often a name may be moved away, and another one to its place, while it is
// opened.
const mostMoved = 8

// newChecked returns an opener by openat: of one component, which is no link, and in the
// same mount as the root. A mount that appears meanwhile is found once it was entered; but
// what was opened in it is not given to anybody.
func newChecked(root int) (opener, error) {
	mount, of, err := mountOf(root)
	if err != nil {
		return nil, err
	}
	return func(dir int, name string, flags, mode uint64) (int, error) {
		if name == "" || name == ".." || strings.Contains(name, "/") {
			return -1, unix.EXDEV // as RESOLVE_BENEATH has it
		}
		fd, err := again(func() (int, error) {
			return unix.Openat(dir, name, int(flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_LARGEFILE), uint32(mode))
		})
		if err != nil {
			return -1, err
		}
		m, err := of(fd)
		if err == nil && m != mount {
			err = unix.EXDEV
		}
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		return fd, nil
	}, nil
}

// mountOf returns in which mount a descriptor is, and how to learn that of others.
func mountOf(fd int) (uint64, func(fd int) (uint64, error), error) {
	for _, of := range []func(int) (uint64, error){mountByStatx, mountByProc} {
		if m, err := of(fd); err == nil {
			return m, of, nil
		}
	}
	return 0, nil, errors.New("the system has no openat2 (Linux 5.6), or a container's rules forbid it, and /proc is not there to do without: " +
		"permit openat2, or mount /proc")
}

// mountByStatx asks statx, which knows since Linux 5.8.
func mountByStatx(fd int) (uint64, error) {
	var st unix.Statx_t
	err := again0(func() error { return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st) })
	if err == nil && st.Mask&unix.STATX_MNT_ID == 0 {
		err = unix.ENOSYS
	}
	return st.Mnt_id, err
}

// mountByProc asks proc(5).
func mountByProc(fd int) (uint64, error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(info)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.ParseUint(strings.TrimSpace(id), 10, 64)
		}
	}
	return 0, unix.ENOSYS
}
