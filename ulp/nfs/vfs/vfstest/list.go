package vfstest

import (
	"fmt"
	"math"
	"sync"

	"urnic/ulp/nfs/vfs"
)

func list(s *suite) {
	const count = 300
	d := s.mkdir(s.root, "d")
	made := make(map[string]vfs.Handle)
	for i := range count {
		name := fmt.Sprintf("file %d", i)
		if i%50 == 0 {
			made[name] = s.mkdir(d, name)
		} else {
			made[name] = s.create(d, name)
		}
	}
	for _, some := range []int{1, 7, 64, count, count + 1} {
		for _, plus := range []bool{false, true} {
			names, cookies := make(map[string]bool), make(map[uint64]bool)
			for _, e := range s.listing(d, some, plus) {
				if names[e.Name] || cookies[e.Cookie] || made[e.Name] == "" || e.Cookie <= 2 {
					s.Fatalf("listed by %d: %q once more, or with cookie %d", some, e.Name, e.Cookie)
				}
				names[e.Name], cookies[e.Cookie] = true, true
				if !plus && (e.Handle != "" || e.Attr != nil) {
					s.Errorf("%s is listed with attributes", e.Name)
				}
				if plus && (e.Handle != made[e.Name] || e.Attr == nil || e.Attr.FileID != e.FileID) {
					s.Errorf("%s is listed as %+v", e.Name, e)
				}
				if some == count && e.FileID != s.attr(made[e.Name]).FileID {
					s.Errorf("%s is listed with FileID %d", e.Name, e.FileID)
				}
			}
			if len(names) != count {
				s.Fatalf("listed by %d: %d names, want %d", some, len(names), count)
			}
		}
	}
	_, err := s.fs.ReadDir(s.ctx, s.create(s.root, "f"), 0, false, func(vfs.Entry) bool { return true })
	s.want("ReadDir of a file", err, vfs.ErrNotDirectory)

	// add may call the FS, and may change what is listed.
	_, err = s.fs.ReadDir(s.ctx, d, 0, true, func(e vfs.Entry) bool {
		if e.Attr.Type == vfs.Regular {
			s.ok("Remove", s.fs.Remove(s.ctx, d, e.Name))
		}
		return true
	})
	s.ok("ReadDir", err)
	if n := len(s.listing(d, 3, false)); n != count/50 {
		s.Errorf("%d names are left, want %d", n, count/50)
	}
}

// listChanging lists a directory while others add and remove names: those that stay are
// listed, once.
func listChanging(s *suite) {
	const stay, workers = 200, 4
	for i := range stay {
		s.create(s.root, fmt.Sprintf("stays %d", i))
		s.create(s.root, fmt.Sprintf("goes %d", i))
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < stay; i += workers {
				if err := s.fs.Remove(s.ctx, s.root, fmt.Sprintf("goes %d", i)); err != nil {
					s.Errorf("Remove: %v", err)
				}
				for _, name := range []string{"comes %d", "comes and goes %d"} {
					if _, _, err := s.fs.Create(s.ctx, s.root, fmt.Sprintf(name, i), vfs.SetAttr{}); err != nil {
						s.Errorf("Create: %v", err)
					}
				}
				if err := s.fs.Remove(s.ctx, s.root, fmt.Sprintf("comes and goes %d", i)); err != nil {
					s.Errorf("Remove: %v", err)
				}
			}
		})
	}
	once := func() {
		seen := make(map[string]int)
		for _, e := range s.listing(s.root, 9, true) {
			seen[e.Name]++
		}
		for i := range stay {
			if name := fmt.Sprintf("stays %d", i); seen[name] != 1 {
				s.Errorf("%s is listed %d times", name, seen[name])
			}
		}
	}
	for range 5 {
		once()
	}
	wg.Wait()
	once()
	if n := len(s.listing(s.root, 1000, false)); n != 2*stay {
		s.Errorf("%d names are listed, want %d", n, 2*stay)
	}
}

// listLost continues from entries that are gone.
func listLost(s *suite) {
	const count = 300
	for i := range count {
		s.create(s.root, fmt.Sprintf("f%d", i))
	}
	all := s.listing(s.root, count, false)
	seen := make(map[string]int)
	cookie := uint64(0)
	for left := count; ; {
		var some []vfs.Entry
		end, err := s.fs.ReadDir(s.ctx, s.root, cookie, false, func(e vfs.Entry) bool {
			if len(some) == 10 {
				return false
			}
			some = append(some, e)
			return true
		})
		s.ok("ReadDir", err)
		for _, e := range some {
			seen[e.Name]++
			s.ok("Remove", s.fs.Remove(s.ctx, s.root, e.Name))
			left--
			cookie = e.Cookie
		}
		if end {
			if left != 0 {
				s.Errorf("%d names were not listed", left)
			}
			break
		}
	}
	for _, e := range all {
		if seen[e.Name] != 1 {
			s.Errorf("%s was listed %d times", e.Name, seen[e.Name])
		}
	}
	_, err := s.fs.ReadDir(s.ctx, s.root, math.MaxUint64, false, func(vfs.Entry) bool { return true })
	s.want("ReadDir from a cookie that was never given", err, vfs.ErrBadCookie)
}
