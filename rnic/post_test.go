package rnic_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// posted returns the IDs of the requests that a queue pair without a stream has
// taken.
func posted(t testing.TB, q *rnic.QP, cq *rnic.CQ) []uint64 {
	t.Helper()
	q.Abort()
	var ids []uint64
	wcs := make([]rnic.WC, 64)
	for {
		n := cq.Poll(wcs)
		if n == 0 {
			return ids
		}
		for _, wc := range wcs[:n] {
			if wc.Status != rnic.StatusFlushed {
				t.Errorf("request %d: %v", wc.ID, wc.Status)
			}
			ids = append(ids, wc.ID)
		}
	}
}

// Posting a list stops at the first request that is refused: those before it
// stay posted, it and the rest are not (draft-hilland-rddp-verbs §8.1).
func TestMistakeInAPostedRequestIsAnError(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p, other := l.domain(), l.domain()
	mem := make([]byte, 64)
	mr, foreign, readOnly := l.region(p, mem, everyRight), l.region(other, mem, everyRight), l.region(p, mem, rnic.RemoteRead)
	scoped := l.scoped(l.qp(p, rnic.QPAttr{}), mem, 0, l.qp(p, rnic.QPAttr{}))
	fast, window := l.allocated(p), l.window(p, rnic.Type1)
	closed := l.region(p, mem, everyRight)
	closedSGE := closed.SGE(0, 8)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	sgl := func(s ...rnic.SGE) []rnic.SGE { return s }
	at := mr.Remote(0)

	type mistake struct {
		name  string
		wr    rnic.SendWR
		words string
	}
	mistakes := []mistake{
		{"no operation", rnic.SendWR{}, "opcode 0 can't be posted"},
		{"receive", rnic.SendWR{Op: rnic.OpRecv}, "Receive can't be posted"},
		{"unknown operation", rnic.SendWR{Op: 200}, "opcode 200"},
		{"unknown flag", rnic.SendWR{Op: rnic.OpSend, Flags: 1 << 7}, "unknown flags 0x80"},
		{"inline and SGL", rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, SGL: sgl(mr.SGE(0, 1))}, "both"},
		{"inline too large", rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: make([]byte, rnic.DefaultInline+1)}, "65 octets of inline data"},
		{"Read of two sinks", rnic.SendWR{Op: rnic.OpRead, SGL: sgl(mr.SGE(0, 8), mr.SGE(8, 8)), Remote: at}, "2 entries"},
		{"Read with Invalidate of nothing", rnic.SendWR{Op: rnic.OpReadInvalidate, Remote: at}, "no sink"},
		{"fast registration of nothing", rnic.SendWR{Op: rnic.OpFastRegister}, "no region"},
		{"fast registration of no region", rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{MR: new(rnic.MR)}}, "another protection domain"},
		{"fast registration in another domain", rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{MR: foreign}}, "another protection domain"},
		{"fast registration of two kinds of memory", rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{
			MR: fast, Memory: rnic.Memory{Slice: mem, Pointer: unsafe.Pointer(&mem[0]), Length: 64},
		}}, "not both"},
		{"fast registration of negative memory", rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{
			MR: fast, Memory: rnic.Memory{Pointer: unsafe.Pointer(&mem[0]), Length: -64},
		}}, "negative"},
		{"bind of nothing", rnic.SendWR{Op: rnic.OpBindWindow}, "no window"},
		{"bind of no window", rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: new(rnic.MW)}}, "one protection domain"},
		{"bind of a foreign window", rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: l.window(other, rnic.Type1), MR: mr}}, "one protection domain"},
		{"bind to a foreign region", rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: window, MR: foreign}}, "one protection domain"},
		{"bind to no region", rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: window, MR: new(rnic.MR), Length: 1}}, "one protection domain"},
		{"bind without a region", rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: window, Length: 1}}, "no region"},
	}
	for _, op := range []rnic.Opcode{rnic.OpWrite, rnic.OpRead, rnic.OpReadInvalidate, rnic.OpFetchAdd, rnic.OpCmpSwap, rnic.OpLocalInvalidate, rnic.OpFastRegister, rnic.OpBindWindow} {
		mistakes = append(mistakes, mistake{fmt.Sprintf("solicited %v", op), rnic.SendWR{Op: op, Flags: rnic.FlagSolicited}, "solicited event"})
	}
	for _, op := range []rnic.Opcode{rnic.OpRead, rnic.OpReadInvalidate, rnic.OpImmediate, rnic.OpFetchAdd, rnic.OpCmpSwap, rnic.OpLocalInvalidate, rnic.OpFastRegister, rnic.OpBindWindow} {
		mistakes = append(mistakes, mistake{fmt.Sprintf("inline %v", op), rnic.SendWR{Op: op, Flags: rnic.FlagInline}, "no inline data"})
	}
	for _, op := range []rnic.Opcode{rnic.OpImmediate, rnic.OpLocalInvalidate} {
		mistakes = append(mistakes, mistake{fmt.Sprintf("%v with data", op), rnic.SendWR{Op: op, SGL: sgl(mr.SGE(0, 1))}, "has no SGL"})
	}
	for _, op := range []rnic.Opcode{rnic.OpFetchAdd, rnic.OpCmpSwap} {
		for _, n := range []int{0, 7, 9} {
			mistakes = append(mistakes, mistake{fmt.Sprintf("%v into %d octets", op, n), rnic.SendWR{Op: op, SGL: sgl(mr.SGE(0, n)), Remote: at}, "returns 8 octets"})
		}
	}
	for _, op := range []rnic.Opcode{rnic.OpRead, rnic.OpReadInvalidate, rnic.OpFetchAdd, rnic.OpCmpSwap} {
		mistakes = append(mistakes, mistake{fmt.Sprintf("%v into read-only memory", op), rnic.SendWR{Op: op, SGL: sgl(readOnly.SGE(0, 8)), Remote: at}, "access rights"})
	}
	for _, op := range []rnic.Opcode{rnic.OpSend, rnic.OpSendInvalidate, rnic.OpWrite, rnic.OpWriteImmediate, rnic.OpRead, rnic.OpReadInvalidate, rnic.OpFetchAdd, rnic.OpCmpSwap} {
		for name, bad := range map[string]struct {
			sge   rnic.SGE
			words string
		}{
			"SGE of another domain":   {foreign.SGE(0, 8), "not associated"},
			"SGE of another stream":   {scoped.SGE(0, 8), "not associated"},
			"SGE out of bounds":       {mr.SGE(57, 8), "bounds"},
			"SGE before the region":   {rnic.SGE{Addr: mr.Base() - 1, Length: 8, LKey: mr.STag()}, "bounds"},
			"SGE with no key":         {rnic.SGE{Addr: mr.Base(), Length: 8}, "invalid STag"},
			"SGE with another key":    {rnic.SGE{Addr: mr.Base(), Length: 8, LKey: mr.STag() ^ 0x0100_0000}, "invalid STag"},
			"SGE of a closed region":  {closedSGE, "invalid STag"},
			"wrapping SGE":            {rnic.SGE{Addr: ^uint64(0), Length: 8, LKey: mr.STag()}, "bounds"},
			"SGE of too many entries": {rnic.SGE{}, "entries"},
		} {
			wr := rnic.SendWR{Op: op, SGL: sgl(bad.sge), Remote: at}
			if bad.sge == (rnic.SGE{}) {
				wr.SGL = make([]rnic.SGE, rnic.DefaultSGE+1)
			}
			mistakes = append(mistakes, mistake{fmt.Sprintf("%v: %s", op, name), wr, bad.words})
		}
	}
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			l := lab{t, l.dev}
			cq := l.cq(rnic.CQAttr{})
			q := l.qpOn(p, cq)
			m.wr.ID = 77
			err := q.PostSend(rnic.SendWR{ID: 1, Op: rnic.OpSend}, rnic.SendWR{ID: 2, Op: rnic.OpSend}, m.wr, rnic.SendWR{ID: 4, Op: rnic.OpSend})
			wantRefused(t, "post", err, nil, fmt.Sprintf("QP %d", q.Num()), "post send", "request 2 (ID 77)", m.words)
			var wr *rnic.WRError
			if !errors.As(err, &wr) || wr.Index != 2 || wr.ID != 77 || wr.Op != m.wr.Op {
				t.Errorf("%+v", wr)
			}
			if ids := posted(t, q, cq); !slices.Equal(ids, []uint64{1, 2}) {
				t.Errorf("posted: %v; want those before the mistake", ids)
			}
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMistakeInAPostedReceiveIsAnError(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	mem := make([]byte, 64)
	mr := l.region(p, mem, everyRight)
	for name, bad := range map[string]struct {
		sgl   []rnic.SGE
		words string
	}{
		"another domain":   {[]rnic.SGE{l.region(l.domain(), mem, everyRight).SGE(0, 8)}, "not associated"},
		"another stream":   {[]rnic.SGE{l.scoped(l.qp(p, rnic.QPAttr{}), mem, 0, l.qp(p, rnic.QPAttr{})).SGE(0, 8)}, "not associated"},
		"read-only memory": {[]rnic.SGE{l.region(p, mem, rnic.RemoteRead).SGE(0, 8)}, "access rights"},
		"second entry":     {[]rnic.SGE{mr.SGE(0, 8), mr.SGE(60, 5)}, "SGE 1: "},
		"not valid yet":    {[]rnic.SGE{{LKey: l.allocated(p).STag(), Length: 1}}, "invalid STag"},
		"window":           {[]rnic.SGE{{LKey: l.window(p, rnic.Type1).STag(), Length: 1}}, "invalid STag"},
		"entries":          {make([]rnic.SGE, rnic.DefaultSGE+1), "5 entries: the queue takes 4"},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab{t, l.dev}
			cq := l.cq(rnic.CQAttr{})
			q := l.qpOn(p, cq)
			err := q.PostRecv(rnic.RecvWR{ID: 1}, rnic.RecvWR{ID: 77, SGL: bad.sgl}, rnic.RecvWR{ID: 3})
			wantRefused(t, "post", err, nil, fmt.Sprintf("QP %d", q.Num()), "post receive", "request 1 (ID 77)", bad.words)
			var wr *rnic.WRError
			if !errors.As(err, &wr) || wr.Index != 1 || wr.ID != 77 || wr.Op != rnic.OpRecv {
				t.Errorf("%+v", wr)
			}
			if ids := posted(t, q, cq); !slices.Equal(ids, []uint64{1}) {
				t.Errorf("posted: %v", ids)
			}
		})
	}
}

