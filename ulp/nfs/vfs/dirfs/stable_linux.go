package dirfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Linux reports data that it could not write to the disk once for each open file, and once
// for each inode to those that open it later (errseq_t). An error that comes up after a
// descriptor was closed may reach another program, or nobody if the inode leaves memory. So
// a descriptor that was written is synchronised before it is closed, and a failure counts
// as a loss.

// Losses returns how often data that was written may have been lost.
func (fs *linuxFS) Losses() uint64 { return fs.losses.Load() }

// syncFD brings what a descriptor is open at to stable storage.
func (fs *linuxFS) syncFD(fd int, data bool) error {
	err := fs.sync(fd, data)
	if err != nil && !errors.Is(err, unix.EBADF) && !errors.Is(err, unix.EINVAL) { // those can't be synchronised at all
		fs.losses.Add(1)
	}
	return err
}

// syncDesc is syncFD of a descriptor that may have been written.
func (fs *linuxFS) syncDesc(d *desc, data bool) error {
	d.dirty.Store(false) // what is written from now on may come too late
	return fs.syncFD(d.fd, data)
}

// flush synchronises a descriptor that is about to be closed.
func (fs *linuxFS) flush(d *desc) {
	fs.mu.Lock()
	if fs.closed { // nobody can commit any more
		fs.mu.Unlock()
		return
	}
	fs.flushing[d.ino]++
	fs.mu.Unlock()
	_ = fs.syncDesc(d, true) // counted
	fs.mu.Lock()
	if fs.flushing[d.ino]--; fs.flushing[d.ino] == 0 {
		delete(fs.flushing, d.ino)
	}
	fs.flushEnd.Broadcast()
	fs.mu.Unlock()
}

// flushed returns when no flush of a file is in progress. The caller may have opened the file
// after a flush had got an error, and before it has counted it.
func (fs *linuxFS) flushed(ino uint64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for fs.flushing[ino] > 0 {
		fs.flushEnd.Wait()
	}
}
