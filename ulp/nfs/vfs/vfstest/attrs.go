package vfstest

import (
	"math"
	"strings"
	"time"

	"urnic/ulp/nfs/vfs"
)

func root(s *suite) {
	if n := len(s.root); n == 0 || n > vfs.MaxHandle {
		s.Errorf("the root's handle has %d bytes", n)
	}
	a := s.attr(s.root)
	if a.Type != vfs.Directory {
		s.Errorf("the root is of type %d", a.Type)
	}
	h, b, err := s.fs.Lookup(s.ctx, s.root, "..")
	s.ok("Lookup ..", err)
	if h != s.root || b.FileID != a.FileID {
		s.Errorf("the root's .. is another file")
	}
	if e := s.listing(s.root, 10, false); len(e) != 0 {
		s.Errorf("an empty FS lists %v", e)
	}
}

// set returns attributes of all kinds that can be set at once.
func (s *suite) set(mode uint32) vfs.SetAttr {
	var a vfs.SetAttr
	if s.can.SetMode {
		a.Mode = &mode
	}
	if s.can.SetTime {
		delta := s.can.TimeDelta
		a.Atime = new(time.Unix(1234567890, 123456789).Truncate(delta))
		a.Mtime = new(time.Unix(1345678901, 987654321).Truncate(delta))
	}
	if s.can.SetOwner {
		a.UID, a.GID = new(uint32(4321)), new(uint32(8765))
	}
	return a
}

// has checks attributes that were set.
func (s *suite) has(a vfs.Attr, want vfs.SetAttr) {
	s.Helper()
	for _, c := range []struct {
		what string
		got  uint32
		want *uint32
	}{{"Mode", a.Mode, want.Mode}, {"UID", a.UID, want.UID}, {"GID", a.GID, want.GID}} {
		if c.want != nil && c.got != *c.want {
			s.Errorf("%s is %#o, want %#o", c.what, c.got, *c.want)
		}
	}
	if want.Size != nil && a.Size != *want.Size {
		s.Errorf("Size is %d, want %d", a.Size, *want.Size)
	}
	if want.Atime != nil && !a.Atime.Equal(*want.Atime) {
		s.Errorf("Atime is %v, want %v", a.Atime, *want.Atime)
	}
	if want.Mtime != nil && !a.Mtime.Equal(*want.Mtime) {
		s.Errorf("Mtime is %v, want %v", a.Mtime, *want.Mtime)
	}
}

func create(s *suite) {
	h, a, err := s.fs.Create(s.ctx, s.root, "f", vfs.SetAttr{})
	s.ok("Create", err)
	if a.Type != vfs.Regular || a.Size != 0 || a.Links != 1 || s.can.SetMode && a.Mode != 0o644 {
		s.Errorf("a new file has %+v", a)
	}
	if s.lookup(s.root, "f") != h {
		s.Error("Lookup finds another handle")
	}
	_, _, err = s.fs.Create(s.ctx, s.root, "f", vfs.SetAttr{})
	s.want("Create of a taken name", err, vfs.ErrExist)

	want := s.set(0o4751)
	want.Size = new(uint64(1000))
	h, a, err = s.fs.Create(s.ctx, s.root, "g", want)
	s.ok("Create with attributes", err)
	s.has(a, want)
	s.has(s.attr(h), want)
	s.reads(h, 0, make([]byte, 1000), true)

	_, _, err = s.fs.Create(s.ctx, h, "x", vfs.SetAttr{})
	s.want("Create in a file", err, vfs.ErrNotDirectory)
	_, _, err = s.fs.Create(s.ctx, s.root, "bad", vfs.SetAttr{Size: new(s.can.MaxFileSize + 1)})
	s.want("Create of too large a file", err, vfs.ErrTooBig)
	_, _, err = s.fs.Lookup(s.ctx, s.root, "bad")
	s.want("Lookup of what was not made", err, vfs.ErrNotExist)
}

func mkdir(s *suite) {
	h, a, err := s.fs.Mkdir(s.ctx, s.root, "d", vfs.SetAttr{})
	s.ok("Mkdir", err)
	if a.Type != vfs.Directory || s.can.SetMode && a.Mode != 0o755 {
		s.Errorf("a new directory has %+v", a)
	}
	if s.lookup(s.root, "d") != h || s.lookup(h, "..") != s.root {
		s.Error("Lookup finds another handle")
	}
	for _, name := range []string{"d", "f"} {
		if name == "f" {
			s.create(s.root, name)
		}
		_, _, err = s.fs.Mkdir(s.ctx, s.root, name, vfs.SetAttr{})
		s.want("Mkdir of a taken name", err, vfs.ErrExist)
	}
	want := s.set(0o1770)
	h, a, err = s.fs.Mkdir(s.ctx, h, "e", want)
	s.ok("Mkdir with attributes", err)
	s.has(a, want)
	s.has(s.attr(h), want)
	_, _, err = s.fs.Mkdir(s.ctx, s.root, "bad", vfs.SetAttr{Size: new(uint64(1))})
	s.want("Mkdir with a size", err, vfs.ErrInvalid)
	_, _, err = s.fs.Mkdir(s.ctx, s.lookup(s.root, "f"), "x", vfs.SetAttr{})
	s.want("Mkdir in a file", err, vfs.ErrNotDirectory)
}

