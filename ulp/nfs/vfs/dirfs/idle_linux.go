package dirfs

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// idleFor is how long a descriptor is kept that nobody uses. A program can't be
	// started while it is open for writing, and a file that the machine's own users
	// remove keeps its space.
	idleFor = 2 * time.Second
	// idleForGood is the same for one that could not be opened again: its maker may
	// still write a file whose mode forbids it.
	idleForGood = time.Minute
)

// watchIdle has idle descriptors closed. The caller holds mu.
func (fs *linuxFS) watchIdle() {
	if fs.idle == nil && !fs.closed {
		fs.idle = time.AfterFunc(fs.idleFor, fs.closeIdle)
	}
}

// closeIdle closes descriptors that were not used for some time.
func (fs *linuxFS) closeIdle() {
	fs.mu.Lock()
	defer fs.unlock()
	if fs.closed {
		return
	}
	now := time.Now()
	for n := fs.open.oldest(); n != nil; {
		next := fs.open.newer(n)
		idle := now.Sub(n.inUse)
		if idle < fs.idleFor {
			break // those that were used later are not idle either
		}
		if idle >= idleForGood || n.wr == nil || canReopen(n.wr.fd) {
			fs.closeDescs(n)
		}
		n = next
	}
	if fs.idle = nil; fs.open.count > 0 {
		fs.watchIdle()
	}
}

// canReopen reports whether a file can be opened for writing again, or need not be.
func canReopen(fd int) bool {
	var st unix.Stat_t
	return unix.Geteuid() == 0 || unix.Fstat(fd, &st) != nil || st.Nlink == 0 || st.Mode&0o200 != 0
}
