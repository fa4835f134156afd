package vfstest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"urnic/ulp/nfs/vfs"
)

// may says whether err is one of those.
func (s *suite) may(err error, those ...error) bool {
	return slices.ContainsFunc(those, func(e error) bool { return errors.Is(err, e) })
}

// calls are all that a handle can be given to. dir is some directory, good a name in it.
func (s *suite) calls(h, dir vfs.Handle, good string) map[string]error {
	m := make(map[string]error)
	ctx := s.ctx
	_, m["GetAttr"] = s.fs.GetAttr(ctx, h)
	_, m["SetAttr"] = s.fs.SetAttr(ctx, h, vfs.SetAttr{Mode: new(uint32(0o700))})
	_, m["SetAttr of the size"] = s.fs.SetAttr(ctx, h, vfs.SetAttr{Size: new(uint64(0))})
	_, _, m["Lookup"] = s.fs.Lookup(ctx, h, "x")
	_, _, m["Lookup .."] = s.fs.Lookup(ctx, h, "..")
	_, m["ReadLink"] = s.fs.ReadLink(ctx, h)
	_, _, m["Read"] = s.fs.Read(ctx, h, make([]byte, 1), 0)
	m["Write"] = s.fs.Write(ctx, h, []byte{1}, 0, false)
	m["Write with sync"] = s.fs.Write(ctx, h, []byte{1}, 0, true)
	m["Commit"] = s.fs.Commit(ctx, h, 0, 0)
	_, _, m["Create"] = s.fs.Create(ctx, h, "x", vfs.SetAttr{})
	_, _, m["Mkdir"] = s.fs.Mkdir(ctx, h, "x", vfs.SetAttr{})
	_, _, m["Symlink"] = s.fs.Symlink(ctx, h, "x", "y", vfs.SetAttr{})
	_, _, m["Mknod"] = s.fs.Mknod(ctx, h, "x", vfs.FIFO, 0, 0, vfs.SetAttr{})
	m["Remove"] = s.fs.Remove(ctx, h, "x")
	m["Rmdir"] = s.fs.Rmdir(ctx, h, "x")
	m["Rename from"] = s.fs.Rename(ctx, h, "x", dir, "y")
	m["Rename to"] = s.fs.Rename(ctx, dir, good, h, "y")
	_, m["Link of"] = s.fs.Link(ctx, h, dir, "y")
	_, m["ReadDir"] = s.fs.ReadDir(ctx, h, 0, false, func(vfs.Entry) bool { return true })
	_, m["Stat"] = s.fs.Stat(ctx, h)
	return m
}

// stale checks that a handle names nothing for any call. There is a file "good".
func (s *suite) stale(what string, h vfs.Handle) {
	s.Helper()
	for call, err := range s.calls(h, s.root, "good") {
		unable := !s.can.Symlinks && call == "Symlink" || !s.can.HardLinks && call == "Link of" || call == "Mknod"
		if !errors.Is(err, vfs.ErrStale) && (!unable || !errors.Is(err, vfs.ErrNotSupported)) {
			s.Errorf("%s: %s: %v, want %v", what, call, err, vfs.ErrStale)
		}
	}
}

func madeUp(s *suite) {
	s.create(s.root, "good")
	h := s.create(s.root, "f")
	s.stale("no bytes", "")
	for _, good := range []vfs.Handle{s.root, h} {
		s.stale("one less", good[:len(good)-1])
		s.stale("one more", good+"\x00")
		for i := range len(good) {
			b := []byte(good)
			b[i] ^= 1 << (i % 8)
			s.stale("one changed", vfs.Handle(b))
		}
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for n := range vfs.MaxHandle + 20 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		s.stale("random", vfs.Handle(b))
	}
	s.stale("a path", "/etc/passwd")
	s.stale("a path up", "../../../../etc/passwd")
	s.attr(h)
}

