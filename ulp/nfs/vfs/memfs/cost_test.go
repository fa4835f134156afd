package memfs

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"urnic/ulp/nfs/vfs"
)

// heap returns how many bytes of memory are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools have held is free after two
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Writes that are refused leave nothing behind.
func TestRefusedWritesCostNothing(t *testing.T) {
	fs := New(Options{MaxBytes: 1 << 20})
	defer fs.Close()
	h := touch(t, fs, "f")
	p := make([]byte, 1<<20)
	if err := fs.Write(t.Context(), h, p, 0, false); !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("a file as large as all: %v", err)
	}
	n := must(fs.node(t.Context(), h))(t)
	pages, bytes := len(n.file.pages), fs.bytes.Load()
	const refused = 20_000
	more := int64(0)
	for tries := 0; tries == 0 || more > 200_000 && tries < 5; tries++ { // as below
		before := heap()
		for i := range uint64(refused) {
			if err := fs.Write(t.Context(), h, p[:100_000], 1<<30+i<<20, false); !errors.Is(err, vfs.ErrNoSpace) {
				t.Fatalf("write %d: %v", i, err)
			}
		}
		more = heap() - before
	}
	if got := len(n.file.pages); got != pages {
		t.Errorf("%d pages, not %d", got, pages)
	}
	if got := fs.bytes.Load(); got != bytes {
		t.Errorf("%d bytes are counted, not %d", got, bytes)
	}
	if more > 200_000 { // 10 for each
		t.Errorf("%d bytes of memory for %d refused writes", more, refused)
	}
	runtime.KeepAlive(fs)
}

// What is counted is what is taken, at least: for files, names, links and pages.
func TestCountedBytesAreHonest(t *testing.T) {
	const n = 20_000
	name := func(i int) string { return fmt.Sprintf("%08d", i) }
	for what, make1 := range map[string]func(fs *FS, i int) error{
		"files": func(fs *FS, i int) error {
			_, _, err := fs.Create(t.Context(), fs.Root(), name(i), vfs.SetAttr{})
			return err
		},
		"long names": func(fs *FS, i int) error {
			_, _, err := fs.Mknod(t.Context(), fs.Root(), name(i)+strings.Repeat("x", 240), vfs.FIFO, 0, 0, vfs.SetAttr{})
			return err
		},
		"directories": func(fs *FS, i int) error {
			_, _, err := fs.Mkdir(t.Context(), fs.Root(), name(i), vfs.SetAttr{})
			return err
		},
		"symbolic links": func(fs *FS, i int) error {
			_, _, err := fs.Symlink(t.Context(), fs.Root(), name(i), strings.Repeat("x", 500)+name(i), vfs.SetAttr{})
			return err
		},
		"small files": func(fs *FS, i int) error {
			h, _, err := fs.Create(t.Context(), fs.Root(), name(i), vfs.SetAttr{})
			if err != nil {
				return err
			}
			return fs.Write(t.Context(), h, []byte("x"), 0, false)
		},
		"pages": func(fs *FS, i int) error {
			h, _, err := fs.Lookup(t.Context(), fs.Root(), "file")
			if err != nil {
				h, _, err = fs.Create(t.Context(), fs.Root(), "file", vfs.SetAttr{})
			}
			if err != nil {
				return err
			}
			return fs.Write(t.Context(), h, []byte("x"), uint64(i)<<pageShift, false)
		},
	} {
		t.Run(what, func(t *testing.T) {
			// The heap is that of the process: what an earlier test has left may be freed meanwhile.
			// What is counted wrongly is so each time.
			err := costs(t, what, n, make1)
			for tries := 1; err != nil && tries < 5; tries++ {
				t.Log(err)
				err = costs(t, what, n, make1)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// costs makes n things and removes them. It returns an error if what is counted is not what they
// take, or if something of them is left.
func costs(t *testing.T, what string, n int, make1 func(fs *FS, i int) error) error {
	before := heap()
	fs := New(Options{})
	for i := range n {
		if err := make1(fs, i); err != nil {
			t.Fatal(err)
		}
	}
	took, counted := heap()-before, fs.bytes.Load()
	t.Logf("%d bytes each, of which %d are counted", took/int64(n), counted/int64(n))
	var wrong error
	if counted < took*9/10 || counted > 2*took {
		wrong = fmt.Errorf("%d bytes are counted for %d that are taken", counted, took)
	}
	// And all of it is given back, by counting and by the memory.
	list := map[string]bool{}
	_, err := fs.ReadDir(t.Context(), fs.Root(), 0, false, func(e vfs.Entry) bool {
		list[e.Name] = true
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range list {
		if what == "directories" {
			err = fs.Rmdir(t.Context(), fs.Root(), name)
		} else {
			err = fs.Remove(t.Context(), fs.Root(), name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	clear(list)
	list = nil
	if got := fs.bytes.Load(); got != 0 {
		t.Errorf("%d bytes are counted of nothing", got)
	}
	if left := heap() - before; left > took/4 {
		wrong = errors.Join(wrong, fmt.Errorf("%d bytes of %d are left of nothing", left, took))
	}
	runtime.KeepAlive(fs)
	if err := fs.Close(); err != nil {
		t.Error(err)
	}
	return wrong
}

// Names reach the bound by themselves.
func TestNamesAreBounded(t *testing.T) {
	fs := New(Options{MaxBytes: 1 << 20})
	defer fs.Close()
	h := touch(t, fs, "f")
	long := strings.Repeat("x", 200)
	n := 0
	for ; ; n++ {
		_, err := fs.Link(t.Context(), h, fs.Root(), fmt.Sprint(long, n))
		if errors.Is(err, vfs.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if most := (1 << 20) / nameCost(long); n > most || n < most*9/10 {
		t.Errorf("%d names", n)
	}
}
