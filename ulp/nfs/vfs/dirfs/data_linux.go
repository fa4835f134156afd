package dirfs

import (
	"context"
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// data returns a descriptor of the regular file that a handle names.
func (fs *linuxFS) data(ctx context.Context, h vfs.Handle, k kind) (*desc, error) {
	n, err := fs.resolve(ctx, h)
	if err != nil {
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
	d, err := fs.data(ctx, h, readDesc)
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
	// One octet more says whether the file ends here.
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
	d, err := fs.data(ctx, h, writeDesc)
	if err != nil {
		return err
	}
	defer d.done()
	if off > math.MaxInt64 || uint64(len(p)) > math.MaxInt64-off {
		return vfs.ErrTooBig
	}
	for len(p) > 0 {
		n, err := again(func() (int, error) { return unix.Pwrite(d.fd, p, int64(off)) })
		if err != nil {
			return fail(err)
		}
		p, off = p[n:], off+uint64(n)
	}
	if sync {
		return fail(fs.sync(d.fd, false))
	}
	return nil
}

// Commit makes the whole file stable: Linux can't do that with a part.
func (fs *linuxFS) Commit(ctx context.Context, h vfs.Handle, _, _ uint64) error {
	d, err := fs.data(ctx, h, writeDesc)
	if errors.Is(err, vfs.ErrAccess) || errors.Is(err, vfs.ErrReadOnly) {
		d, err = fs.data(ctx, h, readDesc)
	}
	if err != nil {
		return err
	}
	defer d.done()
	return fail(fs.sync(d.fd, true))
}
