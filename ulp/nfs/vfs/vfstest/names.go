package vfstest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"urnic/ulp/nfs/vfs"
)

func remove(s *suite) {
	d := s.mkdir(s.root, "d")
	f := s.create(d, "f")
	s.want("Remove of nothing", s.fs.Remove(s.ctx, d, "none"), vfs.ErrNotExist)
	s.want("Rmdir of nothing", s.fs.Rmdir(s.ctx, d, "none"), vfs.ErrNotExist)
	s.want("Remove of a directory", s.fs.Remove(s.ctx, s.root, "d"), vfs.ErrIsDirectory)
	s.want("Rmdir of a file", s.fs.Rmdir(s.ctx, d, "f"), vfs.ErrNotDirectory)
	s.want("Rmdir of what is not empty", s.fs.Rmdir(s.ctx, s.root, "d"), vfs.ErrNotEmpty)
	s.want("Remove in a file", s.fs.Remove(s.ctx, f, "x"), vfs.ErrNotDirectory)
	s.want("Rmdir in a file", s.fs.Rmdir(s.ctx, f, "x"), vfs.ErrNotDirectory)
	s.attr(f)
	s.ok("Remove", s.fs.Remove(s.ctx, d, "f"))
	s.want("Remove again", s.fs.Remove(s.ctx, d, "f"), vfs.ErrNotExist)
	if s.can.Symlinks {
		_, _, err := s.fs.Symlink(s.ctx, d, "l", "/", vfs.SetAttr{})
		s.ok("Symlink", err)
		s.want("Rmdir of a link", s.fs.Rmdir(s.ctx, d, "l"), vfs.ErrNotDirectory)
		s.ok("Remove of a link", s.fs.Remove(s.ctx, d, "l"))
	}
	s.ok("Rmdir", s.fs.Rmdir(s.ctx, s.root, "d"))
	if e := s.listing(s.root, 10, false); len(e) != 0 {
		s.Errorf("left are %v", e)
	}
}

func rename(s *suite) {
	d, e := s.mkdir(s.root, "d"), s.mkdir(s.root, "e")
	f := s.create(d, "f")
	s.want("Rename of nothing", s.fs.Rename(s.ctx, d, "none", e, "x"), vfs.ErrNotExist)
	s.want("Rename from a file", s.fs.Rename(s.ctx, f, "f", e, "x"), vfs.ErrNotDirectory)
	s.want("Rename to a file", s.fs.Rename(s.ctx, d, "f", f, "x"), vfs.ErrNotDirectory)
	s.ok("Rename to itself", s.fs.Rename(s.ctx, d, "f", d, "f"))
	s.ok("Rename", s.fs.Rename(s.ctx, d, "f", d, "g"))
	_, _, err := s.fs.Lookup(s.ctx, d, "f")
	s.want("Lookup of the old name", err, vfs.ErrNotExist)
	s.ok("Rename to another directory", s.fs.Rename(s.ctx, d, "g", e, "g"))
	if s.lookup(e, "g") != f {
		s.Error("another file has come")
	}
	if l := s.listing(d, 10, false); len(l) != 0 {
		s.Errorf("left are %v", l)
	}
	s.ok("Rename of a directory", s.fs.Rename(s.ctx, s.root, "e", d, "e"))
	if s.lookup(s.lookup(d, "e"), "g") != f || s.lookup(e, "..") != d {
		s.Error("the directory is not the same")
	}
	if a := s.attr(f); a.Links != 1 {
		s.Errorf("the file has %d links", a.Links)
	}
}

