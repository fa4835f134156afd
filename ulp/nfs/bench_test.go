package nfs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"urnic/rnic"
	"urnic/ulp/nfs"
)

// mountBench mounts a tree in memory.
func mountBench(b *testing.B, t nfs.Transport) *nfs.Client {
	b.Helper()
	s := serve(b, inMemory(b))
	c, err := nfs.Dial(b.Context(), s.url(t), s.config(openDevice(b)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	return c
}

// openBench makes a file of n bytes and opens it.
func openBench(b *testing.B, c *nfs.Client, n int) *nfs.File {
	b.Helper()
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7)
	}
	if err := c.WriteFile(b.Context(), "/file", data, 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := c.OpenFile(b.Context(), "/file", os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := f.Close(); err != nil {
			b.Error(err)
		}
	})
	return f
}

const benchFile = 64 << 20

// both runs a benchmark over both transports.
func both(b *testing.B, run func(b *testing.B, c *nfs.Client)) {
	for _, t := range []nfs.Transport{nfs.RDMA, nfs.TCP} {
		b.Run(fmt.Sprint(t), func(b *testing.B) {
			b.ReportAllocs()
			run(b, mountBench(b, t))
		})
	}
}

// BenchmarkRead reads a long file, in pieces of 1 MiB, several of them under way. What it may
// be compared with is BenchmarkRawWrite, of the same run.
func BenchmarkRead(b *testing.B) {
	both(b, func(b *testing.B, c *nfs.Client) {
		f, p := openBench(b, c, benchFile), make([]byte, benchFile)
		b.SetBytes(1 << 20)
		for n := 0; n < b.N; n += benchFile >> 20 {
			if _, err := f.ReadAt(p[:min(b.N-n, benchFile>>20)<<20], 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWrite writes a long file the same way.
func BenchmarkWrite(b *testing.B) {
	both(b, func(b *testing.B, c *nfs.Client) {
		f, p := openBench(b, c, benchFile), make([]byte, benchFile)
		b.SetBytes(1 << 20)
		for n := 0; n < b.N; n += benchFile >> 20 {
			if _, err := f.WriteAt(p[:min(b.N-n, benchFile>>20)<<20], 0); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// callers has 16 goroutines make b.N calls.
func callers(b *testing.B, call func() error) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range (b.N + i) / 16 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkRandom reads 4 KiB anywhere in a file, by 16 callers.
func BenchmarkRandom(b *testing.B) {
	both(b, func(b *testing.B, c *nfs.Client) {
		f := openBench(b, c, 4<<20)
		buffers := sync.Pool{New: func() any { return new([4096]byte) }}
		b.ResetTimer()
		callers(b, func() error {
			p := buffers.Get().(*[4096]byte)
			defer buffers.Put(p)
			_, err := f.ReadAt(p[:], rand.Int64N(1<<10)<<12)
			return err
		})
	})
}

// BenchmarkNull makes calls that do nothing, by one caller and by 16. What one may be
// compared with is BenchmarkRawSendPingPong of package rpcrdma.
func BenchmarkNull(b *testing.B) {
	both(b, func(b *testing.B, c *nfs.Client) {
		b.Run("1", func(b *testing.B) {
			for b.Loop() {
				if err := c.Null(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("16", func(b *testing.B) {
			callers(b, func() error { return c.Null(b.Context()) })
		})
	})
}

// A raw is one side of a connection, with memory.
type raw struct {
	cq *rnic.CQ
	qp *rnic.QP
	mr *rnic.MR
}

func newRaw(b *testing.B, device *rnic.Device, n int) (r raw) {
	b.Helper()
	pd, err := device.AllocPD()
	if err != nil {
		b.Fatal(err)
	}
	if r.cq, err = device.CreateCQ(rnic.CQAttr{}); err != nil {
		b.Fatal(err)
	}
	if r.qp, err = pd.CreateQP(rnic.QPAttr{SendCQ: r.cq, RecvCQ: r.cq}); err != nil {
		b.Fatal(err)
	}
	if r.mr, err = pd.Register(make([]byte, n), rnic.LocalWrite|rnic.RemoteWrite); err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkRawWrite moves as much by RDMA Writes of 1 MiB, eight of them under way, with
// nothing above.
func BenchmarkRawWrite(b *testing.B) {
	const n, depth = 1 << 20, 8
	device := openDevice(b)
	l, err := device.Listen(b.Context(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	p, q := newRaw(b, device, n), newRaw(b, device, n)
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(b.Context())
		if err == nil {
			err = r.Accept(b.Context(), q.qp, rnic.ConnParam{})
		}
		accepted <- err
	}()
	if err := errors.Join(p.qp.Connect(b.Context(), l.Addr().String(), rnic.ConnParam{}), <-accepted, l.Close()); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n)
	b.ResetTimer()
	var wcs [depth]rnic.WC
	for posted, over := 0, 0; over < b.N; {
		for ; posted < b.N && posted-over < depth; posted++ {
			if err := p.qp.PostSend(rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{p.mr.SGE(0, n)}, Remote: q.mr.Remote(0)}); err != nil {
				b.Fatal(err)
			}
		}
		got, err := p.cq.Wait(b.Context(), wcs[:])
		if err != nil {
			b.Fatal(err)
		}
		for i := range wcs[:got] {
			if err := wcs[i].Err(); err != nil {
				b.Fatal(err)
			}
		}
		over += got
	}
}
