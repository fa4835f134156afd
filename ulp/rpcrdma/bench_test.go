package rpcrdma_test

import (
	"context"
	"sync"
	"testing"

	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// A quick service does as little as it can: null, read and write.
type quick struct{}

func (quick) Serve(_ context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
	d := x.Call.Decoder()
	var c oncrpc.Call
	if err := c.Decode(d); err != nil {
		return err
	}
	if err := (&oncrpc.Reply{XID: c.XID}).Encode(reply); err != nil {
		return err
	}
	switch c.Procedure {
	case procRead:
		reply.Bulk(x.Bulk(int(d.Uint32())))
	case procEcho:
		d.Bulk(1 << 20)
	}
	return d.End()
}

// rawPair returns two queue pairs that are connected over TCP, each with a completion queue
// of its own, as those of calls are.
func rawPair(b *testing.B) (p, q *rnictest.Side) {
	b.Helper()
	side := func(name string) *rnictest.Side {
		dev := open(b, name)
		pd, err := dev.AllocPD()
		if err != nil {
			b.Fatal(err)
		}
		cq, err := dev.CreateCQ(rnic.CQAttr{})
		if err != nil {
			b.Fatal(err)
		}
		qp, err := pd.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxInline: rnic.MaxInline})
		if err != nil {
			b.Fatal(err)
		}
		return &rnictest.Side{Name: name, Device: dev, PD: pd, SendCQ: cq, RecvCQ: cq, QP: qp}
	}
	p, q = side("p"), side("q")
	l := listen(b, q.Device)
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			err = r.Accept(context.Background(), q.QP, rnic.ConnParam{})
		}
		accepted <- err
	}()
	if err := p.QP.Connect(context.Background(), l.Addr().String(), rnic.ConnParam{}); err != nil {
		b.Fatal(err)
	}
	if err := <-accepted; err != nil {
		b.Fatal(err)
	}
	return p, q
}

// pingPong has the two sides send messages of n bytes to each other in turn, by one
// goroutine each.
func pingPong(b *testing.B, p, q *rnictest.Side, n int) {
	message := make([]byte, n)
	var ready sync.WaitGroup
	ready.Add(2)
	run := func(s *rnictest.Side, first bool) error {
		mr, err := s.PD.Register(make([]byte, 4096), rnic.LocalWrite)
		if err != nil {
			return err
		}
		var wcs [4]rnic.WC
		recv := func() error { return s.QP.PostRecv(rnic.RecvWR{ID: 1, SGL: []rnic.SGE{mr.SGE(0, 4096)}}) }
		send := func() error {
			return s.QP.PostSend(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline | rnic.FlagUnsignaled, Inline: message})
		}
		err = recv()
		ready.Done()
		ready.Wait()
		if err != nil {
			return err
		}
		for range b.N {
			if first {
				if err := send(); err != nil {
					return err
				}
			}
			if _, err := s.RecvCQ.Wait(context.Background(), wcs[:]); err != nil {
				return err
			}
			if err := recv(); err != nil {
				return err
			}
			if !first {
				if err := send(); err != nil {
					return err
				}
			}
		}
		return nil
	}
	over := make(chan error, 1)
	go func() { over <- run(q, false) }()
	if err := run(p, true); err != nil {
		b.Fatal(err)
	}
	if err := <-over; err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRawSendPingPong(b *testing.B) {
	p, q := rawPair(b)
	b.ReportAllocs()
	b.ResetTimer()
	pingPong(b, p, q, 68)
}

// rawOps moves 1 MiB by RDMA, one operation after the other.
func rawOps(b *testing.B, op rnic.Opcode) {
	p, q := rawPair(b)
	const n = 1 << 20
	src, err := p.PD.Register(make([]byte, n), rnic.LocalWrite)
	if err != nil {
		b.Fatal(err)
	}
	dst, err := q.PD.Register(make([]byte, n), rnic.LocalWrite|rnic.RemoteWrite|rnic.RemoteRead)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := p.QP.PostSend(rnic.SendWR{Op: op, SGL: []rnic.SGE{src.SGE(0, n)}, Remote: dst.Remote(0)}); err != nil {
			b.Fatal(err)
		}
		rnictest.Want(b, p.SendCQ, 0)
	}
}