func renameOver(s *suite) {
	dirs := []vfs.Handle{s.mkdir(s.root, "here"), s.mkdir(s.root, "there")}
	for _, to := range dirs {
		from := dirs[0]
		fill := func() {
			full := s.mkdir(from, "full")
			s.create(full, "x")
			s.mkdir(from, "dir")
			s.create(from, "file")
			target := s.mkdir(to, "target full")
			s.create(target, "x")
			s.mkdir(to, "target dir")
			s.create(to, "target file")
		}
		fill()
		for _, c := range []struct {
			from, to string
			want     error
		}{
			{"file", "target dir", vfs.ErrExist},
			{"file", "target full", vfs.ErrExist},
			{"dir", "target file", vfs.ErrExist},
			{"dir", "target full", vfs.ErrExist},
			{"full", "target full", vfs.ErrExist},
			{"file", "target file", nil},
			{"full", "target dir", nil},
		} {
			h := s.lookup(from, c.from)
			old := s.lookup(to, c.to)
			what := fmt.Sprintf("Rename of %s over %s", c.from, c.to)
			s.want(what, s.fs.Rename(s.ctx, from, c.from, to, c.to), c.want)
			if c.want != nil {
				if s.lookup(from, c.from) != h || s.lookup(to, c.to) != old {
					s.Errorf("%s has changed something though it failed", what)
				}
				continue
			}
			if s.lookup(to, c.to) != h {
				s.Errorf("%s: another file is there", what)
			}
			_, err := s.fs.GetAttr(s.ctx, old)
			s.want("GetAttr of what was replaced", err, vfs.ErrStale)
			_, _, err = s.fs.Lookup(s.ctx, from, c.from)
			s.want("Lookup of the old name", err, vfs.ErrNotExist)
		}
		if n := len(s.listing(to, 2, false)); to != from && n != 3 || to == from && n != 4 {
			s.Errorf("%d names are there", n)
		}
		for _, dir := range dirs {
			s.clear(dir)
		}
	}
}

// clear removes all that is in a directory.
func (s *suite) clear(dir vfs.Handle) {
	s.Helper()
	for _, e := range s.listing(dir, 100, true) {
		if e.Attr.Type == vfs.Directory {
			s.clear(e.Handle)
			s.ok("Rmdir", s.fs.Rmdir(s.ctx, dir, e.Name))
		} else {
			s.ok("Remove", s.fs.Remove(s.ctx, dir, e.Name))
		}
	}
}

func renameInto(s *suite) {
	a := s.mkdir(s.root, "a")
	b := s.mkdir(a, "b")
	c := s.mkdir(b, "c")
	for _, to := range []vfs.Handle{a, b, c} {
		s.want("Rename into itself", s.fs.Rename(s.ctx, s.root, "a", to, "x"), vfs.ErrInvalid)
	}
	s.want("Rename into itself", s.fs.Rename(s.ctx, a, "b", c, "x"), vfs.ErrInvalid)
	// Over what holds the source.
	s.create(c, "f")
	s.mkdir(c, "d")
	s.want("Rename over a directory above", s.fs.Rename(s.ctx, c, "d", s.root, "a"), vfs.ErrExist)
	s.want("Rename over a directory above", s.fs.Rename(s.ctx, c, "d", b, "c"), vfs.ErrExist)
	s.want("Rename over a directory above", s.fs.Rename(s.ctx, c, "f", a, "b"), vfs.ErrExist)
	if s.lookup(s.root, "a") != a || s.lookup(a, "b") != b || s.lookup(b, "c") != c {
		s.Error("a directory has moved")
	}
}

func link(s *suite) {
	f, d := s.create(s.root, "f"), s.mkdir(s.root, "d")
	if !s.can.HardLinks {
		_, err := s.fs.Link(s.ctx, f, d, "g")
		s.want("Link", err, vfs.ErrNotSupported)
		return
	}
	s.write(f, []byte("data"), 0)
	a, err := s.fs.Link(s.ctx, f, d, "g")
	s.ok("Link", err)
	if a.Links != 2 || s.attr(f).Links != 2 {
		s.Errorf("the file has %d links, want 2", a.Links)
	}
	if s.lookup(d, "g") != f {
		s.Error("the link is another file")
	}
	_, err = s.fs.Link(s.ctx, f, s.root, "d")
	s.want("Link to a taken name", err, vfs.ErrExist)
	_, err = s.fs.Link(s.ctx, d, s.root, "e")
	s.want("Link of a directory", err, vfs.ErrInvalid)
	_, err = s.fs.Link(s.ctx, f, f, "e")
	s.want("Link in a file", err, vfs.ErrNotDirectory)

	// Both names are the same file's, so that nothing happens.
	s.ok("Rename over a link of the same file", s.fs.Rename(s.ctx, s.root, "f", d, "g"))
	if s.lookup(s.root, "f") != f || s.lookup(d, "g") != f || s.attr(f).Links != 2 {
		s.Error("it was no link of the same file")
	}
	s.ok("Remove", s.fs.Remove(s.ctx, s.root, "f"))
	if a := s.attr(f); a.Links != 1 {
		s.Errorf("the file has %d links, want 1", a.Links)
	}
	s.reads(f, 0, []byte("data"), true)
	s.write(f, []byte("more"), 4)
	_, err = s.fs.Link(s.ctx, f, s.root, "h")
	s.ok("Link of a file whose first name is gone", err)
	s.ok("Remove", s.fs.Remove(s.ctx, d, "g"))
	s.reads(f, 0, []byte("datamore"), true)

	// One that is replaced continues with its other name.
	_, err = s.fs.Link(s.ctx, f, d, "g")
	s.ok("Link", err)
	s.create(s.root, "new")
	s.ok("Rename", s.fs.Rename(s.ctx, s.root, "new", d, "g"))
	if a := s.attr(f); a.Links != 1 {
		s.Errorf("the file has %d links, want 1", a.Links)
	}
	s.reads(f, 0, []byte("datamore"), true)
	s.ok("Remove", s.fs.Remove(s.ctx, s.root, "h"))
	_, err = s.fs.GetAttr(s.ctx, f)
	s.want("GetAttr of a file without names", err, vfs.ErrStale)
}

