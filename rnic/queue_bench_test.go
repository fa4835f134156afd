package rnic_test

import (
	"fmt"
	"testing"

	"urnic/rnic"
)

// benchDepth is how many requests the queues of these benchmarks hold.
const benchDepth = 1024

// An idleBench is a queue pair without a stream: what is posted to it waits, and
// nothing but posting and polling is measured.
type idleBench struct {
	*testing.B
	qp   *rnic.QP
	cq   *rnic.CQ
	mr   *rnic.MR
	wcs  []rnic.WC
	held int // requests that were posted
}

func newIdleBench(b *testing.B) *idleBench {
	b.Helper()
	l := newLab(b, rnic.Config{})
	p := l.domain()
	n := &idleBench{B: b, cq: l.cq(rnic.CQAttr{Entries: 2 * benchDepth}), wcs: make([]rnic.WC, benchDepth)}
	n.mr = l.region(p, make([]byte, 64), everyRight)
	n.qp = l.qp(p, rnic.QPAttr{SendCQ: n.cq, RecvCQ: n.cq, MaxSendWR: benchDepth, MaxRecvWR: benchDepth})
	return n
}

// flush completes what was posted.
func (n *idleBench) flush() {
	n.Helper()
	n.qp.Abort()
	if err := n.qp.Reset(); err != nil {
		n.Fatal(err)
	}
}

// empty takes the completions.
func (n *idleBench) empty() {
	n.Helper()
	for n.held > 0 {
		got := n.cq.Poll(n.wcs)
		if got == 0 {
			n.Fatalf("%d requests did not complete", n.held)
		}
		n.held -= got
	}
}

// BenchmarkPost posts requests to an idle queue pair: it checks them, and puts
// them into the queue.
func BenchmarkPost(b *testing.B) {
	for _, o := range []struct {
		name string
		op   rnic.Opcode
	}{{"Send", rnic.OpSend}, {"Write", rnic.OpWrite}, {"Read", rnic.OpRead}, {"FetchAdd", rnic.OpFetchAdd}} {
		for _, batch := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/batch=%d", o.name, batch), func(b *testing.B) {
				n := newIdleBench(b)
				wr := rnic.SendWR{Op: o.op, SGL: []rnic.SGE{n.mr.SGE(0, 8)}, Remote: n.mr.Remote(0)}
				n.post(batch, wr)
			})
		}
	}
	b.Run("inline Send/batch=1", func(b *testing.B) {
		newIdleBench(b).post(1, rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: make([]byte, 64)})
	})
	b.Run("Recv/batch=1", func(b *testing.B) { newIdleBench(b).postRecv(1) })
	b.Run("Recv/batch=16", func(b *testing.B) { newIdleBench(b).postRecv(16) })
}

// post posts requests again and again, so many at once.
func (n *idleBench) post(batch int, wr rnic.SendWR) {
	wrs := make([]rnic.SendWR, batch)
	for i := range wrs {
		wrs[i] = wr
	}
	n.repeat(batch, func() error { return n.qp.PostSend(wrs...) })
}

func (n *idleBench) postRecv(batch int) {
	wrs := make([]rnic.RecvWR, batch)
	for i := range wrs {
		wrs[i].SGL = []rnic.SGE{n.mr.SGE(0, 64)}
	}
	n.repeat(batch, func() error { return n.qp.PostRecv(wrs...) })
}

// repeat measures a call that posts a batch. When the queue is full, it is
// emptied off the clock.
func (n *idleBench) repeat(batch int, post func() error) {
	n.ReportAllocs()
	for n.Loop() {
		if n.held == benchDepth {
			n.StopTimer()
			n.flush()
			n.empty()
			n.StartTimer()
		}
		if err := post(); err != nil {
			n.Fatal(err)
		}
		n.held += batch
	}
	n.ReportMetric(float64(n.Elapsed().Nanoseconds())/float64(n.N*batch), "ns/request")
}

// BenchmarkPoll takes completions out of a queue that is full, so many at once.
func BenchmarkPoll(b *testing.B) {
	for _, batch := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("full/batch=%d", batch), func(b *testing.B) {
			n := newIdleBench(b)
			recvs := make([]rnic.RecvWR, benchDepth)
			n.wcs = n.wcs[:batch]
			b.ReportAllocs()
			for b.Loop() {
				if n.held == 0 {
					b.StopTimer()
					if err := n.qp.PostRecv(recvs...); err != nil {
						b.Fatal(err)
					}
					n.held = benchDepth
					n.flush()
					b.StartTimer()
				}
				got := n.cq.Poll(n.wcs)
				if got != batch {
					b.Fatalf("polled %d; want %d", got, batch)
				}
				n.held -= got
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/completion")
		})
	}
	vain := func(b *testing.B, cq *rnic.CQ) {
		wcs := make([]rnic.WC, 16)
		b.ReportAllocs()
		for b.Loop() {
			if n := cq.Poll(wcs); n != 0 {
				b.Fatalf("polled %d of nothing", n)
			}
		}
	}
	b.Run("empty", func(b *testing.B) { vain(b, newIdleBench(b).cq) })
	// With a connection, Poll looks at its socket.
	b.Run("empty/connected", func(b *testing.B) { vain(b, overTCP(b, "127.0.0.1:0").A.RecvCQ) })
}
