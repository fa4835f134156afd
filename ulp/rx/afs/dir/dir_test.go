package dir_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"urnic/ulp/rx/afs/dir"
	"urnic/ulp/rx/afs/internal/recorded"
)

func some(n int) []dir.Entry {
	all := []dir.Entry{{".", 1, 1}, {"..", 1, 1}}
	for i := range n {
		all = append(all, dir.Entry{Name: fmt.Sprintf("%d%s", i, strings.Repeat("x", i*7%250)), Vnode: uint32(2*i + 2), Unique: uint32(i)})
	}
	return all
}

func TestEntriesComeBackAndAreFound(t *testing.T) {
	for _, n := range []int{0, 1, 20, 500, 8000} {
		entries := some(n)
		p, err := dir.Encode(entries)
		if err != nil || len(p)%dir.PageLen != 0 || int(binary.BigEndian.Uint16(p)) != len(p)/dir.PageLen {
			t.Fatalf("%d entries: %d bytes, %v", n, len(p), err)
		}
		got, err := dir.Decode(p)
		if err != nil || len(got) != len(entries) {
			t.Fatalf("%d entries of %d, %v", len(got), n, err)
		}
		for _, e := range entries {
			if found, ok, err := dir.Lookup(p, e.Name); err != nil || !ok || found != e {
				t.Fatalf("%v: %v, %v, %v", e, found, ok, err)
			}
		}
		if _, ok, err := dir.Lookup(p, "none"); ok || err != nil {
			t.Errorf("a name that is not there: %v, %v", ok, err)
		}
	}
}

func TestWhatIsNoDirectoryIsRefused(t *testing.T) {
	p, err := dir.Encode(some(3))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func([]byte) []byte{
		"nothing":          func([]byte) []byte { return nil },
		"cut short":        func(p []byte) []byte { return p[:2047] },
		"no magic":         func(p []byte) []byte { p[3]++; return p },
		"no valid entry":   func(p []byte) []byte { p[13*32] = 0; return p },
		"no name":          func(p []byte) []byte { p[13*32+12] = 0; return p },
		"free slots taken": func(p []byte) []byte { copy(p[13*32+12:], strings.Repeat("y", 200)); return p },
	} {
		if _, err := dir.Decode(change(bytes.Clone(p))); !errors.Is(err, dir.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	loop := bytes.Clone(p)
	for slot := 13; slot < 20; slot++ {
		binary.BigEndian.PutUint16(loop[slot*32+2:], uint16(slot))
	}
	for i := range 128 {
		binary.BigEndian.PutUint16(loop[160+2*i:], 13)
	}
	if _, _, err := dir.Lookup(loop, "none"); !errors.Is(err, dir.ErrCorrupt) {
		t.Errorf("a chain without end: %v", err)
	}
}

func TestBadEntriesAreRefused(t *testing.T) {
	for want, entries := range map[error][]dir.Entry{
		dir.ErrName: {{Name: strings.Repeat("x", 256)}}, dir.ErrTwice: {{Name: "a"}, {Name: "a"}}, dir.ErrFull: some(40000),
	} {
		if _, err := dir.Encode(entries); !errors.Is(err, want) {
			t.Errorf("%v; want %v", err, want)
		}
	}
	for _, bad := range []string{"", "a/b", "a\x00"} {
		if dir.ValidName(bad) {
			t.Errorf("%q is a name", bad)
		}
	}
}

// The directories that OpenAFS's file server sent to Linux decode, and encode to the same bytes.
func TestRecordedDirectoriesComeBack(t *testing.T) {
	n := 0
	for _, c := range recorded.InFile(t, "kafs-mount-read.pcap") {
		if c.Port != 7000 || c.Opcode != 65537 || len(c.Reply) != 8+dir.PageLen+120 {
			continue
		}
		n++
		p := c.Reply[8 : 8+dir.PageLen]
		entries, err := dir.Decode(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := dir.Encode(entries)
		if err != nil || !bytes.Equal(p, q) {
			t.Errorf("%v, %v:\n%x became\n%x", entries, err, p, q)
		}
	}
	if n != 2 {
		t.Errorf("%d directories", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, n := range []int{0, 5, 100} {
		p, err := dir.Encode(some(n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p, "3")
	}
	f.Fuzz(func(t *testing.T, p []byte, name string) {
		dir.Lookup(p, name) //nolint:errcheck // it must not panic or continue forever
		entries, err := dir.Decode(p)
		if err != nil {
			return
		}
		q, err := dir.Encode(entries)
		if err != nil { // names that are twice there, or have a slash
			return
		}
		again, err := dir.Decode(q)
		if err != nil || len(again) != len(entries) || len(again) > 0 && len(q) == len(p) && len(p) == dir.PageLen && !reflect.DeepEqual(entries, again) {
			t.Fatalf("%v became %v: %v", entries, again, err)
		}
	})
}
