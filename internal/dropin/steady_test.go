//go:build linux && !race

package dropin

import "testing"

// Posting and polling allocate nothing once the queues have grown. The race detector
// allocates on its own.
func TestNothingIsAllocatedPerRequest(t *testing.T) {
	for _, transport := range []string{"iwarp", "ethernet"} {
		t.Run(transport, func(t *testing.T) { testAllocations(t, newLab(t, "URNIC_TRANSPORT="+transport)) })
	}
}

func testAllocations(t *testing.T, l *lab) {
	a, b := l.pair()
	inline := send(wrSend, 2, a.sge(0, 8))
	inline.Flags |= sendInline
	imm := send(wrSendImm, 6, a.sge(0, 8))
	swap := send(wrCmpSwap, 5, a.sge(0, 8)).toward(b, 64)
	list := []*SendWR{
		send(wrSend, 1, a.sge(0, 100)), inline, send(wrWrite, 3, a.sge(0, 100)).toward(b, 0),
		send(wrRead, 4, a.sge(0, 8), a.sge(16, 8)).toward(b, 0), swap, imm, send(wrWriteImm, 7).toward(b, 0),
	}
	for i := range list[1:] {
		list[i].Next = list[i+1]
	}
	sgl := b.sge(1000, 100)
	recvs := make([]RecvWR, 4)
	for i := range recvs {
		recvs[i] = RecvWR{ID: uint64(i), SGL: &sgl, NumSGE: 1}
		if i > 0 {
			recvs[i-1].Next = &recvs[i]
		}
	}
	var wcs [16]WC
	var bad *SendWR
	var badRecv *RecvWR
	all := func(cq Handle, n int) {
		for n > 0 {
			n -= int(l.CQPoll(cq, int32(len(wcs)), &wcs[0]))
		}
	}
	round := func() {
		if l.QPPostRecv(b.qp, &recvs[0], &badRecv) != ok || l.QPPostSend(a.qp, list[0], &bad) != ok {
			t.Fatal("it can't be posted")
		}
		all(b.cq, len(recvs))
		all(a.cq, len(list))
	}
	for range 100 {
		round()
	}
	// Where the scheduler keeps this program from polling, its connections change hands,
	// which allocates; what a request allocates, it does each time.
	least := testing.AllocsPerRun(200, round)
	for tries := 1; least > 0 && tries < 10; tries++ {
		least = min(least, testing.AllocsPerRun(200, round))
	}
	if least > 0 {
		t.Errorf("%v allocations per round", least)
	}
}
