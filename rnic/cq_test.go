package rnic_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// flushed returns n completions, flushed, with IDs from 1, in a queue of their
// own.
func (l lab) flushed(p *rnic.PD, n int, attr rnic.CQAttr) *rnic.CQ {
	l.Helper()
	cq := l.cq(attr)
	q := l.qp(p, rnic.QPAttr{RecvCQ: cq})
	if err := q.PostRecv(receives(1, n)...); err != nil {
		l.Fatal(err)
	}
	if err := q.Close(); err != nil {
		l.Fatal(err)
	}
	return cq
}

func TestPollReturnsTheOldestFirstAndNeverWaits(t *testing.T) {
	l := newLab(t, rnic.Config{})
	cq := l.flushed(l.domain(), 5, rnic.CQAttr{})
	wcs := make([]rnic.WC, 3)
	var ids []uint64
	for _, want := range []int{3, 2, 0, 0} {
		n := cq.Poll(wcs)
		if n != want {
			t.Fatalf("Poll returned %d; want %d", n, want)
		}
		for _, wc := range wcs[:n] {
			ids = append(ids, wc.ID)
			if wc.Status != rnic.StatusFlushed || wc.Op != rnic.OpRecv || wc.Err() == nil {
				t.Errorf("%+v", wc)
			}
		}
	}
	if !slices.Equal(ids, []uint64{1, 2, 3, 4, 5}) {
		t.Errorf("order %v", ids)
	}
	if n := cq.Poll(nil); n != 0 {
		t.Errorf("Poll into nothing returned %d", n)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, rnic.Config{})
		cq := l.cq(rnic.CQAttr{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		n, err := cq.Wait(ctx, make([]rnic.WC, 1))
		if n != 0 || time.Since(begin) != time.Hour {
			t.Errorf("%d after %v", n, time.Since(begin))
		}
		wantRefused(t, "wait", err, context.DeadlineExceeded)

		why := errors.New("no more")
		ctx, stop := context.WithCancelCause(t.Context())
		stop(why)
		_, err = cq.Wait(ctx, make([]rnic.WC, 1))
		wantRefused(t, "wait", err, why)
		if n, err := cq.Wait(ctx, nil); n != 0 || err != nil {
			t.Errorf("waiting for nothing: %d, %v", n, err)
		}
		// What is there is returned all the same.
		if n, err := l.flushed(l.domain(), 2, rnic.CQAttr{}).Wait(ctx, make([]rnic.WC, 4)); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// Whoever waits gets what comes, each completion once, and nobody sleeps while
// there is one.
func TestCompletionsAreSharedAmongThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters, rounds, each = 8, 50, 4
		l := newLab(t, rnic.Config{})
		cq, p := l.cq(rnic.CQAttr{}), l.domain()
		var mu sync.Mutex
		seen := map[uint64]int{}
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				for wc, err := range cq.All(context.Background()) {
					if err != nil {
						if !errors.Is(err, rnic.ErrClosed) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					seen[wc.ID]++
					mu.Unlock()
				}
			})
		}
		for i := range rounds {
			synctest.Wait() // all of them are asleep
			q := l.qp(p, rnic.QPAttr{RecvCQ: cq})
			if err := q.PostRecv(receives(i*each, each)...); err != nil {
				t.Fatal(err)
			}
			q.Abort()
			synctest.Wait()
			mu.Lock()
			if len(seen) != (i+1)*each {
				t.Fatalf("%d completions of %d were seen", len(seen), (i+1)*each)
			}
			mu.Unlock()
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("completion %d was seen %d times", id, n)
			}
		}
		if err := cq.Close(); err != nil { // wakes them all
			t.Fatal(err)
		}
		wg.Wait()
	})
}

// Completions that come at once are for as many programs, each of which takes one.
func TestCompletionsThatComeAtOnceWakeAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5
		l := newLab(t, rnic.Config{})
		cq := l.cq(rnic.CQAttr{})
		q := l.qpOn(l.domain(), cq)
		var all []*waitingProgram
		for range n {
			all = append(all, waits(t.Context(), cq))
		}
		synctest.Wait()
		postSend(t, q, empties(0, n, 0)...)
		q.Abort()
		seen := map[uint64]bool{}
		for i, p := range all {
			if !p.isDone() || p.err != nil {
				t.Fatalf("program %d has got nothing: %v", i, p.err)
			}
			seen[p.wc.ID] = true
		}
		if len(seen) != n {
			t.Errorf("%d completions of %d were seen", len(seen), n)
		}
	})
}

