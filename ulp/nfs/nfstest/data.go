package nfstest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"

	"urnic/ulp/nfs"
)

// A pattern is data that differs from place to place and from one pattern to another.
type pattern uint64

// fill fills p with what a file has at off.
func (x pattern) fill(p []byte, off int64) {
	var word [8]byte
	for i := 0; i < len(p); {
		at := off + int64(i)
		binary.LittleEndian.PutUint64(word[:], (uint64(at/8)+1)*0x9e3779b97f4a7c15^uint64(x)*0xff51afd7ed558ccd)
		i += copy(p[i:], word[at%8:])
	}
}

// data returns n bytes at off.
func (x pattern) data(n int, off int64) []byte {
	p := make([]byte, n)
	x.fill(p, off)
	return p
}

// A patternReader reads a pattern.
type patternReader struct {
	pattern
	at int64
}

func (r *patternReader) Read(p []byte) (int, error) {
	r.fill(p, r.at)
	r.at += int64(len(p))
	return len(p), nil
}

// write makes a file that holds data.
func (w *world) write(name string, data []byte) {
	w.Helper()
	w.must(w.c.WriteFile(w.ctx, name, data, 0o644))
}

// holds checks what a file holds, as a client sees it.
func (w *world) holds(c *nfs.Client, name string, data []byte) {
	w.Helper()
	got, err := c.ReadFile(w.ctx, name)
	if err != nil {
		w.Error(err)
		return
	}
	if !bytes.Equal(got, data) {
		w.Errorf("%s holds %d bytes that differ from %d at byte %d", name, len(got), len(data), differ(got, data))
	}
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// largeFile writes a large file, and reads it back with the same checksum: as a stream and
// by parts, through this client and one that has never seen it.
func largeFile(w *world) {
	name := w.path("large")
	f, err := w.c.Create(w.ctx, name)
	w.must(err)
	sent := sha256.New()
	n, err := io.Copy(f, io.TeeReader(io.LimitReader(&patternReader{pattern: 1}, w.FileSize), sent))
	w.must(err)
	if n != w.FileSize {
		w.Errorf("%d bytes were written, not %d", n, w.FileSize)
	}
	w.must(f.Close())
	info, err := w.c.Stat(w.ctx, name)
	w.must(err)
	if info.Size() != w.FileSize {
		w.Errorf("the file has %d bytes, not %d", info.Size(), w.FileSize)
	}
	for _, c := range []*nfs.Client{w.c, w.dial()} {
		f, err := c.Open(w.ctx, name)
		w.must(err)
		got := sha256.New()
		n, err := io.Copy(got, f)
		w.must(err)
		if n != w.FileSize || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
			w.Errorf("%d bytes were read that are not the %d that were written", n, w.FileSize)
		}
		w.readParts(f)
		w.must(f.Close())
	}
}

// readParts reads a large file with pattern 1 at places that are not aligned to anything.
func (w *world) readParts(f *nfs.File) {
	w.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		p := make([]byte, 1+r.IntN(int(min(w.FileSize, 5<<20))))
		off := r.Int64N(w.FileSize)
		n, err := f.ReadAt(p, off)
		want := int(min(int64(len(p)), w.FileSize-off))
		if n != want || (n < len(p)) != errors.Is(err, io.EOF) || n == len(p) && err != nil {
			w.Fatalf("ReadAt of %d bytes at %d of %d returns %d, %v", len(p), off, w.FileSize, n, err)
		}
		if !bytes.Equal(p[:n], pattern(1).data(n, off)) {
			w.Fatalf("the %d bytes at %d are not what was written", n, off)
		}
	}
}

// parts overwrites a file here and there, and compares it with a copy in memory.
func parts(w *world) {
	const size = 3 << 20
	name := w.path("parts")
	f, err := w.c.OpenFile(w.ctx, name, os.O_RDWR|os.O_CREATE, 0o600)
	w.must(err)
	var mirror []byte
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 60 {
		p := pattern(i).data(1+r.IntN(1<<uint(1+r.IntN(21))), 0)
		off := r.IntN(size)
		n, err := f.WriteAt(p, int64(off))
		if err != nil || n != len(p) {
			w.Fatalf("WriteAt of %d bytes at %d returns %d, %v", len(p), off, n, err)
		}
		if end := off + len(p); end > len(mirror) {
			mirror = append(mirror, make([]byte, end-len(mirror))...)
		}
		copy(mirror[off:], p)
		if i%7 == 0 {
			w.must(f.Sync())
		}
		if i%5 == 0 {
			got := make([]byte, len(mirror))
			if _, err := f.ReadAt(got, 0); err != nil && !errors.Is(err, io.EOF) {
				w.Fatal(err)
			}
			if !bytes.Equal(got, mirror) {
				w.Fatalf("after %d writes the file differs at byte %d", i+1, differ(got, mirror))
			}
		}
	}
	w.must(f.Close())
	w.holds(w.dial(), name, mirror)
}

