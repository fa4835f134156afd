package rnic_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"urnic/ddp"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// shared connects n queue pairs of B, which share srq and the receive queue of
// B, to n queue pairs of A.
func shared(t *testing.T, p *rnictest.Pair, srq *rnic.SRQ, n int) (from, to []*rnic.QP) {
	t.Helper()
	for range n {
		a := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{})
		b := labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{RecvCQ: p.B.RecvCQ, SRQ: srq})
		p.Link(t, a, b)
		from, to = append(from, a), append(to, b)
	}
	return from, to
}

func postSend(t testing.TB, q *rnic.QP, wrs ...rnic.SendWR) {
	t.Helper()
	if err := q.PostSend(wrs...); err != nil {
		t.Fatal(err)
	}
}

func fill(t testing.TB, s *rnic.SRQ, wrs ...rnic.RecvWR) {
	t.Helper()
	if err := s.PostRecv(wrs...); err != nil {
		t.Fatal(err)
	}
}

func TestManyQueuePairsShareAReceiveQueue(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		const qps, each, size = 4, 5, 32
		l := labOf(t, p.B)
		srq := l.srq(p.B.PD, rnic.SRQAttr{})
		from, to := shared(t, p, srq, qps)
		mem := make([]byte, qps*each*size)
		mr := l.region(p.B.PD, mem, rnic.LocalWrite)
		for i := range qps * each {
			fill(t, srq, rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{mr.SGE(i*size, size)}})
		}
		for i := range each {
			for j, q := range from {
				data := bytes.Repeat([]byte{byte(16*i + j)}, 10+j)
				postSend(t, q, rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: data})
				synctest.Wait()
				// The oldest receive takes it, whoever it is for.
				id := i*qps + j
				wc := rnictest.Want(t, p.B.RecvCQ, uint64(id))
				if wc.QPN != to[j].Num() || int(wc.ByteLen) != len(data) || !bytes.Equal(mem[id*size:id*size+len(data)], data) {
					t.Errorf("message %d: %+v", id, wc)
				}
			}
		}
		if n := srq.Len(); n != 0 {
			t.Errorf("%d receives are left", n)
		}
	})
}

func TestReceivesOfAQueuePairWithSRQArePostedThere(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	srq := l.srq(p, rnic.SRQAttr{})
	q := l.qp(p, rnic.QPAttr{SRQ: srq, MaxRecvWR: 50})
	wantRefused(t, "post", q.PostRecv(receives(1, 1)...), rnic.ErrUsesSRQ)
	if n := l.dev.Held(pd.RecvWRs); n != rnic.DefaultWR {
		t.Errorf("%d receives are held; want those of the SRQ", n)
	}
}

func TestSRQAttributesAreChecked(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	for _, tt := range []struct {
		attr  rnic.SRQAttr
		words string
	}{
		{rnic.SRQAttr{MaxWR: -1}, "MaxWR -1"},
		{rnic.SRQAttr{MaxWR: rnic.MaxWR + 1}, "MaxWR"},
		{rnic.SRQAttr{MaxSGE: -1}, "MaxSGE -1"},
		{rnic.SRQAttr{MaxSGE: rnic.MaxSGE + 1}, "MaxSGE"},
		{rnic.SRQAttr{Limit: -1}, "limit -1"},
		{rnic.SRQAttr{MaxWR: 4, Limit: 5}, "limit 5"},
		{rnic.SRQAttr{PerQP: -1}, "PerQP -1"},
	} {
		_, err := p.CreateSRQ(tt.attr)
		wantRefused(t, tt.words, err, nil, tt.words)
	}
	srq := l.srq(p, rnic.SRQAttr{MaxWR: 4})
	for _, n := range []int{-1, 5} {
		wantRefused(t, "arm", srq.ArmLimit(n), nil, "limit")
	}
	if n := l.dev.Held(pd.SharedQueues); n != 1 {
		t.Errorf("%d shared queues are held", n)
	}
}