func TestAllStopsWhenTheLoopDoes(t *testing.T) {
	l := newLab(t, rnic.Config{})
	cq := l.flushed(l.domain(), 3, rnic.CQAttr{})
	for wc, err := range cq.All(t.Context()) {
		if err != nil || wc.ID != 1 {
			t.Errorf("%+v, %v", wc, err)
		}
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := 0
	for wc, err := range cq.All(ctx) {
		if err != nil {
			if !errors.Is(err, context.Canceled) || wc != (rnic.WC{}) {
				t.Errorf("%+v, %v", wc, err)
			}
			break
		}
		if left++; left == 2 {
			cancel()
		}
	}
	if left != 2 {
		t.Errorf("%d completions were left", left)
	}
}

func TestCQAttributesAreChecked(t *testing.T) {
	l, other := newLab(t, rnic.Config{}), newLab(t, rnic.Config{})
	closed := l.channel()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	closedPD := l.domain()
	if err := closedPD.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		attr  rnic.CQAttr
		cause error
		words string
	}{
		{"negative", rnic.CQAttr{Entries: -1}, nil, "-1 entries"},
		{"too many", rnic.CQAttr{Entries: rnic.MaxCQE + 1}, nil, "entries"},
		{"channel of another device", rnic.CQAttr{Channel: other.channel()}, rnic.ErrForeign, ""},
		{"domain of another device", rnic.CQAttr{PD: other.domain()}, rnic.ErrForeign, ""},
		{"closed channel", rnic.CQAttr{Channel: closed}, rnic.ErrClosed, "channel"},
		{"closed domain", rnic.CQAttr{PD: closedPD}, rnic.ErrClosed, ""},
	} {
		_, err := l.dev.CreateCQ(tt.attr)
		wantRefused(t, tt.name, err, tt.cause, tt.words)
	}
	if n := l.cq(rnic.CQAttr{}).Entries(); n != 256 {
		t.Errorf("%d entries by default", n)
	}
}

// The number tells the queues of a device apart, in errors too.
func TestErrorsOfACompletionQueueTellItsNumber(t *testing.T) {
	l := newLab(t, rnic.Config{})
	one, other := l.cq(rnic.CQAttr{}), l.cq(rnic.CQAttr{})
	if one.Num() == other.Num() {
		t.Errorf("two queues have the number %d", one.Num())
	}
	for _, cq := range []*rnic.CQ{one, other} {
		wantRefused(t, "resize", cq.Resize(0), nil, fmt.Sprintf("CQ %d:", cq.Num()))
	}
}

// A device says how large its queues are at most, and makes them as large.
func TestCompletionQueueIsAsLargeAsTheDeviceAllows(t *testing.T) {
	const most = 100
	l := newLab(t, rnic.Config{MaxCQE: most})
	for _, n := range []int{1, most} {
		if got := l.cq(rnic.CQAttr{Entries: n}).Entries(); got != n {
			t.Errorf("%d entries; want %d", got, n)
		}
	}
	cq := l.cq(rnic.CQAttr{})
	for _, n := range []int{1, most} {
		if err := cq.Resize(n); err != nil || cq.Entries() != n {
			t.Errorf("%d entries after %v; want %d", cq.Entries(), err, n)
		}
	}
	_, err := l.dev.CreateCQ(rnic.CQAttr{Entries: most + 1})
	wantRefused(t, "create", err, nil, "101 entries")
	wantRefused(t, "resize", cq.Resize(most+1), nil, "101 entries")
}

func TestResizeKeepsWhatIsInTheQueue(t *testing.T) {
	l := newLab(t, rnic.Config{Limits: pd.Limits{pd.CQEntries: 256 + 16}})
	p := l.domain()
	cq := l.flushed(p, 6, rnic.CQAttr{Entries: 6})
	wcs := make([]rnic.WC, 16)
	cq.Poll(wcs[:4]) // so that what is left does not begin at the front
	wantRefused(t, "too small", cq.Resize(1), nil, "2 completions are in the queue")
	wantRefused(t, "none", cq.Resize(0), nil, "0 entries")
	wantRefused(t, "too large", cq.Resize(rnic.MaxCQE+1), nil, "entries")
	if cq.Entries() != 6 {
		t.Errorf("%d entries after refused changes", cq.Entries())
	}
	for _, n := range []int{2, 2, 16, 3} {
		if err := cq.Resize(n); err != nil {
			t.Fatal(err)
		}
		if got := l.dev.Held(pd.CQEntries); cq.Entries() != n || got != uint64(256+n) { // 256: of the closed queue pair's other queue
			t.Errorf("%d entries, %d held; want %d", cq.Entries(), got, n)
		}
	}
	wantLimit(t, "over quota", cq.Resize(17), pd.CQEntries)
	// It holds as many as it says.
	q := l.qpOn(p, cq)
	if err := q.PostRecv(receives(7, 1)...); err != nil {
		t.Fatal(err)
	}
	q.Abort()
	if n := cq.Poll(wcs); n != 3 || wcs[0].ID != 5 || wcs[1].ID != 6 || wcs[2].ID != 7 {
		t.Errorf("%d completions: %+v", n, wcs[:n])
	}
	wantNoEvent(t, l.dev)
	if err := cq.Resize(1); err != nil { // while a queue pair uses it
		t.Error(err)
	}
}

