package nfs

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"urnic/ulp/nfs/nfs3"
)

// pages lists entries by what next says of a cookie, and never ends.
func pages(next func(cookie uint64) []nfs3.EntryPlus) instead {
	return instead{
		nfs3.ProcGetAttr: dir()[nfs3.ProcGetAttr],
		nfs3.ProcReadDirPlus: func(args nfs3.Codec) nfs3.Codec {
			a, _ := args.(*nfs3.ReadDirPlusArgs)
			return &nfs3.ReadDirPlusRes{Entries: next(a.Cookie)}
		},
	}
}

// A listing that comes back to where it was is given up, after how many pages ever.
func TestListingsThatRepeat(t *testing.T) {
	for _, tc := range []struct{ before, loop uint64 }{{0, 1}, {0, 2}, {1, 1}, {1, 2}, {0, 3}, {5, 7}, {100, 1}, {3, 64}, {64, 65}, {1000, 1000}} {
		s, c := newFake(t, Config{}, pages(func(cookie uint64) []nfs3.EntryPlus {
			// Cookies need not grow.
			at := cookie ^ 0x5555
			if cookie == 0 {
				at = 0
			}
			if at++; at >= tc.before+tc.loop {
				at = tc.before
			}
			if at == 0 {
				return []nfs3.EntryPlus{named("first", 0)}
			}
			return []nfs3.EntryPlus{named(fmt.Sprint(at), at^0x5555)}
		}))
		if _, err := c.ReadDir(t.Context(), "/"); !errors.Is(err, ErrServer) {
			t.Errorf("%d pages and then %d again and again: %v", tc.before, tc.loop, err)
		}
		if n := s.count(nfs3.ProcReadDirPlus); uint64(n) > 3*(tc.before+tc.loop)+3 {
			t.Errorf("%d pages and then %d again and again: found after %d", tc.before, tc.loop, n)
		}
	}
}

// One that never repeats is given up too, also if it lists nothing but "." and "..".
func TestListingsThatNeverEnd(t *testing.T) {
	const entries = 800
	for name, of := range map[string]func(i uint64) string{"names": func(i uint64) string { return fmt.Sprint("n", i) }, "dots": func(uint64) string { return ".." }} {
		s, c := newFake(t, Config{}, pages(func(cookie uint64) []nfs3.EntryPlus {
			list := make([]nfs3.EntryPlus, entries)
			for i := range list {
				cookie++
				list[i] = named(of(cookie), cookie)
			}
			return list
		}))
		c.entries = 20 * entries
		n := 0
		var last error
		for _, err := range c.Entries(t.Context(), "/") {
			n++
			last = err
		}
		if !errors.Is(last, ErrEntries) || n > c.entries+1 || s.count(nfs3.ProcReadDirPlus) != 21 {
			t.Errorf("%s: %d entries, %v", name, n, last)
		}
	}
}

// What is returned whole takes no more memory than is said.
func TestListingsAreBounded(t *testing.T) {
	list := func(yield func(*DirEntry, error) bool) {
		for yield(&DirEntry{name: "name"}, nil) {
		}
	}
	each := new(DirEntry).Memory() + len("name")
	entries, err := collect(list, 10*each)
	if !errors.Is(err, ErrEntries) || len(entries) != 10 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if size := int(reflect.TypeFor[DirEntry]().Size()) + 2*16; new(DirEntry).Memory() < size {
		t.Errorf("an entry counts as %d bytes, and takes %d", new(DirEntry).Memory(), size)
	}
}

// A directory whose names come back when they are removed is given up.
func TestRemoveAllOfNamesThatComeBack(t *testing.T) {
	s, c := newFake(t, Config{}, instead{
		nfs3.ProcLookup: func(args nfs3.Codec) nfs3.Codec {
			a, _ := args.(*nfs3.NameArgs)
			attr := nfs3.Attr{Type: nfs3.Regular}
			if a.Name == "d" {
				attr.Type = nfs3.Directory
			}
			return &nfs3.LookupRes{Object: fakeHandle, Attr: nfs3.PostOpAttr{Present: true, Attr: attr}}
		},
		nfs3.ProcRemove: func(nfs3.Codec) nfs3.Codec { return &nfs3.WccRes{} },
		nfs3.ProcRmdir:  func(nfs3.Codec) nfs3.Codec { return &nfs3.WccRes{Status: nfs3.ErrNotEmpty} },
		nfs3.ProcReadDir: func(nfs3.Codec) nfs3.Codec {
			return &nfs3.ReadDirRes{Entries: []nfs3.Entry{{Name: "again", Cookie: 1}}, EOF: true}
		},
	})
	c.entries = 10
	if err := c.RemoveAll(t.Context(), "d"); !errors.Is(err, ErrEntries) || s.count(nfs3.ProcRemove) != 11 {
		t.Errorf("%v after %d calls", err, s.count(nfs3.ProcRemove))
	}
}