func handlesStay(s *suite) {
	d, e := s.mkdir(s.root, "d"), s.mkdir(s.root, "e")
	sub := s.mkdir(d, "sub")
	f := s.create(sub, "f")
	s.write(f, []byte("data"), 0)
	id := s.attr(f).FileID
	same := func(dir vfs.Handle, name string, want vfs.Handle) {
		s.Helper()
		if s.lookup(dir, name) != want {
			s.Errorf("%s has another handle now", name)
		}
		for _, e := range s.listing(dir, 1, true) {
			if e.Name == name && e.Handle != want {
				s.Errorf("%s is listed with another handle", name)
			}
		}
	}
	same(sub, "f", f)
	s.ok("Rename", s.fs.Rename(s.ctx, sub, "f", sub, "g"))
	same(sub, "g", f)
	s.ok("Rename to another directory", s.fs.Rename(s.ctx, sub, "g", e, "f"))
	same(e, "f", f)
	s.ok("Rename back", s.fs.Rename(s.ctx, e, "f", sub, "f"))
	s.ok("Rename of a directory above", s.fs.Rename(s.ctx, s.root, "d", e, "moved"))
	same(e, "moved", d)
	same(d, "sub", sub)
	same(sub, "f", f)
	if s.lookup(d, "..") != e || s.lookup(sub, "..") != d {
		s.Error("the directory's .. is not where it was moved to")
	}
	s.reads(f, 0, []byte("data"), true)
	if a := s.attr(f); a.FileID != id {
		s.Errorf("FileID was %d, is %d", id, a.FileID)
	}
	s.write(f, []byte("more"), 4)
	s.reads(s.lookup(sub, "f"), 0, []byte("datamore"), true)
	// A directory between is replaced by another of the same name.
	s.ok("Rename", s.fs.Rename(s.ctx, e, "moved", s.root, "d"))
	other := s.mkdir(e, "moved")
	s.mkdir(other, "sub")
	s.reads(f, 0, []byte("datamore"), true)
	same(sub, "f", f)
}

func handlesStale(s *suite) {
	s.create(s.root, "good")
	f := s.create(s.root, "f")
	s.write(f, []byte("old"), 0)
	s.reads(f, 0, []byte("old"), true)
	s.ok("Remove", s.fs.Remove(s.ctx, s.root, "f"))
	s.stale("a removed file", f)
	g := s.create(s.root, "f")
	if g == f {
		s.Error("a new file has the handle of an old one")
	}
	s.stale("a removed file whose name is used again", f)
	s.reads(g, 0, nil, true)

	d := s.mkdir(s.root, "d")
	s.ok("Rmdir", s.fs.Rmdir(s.ctx, s.root, "d"))
	s.stale("a removed directory", d)

	r := s.create(s.root, "r")
	s.write(r, []byte("new"), 0)
	s.ok("Rename", s.fs.Rename(s.ctx, s.root, "r", s.root, "f"))
	s.stale("a replaced file", g)
	s.reads(r, 0, []byte("new"), true)

	// Many of them, one after the other, all differ.
	seen := make(map[vfs.Handle]bool)
	for range 50 {
		h := s.create(s.root, "again")
		if seen[h] {
			s.Fatal("a handle was used again")
		}
		seen[h] = true
		s.ok("Remove", s.fs.Remove(s.ctx, s.root, "again"))
	}
	for h := range seen {
		_, err := s.fs.GetAttr(s.ctx, h)
		s.want("GetAttr of a removed file", err, vfs.ErrStale)
	}
}

func names(s *suite) {
	odd := []string{"...", "..x", ".x", "-", " ", "a b", "*", "äöü", "名前", strings.Repeat("n", s.can.MaxName)}
	for _, name := range odd {
		h := s.create(s.root, name)
		if s.lookup(s.root, name) != h {
			s.Errorf("%q is another file", name)
		}
	}
	var got []string
	for _, e := range s.listing(s.root, 3, false) {
		got = append(got, e.Name)
	}
	slices.Sort(got)
	slices.Sort(odd)
	if !slices.Equal(got, odd) {
		s.Errorf("listed are %q", got)
	}
}

