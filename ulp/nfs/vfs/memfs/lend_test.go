package memfs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"urnic/ulp/nfs/vfs"
)

// uneven fills a file with a page that is full, a hole, a page that is short, and one that
// is full again, and returns what is in it.
func uneven(t testing.TB, fs *FS, h vfs.Handle) []byte {
	t.Helper()
	whole := make([]byte, 4*pageSize-10)
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			whole[i] = byte(i%251 + 1)
		}
		if err := fs.Write(t.Context(), h, whole[from:to], uint64(from), false); err != nil {
			t.Fatal(err)
		}
	}
	fill(0, pageSize)
	fill(2*pageSize, 2*pageSize+1000)
	fill(3*pageSize, len(whole))
	return whole
}

func joined(l vfs.Loan) []byte { return bytes.Join(l.Pieces(), nil) }

// What is lent is what would be read.
func TestLendsWhatIsRead(t *testing.T) {
	fs := New(Options{})
	defer fs.Close()
	h := touch(t, fs, "f")
	whole := uneven(t, fs, h)
	for range 300 {
		off, n := rand.IntN(len(whole)+100), rand.IntN(len(whole))
		p := make([]byte, n)
		got, end, err := fs.Read(t.Context(), h, p, uint64(off))
		if err != nil {
			t.Fatal(err)
		}
		l, lentEnd, err := fs.Lend(t.Context(), h, n, uint64(off))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(joined(l), p[:got]) || lentEnd != end {
			t.Errorf("%d bytes at %d: lent is something else, up to the end %v; want %v", n, off, lentEnd, end)
		}
		l.Return()
	}
	if _, _, err := fs.Lend(t.Context(), fs.Root(), 10, 0); !errors.Is(err, vfs.ErrInvalid) {
		t.Errorf("a directory: %v", err)
	}
	if l, end, err := fs.Lend(t.Context(), h, -1, 0); err != nil || end || len(l.Pieces()) != 0 {
		t.Errorf("less than nothing: %v, %v", end, err)
	}
	if err := fs.Remove(t.Context(), fs.Root(), "f"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fs.Lend(t.Context(), h, 10, 0); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("a file that is gone: %v", err)
	}
}

// Whatever is done to a file, what was lent of it stays as it is, and the file becomes what
// it would without.
func TestWhatIsLentDoesNotChange(t *testing.T) {
	whole := []byte(nil)
	truncate := func(t *testing.T, fs *FS, h vfs.Handle, size uint64) {
		t.Helper()
		must(fs.SetAttr(t.Context(), h, vfs.SetAttr{Size: &size}))(t)
	}
	write := func(t *testing.T, fs *FS, h vfs.Handle, n, off int) {
		t.Helper()
		if err := fs.Write(t.Context(), h, bytes.Repeat([]byte{0xFF}, n), uint64(off), false); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(t *testing.T, fs *FS, h vfs.Handle) []byte{
		"some of a page": func(t *testing.T, fs *FS, h vfs.Handle) []byte {
			write(t, fs, h, 10, 5)
			return slices.Concat(whole[:5], bytes.Repeat([]byte{0xFF}, 10), whole[15:])
		},
		"a whole page": func(t *testing.T, fs *FS, h vfs.Handle) []byte {
			write(t, fs, h, pageSize, 0)
			return slices.Concat(bytes.Repeat([]byte{0xFF}, pageSize), whole[pageSize:])
		},
		"a short page": func(t *testing.T, fs *FS, h vfs.Handle) []byte {
			write(t, fs, h, 100, 2*pageSize+950)
			return slices.Concat(whole[:2*pageSize+950], bytes.Repeat([]byte{0xFF}, 100), whole[2*pageSize+1050:])
		},
		"a hole": func(t *testing.T, fs *FS, h vfs.Handle) []byte {
			write(t, fs, h, pageSize, pageSize)
			return slices.Concat(whole[:pageSize], bytes.Repeat([]byte{0xFF}, pageSize), whole[2*pageSize:])
		},
		"all": func(t *testing.T, fs *FS, h vfs.Handle) []byte {
			write(t, fs, h, len(whole), 0)
			return bytes.Repeat([]byte{0xFF}, len(whole))
		},
		"cut, and extended": func(t *testing.T, fs *FS, h vfs.Handle) []byte {
			truncate(t, fs, h, 100)
			truncate(t, fs, h, uint64(len(whole)))
			return slices.Concat(whole[:100], make([]byte, len(whole)-100))
		},
		"nothing, though it is removed": func(t *testing.T, fs *FS, h vfs.Handle) []byte {
			if err := fs.Remove(t.Context(), fs.Root(), "f"); err != nil {
				t.Fatal(err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := New(Options{})
			defer fs.Close()
			h := touch(t, fs, "f")
			whole = uneven(t, fs, h)
			l, _, err := fs.Lend(t.Context(), h, len(whole), 0)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time, nothing of what there is is lent
				want := change(t, fs, h)
				if !bytes.Equal(joined(l), whole) {
					t.Fatal("what was lent has changed")
				}
				if want == nil {
					break
				}
				p := make([]byte, len(whole))
				if _, _, err := fs.Read(t.Context(), h, p, 0); err != nil || !bytes.Equal(p, want) {
					t.Errorf("the file is not what it should be: %v", err)
				}
			}
			l.Return()
		})
	}
}

// Pages are copied while they are lent, and only then.
func TestPagesAreChangedInPlaceUnlessLent(t *testing.T) {
	fs := New(Options{})
	defer fs.Close()
	h := touch(t, fs, "f")
	write := func() *byte {
		t.Helper()
		if err := fs.Write(t.Context(), h, []byte("x"), 1, false); err != nil {
			t.Fatal(err)
		}
		n, err := fs.regular(t.Context(), h)
		return &must(n, err)(t).file.pages[0].data[0]
	}
	lend := func() vfs.Loan {
		t.Helper()
		l, _, err := fs.Lend(t.Context(), h, 100, 0)
		return must(l, err)(t)
	}
	first := write()
	one, two := lend(), lend()
	one.Return()
	second := write()
	if second == first {
		t.Error("a page that is lent was changed")
	}
	three := lend()
	two.Return() // of the copy before
	third := write()
	if third == second {
		t.Error("a page that is lent was changed: another loan of an earlier copy had come back")
	}
	three.Return()
	lend().Return()
	if write() != third {
		t.Error("a page that nobody has was copied")
	}
}

// Lenders and writers don't get in each other's way.
func TestConcurrentLoans(t *testing.T) {
	fs := New(Options{})
	defer fs.Close()
	h := touch(t, fs, "f")
	const size = 2 * pageSize
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for k := range 100 {
				p := bytes.Repeat([]byte{byte(i*100 + k)}, pageSize)
				if err := fs.Write(t.Context(), h, p, uint64(k%2)*pageSize, false); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range 100 {
				l, _, err := fs.Lend(t.Context(), h, size, 0)
				if err != nil {
					t.Error(err)
					return
				}
				for range 2 {
					for _, p := range l.Pieces() {
						if bytes.Count(p, p[:1]) != len(p) {
							t.Error("a page is of two writes")
						}
					}
				}
				l.Return()
			}
		})
	}
	all.Wait()
}
