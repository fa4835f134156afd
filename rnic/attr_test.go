package rnic_test

import (
	"fmt"
	"testing"

	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestObjectsTellTheirAttributes(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p, cq := l.domain(), l.cq(rnic.CQAttr{})
	q := l.qp(p, rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 7})
	if a, want := q.Attr(), (rnic.QPAttr{
		SendCQ: cq, RecvCQ: cq, MaxSendWR: 7, MaxRecvWR: rnic.DefaultWR, MaxSGE: rnic.DefaultSGE, MaxInline: rnic.DefaultInline,
	}); a != want {
		t.Errorf("%+v; want %+v", a, want)
	}
	s := l.srq(p, rnic.SRQAttr{Limit: 2, PerQP: 3})
	if a, want := s.Attr(), (rnic.SRQAttr{MaxWR: rnic.DefaultWR, MaxSGE: rnic.DefaultSGE, Limit: 2, PerQP: 3}); a != want {
		t.Errorf("%+v; want %+v", a, want)
	}
	if err := s.ArmLimit(0); err != nil || s.Attr().Limit != 0 {
		t.Errorf("%v, %+v", err, s.Attr())
	}
	if a := l.qp(p, rnic.QPAttr{SRQ: s}).Attr(); a.SRQ != s || a.MaxRecvWR != 0 {
		t.Errorf("%+v", a)
	}
}

// The number of an SRQ is its own, and the one that its errors name.
func TestSRQTellsItsNumber(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	seen := map[uint32]bool{0: true}
	for range 3 {
		s := l.srq(p, rnic.SRQAttr{})
		if seen[s.Num()] {
			t.Errorf("the number is %d again, or zero", s.Num())
		}
		seen[s.Num()] = true
		wantRefused(t, "arm", s.ArmLimit(-1), nil, fmt.Sprintf("SRQ %d", s.Num()))
	}
}

func TestMemoryTellsItsRights(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mr := p.A.Register(t, make([]byte, 16), everyRight)
		w := labOf(t, p.A).window(p.A.PD, rnic.Type1)
		if mr.Access() != everyRight || w.Access() != 0 {
			t.Errorf("%v and %v", mr.Access(), w.Access())
		}
		p.A.Send(t, rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: mr, Addr: mr.Base(), Length: 8, Access: rnic.RemoteRead}})
		rnictest.Want(t, p.A.SendCQ, 0)
		if w.Access() != rnic.RemoteRead {
			t.Errorf("the window grants %v", w.Access())
		}
		for _, o := range []interface{ Close() error }{w, mr} {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}
		if mr.Access() != 0 || w.Access() != 0 {
			t.Errorf("closed: %v and %v", mr.Access(), w.Access())
		}
	})
}

func TestQueuePairDescribesItsConnection(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		if a.QP.LocalAddr() != nil || a.QP.RemoteAddr() != nil {
			w.Errorf("before: %v, %v", a.QP.LocalAddr(), a.QP.RemoteAddr())
		}
		if p, ok := a.QP.Params(); ok {
			w.Errorf("before: %+v", p)
		}
		w.connect(a, b)
		if _, ok := a.QP.Params(); !ok {
			w.Error("start-up has settled nothing")
		}
		local, remote := a.QP.LocalAddr().String(), a.QP.RemoteAddr().String()
		if local == remote || b.QP.LocalAddr().String() != remote || b.QP.RemoteAddr().String() != local {
			w.Errorf("%s to %s, but %v to %v", local, remote, b.QP.RemoteAddr(), b.QP.LocalAddr())
		}
		a.QP.Abort()
		if a.QP.LocalAddr().String() != local || a.QP.RemoteAddr().String() != remote {
			w.Errorf("after the end: %v, %v", a.QP.LocalAddr(), a.QP.RemoteAddr())
		}
		if err := a.QP.Reset(); err != nil || a.QP.LocalAddr() != nil || a.QP.RemoteAddr() != nil {
			w.Errorf("after Reset: %v; %v, %v", err, a.QP.LocalAddr(), a.QP.RemoteAddr())
		}
	})
}

func TestSharedReceiveQueueIsResized(t *testing.T) {
	l := newLab(t, rnic.Config{MaxWR: 100, DomainLimits: pd.Limits{pd.RecvWRs: 50}})
	p := l.domain()
	s := l.srq(p, rnic.SRQAttr{MaxWR: 10, Limit: 4})
	post := func(first, n int, cause error) {
		t.Helper()
		if err := s.PostRecv(receives(first, n)...); cause != nil {
			wantRefused(t, "post", err, cause)
		} else if err != nil {
			t.Error(err)
		}
	}
	post(1, 10, nil)
	post(11, 1, rnic.ErrQueueFull)
	if err := s.Resize(30); err != nil {
		t.Fatal(err)
	}
	post(11, 20, nil)
	post(31, 1, rnic.ErrQueueFull)
	wantRefused(t, "fewer than there are", s.Resize(29), nil, "30 receives")
	wantLimit(t, "more than the quota", s.Resize(51), pd.RecvWRs)
	for _, n := range []int{-1, 0, 101} {
		wantRefused(t, "out of range", s.Resize(n), nil, "1 to 100")
	}
	if a, held := s.Attr(), l.dev.Held(pd.RecvWRs); a.MaxWR != 30 || held != 30 || s.Len() != 30 {
		t.Errorf("%+v; %d are held, %d posted", a, held, s.Len())
	}
	empty := l.srq(p, rnic.SRQAttr{MaxWR: 10, Limit: 4})
	wantRefused(t, "below the limit", empty.Resize(3), nil, "limit")
	if err := empty.Resize(4); err != nil {
		t.Error(err)
	}
	wantRefused(t, "limit above MaxWR", empty.ArmLimit(5), nil, "0 to MaxWR, 4")
	for _, q := range []*rnic.SRQ{s, empty} {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		wantRefused(t, "closed", q.Resize(5), rnic.ErrClosed)
	}
	if n := l.dev.Held(pd.RecvWRs); n != 0 {
		t.Errorf("%d are held", n)
	}
}

// The bounds of a shared receive queue's attributes are allowed themselves.
func TestSharedReceiveQueueOfTheLeastAndTheGreatestSize(t *testing.T) {
	l := newLab(t, rnic.Config{MaxWR: 100})
	s := l.srq(l.domain(), rnic.SRQAttr{MaxWR: 1, MaxSGE: 1, Limit: 1})
	want := rnic.SRQAttr{MaxWR: 1, MaxSGE: 1, Limit: 1}
	if a := s.Attr(); a != want {
		t.Errorf("%+v; want %+v", a, want)
	}
	resize := func(n int) {
		t.Helper()
		if err := s.Resize(n); err != nil {
			t.Error(err)
		}
		if err := s.ArmLimit(n); err != nil {
			t.Error(err)
		}
		fill(t, s, receives(0, n-s.Len())...)
		wantRefused(t, "one more", s.PostRecv(receives(0, 1)...), rnic.ErrQueueFull)
		if a := s.Attr(); a.MaxWR != n || s.Len() != n {
			t.Errorf("%+v, %d receives; want %d", a, s.Len(), n)
		}
	}
	resize(1)
	resize(1) // while it is full
	resize(100)
	resize(100)
}