// qpOn returns a queue pair that uses one completion queue for all.
func (l lab) qpOn(p *rnic.PD, cq *rnic.CQ) *rnic.QP {
	l.Helper()
	return l.qp(p, rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
}

func TestResizeInUseLosesNoCompletion(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		const n = 500
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range n {
				p.B.Recv(t, receives(i, 1)...)
				p.A.Send(t, empties(i, 1, rnic.FlagUnsignaled)...)
				if i%16 == 0 { // leave some in the queue
					synctest.Wait()
				}
			}
		}()
		for i, size := 0, 0; i < n; i++ {
			rnictest.Want(t, p.B.RecvCQ, uint64(i))
			size = (size + 37) % 200
			if err := p.B.RecvCQ.Resize(600 + size); err != nil {
				t.Fatal(err)
			}
		}
		<-done
	})
}

func TestCQInUseIsNotClosed(t *testing.T) {
	l := newLab(t, rnic.Config{})
	cq := l.cq(rnic.CQAttr{})
	q := l.qpOn(l.domain(), cq)
	wantRefused(t, "in use", cq.Close(), rnic.ErrBusy)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := cq.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := cq.Wait(t.Context(), make([]rnic.WC, 1))
	wantRefused(t, "wait", err, rnic.ErrClosed)
	wantRefused(t, "arm", cq.Arm(rnic.NextCompletion), rnic.ErrClosed)
	wantRefused(t, "resize", cq.Resize(1), rnic.ErrClosed)
	_, err = q.PD().CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
	wantRefused(t, "create QP", err, rnic.ErrClosed, "CQ")
	if n := l.dev.Held(pd.QueuePairs); n != 0 {
		t.Errorf("%d queue pairs are held", n)
	}
}

