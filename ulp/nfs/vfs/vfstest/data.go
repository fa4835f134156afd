package vfstest

import (
	"bytes"
	"math"
	"math/rand/v2"
	"sync"

	"urnic/ulp/nfs/vfs"
)

func readWrite(s *suite) {
	h := s.create(s.root, "f")
	s.reads(h, 0, nil, true)
	s.reads(h, 100, nil, true)
	s.reads(h, math.MaxUint64, nil, true)
	s.write(h, []byte("hello"), 0)
	if a := s.attr(h); a.Size != 5 {
		s.Errorf("Size is %d, want 5", a.Size)
	}
	s.reads(h, 0, []byte("hello"), true)
	s.reads(h, 0, []byte("hell"), false)
	s.reads(h, 4, []byte("o"), true)
	s.reads(h, 5, nil, true)
	s.reads(h, 0, nil, false)
	p := make([]byte, 10)
	n, end, err := s.fs.Read(s.ctx, h, p, 3)
	s.ok("Read", err)
	if n != 2 || !end || string(p[:n]) != "lo" {
		s.Errorf("Read of more than there is: %d, %v, %q", n, end, p[:n])
	}
	s.write(h, []byte("ipp"), 1)
	s.reads(h, 0, []byte("hippo"), true)
	s.write(h, nil, 100)
	if a := s.attr(h); a.Size != 5 {
		s.Errorf("Size is %d after a write of nothing behind the end, want 5", a.Size)
	}
	s.ok("Write with sync", s.fs.Write(s.ctx, h, []byte("potamus"), 5, true))
	s.reads(h, 0, []byte("hippopotamus"), true)
	s.ok("Commit", s.fs.Commit(s.ctx, h, 0, 0))
	s.ok("Commit of a part", s.fs.Commit(s.ctx, h, 3, 4))
	s.ok("Commit behind the end", s.fs.Commit(s.ctx, h, math.MaxUint64-1, 100))

	// A hole is zeros.
	g := s.create(s.root, "g")
	const far = 16<<20 + 12345
	s.write(g, []byte("end"), far)
	s.write(g, []byte("x"), 0)
	s.reads(g, 0, append([]byte("x"), make([]byte, 300<<10)...), false)
	s.reads(g, far-100, append(make([]byte, 100), "end"...), true)
}

// large compares random reads and writes over the edges of blocks with an array.
func large(s *suite) {
	h := s.create(s.root, "f")
	rnd := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 3<<20)
	size := 0
	for range 60 {
		off := rnd.IntN(len(want))
		if rnd.IntN(3) == 0 {
			off &^= 64<<10 - 1
		}
		n := min(rnd.IntN(1<<rnd.IntN(21)), len(want)-off)
		for i := range want[off : off+n] {
			want[off+i] = byte(rnd.Uint32())
		}
		s.ok("Write", s.fs.Write(s.ctx, h, want[off:off+n], uint64(off), rnd.IntN(8) == 0))
		if n > 0 {
			size = max(size, off+n)
		}
		from := rnd.IntN(size + 1)
		to := from + rnd.IntN(size-from+1)
		s.reads(h, uint64(from), want[from:to], to == size)
	}
	s.reads(h, 0, want[:size], true)
}

func truncate(s *suite) {
	h := s.create(s.root, "f")
	data := bytes.Repeat([]byte("0123456789abcdef"), 20<<10) // 320 KiB
	for _, to := range []uint64{300 << 10, 256 << 10, 200000, 64 << 10, 65535, 513, 1, 0} {
		s.write(h, data, 0)
		size := uint64(len(data))
		for _, size = range []uint64{to, size} {
			a, err := s.fs.SetAttr(s.ctx, h, vfs.SetAttr{Size: &size})
			s.ok("SetAttr", err)
			if a.Size != size {
				s.Errorf("Size is %d, want %d", a.Size, size)
			}
		}
		// What was cut off does not come back.
		want := make([]byte, len(data))
		copy(want, data[:to])
		s.reads(h, 0, want, true)
		// Nor by a write behind the end.
		_, err := s.fs.SetAttr(s.ctx, h, vfs.SetAttr{Size: &to})
		s.ok("SetAttr", err)
		s.write(h, []byte{1}, to+1000)
		s.reads(h, 0, append(append(bytes.Clone(data[:to]), make([]byte, 1000)...), 1), true)
	}
}

func beyond(s *suite) {
	h := s.create(s.root, "f")
	limit := s.can.MaxFileSize
	if limit == 0 {
		s.Fatal("MaxFileSize is 0")
	}
	for _, off := range []uint64{limit, limit - 1, math.MaxUint64, math.MaxUint64 - 1} {
		s.want("Write beyond the largest file", s.fs.Write(s.ctx, h, []byte("12"), off, false), vfs.ErrTooBig)
	}
	if a := s.attr(h); a.Size != 0 {
		s.Errorf("Size is %d after writes that failed", a.Size)
	}
}

func onlyRegular(s *suite) {
	d := s.mkdir(s.root, "d")
	_, _, err := s.fs.Read(s.ctx, d, make([]byte, 1), 0)
	s.want("Read of a directory", err, vfs.ErrInvalid)
	s.want("Write to a directory", s.fs.Write(s.ctx, d, []byte{1}, 0, false), vfs.ErrInvalid)
	s.want("Commit of a directory", s.fs.Commit(s.ctx, d, 0, 0), vfs.ErrInvalid)
}

// concurrentData lets many goroutines write to, read from, and cut the same file.
func concurrentData(s *suite) {
	const (
		workers = 16
		block   = 40000 // no divisor of any page size
		rounds  = 8
	)
	h, cut := s.create(s.root, "f"), s.create(s.root, "cut")
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			p, q := make([]byte, block), make([]byte, block)
			for r := range rounds {
				for i := range p {
					p[i] = byte(w*rounds + r)
				}
				off := uint64((r*workers + w) * block)
				if err := s.fs.Write(s.ctx, h, p, off, false); err != nil {
					s.Errorf("Write: %v", err)
					return
				}
				if n, _, err := s.fs.Read(s.ctx, h, q, off); err != nil || n != block || !bytes.Equal(p, q) {
					s.Errorf("Read of what was just written: %d, %v", n, err)
					return
				}
				switch w % 4 {
				case 0:
					if _, err := s.fs.SetAttr(s.ctx, cut, vfs.SetAttr{Size: new(uint64(r * 1000))}); err != nil {
						s.Errorf("SetAttr: %v", err)
					}
				case 1:
					if _, _, err := s.fs.Read(s.ctx, cut, q, 0); err != nil {
						s.Errorf("Read: %v", err)
					}
				default:
					if err := s.fs.Write(s.ctx, cut, p, uint64(w*100), false); err != nil {
						s.Errorf("Write: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	want := make([]byte, 0, workers*rounds*block)
	for r := range rounds {
		for w := range workers {
			want = append(want, bytes.Repeat([]byte{byte(w*rounds + r)}, block)...)
		}
	}
	s.reads(h, 0, want, true)
}
