package vfstest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"urnic/ulp/nfs/vfs"
)

// Test runs the suite. open returns an empty, writable FS; the suite closes it.
func Test(t *testing.T, open func(t *testing.T) vfs.FS) {
	for _, c := range []struct {
		name string
		run  func(s *suite)
	}{
		{"root", root},
		{"create", create},
		{"mkdir", mkdir},
		{"symlink", symlink},
		{"mknod", mknod},
		{"attributes", attributes},
		{"attributes that can't be", badAttributes},
		{"times", times},
		{"lookup", lookup},
		{"names", names},
		{"names that can't be", badNames},
		{"handles made up", madeUp},
		{"handles stay", handlesStay},
		{"handles become stale", handlesStale},
		{"read and write", readWrite},
		{"large files", large},
		{"truncate", truncate},
		{"beyond the largest file", beyond},
		{"only regular files have data", onlyRegular},
		{"concurrent data", concurrentData},
		{"remove", remove},
		{"rename", rename},
		{"rename over", renameOver},
		{"rename into itself", renameInto},
		{"link", link},
		{"list", list},
		{"list while it changes", listChanging},
		{"list from a lost place", listLost},
		{"concurrent names", concurrentNames},
		{"stat", stat},
		{"context", ended},
		{"close", closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := open(t)
			t.Cleanup(func() {
				if err := fs.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			c.run(&suite{T: t, fs: fs, ctx: t.Context(), root: fs.Root(), can: fs.Features()})
		})
	}
}

// A suite is what a case works with.
type suite struct {
	*testing.T
	fs   vfs.FS
	ctx  context.Context
	root vfs.Handle
	can  vfs.Features
}

// want ends the case unless err is the one wanted, nil included.
func (s *suite) want(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("%s: %v, want %v", what, err, want)
	}
}

func (s *suite) ok(what string, err error) { s.Helper(); s.want(what, err, nil) }

func (s *suite) create(dir vfs.Handle, name string) vfs.Handle {
	s.Helper()
	h, _, err := s.fs.Create(s.ctx, dir, name, vfs.SetAttr{})
	s.ok("Create "+name, err)
	return h
}

func (s *suite) mkdir(dir vfs.Handle, name string) vfs.Handle {
	s.Helper()
	h, _, err := s.fs.Mkdir(s.ctx, dir, name, vfs.SetAttr{})
	s.ok("Mkdir "+name, err)
	return h
}

func (s *suite) attr(h vfs.Handle) vfs.Attr {
	s.Helper()
	a, err := s.fs.GetAttr(s.ctx, h)
	s.ok("GetAttr", err)
	return a
}

func (s *suite) lookup(dir vfs.Handle, name string) vfs.Handle {
	s.Helper()
	h, a, err := s.fs.Lookup(s.ctx, dir, name)
	s.ok("Lookup "+name, err)
	if b := s.attr(h); a.FileID != b.FileID || a.Type != b.Type {
		s.Fatalf("Lookup %s says %+v, GetAttr %+v", name, a, b)
	}
	return h
}

func (s *suite) write(h vfs.Handle, p []byte, off uint64) {
	s.Helper()
	s.ok("Write", s.fs.Write(s.ctx, h, p, off, false))
}

// reads checks what the file holds from off on; all says that nothing follows.
func (s *suite) reads(h vfs.Handle, off uint64, want []byte, all bool) {
	s.Helper()
	p := bytes.Repeat([]byte{0xa5}, len(want))
	n, end, err := s.fs.Read(s.ctx, h, p, off)
	s.ok("Read", err)
	if n != len(want) || end != all {
		s.Fatalf("Read of %d at %d: %d, end %v, want end %v", len(want), off, n, end, all)
	}
	if !bytes.Equal(p, want) {
		i := 0
		for p[i] == want[i] {
			i++
		}
		s.Fatalf("Read of %d at %d: byte %d is %#x, want %#x", len(want), off, i, p[i], want[i])
	}
}

// listing returns the entries of a directory, read some at a time.
func (s *suite) listing(dir vfs.Handle, some int, plus bool) []vfs.Entry {
	s.Helper()
	var all []vfs.Entry
	cookie := uint64(0)
	for {
		n := 0
		end, err := s.fs.ReadDir(s.ctx, dir, cookie, plus, func(e vfs.Entry) bool {
			if n == some {
				return false
			}
			n++
			all = append(all, e)
			return true
		})
		s.ok("ReadDir", err)
		if end {
			return all
		}
		if n == 0 {
			s.Fatalf("ReadDir gave nothing, and not the end, behind cookie %#x", cookie)
		}
		cookie = all[len(all)-1].Cookie
	}
}

//go:fix inline