func badNames(s *suite) {
	f := s.create(s.root, "f")
	d := s.mkdir(s.root, "d")
	check := func(name string, want error) {
		ctx := s.ctx
		m := make(map[string]error)
		if name != ".." {
			_, _, m["Lookup"] = s.fs.Lookup(ctx, d, name)
		}
		_, _, m["Create"] = s.fs.Create(ctx, d, name, vfs.SetAttr{})
		_, _, m["Mkdir"] = s.fs.Mkdir(ctx, d, name, vfs.SetAttr{})
		m["Remove"] = s.fs.Remove(ctx, d, name)
		m["Rmdir"] = s.fs.Rmdir(ctx, d, name)
		m["Rename from"] = s.fs.Rename(ctx, d, name, d, "new")
		m["Rename to"] = s.fs.Rename(ctx, s.root, "f", d, name)
		if s.can.Symlinks {
			_, _, m["Symlink"] = s.fs.Symlink(ctx, d, name, "x", vfs.SetAttr{})
		}
		if s.can.HardLinks {
			_, m["Link"] = s.fs.Link(ctx, f, d, name)
		}
		_, _, err := s.fs.Mknod(ctx, d, name, vfs.FIFO, 0, 0, vfs.SetAttr{})
		if !errors.Is(err, vfs.ErrNotSupported) {
			m["Mknod"] = err
		}
		for call, err := range m {
			if !errors.Is(err, want) {
				s.Errorf("%s of %.20q: %v, want %v", call, name, err, want)
			}
		}
	}
	for _, name := range []string{"", ".", "..", "/", "a/b", "/a", "a/", "../f", "./f", "\x00", "f\x00", "../../etc/passwd"} {
		check(name, vfs.ErrInvalid)
	}
	check(strings.Repeat("n", s.can.MaxName+1), vfs.ErrNameTooLong)
	check(strings.Repeat("n", 100000), vfs.ErrNameTooLong)
	if e := s.listing(d, 10, false); len(e) != 0 {
		s.Errorf("names that can't be have made %v", e)
	}
}

func lookup(s *suite) {
	d := s.mkdir(s.root, "d")
	f := s.create(d, "f")
	if s.lookup(d, "f") != f {
		s.Error("Lookup finds another handle")
	}
	_, _, err := s.fs.Lookup(s.ctx, d, "none")
	s.want("Lookup of nothing", err, vfs.ErrNotExist)
	_, _, err = s.fs.Lookup(s.ctx, f, "none")
	s.want("Lookup in a file", err, vfs.ErrNotDirectory)
	_, _, err = s.fs.Lookup(s.ctx, f, "..")
	s.want("Lookup of .. in a file", err, vfs.ErrNotDirectory)
	_, _, err = s.fs.Lookup(s.ctx, s.root, "f")
	s.want("Lookup in another directory", err, vfs.ErrNotExist)
	if s.lookup(d, "..") != s.root {
		s.Error("the directory's .. is another one")
	}
	_, a, err := s.fs.Lookup(s.ctx, s.root, "D")
	if s.can.FoldsCase {
		s.ok("Lookup in other case", err)
		if a.FileID != s.attr(d).FileID {
			s.Error("the name in other case is another file's")
		}
	} else {
		s.want("Lookup in other case", err, vfs.ErrNotExist)
	}
}

func stat(s *suite) {
	f := s.create(s.root, "f")
	for _, h := range []vfs.Handle{s.root, f} {
		st, err := s.fs.Stat(s.ctx, h)
		s.ok("Stat", err)
		if st.FreeBytes > st.TotalBytes || st.AvailBytes > st.FreeBytes || st.FreeFiles > st.TotalFiles {
			s.Errorf("Stat says %+v", st)
		}
	}
}

func ended(s *suite) {
	f := s.create(s.root, "f")
	s.write(f, []byte{1}, 0)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	other := *s
	other.ctx = ctx
	for call, err := range other.calls(f, s.root, "f") {
		// What needs no time, or fails anyway, may do without the context.
		if err != nil && !s.may(err, context.Canceled, vfs.ErrNotDirectory, vfs.ErrInvalid, vfs.ErrNotSupported) {
			s.Errorf("%s with a context that is over: %v", call, err)
		}
	}
	s.attr(s.root)
}

func closed(s *suite) {
	f := s.create(s.root, "f")
	s.write(f, []byte{1}, 0)
	s.reads(f, 0, []byte{1}, true)
	s.ok("Close", s.fs.Close())
	for call, err := range s.calls(f, s.root, "f") {
		if !s.may(err, vfs.ErrClosed, vfs.ErrNotSupported) {
			s.Errorf("%s after Close: %v", call, err)
		}
	}
	if s.fs.Root() != s.root {
		s.Error("the root's handle has changed")
	}
	s.ok("a second Close", s.fs.Close())
}
