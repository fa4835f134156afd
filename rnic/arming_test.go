package rnic_test

import (
	"testing"
	"testing/synctest"

	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// hasFired reports whether a queue has fired since it was asked last. All that
// is on its way arrives before.
func hasFired(cq *rnic.CQ) bool {
	synctest.Wait()
	select {
	case <-cq.Fired():
		return true
	default:
		return false
	}
}

func arm(t *testing.T, cq *rnic.CQ, what rnic.Notify) {
	t.Helper()
	if err := cq.Arm(what); err != nil {
		t.Fatal(err)
	}
}

// The table of draft-hilland-rddp-verbs §8.2.5: what fires a queue that is
// armed.
func TestArmedQueueFiresAtTheKindItIsArmedFor(t *testing.T) {
	send := func(op rnic.Opcode, flags rnic.Flags) func(*testing.T, *rnictest.Pair) {
		return func(t *testing.T, p *rnictest.Pair) {
			p.B.Recv(t, receives(1, 1)...)
			p.A.Send(t, rnic.SendWR{Op: op, Flags: flags})
		}
	}
	abort := func(t *testing.T, p *rnictest.Pair) {
		p.B.Recv(t, receives(1, 1)...)
		p.B.QP.Abort()
	}
	for _, tt := range []struct {
		name      string
		do        func(*testing.T, *rnictest.Pair)
		any, only bool // NextCompletion and NextSolicited fire
	}{
		{"Send", send(rnic.OpSend, 0), true, false},
		{"Send with SE", send(rnic.OpSend, rnic.FlagSolicited), true, true},
		{"Immediate Data", send(rnic.OpImmediate, 0), true, false},
		{"Immediate Data with SE", send(rnic.OpImmediate, rnic.FlagSolicited), true, true},
		{"Write with Immediate", send(rnic.OpWriteImmediate, 0), true, false},
		{"Write with Immediate with SE", send(rnic.OpWriteImmediate, rnic.FlagSolicited), true, true},
		{"a completion in error", abort, true, true},
		{"Fire", func(_ *testing.T, p *rnictest.Pair) { door.Fire(p.B.RecvCQ) }, true, true},
		{"nothing", func(*testing.T, *rnictest.Pair) {}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for what, want := range map[rnic.Notify]bool{rnic.NextCompletion: tt.any, rnic.NextSolicited: tt.only} {
				onBoth(t, func(t *testing.T, p *rnictest.Pair) {
					arm(t, p.B.RecvCQ, what)
					tt.do(t, p)
					if got := hasFired(p.B.RecvCQ); got != want {
						t.Errorf("armed for %d: fired: %v", what, got)
					}
				})
			}
		})
	}
}

func TestSuccessOfASendIsNotSolicited(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		p.B.Recv(t, receives(1, 2)...)
		arm(t, p.A.SendCQ, rnic.NextSolicited)
		p.A.Send(t, empties(1, 1, rnic.FlagSolicited)...) // asks for an event at the peer
		if hasFired(p.A.SendCQ) {
			t.Error("fired")
		}
		arm(t, p.A.SendCQ, rnic.NextCompletion)
		p.A.Send(t, empties(1, 1, 0)...)
		if !hasFired(p.A.SendCQ) {
			t.Error("not fired")
		}
	})
}

func TestArmingIsForOneCompletion(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		cq := p.B.RecvCQ
		p.B.Recv(t, receives(1, 20)...)
		send := func() { p.A.Send(t, empties(0, 1, rnic.FlagSolicited)...) }

		send()
		if hasFired(cq) {
			t.Error("fired without being armed")
		}
		for _, what := range []rnic.Notify{rnic.NextCompletion, rnic.NextSolicited} {
			arm(t, cq, what)
			if hasFired(cq) {
				t.Error("fired at completions that were there before")
			}
			send()
			if !hasFired(cq) {
				t.Error("not fired at a new completion")
			}
			send()
			if hasFired(cq) {
				t.Error("fired a second time")
			}
		}
		// Two completions before anybody looks fire it once.
		arm(t, cq, rnic.NextCompletion)
		send()
		send()
		if !hasFired(cq) || hasFired(cq) {
			t.Error("not fired exactly once")
		}
		// A firing that nobody fetched does not outlive the next arming.
		arm(t, cq, rnic.NextCompletion)
		send()
		synctest.Wait()
		arm(t, cq, rnic.NextCompletion)
		if hasFired(cq) {
			t.Error("fired at once")
		}
		send()
		if !hasFired(cq) {
			t.Error("not fired at a new completion")
		}
	})
}

