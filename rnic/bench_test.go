package rnic_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// Each benchmark moves bytes over loopback, and then as many over a bare TCP
// connection in the same process. It reports how many times as long the former
// takes: xTCP. CRCs are on, as peers have them.

func BenchmarkSend(b *testing.B)  { benchmark(b, rnic.OpSend) }
func BenchmarkWrite(b *testing.B) { benchmark(b, rnic.OpWrite) }
func BenchmarkRead(b *testing.B)  { benchmark(b, rnic.OpRead) }

func benchmark(b *testing.B, op rnic.Opcode) {
	for _, size := range []int{8, 4096} {
		b.Run(fmt.Sprintf("latency/%d", size), func(b *testing.B) { latency(b, op, size) })
	}
	for _, size := range []int{512, 4096, 65536, 1 << 20} {
		b.Run(fmt.Sprintf("bandwidth/%d", size), func(b *testing.B) { bandwidth(b, op, size) })
	}
}

// compare reports the time of an operation beside that of the bare connection,
// which raw takes n times.
func compare(b *testing.B, raw func(n int) time.Duration) {
	b.StopTimer()
	const most = 20_000
	n := min(b.N, most)
	per := float64(raw(n)) / float64(n)
	b.ReportMetric(per, "TCP-ns/op")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/per, "xTCP")
}

// latency is the time there and back: of a Send and the answer, of a Write with
// Immediate and the answer, of a Read.
func latency(b *testing.B, op rnic.Opcode, size int) {
	p := overTCP(b, "127.0.0.1:0")
	wrs := map[*rnictest.Side][]rnic.SendWR{}
	recvs := map[*rnictest.Side][]rnic.RecvWR{}
	mrs := map[*rnictest.Side]*rnic.MR{}
	for _, s := range []*rnictest.Side{p.A, p.B} {
		mrs[s] = s.Register(b, make([]byte, size), everyRight)
	}
	for s, peer := range map[*rnictest.Side]*rnictest.Side{p.A: p.B, p.B: p.A} {
		wr := rnic.SendWR{Op: op, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{mrs[s].SGE(0, size)}, Remote: mrs[peer].Remote(0)}
		switch op {
		case rnic.OpWrite:
			wr.Op = rnic.OpWriteImmediate
		case rnic.OpRead:
			wr.Flags = 0
		}
		wrs[s] = []rnic.SendWR{wr}
		recvs[s] = []rnic.RecvWR{{SGL: []rnic.SGE{mrs[s].SGE(0, size)}}}
		s.Recv(b, recvs[s]...)
	}
	answer := func(s *rnictest.Side, wcs []rnic.WC) bool {
		if _, err := s.RecvCQ.Wait(b.Context(), wcs); err != nil || wcs[0].Err() != nil {
			return false
		}
		return s.QP.PostRecv(recvs[s]...) == nil && s.QP.PostSend(wrs[s]...) == nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wcs := make([]rnic.WC, 1); answer(p.B, wcs); {
		}
	}()
	b.ReportAllocs()
	wcs := make([]rnic.WC, 1)
	cq := p.A.RecvCQ
	if op == rnic.OpRead {
		cq = p.A.SendCQ
	}
	for b.Loop() {
		p.A.Send(b, wrs[p.A]...)
		if _, err := cq.Wait(b.Context(), wcs); err != nil {
			b.Fatal(err)
		}
		if err := wcs[0].Err(); err != nil {
			b.Fatal(err)
		}
		if cq == p.A.RecvCQ {
			p.A.Recv(b, recvs[p.A]...)
		}
	}
	compare(b, func(n int) time.Duration {
		there, back := size, size
		if op == rnic.OpRead {
			there = 28 // a Read Request
		}
		return pingPong(b, n, there, back)
	})
	p.B.QP.Abort()
	<-done
}

// bandwidth keeps 16 requests outstanding. Of Sends, B has room for four times
// as many: a credit goes with each.
func bandwidth(b *testing.B, op rnic.Opcode, size int) {
	const depth = 16
	p := overTCP(b, "127.0.0.1:0")
	local, remote := p.A.Register(b, make([]byte, size), rnic.LocalWrite), p.B.Register(b, make([]byte, size), everyRight)
	wr := []rnic.SendWR{{Op: op, SGL: []rnic.SGE{local.SGE(0, size)}, Remote: remote.Remote(0)}}
	recv := []rnic.RecvWR{{SGL: []rnic.SGE{remote.SGE(0, size)}}}
	wcs := make([]rnic.WC, depth)
	credits := make(chan struct{}, 4*depth)
	grant := func() bool {
		if p.B.QP.PostRecv(recv...) != nil {
			return false
		}
		credits <- struct{}{}
		return true
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wcs := make([]rnic.WC, depth)
		for range cap(credits) {
			grant()
		}
		for {
			n, err := p.B.RecvCQ.Wait(b.Context(), wcs)
			if err != nil {
				return
			}
			for range n {
				if !grant() {
					return
				}
			}
		}
	}()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	under := 0
	for b.Loop() {
		for under == depth {
			n, err := p.A.SendCQ.Wait(b.Context(), wcs)
			if err != nil {
				b.Fatal(err)
			}
			under -= n
		}
		if op == rnic.OpSend {
			<-credits
		}
		p.A.Send(b, wr...)
		under++
	}
	for ; under > 0; under-- {
		rnictest.Want(b, p.A.SendCQ, 0)
	}
	compare(b, func(n int) time.Duration { return stream(b, n, size) })
	p.B.QP.Abort()
	<-done
}

// bare returns the two ends of a TCP connection over loopback.
func bare(b *testing.B) (x, y net.Conn) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	x, err = net.Dial("tcp", l.Addr().String())
	if err == nil {
		y, err = l.Accept()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = x.Close(), y.Close() })
	return x, y
}

// pingPong measures n exchanges on a bare connection.
func pingPong(b *testing.B, n, there, back int) time.Duration {
	x, y := bare(b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		in, out := make([]byte, there), make([]byte, back)
		for {
			if _, err := io.ReadFull(y, in); err != nil {
				return
			}
			if _, err := y.Write(out); err != nil {
				return
			}
		}
	}()
	in, out := make([]byte, back), make([]byte, there)
	start := time.Now()
	for range n {
		if _, err := x.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(x, in); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(start)
	_ = x.Close() // ends the other side
	<-done
	return took
}

// stream measures n messages of one direction on a bare connection.
func stream(b *testing.B, n, size int) time.Duration {
	x, y := bare(b)
	got := make(chan int64)
	go func() {
		in := make([]byte, max(size, 64<<10))
		total := int64(0)
		for {
			k, err := y.Read(in)
			total += int64(k)
			if err != nil {
				got <- total
				return
			}
		}
	}()
	out := make([]byte, size)
	start := time.Now()
	for range n {
		if _, err := x.Write(out); err != nil {
			b.Fatal(err)
		}
	}
	_ = x.Close()
	total := <-got
	took := time.Since(start)
	if total != int64(n)*int64(size) {
		b.Fatalf("%d octets arrived of %d", total, int64(n)*int64(size))
	}
	return took
}