// concurrentNames lets many goroutines make, move and remove the same few names. There is
// nothing to expect of one call, but none may fail in a way it can't, and the tree is one
// afterwards.
func concurrentNames(s *suite) {
	const workers, rounds = 8, 150
	dirs := []vfs.Handle{s.root, s.mkdir(s.root, "d0"), s.mkdir(s.root, "d1")}
	dirs = append(dirs, s.mkdir(dirs[1], "d2"), s.mkdir(dirs[2], "d3"))
	good := []error{
		vfs.ErrNotExist, vfs.ErrExist, vfs.ErrStale, vfs.ErrNotDirectory, vfs.ErrIsDirectory,
		vfs.ErrNotEmpty, vfs.ErrInvalid, vfs.ErrNotSupported, vfs.ErrTryLater,
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 7))
			dir := func() vfs.Handle { return dirs[rnd.IntN(len(dirs))] }
			name := func() string { return fmt.Sprintf("d%d", rnd.IntN(6)) }
			for range rounds {
				var err error
				switch rnd.IntN(8) {
				case 0:
					_, _, err = s.fs.Create(s.ctx, dir(), name(), vfs.SetAttr{})
				case 1:
					_, _, err = s.fs.Mkdir(s.ctx, dir(), name(), vfs.SetAttr{})
				case 2:
					err = s.fs.Remove(s.ctx, dir(), name())
				case 3:
					err = s.fs.Rmdir(s.ctx, dir(), name())
				case 4, 5:
					err = s.fs.Rename(s.ctx, dir(), name(), dir(), name())
				case 6:
					_, err = s.fs.ReadDir(s.ctx, dir(), 0, true, func(vfs.Entry) bool { return true })
				case 7:
					var h vfs.Handle
					if h, _, err = s.fs.Lookup(s.ctx, dir(), name()); err == nil {
						_, err = s.fs.Link(s.ctx, h, dir(), name())
					}
				}
				if err != nil && !s.may(err, good...) {
					s.Errorf("one of many calls: %v", err)
				}
			}
		})
	}
	wg.Wait()
	links := make(map[uint64]uint32)
	want := make(map[uint64]uint32)
	s.walk(s.root, links, want)
	if !s.can.HardLinks {
		return
	}
	for id, n := range links {
		if want[id] != n {
			s.Errorf("file %d has %d names and says %d links", id, n, want[id])
		}
	}
	s.clear(s.root)
}

// walk counts the names of all files, and checks that each directory has one.
func (s *suite) walk(dir vfs.Handle, names, links map[uint64]uint32) {
	for _, e := range s.listing(dir, 5, true) {
		h, a, err := s.fs.Lookup(s.ctx, dir, e.Name)
		s.ok("Lookup of what is listed", err)
		if h != e.Handle || a.FileID != e.FileID {
			s.Errorf("%s is listed as another file than it is", e.Name)
		}
		if a.Type != vfs.Directory {
			names[a.FileID]++
			links[a.FileID] = a.Links
			continue
		}
		up, _, err := s.fs.Lookup(s.ctx, h, "..")
		if err != nil && !errors.Is(err, vfs.ErrStale) || err == nil && up != dir {
			s.Errorf("%s says that another directory holds it", e.Name)
		}
		s.walk(h, names, links)
	}
}