// Where it is asked for, arming tells of what is in the queue already, of its kind.
func TestArmingFiresForWhatIsQueuedIfAsked(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		cq := labOf(t, p.B).cq(departingCQ(rnic.CQAttr{}, policy.FireForQueued))
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{}), labOf(t, p.B).qpOn(p.B.PD, cq)
		p.Link(t, a, b)
		wants := func(what string, kind rnic.Notify, want bool) {
			t.Helper()
			arm(t, cq, kind)
			if got := hasFired(cq); got != want {
				t.Errorf("%s, armed for %d: fired: %v", what, kind, got)
			}
		}
		send := func(flags rnic.Flags) {
			t.Helper()
			if err := b.PostRecv(rnic.RecvWR{}); err != nil {
				t.Fatal(err)
			}
			if err := a.PostSend(empties(1, 1, flags)...); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		wants("nothing", rnic.NextSolicited, false)
		send(0)
		wants("a Send", rnic.NextSolicited, false)
		wants("a Send", rnic.NextCompletion, true)
		// An event says that there is a completion, and a program that arms before it
		// polls is told of that one once.
		wants("the same Send", rnic.NextCompletion, false)
		cq.Poll(nil) // takes nothing
		wants("the same Send", rnic.NextCompletion, false)
		send(0)
		if !hasFired(cq) {
			t.Error("not fired for a second Send")
		}
		send(0)
		wants("a third Send", rnic.NextCompletion, true)
		cq.Poll(make([]rnic.WC, 1))
		wants("what a poll has left", rnic.NextCompletion, true)
		send(rnic.FlagSolicited)
		wants("a Send with SE", rnic.NextSolicited, true)
		send(0)
		arm(t, cq, rnic.NextCompletion) // nobody looks whether it has fired
		wants("what nobody was told of", rnic.NextCompletion, true)
		cq.Poll(make([]rnic.WC, 8))
		wants("all polled", rnic.NextCompletion, false)
	})
}

// A program that takes an event, arms, and then polls has one event for one completion.
func TestArmingBehindAnEventTellsOfItsCompletionOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		l := labOf(t, p.B)
		ch := l.channel()
		cq := l.cq(departingCQ(rnic.CQAttr{Channel: ch}, policy.FireForQueued|policy.NotifyEach))
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{}), l.qpOn(p.B.PD, cq)
		p.Link(t, a, b)
		arm(t, cq, rnic.NextCompletion)
		for range 3 {
			if err := b.PostRecv(rnic.RecvWR{}); err != nil {
				t.Fatal(err)
			}
			if err := a.PostSend(empties(1, 1, 0)...); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if ch.Poll() != cq {
				t.Fatal("no event for a completion")
			}
			arm(t, cq, rnic.NextCompletion)
			if ch.Poll() != nil {
				t.Error("two events for a completion")
			}
			cq.Poll(make([]rnic.WC, 2))
		}
	})
}

func TestArmingForAnyIncludesSolicited(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		cq := p.B.RecvCQ
		p.B.Recv(t, receives(1, 4)...)
		for _, order := range [][]rnic.Notify{
			{rnic.NextCompletion, rnic.NextSolicited},
			{rnic.NextSolicited, rnic.NextCompletion},
		} {
			for _, what := range order {
				arm(t, cq, what)
			}
			p.A.Send(t, empties(0, 1, 0)...)
			if !hasFired(cq) {
				t.Errorf("armed for %v: not fired", order)
			}
		}
		for _, what := range []rnic.Notify{0, 3} {
			wantRefused(t, "arm", cq.Arm(what), nil, "NextCompletion")
		}
	})
}