func TestCQOfEitherWorkQueueIsInUse(t *testing.T) {
	l := newLab(t, rnic.Config{})
	sends, recvs := l.cq(rnic.CQAttr{}), l.cq(rnic.CQAttr{})
	q := l.qp(l.domain(), rnic.QPAttr{SendCQ: sends, RecvCQ: recvs})
	wantRefused(t, "of sends", sends.Close(), rnic.ErrBusy)
	wantRefused(t, "of receives", recvs.Close(), rnic.ErrBusy)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	for _, cq := range []*rnic.CQ{sends, recvs} {
		if err := cq.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestQPTakesOnlyCQsOfItsDevice(t *testing.T) {
	l, other := newLab(t, rnic.Config{}), newLab(t, rnic.Config{})
	p := l.domain()
	own, foreign := l.cq(rnic.CQAttr{}), other.cq(rnic.CQAttr{})
	for _, attr := range []rnic.QPAttr{{SendCQ: foreign, RecvCQ: own}, {SendCQ: own, RecvCQ: foreign}} {
		_, err := p.CreateQP(attr)
		wantRefused(t, "foreign CQ", err, rnic.ErrForeign)
	}
	for _, attr := range []rnic.QPAttr{{}, {SendCQ: own}, {RecvCQ: own}} {
		_, err := p.CreateQP(attr)
		wantRefused(t, "no CQ", err, nil, "completion queue is missing")
	}
}

// A CQ that is reserved for one protection domain takes no completions of
// another one, and counts against the quotas of its own (RFC 5040 §8.1.1 rule 9,
// RFC 5042 §7.1).
func TestCQIsNotSharedWithoutTrust(t *testing.T) {
	l := newLab(t, rnic.Config{DomainLimits: pd.Limits{pd.CQEntries: 100, pd.CompletionQueues: 2}})
	mine, theirs := l.domain(), l.domain()
	reserved, shared := l.cq(rnic.CQAttr{Entries: 60, PD: mine}), l.cq(rnic.CQAttr{})
	for _, attr := range []rnic.QPAttr{{SendCQ: reserved, RecvCQ: shared}, {SendCQ: shared, RecvCQ: reserved}, {SendCQ: reserved, RecvCQ: reserved}} {
		_, err := theirs.CreateQP(attr)
		wantRefused(t, "queue pair of another domain", err, nil, "is reserved for PD")
		q, err := mine.CreateQP(attr)
		if err != nil {
			t.Errorf("queue pair of the domain: %v", err)
			continue
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
	// What one domain takes is not missing to another.
	_, err := l.dev.CreateCQ(rnic.CQAttr{Entries: 41, PD: mine})
	wantLimit(t, "entries of the domain", err, pd.CQEntries)
	wantLimit(t, "entries of the domain", reserved.Resize(101), pd.CQEntries)
	second := l.cq(rnic.CQAttr{Entries: 40, PD: mine})
	_, err = l.dev.CreateCQ(rnic.CQAttr{Entries: 1, PD: mine})
	wantLimit(t, "queues of the domain", err, pd.CompletionQueues)
	l.cq(rnic.CQAttr{Entries: 100, PD: theirs})
	var busy *pd.BusyError
	if err := mine.Close(); !errors.As(err, &busy) {
		t.Errorf("domain with completion queues: %v", err)
	}
	for _, c := range []*rnic.CQ{reserved, second} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := mine.Close(); err != nil {
		t.Error(err)
	}
}

// "An RNIC MUST ensure that if a CQ overflows, any Streams that do not use the CQ
// MUST remain unaffected": RFC 5040 §8.1.1 rule 10.
func TestCQOverflowLeavesOtherStreamsAlone(t *testing.T) {
	const entries = 4
	for _, which := range []string{"receives", "sends"} {
		t.Run(which, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				l := labOf(t, p.B)
				small := l.cq(rnic.CQAttr{Entries: entries})
				attr := rnic.QPAttr{SendCQ: p.B.SendCQ, RecvCQ: p.B.RecvCQ}
				if which == "receives" {
					attr.RecvCQ = small
				} else {
					attr.SendCQ = small
				}
				victim := l.qp(p.B.PD, attr)
				peer := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{})
				p.Link(t, peer, victim)
				open(t, peer) // else the Responder may not send
				if err := small.Arm(rnic.NextSolicited); err != nil {
					t.Fatal(err)
				}
				from, to := peer, victim
				if which == "sends" {
					from, to = victim, peer
				}
				if err := to.PostRecv(receives(1, entries+1)...); err != nil {
					t.Fatal(err)
				}
				if err := from.PostSend(empties(1, entries+1, 0)...); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()

				// The events name the queue and the stream.
				overflow, fatal := 0, 0
				for {
					ev, ok := p.B.Device.PollEvent()
					if !ok {
						break
					}
					switch {
					case ev.Type == rnic.EventCQOverflow && ev.CQ == small && errors.Is(ev.Err, rnic.ErrOverflow):
						overflow++
					case ev.Type == rnic.EventCatastrophic && ev.QP == victim && errors.Is(ev.Err, rnic.ErrOverflow):
						fatal++
					default:
						t.Errorf("event: %v", ev)
					}
				}
				if overflow != 1 || fatal != 1 {
					t.Errorf("%d events of the queue, %d of the stream", overflow, fatal)
				}
				// The peer is told "catastrophic error, localized to RDMAP stream".
				wantTerminate(t, p.A.Device, rdmap.CodeStreamCatastrophic)
				if victim.State() != rnic.Error || !errors.Is(victim.Err(), rnic.ErrOverflow) {
					t.Errorf("the stream: %v, %v", victim.State(), victim.Err())
				}

				// What was in the queue can be polled; then it is over.
				select {
				case <-small.Fired():
				default:
					t.Error("the armed queue has not fired")
				}
				for i := range entries {
					rnictest.Want(t, small, uint64(i+1))
				}
				_, err := small.Wait(t.Context(), make([]rnic.WC, 1))
				wantRefused(t, "wait", err, rnic.ErrOverflow)
				wantRefused(t, "arm", small.Arm(rnic.NextCompletion), rnic.ErrOverflow)
				_, err = p.B.PD.CreateQP(attr)
				wantRefused(t, "create QP", err, rnic.ErrOverflow)

				// The other stream has noticed nothing.
				p.B.Recv(t, receives(9, 1)...)
				p.A.Send(t, empties(9, 1, 0)...)
				rnictest.Want(t, p.A.SendCQ, 9)
				rnictest.Want(t, p.B.RecvCQ, 9)
				if err := p.A.QP.Disconnect(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestOverflowWakesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, rnic.Config{})
		cq := l.cq(rnic.CQAttr{Entries: 1})
		q := l.qpOn(l.domain(), cq)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				wcs := make([]rnic.WC, 1)
				for {
					if _, err := cq.Wait(context.Background(), wcs); err != nil {
						wantRefused(t, "wait", err, rnic.ErrOverflow)
						return
					}
				}
			})
		}
		synctest.Wait()
		if err := q.PostRecv(receives(1, 64)...); err != nil {
			t.Fatal(err)
		}
		q.Abort()
		nextEvent(t, l.dev, rnic.EventCQOverflow)
		wg.Wait()
	})
}