func symlink(s *suite) {
	if !s.can.Symlinks {
		_, _, err := s.fs.Symlink(s.ctx, s.root, "l", "x", vfs.SetAttr{})
		s.want("Symlink", err, vfs.ErrNotSupported)
		return
	}
	f := s.create(s.root, "f")
	for name, target := range map[string]string{
		"a": "f", "b": "/etc/passwd", "c": "../../..", "d": strings.Repeat("x/", 400),
	} {
		h, a, err := s.fs.Symlink(s.ctx, s.root, name, target, vfs.SetAttr{})
		s.ok("Symlink", err)
		if a.Type != vfs.Symlink || a.Size != uint64(len(target)) {
			s.Errorf("a new link to %.20s has %+v", target, a)
		}
		got, err := s.fs.ReadLink(s.ctx, h)
		s.ok("ReadLink", err)
		if got != target || s.lookup(s.root, name) != h {
			s.Errorf("the link to %.20s is to %.20s", target, got)
		}
		// It is never followed.
		_, _, err = s.fs.Lookup(s.ctx, h, "x")
		s.want("Lookup in a link", err, vfs.ErrNotDirectory)
		_, _, err = s.fs.Lookup(s.ctx, h, "..")
		s.want("Lookup of .. in a link", err, vfs.ErrNotDirectory)
		_, _, err = s.fs.Create(s.ctx, s.root, name, vfs.SetAttr{})
		s.want("Create over a link", err, vfs.ErrExist)
		_, _, err = s.fs.Read(s.ctx, h, make([]byte, 1), 0)
		s.want("Read of a link", err, vfs.ErrInvalid)
	}
	_, _, err := s.fs.Symlink(s.ctx, s.root, "f", "x", vfs.SetAttr{})
	s.want("Symlink of a taken name", err, vfs.ErrExist)
	_, err = s.fs.ReadLink(s.ctx, f)
	s.want("ReadLink of a file", err, vfs.ErrInvalid)
	_, err = s.fs.ReadLink(s.ctx, s.root)
	s.want("ReadLink of a directory", err, vfs.ErrInvalid)

	want := s.set(0)
	want.Mode = nil
	_, a, err := s.fs.Symlink(s.ctx, s.root, "attributes", "x", want)
	s.ok("Symlink with attributes", err)
	s.has(a, vfs.SetAttr{UID: want.UID, GID: want.GID})
}

func mknod(s *suite) {
	for _, c := range []struct {
		name         string
		t            vfs.Type
		major, minor uint32
	}{
		{"fifo", vfs.FIFO, 0, 0},
		{"socket", vfs.Socket, 0, 0},
		{"char", vfs.CharDevice, 1, 3},
		{"block", vfs.BlockDevice, 300, 70000},
	} {
		h, a, err := s.fs.Mknod(s.ctx, s.root, c.name, c.t, c.major, c.minor, vfs.SetAttr{Mode: new(uint32(0o622))})
		if s.may(err, vfs.ErrNotSupported, vfs.ErrNotOwner, vfs.ErrAccess) {
			_, _, err = s.fs.Lookup(s.ctx, s.root, c.name)
			s.want("Lookup of what was not made", err, vfs.ErrNotExist)
			continue
		}
		s.ok("Mknod", err)
		if a.Type != c.t || a.Major != c.major || a.Minor != c.minor || a.Mode != 0o622 || s.lookup(s.root, c.name) != h {
			s.Errorf("a %s has %+v", c.name, a)
		}
		_, _, err = s.fs.Read(s.ctx, h, make([]byte, 1), 0)
		s.want("Read of a "+c.name, err, vfs.ErrInvalid)
		_, err = s.fs.SetAttr(s.ctx, h, vfs.SetAttr{Mode: new(uint32(0o600))})
		s.ok("SetAttr of a "+c.name, err)
		if a := s.attr(h); a.Mode != 0o600 {
			s.Errorf("a %s has mode %o", c.name, a.Mode)
		}
		s.ok("Remove of a "+c.name, s.fs.Remove(s.ctx, s.root, c.name))
	}
	for _, t := range []vfs.Type{0, vfs.Regular, vfs.Directory, vfs.Symlink, 8, math.MaxUint32} {
		_, _, err := s.fs.Mknod(s.ctx, s.root, "x", t, 0, 0, vfs.SetAttr{})
		if !s.may(err, vfs.ErrNotSupported) {
			s.want("Mknod of another type", err, vfs.ErrInvalid)
		}
	}
}