func TestFullQueueTakesNothing(t *testing.T) {
	l := newLab(t, rnic.Config{})
	cq := l.cq(rnic.CQAttr{})
	q := l.qp(l.domain(), rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 3, MaxRecvWR: 2})
	var wr *rnic.WRError
	err := q.PostSend(empties(1, 5, 0)...)
	wantRefused(t, "send", err, rnic.ErrQueueFull)
	if !errors.As(err, &wr) || wr.Index != 3 || wr.ID != 4 || wr.Op != rnic.OpSend {
		t.Errorf("%+v", wr)
	}
	err = q.PostRecv(receives(11, 5)...)
	wantRefused(t, "receive", err, rnic.ErrQueueFull)
	if !errors.As(err, &wr) || wr.Index != 2 || wr.ID != 13 || wr.Op != rnic.OpRecv {
		t.Errorf("%+v", wr)
	}
	if err := errors.Join(q.PostSend(), q.PostRecv()); err != nil {
		t.Errorf("empty lists: %v", err)
	}
	if ids := posted(t, q, cq); !slices.Equal(ids, []uint64{1, 2, 3, 11, 12}) {
		t.Errorf("posted: %v", ids)
	}
}

func TestQPAttributesAreChecked(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p, cq := l.domain(), l.cq(rnic.CQAttr{})
	for _, tt := range []struct {
		attr  rnic.QPAttr
		words string
	}{
		{rnic.QPAttr{MaxSendWR: -1}, "MaxSendWR -1"},
		{rnic.QPAttr{MaxSendWR: rnic.MaxWR + 1}, "MaxSendWR"},
		{rnic.QPAttr{MaxRecvWR: rnic.MaxWR + 1}, "MaxRecvWR"},
		{rnic.QPAttr{MaxSGE: rnic.MaxSGE + 1}, "MaxSGE"},
		{rnic.QPAttr{MaxInline: rnic.MaxInline + 1}, "MaxInline"},
		{rnic.QPAttr{SRQ: new(rnic.SRQ)}, "not made by its device"},
	} {
		tt.attr.SendCQ, tt.attr.RecvCQ = cq, cq
		_, err := p.CreateQP(tt.attr)
		wantRefused(t, tt.words, err, nil, "PD", tt.words)
	}
	_, err := p.CreateQP(rnic.QPAttr{SendCQ: new(rnic.CQ), RecvCQ: cq})
	wantRefused(t, "zero CQ", err, rnic.ErrNotMade)
	if err := cq.Close(); err != nil { // nothing uses it
		t.Error(err)
	}
}