// truncate makes a file shorter and longer.
func truncate(w *world) {
	name := w.path("file")
	data := pattern(5).data(100_000, 0)
	w.write(name, data)
	w.must(w.c.Truncate(w.ctx, name, 70_001))
	w.holds(w.c, name, data[:70_001])
	w.must(w.c.Truncate(w.ctx, name, 80_000))
	w.holds(w.c, name, append(bytes.Clone(data[:70_001]), make([]byte, 9_999)...))
	w.must(w.c.Truncate(w.ctx, name, 0))
	w.holds(w.c, name, nil)

	f, err := w.c.OpenFile(w.ctx, name, os.O_RDWR, 0)
	w.must(err)
	_, err = f.WriteAt(data, 0)
	w.must(err)
	w.must(f.Truncate(10)) // of what may not be committed
	w.must(f.Close())
	w.holds(w.c, name, data[:10])
	w.fails(w.c.Truncate(w.ctx, w.path("none"), 0), os.ErrNotExist)

	f, err = w.c.OpenFile(w.ctx, name, os.O_WRONLY|os.O_TRUNC, 0)
	w.must(err)
	w.must(f.Close())
	w.holds(w.c, name, nil)
}

// sparse writes far behind the end of a file: what is in between reads as zeros.
func sparse(w *world) {
	const hole = 40 << 20
	name := w.path("sparse")
	f, err := w.c.Create(w.ctx, name)
	w.must(err)
	end := pattern(6).data(10_000, hole)
	_, err = f.WriteAt(end, hole)
	w.must(err)
	w.must(f.Sync())
	info, err := f.Stat()
	w.must(err)
	if info.Size() != hole+10_000 {
		w.Errorf("the file has %d bytes, not %d", info.Size(), hole+10_000)
	}
	p := make([]byte, 1<<20)
	for _, off := range []int64{0, 12345, hole - 1<<20} {
		p[0], p[len(p)-1] = 1, 1
		_, err := f.ReadAt(p, off)
		w.must(err)
		if !bytes.Equal(p, make([]byte, len(p))) {
			w.Errorf("there is something in the hole behind byte %d", off)
		}
	}
	got := make([]byte, 10_000)
	_, err = f.ReadAt(got, hole)
	w.must(err)
	if !bytes.Equal(got, end) {
		w.Error("what is behind the hole differs")
	}
	w.must(f.Close())
}

// appends appends to a file.
func appends(w *world) {
	name := w.path("log")
	var all []byte
	for i := range 5 {
		f, err := w.c.OpenFile(w.ctx, name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		w.must(err)
		for j := range 10 {
			line := fmt.Appendf(nil, "line %d of %d\n", j, i)
			_, err := f.Write(line)
			w.must(err)
			all = append(all, line...)
		}
		w.must(f.Close())
	}
	w.holds(w.c, name, all)
}

// writers has several writers at different parts of one file, through two clients, and
// each at a file of its own.
func writers(w *world) {
	const count, part, times = 6, 1 << 20, 8
	name := w.path("shared")
	w.write(name, nil)
	clients := []*nfs.Client{w.c, w.dial()}
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			c := clients[i%len(clients)]
			shared, err := c.OpenFile(w.ctx, name, os.O_WRONLY, 0)
			if err != nil {
				w.Error(err)
				return
			}
			own, err := c.Create(w.ctx, w.path(fmt.Sprint("own", i)))
			if err != nil {
				w.Error(err)
				return
			}
			for k := range times {
				off := int64(k*count+i) * part
				p := pattern(7).data(part, off)
				_, err1 := shared.WriteAt(p, off)
				_, err2 := own.Write(p)
				if err := errors.Join(err1, err2); err != nil {
					w.Error(err)
				}
			}
			if err := errors.Join(shared.Close(), own.Close()); err != nil {
				w.Error(err)
			}
		})
	}
	all.Wait()
	w.holds(clients[1], name, pattern(7).data(count*part*times, 0))
	for i := range count {
		var want []byte
		for k := range times {
			want = append(want, pattern(7).data(part, int64(k*count+i)*part)...)
		}
		w.holds(clients[(i+1)%2], w.path(fmt.Sprint("own", i)), want)
	}
}