func BenchmarkRawWrite1MiB(b *testing.B) { rawOps(b, rnic.OpWrite) }
func BenchmarkRawRead1MiB(b *testing.B)  { rawOps(b, rnic.OpRead) }

func benchConn(b *testing.B, cfg rpcrdma.Config) *rpcrdma.Conn {
	_, address := serve(b, quick{}, rpcrdma.Config{})
	return dial(b, address, cfg)
}

// A caller makes the same call again and again.
type caller struct{ r *oncrpc.Request }

func (c *caller) do(b *testing.B, conn oncrpc.Conn, proc uint32, args func(e *xdr.Encoder)) {
	c.r.XID = xids.Add(1)
	c.r.Call.Reset()
	if err := (&oncrpc.Call{XID: c.r.XID, Program: 0x20000000, Version: 1, Procedure: proc}).Encode(c.r.Call); err != nil {
		b.Error(err)
	}
	if args != nil {
		args(c.r.Call)
	}
	m, err := conn.Do(context.Background(), c.r)
	if err != nil {
		b.Error(err)
		return
	}
	m.Release()
}

func newCaller() *caller {
	return &caller{r: &oncrpc.Request{Call: new(xdr.Encoder), ReplyMost: 100}}
}

func BenchmarkNullCall(b *testing.B) {
	conn, c := benchConn(b, rpcrdma.Config{}), newCaller()
	b.ReportAllocs()
	for b.Loop() {
		c.do(b, conn, procNull, nil)
	}
}

// BenchmarkNullCalls is of 16 callers.
func BenchmarkNullCalls(b *testing.B) {
	conn := benchConn(b, rpcrdma.Config{})
	b.ReportAllocs()
	var wg sync.WaitGroup
	const callers = 16
	for range callers {
		wg.Go(func() {
			c := newCaller()
			for range b.N/callers + 1 {
				c.do(b, conn, procNull, nil)
			}
		})
	}
	wg.Wait()
}

func bulks(b *testing.B, callers int, cfg rpcrdma.Config, proc uint32, size int) {
	conn := benchConn(b, cfg)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			c := newCaller()
			data := make([]byte, size)
			if proc == procRead {
				c.r.Sinks = [][]byte{data}
			}
			for range b.N/callers + 1 {
				c.do(b, conn, proc, func(e *xdr.Encoder) {
					if proc == procRead {
						e.Uint32(uint32(size))
					} else {
						e.Bulk(data)
					}
				})
			}
		})
	}
	wg.Wait()
}

func BenchmarkRead1MiB(b *testing.B)    { bulks(b, 1, rpcrdma.Config{}, procRead, 1<<20) }
func BenchmarkRead1MiBx4(b *testing.B)  { bulks(b, 4, rpcrdma.Config{}, procRead, 1<<20) }
func BenchmarkWrite1MiB(b *testing.B)   { bulks(b, 1, rpcrdma.Config{}, procEcho, 1<<20) }
func BenchmarkWrite1MiBx4(b *testing.B) { bulks(b, 4, rpcrdma.Config{}, procEcho, 1<<20) }
func BenchmarkRead4KiBx16(b *testing.B) { bulks(b, 16, rpcrdma.Config{}, procRead, 4096) }

func BenchmarkRead4KiBx16RegisterEach(b *testing.B) {
	bulks(b, 16, rpcrdma.Config{Registration: rpcrdma.RegisterEach}, procRead, 4096)
}

func BenchmarkRead4KiBx16RegisterPool(b *testing.B) {
	bulks(b, 16, rpcrdma.Config{Registration: rpcrdma.RegisterPool}, procRead, 4096)
}
