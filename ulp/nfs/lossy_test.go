package nfs_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"urnic/ulp/nfs"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
)

// A lossy filesystem is as one on a disk that fails: a sync that does loses what was written
// and not synchronised, and is the only call to say so.
type lossy struct {
	vfs.FS
	mu     sync.Mutex
	stable map[vfs.Handle][]byte // what is on the disk of files that were written since
	fails  bool                  // the next sync does
}

// content returns what a file has. The caller holds mu.
func (l *lossy) content(ctx context.Context, h vfs.Handle) ([]byte, error) {
	a, err := l.GetAttr(ctx, h)
	if err != nil {
		return nil, err
	}
	p := make([]byte, a.Size)
	_, _, err = l.Read(ctx, h, p, 0)
	return p, err
}

// sync makes stable what a file has, or loses it.
func (l *lossy) sync(ctx context.Context, h vfs.Handle) error {
	if !l.fails {
		delete(l.stable, h)
		return nil
	}
	l.fails = false
	for h, p := range l.stable {
		if _, err := l.FS.SetAttr(ctx, h, vfs.SetAttr{Size: new(uint64)}); err != nil {
			return err
		}
		if err := l.FS.Write(ctx, h, p, 0, false); err != nil {
			return err
		}
	}
	clear(l.stable)
	return vfs.ErrIO
}

func (l *lossy) Write(ctx context.Context, h vfs.Handle, p []byte, off uint64, sync bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.stable[h]; !ok {
		now, err := l.content(ctx, h)
		if err != nil {
			return err
		}
		l.stable[h] = now
	}
	err := l.FS.Write(ctx, h, p, off, sync)
	if err == nil && sync {
		err = l.sync(ctx, h)
	}
	return err
}

func (l *lossy) Commit(ctx context.Context, h vfs.Handle, _, _ uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sync(ctx, h)
}

func (l *lossy) SetAttr(ctx context.Context, h vfs.Handle, s vfs.SetAttr) (vfs.Attr, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.FS.SetAttr(ctx, h, s)
	if err == nil && s.Size != nil {
		err = l.sync(ctx, h)
	}
	return a, err
}

// What a client has written is in the file after Sync although the disk has lost it, and
// another client's call was told of that.
func TestClientWritesAgainWhatADiskHasLost(t *testing.T) {
	const text = "the only copy"
	for name, fail := range map[string]func(t *testing.T, c *nfs.Client) error{
		"WRITE with FILE_SYNC": func(t *testing.T, c *nfs.Client) error {
			f, err := c.OpenFile(t.Context(), "file", os.O_RDWR|os.O_SYNC, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt([]byte("x"), 1000)
			_ = f.Close()
			return err
		},
		"SETATTR": func(t *testing.T, c *nfs.Client) error { return c.Truncate(t.Context(), "file", 5000) },
		"COMMIT": func(t *testing.T, c *nfs.Client) error {
			f, err := c.OpenFile(t.Context(), "file", os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("x"), 1000); err != nil {
				t.Fatal(err)
			}
			err = f.Sync()
			_ = f.Close()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &lossy{FS: kept{memfs.New(memfs.Options{Mode: 0o777})}, stable: make(map[vfs.Handle][]byte)}
			s := serve(t, func() vfs.FS { return disk })
			dial := func() *nfs.Client {
				c, err := nfs.Dial(t.Context(), s.url(nfs.TCP), s.config(nil))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			c := dial()
			f, err := c.OpenFile(t.Context(), "file", os.O_RDWR|os.O_CREATE, 0o666)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			disk.mu.Lock()
			disk.fails = true
			disk.mu.Unlock()
			if err := fail(t, dial()); err == nil {
				t.Fatal("nothing failed")
			}
			if got, err := c.ReadFile(t.Context(), "file"); err != nil || bytes.Contains(got, []byte(text)) {
				t.Fatalf("the disk has lost nothing: %q, %v", got, err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := dial().ReadFile(t.Context(), "file"); err != nil || !strings.HasPrefix(string(got), text) {
				t.Errorf("the file has %.20q after Close, %v", got, err)
			}
		})
	}
}