// Requests may be posted before there is a stream, and wait for it
// (draft-hilland-rddp-verbs §6.1.1).
func TestRequestsPostedWhileIdleGoOutFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{SendCQ: p.A.SendCQ}), labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{RecvCQ: p.B.RecvCQ})
		if err := b.PostRecv(receives(1, 3)...); err != nil {
			t.Fatal(err)
		}
		postSend(t, a, empties(1, 2, 0)...)
		p.Link(t, a, b)
		postSend(t, a, empties(3, 1, 0)...)
		for id := range uint64(3) {
			rnictest.Want(t, p.A.SendCQ, id+1)
			rnictest.Want(t, p.B.RecvCQ, id+1)
		}
	})
}

// What is wrong with a request only when its turn comes ends the stream with
// that request's own status.
func TestMemoryGivenUpAfterPostingIsALocalProtectionError(t *testing.T) {
	t.Run("source", func(t *testing.T) {
		for _, op := range []rnic.Opcode{rnic.OpSend, rnic.OpWrite, rnic.OpWriteImmediate} {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{SendCQ: p.A.SendCQ}), labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{})
				mr := p.A.Register(t, make([]byte, 8), 0)
				postSend(t, a, rnic.SendWR{ID: 1, Op: op, SGL: []rnic.SGE{mr.SGE(0, 8)}}, rnic.SendWR{ID: 2, Op: rnic.OpSend})
				if err := mr.Close(); err != nil {
					t.Fatal(err)
				}
				p.Link(t, a, b)
				wc := wantStatus(t, p.A.SendCQ, 1, rnic.StatusLocalProtection)
				var access *stag.AccessError
				if !errors.As(wc.Cause, &access) || access.STag != mr.STag() {
					t.Errorf("%v: cause %v", op, wc.Cause)
				}
				wantStatus(t, p.A.SendCQ, 2, rnic.StatusFlushed)
				nextEvent(t, p.A.Device, rnic.EventCatastrophic)
				wantTerminate(t, p.B.Device, rdmap.CodeLocalCatastrophic)
			})
		}
	})
	t.Run("receive", func(t *testing.T) {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			mr := p.B.Register(t, make([]byte, 8), rnic.LocalWrite)
			p.B.Recv(t, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{mr.SGE(0, 8)}}, rnic.RecvWR{ID: 2})
			if err := mr.Close(); err != nil {
				t.Fatal(err)
			}
			p.A.Send(t, rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: []byte{1}})
			wc := wantStatus(t, p.B.RecvCQ, 1, rnic.StatusLocalProtection)
			if access := (*stag.AccessError)(nil); !errors.As(wc.Cause, &access) || access.STag != mr.STag() {
				t.Errorf("cause %v", wc.Cause)
			}
			wantStatus(t, p.B.RecvCQ, 2, rnic.StatusFlushed)
			nextEvent(t, p.B.Device, rnic.EventCatastrophic)
			wantTerminate(t, p.A.Device, rdmap.CodeLocalCatastrophic)
		})
	})
	t.Run("sink", func(t *testing.T) {
		// The Read is on its way when its sink goes: the Response finds no place.
		slow := rnictest.Options{BA: rnictest.Faults{Latency: time.Second}}
		for _, op := range []rnic.Opcode{rnic.OpRead, rnic.OpFetchAdd} {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				words := make([]uint64, 1)
				target := p.B.Register(t, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8), everyRight)
				mr := p.A.Register(t, make([]byte, 8), rnic.LocalWrite)
				p.A.Send(t, rnic.SendWR{ID: 1, Op: op, SGL: []rnic.SGE{mr.SGE(0, 8)}, Remote: target.Remote(0)})
				synctest.Wait()
				if err := mr.Close(); err != nil {
					t.Fatal(err)
				}
				wc := rnictest.Next(t, p.A.SendCQ)
				if wc.ID != 1 || wc.Status == rnic.StatusSuccess {
					t.Errorf("%v: %+v", op, wc)
				}
				ev, err := p.B.Device.WaitEvent(t.Context())
				if err != nil || ev.Type != rnic.EventTerminateReceived {
					t.Errorf("%v, %v", ev, err)
				}
			}, slow)
		}
	})
}