func TestSRQRefusesWhatItCannotTake(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p, other := l.domain(), l.domain()
	mem := make([]byte, 64)
	mr, foreign, readOnly := l.region(p, mem, rnic.LocalWrite), l.region(other, mem, rnic.LocalWrite), l.region(p, mem, 0)
	srq := l.srq(p, rnic.SRQAttr{MaxWR: 3, MaxSGE: 2})
	good := rnic.RecvWR{ID: 1, SGL: []rnic.SGE{mr.SGE(0, 8)}}
	for _, tt := range []struct {
		name  string
		sgl   []rnic.SGE
		words string
	}{
		{"domain", []rnic.SGE{foreign.SGE(0, 8)}, "not associated"},
		{"rights", []rnic.SGE{readOnly.SGE(0, 8)}, "rights"},
		{"bounds", []rnic.SGE{mr.SGE(60, 8)}, "bounds"},
		{"entries", []rnic.SGE{{}, {}, {}}, "3 entries"},
	} {
		err := srq.PostRecv(rnic.RecvWR{ID: 7, SGL: tt.sgl}, good)
		var wr *rnic.WRError
		wantRefused(t, tt.name, err, nil, "SRQ", tt.words)
		if !errors.As(err, &wr) || wr.Index != 0 || wr.ID != 7 || wr.Op != rnic.OpRecv || srq.Len() != 0 {
			t.Errorf("%s: %+v; %d posted", tt.name, wr, srq.Len())
		}
	}
	err := srq.PostRecv(good, good, rnic.RecvWR{ID: 9}, good)
	wantRefused(t, "full", err, rnic.ErrQueueFull)
	var wr *rnic.WRError
	if !errors.As(err, &wr) || wr.Index != 3 || srq.Len() != 3 {
		t.Errorf("%+v; %d posted", wr, srq.Len())
	}
	_, err = other.CreateQP(rnic.QPAttr{SendCQ: l.cq(rnic.CQAttr{}), RecvCQ: l.cq(rnic.CQAttr{}), SRQ: srq})
	wantRefused(t, "queue pair of another domain", err, nil, "another protection domain")
}

// draft-hilland-rddp-verbs §6.3.5: the limit event is one-shot.
func TestSRQLimitEventComesOnceUntilItIsArmedAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{Limit: 3})
		from, _ := shared(t, p, srq, 2)
		fill(t, srq, receives(1, 6)...)
		consume := func(n int) {
			t.Helper()
			for i := range n {
				postSend(t, from[i%2], empties(0, 1, 0)...)
			}
			synctest.Wait()
		}
		due := func() {
			t.Helper()
			if ev := nextEvent(t, p.B.Device, rnic.EventSRQLimit); ev.SRQ != srq || ev.QP != nil {
				t.Errorf("%+v", ev)
			}
		}
		consume(3)
		wantNoEvent(t, p.B.Device) // exactly 3 are left
		consume(1)
		due()
		consume(1)
		wantNoEvent(t, p.B.Device)
		// Filling the queue does not arm it, saying so does.
		fill(t, srq, receives(1, 5)...)
		consume(4)
		wantNoEvent(t, p.B.Device)
		if err := srq.ArmLimit(2); err != nil {
			t.Fatal(err)
		}
		wantNoEvent(t, p.B.Device)
		consume(1)
		due()
		if err := srq.ArmLimit(2); err != nil { // it is so now
			t.Fatal(err)
		}
		due()
		if err := srq.ArmLimit(0); err != nil {
			t.Fatal(err)
		}
		consume(1)
		wantNoEvent(t, p.B.Device)
	})
}

// "MUST be able to detect if the Remote Peer is attempting to consume more than
// its fair share of resources": RFC 5040 §8.1.2 rule 8.
func TestSRQDetectsAPeerTakingMoreThanItsShare(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		const share = 3
		srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{PerQP: share})
		from, to := shared(t, p, srq, 2)
		greedy, modest := 0, 1
		fill(t, srq, receives(1, 20)...)
		var wcs [20]rnic.WC

		// What has been polled does not count any more.
		for range 3 {
			postSend(t, from[greedy], empties(0, share, 0)...)
			synctest.Wait()
			if n := p.B.RecvCQ.Poll(wcs[:]); n != share {
				t.Fatalf("%d messages arrived", n)
			}
		}
		wantNoEvent(t, p.B.Device)

		// One more than the share: the event names stream and queue, the peer is
		// told that there is no buffer, and what it had sent before stays.
		postSend(t, from[modest], empties(0, share, 0)...)
		postSend(t, from[greedy], empties(0, share+1, 0)...)
		ev := nextEvent(t, p.B.Device, rnic.EventSRQShare)
		if ev.QP != to[greedy] || ev.SRQ != srq || ev.Err == nil {
			t.Errorf("%+v", ev)
		}
		if ev := nextEvent(t, p.B.Device, rnic.EventRemoteOperation); ev.QP != to[greedy] {
			t.Errorf("%v", ev)
		}
		wantTerminate(t, p.A.Device, rdmap.TermCode(ddp.CodeMSNNoBuffer.TermWord()))
		synctest.Wait()
		if n := p.B.RecvCQ.Poll(wcs[:]); n != 2*share {
			t.Errorf("%d messages arrived; want %d of each", n, share)
		}
		if n := srq.Len(); n != 20-5*share {
			t.Errorf("%d receives are left", n)
		}

		// The modest one continues.
		postSend(t, from[modest], empties(0, share, 0)...)
		synctest.Wait()
		if n := p.B.RecvCQ.Poll(wcs[:]); n != share || to[modest].State() != rnic.RTS {
			t.Errorf("%d messages arrived, state %v", n, to[modest].State())
		}
	})
}

