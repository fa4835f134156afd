package rxrdma_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"urnic/rnic"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma"
)

// Services of benchmarks, which move bytes and look at none.
const (
	drain  = 1 // reads all
	pour   = 2 // writes as many bytes as the request says, in pieces as long as it says
	nothin = 3
)

func benchServices(read int) []rx.Service {
	return []rx.Service{
		{ID: drain, Handler: rx.HandlerFunc(func(_ context.Context, c rx.ServerCall) error {
			buf := make([]byte, read)
			for {
				if _, err := c.Read(buf); err == io.EOF { //nolint:errorlint // as package io says
					return nil
				} else if err != nil {
					return err
				}
			}
		})},
		{ID: pour, Handler: rx.HandlerFunc(func(_ context.Context, c rx.ServerCall) error {
			var b [16]byte
			if _, err := io.ReadFull(c, b[:]); err != nil {
				return err
			}
			buf := make([]byte, binary.BigEndian.Uint64(b[8:]))
			for range binary.BigEndian.Uint64(b[:]) / uint64(len(buf)) {
				if _, err := c.Write(buf); err != nil {
					return err
				}
			}
			return nil
		})},
		{ID: nothin, Handler: rx.HandlerFunc(func(context.Context, rx.ServerCall) error { return nil })},
	}
}

// rawWrite returns a function that moves n messages of 1 MiB by RDMA Write, 16 at a time, and
// waits until all have arrived: what `urnic perf` measures.
func rawWrite(b *testing.B) func(n int) {
	const size, depth = 1 << 20, 16
	type side struct {
		cq *rnic.CQ
		qp *rnic.QP
		mr *rnic.MR
	}
	open := func(name string, access rnic.Access) side {
		pd, err := device(b, rnic.Config{Name: name}).AllocPD()
		if err != nil {
			b.Fatal(err)
		}
		cq, err := pd.Device().CreateCQ(rnic.CQAttr{})
		if err != nil {
			b.Fatal(err)
		}
		qp, err := pd.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
		if err != nil {
			b.Fatal(err)
		}
		mr, err := pd.Register(make([]byte, size+depth*8), access)
		if err != nil {
			b.Fatal(err)
		}
		return side{cq, qp, mr}
	}
	p, q := open("p", rnic.LocalWrite), open("q", rnic.LocalWrite|rnic.RemoteWrite)
	l, err := q.qp.PD().Device().Listen(b.Context(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			err = r.Accept(context.Background(), q.qp, rnic.ConnParam{})
		}
		accepted <- err
	}()
	if err := p.qp.Connect(b.Context(), l.Addr().String(), rnic.ConnParam{}); err != nil {
		b.Fatal(err)
	}
	if err := <-accepted; err != nil {
		b.Fatal(err)
	}
	return func(n int) {
		if err := q.qp.PostRecv(rnic.RecvWR{}); err != nil {
			b.Fatal(err)
		}
		arrived := make(chan error, 1)
		go func() {
			var wcs [1]rnic.WC
			_, err := q.cq.Wait(context.Background(), wcs[:])
			arrived <- err
		}()
		var wcs [depth]rnic.WC
		for posted, done := 0, 0; done < n; {
			for posted < n && posted-done < depth {
				at := posted % depth * 8 // as urnic perf does: caches serve both sides alike
				if err := p.qp.PostSend(rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{p.mr.SGE(at, size)}, Remote: q.mr.Remote(at)}); err != nil {
					b.Fatal(err)
				}
				posted++
			}
			k, err := p.cq.Wait(context.Background(), wcs[:])
			if err != nil {
				b.Fatal(err)
			}
			done += k
		}
		if err := p.qp.PostSend(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline | rnic.FlagUnsignaled}); err != nil {
			b.Fatal(err)
		}
		if err := <-arrived; err != nil {
			b.Fatal(err)
		}
	}
}

// bench opens endpoints of which handlers read so many bytes at once.
func bench(b *testing.B, cfg rxrdma.Config, read int) (client, server rx.Endpoint) {
	b.Helper()
	return opener(loopback4, cfg, cfg)(b, benchServices(read))
}

func connect(b testing.TB, client, server rx.Endpoint, service uint16) rx.Conn {
	b.Helper()
	conn, err := client.Dial(context.Background(), server.Addr(), service, rx.DialConfig{})
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// Bulk by calls beside RDMA Writes of 1 MiB, in the same run and by turns: ratio is of their
// rates.
func BenchmarkBulk(b *testing.B) {
	for _, tt := range []struct {
		name  string
		cfg   rxrdma.Config
		piece int
	}{
		{"256KiB", rxrdma.Config{}, 256 << 10},
		{"1MiB", rxrdma.Config{}, 1 << 20},
		{"4MiB", rxrdma.Config{}, 4 << 20},
		{"sends", rxrdma.Config{Bulk: -1}, 1 << 20},
	} {
		for _, direction := range []string{"put", "get"} {
			b.Run(tt.name+"/"+direction, func(b *testing.B) { bulk(b, tt.cfg, tt.piece, direction == "put") })
		}
	}
}

func bulk(b *testing.B, cfg rxrdma.Config, piece int, to bool) {
	const round = 128 << 20
	raw := rawWrite(b)
	client, server := bench(b, cfg, piece)
	buf := make([]byte, piece)
	service := uint16(pour)
	if to {
		service = drain
	}
	conn := connect(b, client, server, service)
	once := func(n int) {
		k, err := conn.Begin(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if to {
			for range n / piece {
				if _, err := k.Write(buf); err != nil {
					b.Fatal(err)
				}
			}
		} else if _, err := k.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(n)), uint64(piece))); err != nil {
			b.Fatal(err)
		}
		if err := k.CloseWrite(); err != nil {
			b.Fatal(err)
		}
		got := 0
		for {
			n, err := k.Read(buf)
			got += n
			if err == io.EOF { //nolint:errorlint // as package io says
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		if !to && got != n {
			b.Fatalf("%d bytes of %d", got, n)
		}
		if err := k.Close(); err != nil {
			b.Fatal(err)
		}
	}
	raw(8)
	once(8 << 20)
	var theirs, ours time.Duration
	b.SetBytes(round)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		start := time.Now()
		raw(round >> 20)
		theirs += time.Since(start)
		b.StartTimer()
		start = time.Now()
		once(round)
		ours += time.Since(start)
	}
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "ratio")
	b.ReportMetric(float64(b.N)*round/1e6/theirs.Seconds(), "write-MB/s")
}

func BenchmarkNullCall(b *testing.B) {
	client, server := bench(b, rxrdma.Config{}, 1)
	conn := connect(b, client, server, nothin)
	once := func(b *testing.B) {
		k, err := conn.Begin(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if err := k.CloseWrite(); err != nil {
			b.Fatal(err)
		}
		var p [4]byte
		if n, err := k.Read(p[:]); n > 0 || err != io.EOF { //nolint:errorlint // as package io says
			b.Fatal(n, err)
		}
		if err := k.Close(); err != nil {
			b.Fatal(err)
		}
	}
	for _, callers := range []int{1, 4} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			b.ReportAllocs()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range b.N / callers {
						once(b)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