func TestOutcomesHaveNames(t *testing.T) {
	for s := rnic.StatusSuccess; s <= rnic.StatusRemoteTermination; s++ {
		if n := s.String(); n == "" || n == fmt.Sprintf("status %d", s) {
			t.Errorf("status %d has no name", s)
		}
	}
	for o := rnic.OpSend; o <= rnic.OpRecvImmediate; o++ {
		if n := o.String(); n == "" || n == fmt.Sprintf("opcode %d", o) {
			t.Errorf("operation %d has no name", o)
		}
	}
	cause := errors.New("because")
	for want, s := range map[string]fmt.Stringer{
		"status 99": rnic.Status(99), "opcode 0": rnic.Opcode(0), "opcode 99": rnic.Opcode(99), "state 99": rnic.State(99),
	} {
		if got := s.String(); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
	wc := rnic.WC{ID: 5, QPN: 3, Op: rnic.OpRead, Status: rnic.StatusLocalProtection, Cause: cause}
	if err := wc.Err(); err == nil || !errors.Is(err, cause) || err.Error() != "rnic: QP 3: RDMA Read (ID 5): local protection error: because" {
		t.Errorf("%v", err)
	}
	wc.Status, wc.Cause = rnic.StatusBadSTag, &stag.AccessError{Violation: stag.InvalidSTag, STag: 0x100, Wanted: stag.LocalWrite}
	if err := wc.Err(); err == nil || err.Error() != "rnic: QP 3: RDMA Read (ID 5): invalid STag: 0x00000100, local write of 0 octets at 0x0" {
		t.Error(err)
	}
	wc.Cause = cause
	if err := wc.Err(); err == nil || err.Error() != "rnic: QP 3: RDMA Read (ID 5): invalid STag: because" {
		t.Error(err)
	}
	wc.Status, wc.Cause = rnic.StatusFlushed, nil
	if err := wc.Err(); err == nil || err.Error() != "rnic: QP 3: RDMA Read (ID 5): flushed" {
		t.Errorf("%v", err)
	}
	if err := (&rnic.WC{}).Err(); err != nil {
		t.Error(err)
	}
}