// A queue pair that ends leaves the receives to the others
// (draft-hilland-rddp-verbs §6.3.6).
func TestReceivesOfAnSRQSurviveItsQueuePairs(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})
		from, to := shared(t, p, srq, 3)
		fill(t, srq, receives(1, 4)...)
		to[0].Abort()
		if err := to[1].Close(); err != nil {
			t.Fatal(err)
		}
		if n := srq.Len(); n != 4 {
			t.Errorf("%d receives are left of 4", n)
		}
		postSend(t, from[2], empties(0, 4, 0)...)
		for i := range 4 {
			rnictest.Want(t, p.B.RecvCQ, uint64(i+1))
		}
		wantEmpty(t, p.B.RecvCQ)
	})
}

// A message that stops in the middle has taken a receive, which completes as
// flushed; the others stay.
func TestBegunReceiveOfAnSRQIsFlushed(t *testing.T) {
	stall := rnictest.Options{AB: rnictest.Faults{StallAt: 20_000}}
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})
		from, to := shared(t, p, srq, 1)
		mem := make([]byte, 40_000)
		mr := p.B.Register(t, mem, rnic.LocalWrite)
		src := p.A.Register(t, bytes.Repeat([]byte{1}, len(mem)), 0)
		for id := range uint64(2) {
			fill(t, srq, rnic.RecvWR{ID: id, SGL: []rnic.SGE{mr.SGE(0, len(mem))}})
		}
		postSend(t, from[0], rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(0, len(mem))}})
		synctest.Wait()
		to[0].Abort()
		if mem[0] != 1 || mem[len(mem)-1] != 0 {
			t.Error("the message did not stop in the middle")
		}
		wc := wantStatus(t, p.B.RecvCQ, 0, rnic.StatusFlushed)
		if wc.QPN != to[0].Num() {
			t.Errorf("%+v", wc)
		}
		wantEmpty(t, p.B.RecvCQ)
		if n := srq.Len(); n != 1 {
			t.Errorf("%d receives are left of the second one", n)
		}
	}, stall)
}

// draft-hilland-rddp-verbs §6.3.5: a message that finds no receive ends its
// stream, and no other one.
func TestEmptySRQEndsTheStreamThatNeedsAReceive(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})
		from, to := shared(t, p, srq, 2)
		fill(t, srq, receives(1, 1)...)
		postSend(t, from[0], empties(1, 2, 0)...)
		rnictest.Want(t, p.B.RecvCQ, 1)
		wantTerminate(t, p.A.Device, rdmap.TermCode(ddp.CodeMSNNoBuffer.TermWord()))
		if ev := nextEvent(t, p.B.Device, rnic.EventRemoteOperation); ev.QP != to[0] {
			t.Errorf("%v", ev)
		}
		fill(t, srq, receives(2, 1)...)
		postSend(t, from[1], empties(1, 1, 0)...)
		if wc := rnictest.Want(t, p.B.RecvCQ, 2); wc.QPN != to[1].Num() {
			t.Errorf("%+v", wc)
		}
	})
}

// A receive of an SRQ whose completion finds no place does not count against
// the share of its queue pair forever.
func TestShareOfAnSRQSurvivesAnOverflow(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		l := labOf(t, p.B)
		srq := l.srq(p.B.PD, rnic.SRQAttr{PerQP: 2})
		small := l.cq(rnic.CQAttr{Entries: 1})
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{}), l.qp(p.B.PD, rnic.QPAttr{RecvCQ: small, SRQ: srq})
		p.Link(t, a, b)
		fill(t, srq, receives(1, 4)...)
		postSend(t, a, empties(1, 2, 0)...)
		wantTerminate(t, p.A.Device, rdmap.CodeStreamCatastrophic)
		synctest.Wait()
		rnictest.Want(t, small, 1)
		for {
			ev, ok := p.B.Device.PollEvent()
			if !ok {
				break
			}
			if ev.Type == rnic.EventSRQShare {
				t.Errorf("%v", ev)
			}
		}
		if n := srq.Len(); n != 2 {
			t.Errorf("%d receives are left of the other two", n)
		}
	})
}

func TestSRQInUseIsNotClosed(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	srq := l.srq(p, rnic.SRQAttr{})
	q := l.qp(p, rnic.QPAttr{SRQ: srq})
	fill(t, srq, receives(1, 3)...)
	wantRefused(t, "in use", srq.Close(), rnic.ErrBusy)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := srq.Close(); err != nil {
			t.Error(err)
		}
	}
	wantRefused(t, "post", srq.PostRecv(rnic.RecvWR{}), rnic.ErrClosed)
	wantRefused(t, "arm", srq.ArmLimit(1), rnic.ErrClosed)
	_, err := p.CreateQP(rnic.QPAttr{SendCQ: l.cq(rnic.CQAttr{}), RecvCQ: l.cq(rnic.CQAttr{}), SRQ: srq})
	wantRefused(t, "create QP", err, rnic.ErrClosed, "SRQ")
	if n := l.dev.Held(pd.RecvWRs) + l.dev.Held(pd.SharedQueues) + l.dev.Held(pd.QueuePairs); n != 0 {
		t.Errorf("%d are held", n)
	}
}
