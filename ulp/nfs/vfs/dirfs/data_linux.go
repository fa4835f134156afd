package dirfs

import (
	"context"
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// data returns a descriptor of the regular file that a handle names, if the caller may have
// one. Descriptors are kept for all callers.
func (fs *linuxFS) data(ctx context.Context, h vfs.Handle, k kind, w want) (*desc, error) {
	n, err := fs.resolve(ctx, h)
	if err != nil {
		return nil, err
	}
	if err := fs.permit(ctx, n, nil, w); err != nil {
		return nil, err
	}
	d, err := fs.acquire(ctx, n, k)
	if err != nil {
		return nil, err
	}
	if n.typ != vfs.Regular {
		d.done()
		return nil, vfs.ErrInvalid
	}
	return d, nil
}

func (fs *linuxFS) Read(ctx context.Context, h vfs.Handle, p []byte, off uint64) (int, bool, error) {
	d, err := fs.data(ctx, h, readDesc, wantRead)
	if err != nil {
		return 0, false, err
	}
	defer d.done()
	if off > math.MaxInt64-uint64(len(p))-1 {
		if off >= math.MaxInt64 {
			return 0, true, nil // no file is that long
		}
		p = p[:math.MaxInt64-off-1]
	}
	// One byte more says whether the file ends here.
	var one [1]byte
	for total := 0; ; {
		n, err := again(func() (int, error) { return unix.Preadv(d.fd, [][]byte{p[total:], one[:]}, int64(off)+int64(total)) })
		if err != nil {
			return 0, false, fail(err)
		}
		switch total += n; {
		case n == 0:
			return total, true, nil
		case total > len(p):
			return len(p), false, nil
		}
	}
}

func (fs *linuxFS) Write(ctx context.Context, h vfs.Handle, p []byte, off uint64, sync bool) error {
	if err := fs.writable(); err != nil {
		return err
	}
	d, err := fs.data(ctx, h, writeDesc, wantWrite)
	if err != nil {
		return err
	}
	defer d.done()
	if off > math.MaxInt64 || uint64(len(p)) > math.MaxInt64-off {
		return vfs.ErrTooBig
	}
	if !sync {
		// Afterwards: a sync that comes before the data does not bring it to the disk.
		defer d.dirty.Store(true)
	}
	// As the caller, so that quotas hold, and the bits are taken that give others the
	// rights of the owner.
	err = fs.as(fs.caller(ctx), func() error {
		for len(p) > 0 {
			n, err := again(func() (int, error) { return unix.Pwrite(d.fd, p, int64(off)) })
			if err != nil {
				return err
			}
			p, off = p[n:], off+uint64(n)
		}
		return nil
	})
	if err != nil {
		return fail(err)
	}
	if sync {
		return fail(fs.syncDesc(d, false))
	}
	return nil
}

// Commit makes the whole file stable: Linux can't do that with a part.
func (fs *linuxFS) Commit(ctx context.Context, h vfs.Handle, _, _ uint64) error {
	d, err := fs.data(ctx, h, writeDesc, wantWrite)
	if errors.Is(err, vfs.ErrAccess) || errors.Is(err, vfs.ErrReadOnly) {
		d, err = fs.data(ctx, h, readDesc, wantWrite)
	}
	if err != nil {
		return err
	}
	defer d.done()
	err = fs.syncDesc(d, true)
	ino, _ := fs.inode(h)
	fs.flushed(ino)
	return fail(err)
}