func attributes(s *suite) {
	f, d := s.create(s.root, "f"), s.mkdir(s.root, "d")
	s.write(f, []byte("some data"), 0)
	for _, h := range []vfs.Handle{f, d} {
		all := s.set(0o640)
		var each []vfs.SetAttr
		if all.Mode != nil {
			each = append(each, vfs.SetAttr{Mode: all.Mode})
		}
		if all.UID != nil {
			each = append(each, vfs.SetAttr{UID: all.UID}, vfs.SetAttr{GID: all.GID})
		}
		if all.Mtime != nil {
			each = append(each, vfs.SetAttr{Atime: all.Atime}, vfs.SetAttr{Mtime: all.Mtime})
		}
		if h == f {
			each = append(each, vfs.SetAttr{Size: new(uint64(4))})
		}
		for _, set := range each {
			before := s.attr(h)
			a, err := s.fs.SetAttr(s.ctx, h, set)
			s.ok("SetAttr", err)
			s.has(a, set)
			after := s.attr(h)
			s.has(after, set)
			// All the rest stays as it was.
			rest := vfs.SetAttr{Mode: &before.Mode, UID: &before.UID, GID: &before.GID}
			if set.Mode != nil {
				rest.Mode = nil
			}
			if set.UID != nil {
				rest.UID = nil
			}
			if set.GID != nil {
				rest.GID = nil
			}
			if h == f && set.Size == nil {
				rest.Size = &before.Size
			}
			if set.Mtime == nil && set.Size == nil {
				rest.Mtime = &before.Mtime
			}
			s.has(after, rest)
			if after.FileID != before.FileID || after.Type != before.Type {
				s.Errorf("SetAttr makes %+v of %+v", after, before)
			}
		}
		a, err := s.fs.SetAttr(s.ctx, h, vfs.SetAttr{})
		s.ok("SetAttr of nothing", err)
		s.has(a, vfs.SetAttr{Mode: all.Mode, UID: all.UID, GID: all.GID})
	}
	s.reads(f, 0, []byte("some"), true)
}

func badAttributes(s *suite) {
	f, d := s.create(s.root, "f"), s.mkdir(s.root, "d")
	before := s.attr(f)
	for _, c := range []struct {
		h    vfs.Handle
		set  vfs.SetAttr
		want error
	}{
		{d, vfs.SetAttr{Size: new(uint64(0))}, vfs.ErrInvalid},
		{f, vfs.SetAttr{Size: new(s.can.MaxFileSize + 1)}, vfs.ErrTooBig},
		{f, vfs.SetAttr{Size: new(uint64(math.MaxUint64))}, vfs.ErrTooBig},
		{f, vfs.SetAttr{Mode: new(uint32(0o10000))}, vfs.ErrInvalid},
	} {
		if c.set.Mode == nil && s.can.SetMode {
			c.set.Mode = new(uint32(0o111))
		}
		_, err := s.fs.SetAttr(s.ctx, c.h, c.set)
		s.want("SetAttr", err, c.want)
	}
	if after := s.attr(f); after.Mode != before.Mode || after.Size != 0 {
		s.Errorf("what failed has made %+v of %+v", after, before)
	}
}

// times checks that they change with what they report.
func times(s *suite) {
	if !s.can.SetTime {
		return
	}
	f, d := s.create(s.root, "f"), s.mkdir(s.root, "d")
	past := time.Unix(1000000000, 0)
	changes := func(what string, h vfs.Handle, mtime bool, do func() error) {
		s.Helper()
		_, err := s.fs.SetAttr(s.ctx, h, vfs.SetAttr{Mtime: &past})
		s.ok("SetAttr", err)
		before := s.attr(h)
		s.ok(what, do())
		after := s.attr(h)
		if after.Mtime.After(past) != mtime {
			s.Errorf("%s: Mtime %v", what, after.Mtime)
		}
		if after.Ctime.Before(before.Ctime) || mtime && after.Ctime.Before(after.Mtime) {
			s.Errorf("%s: Ctime %v, before %v", what, after.Ctime, before.Ctime)
		}
	}
	changes("Write", f, true, func() error { return s.fs.Write(s.ctx, f, []byte("x"), 0, false) })
	changes("Write of nothing", f, false, func() error { return s.fs.Write(s.ctx, f, nil, 0, false) })
	changes("Read", f, false, func() error {
		_, _, err := s.fs.Read(s.ctx, f, make([]byte, 1), 0)
		return err
	})
	changes("truncate", f, true, func() error {
		_, err := s.fs.SetAttr(s.ctx, f, vfs.SetAttr{Size: new(uint64(100))})
		return err
	})
	changes("Create", d, true, func() error {
		_, _, err := s.fs.Create(s.ctx, d, "f", vfs.SetAttr{})
		return err
	})
	changes("Mkdir", d, true, func() error {
		_, _, err := s.fs.Mkdir(s.ctx, d, "d", vfs.SetAttr{})
		return err
	})
	changes("Rename", d, true, func() error { return s.fs.Rename(s.ctx, d, "f", d, "g") })
	changes("Rename away", d, true, func() error { return s.fs.Rename(s.ctx, d, "g", s.root, "g") })
	changes("Rename to", d, true, func() error { return s.fs.Rename(s.ctx, s.root, "g", d, "g") })
	changes("Remove", d, true, func() error { return s.fs.Remove(s.ctx, d, "g") })
	changes("Rmdir", d, true, func() error { return s.fs.Rmdir(s.ctx, d, "d") })
	changes("Lookup", d, false, func() error {
		_, _, err := s.fs.Lookup(s.ctx, d, "..")
		return err
	})
}
