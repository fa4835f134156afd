package rnic_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestWhoWaitsReceivesItself(t *testing.T) {
	w := new(witness)
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		for i := range 50 {
			p.B.Recv(t, receives(i, 1)...)
			b := drives(t.Context(), t, p.B.QP, p.B.RecvCQ)
			p.A.Send(t, empties(i, 1, 0)...)
			b.want(t, uint64(i))
			rnictest.Want(t, p.A.SendCQ, uint64(i))
		}
		w.want(t, map[string]int{"Wait": 50})
	}, w.options(polled))
}

func TestWhoPollsReceivesItself(t *testing.T) {
	w := new(witness)
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		freed(t, p.B.QP, p.B.RecvCQ)
		for i := range 50 {
			p.B.Recv(t, receives(i, 1)...)
			p.A.Send(t, empties(i, 1, 0)...)
			synctest.Wait()
			var wcs [1]rnic.WC
			if n := p.B.RecvCQ.Poll(wcs[:]); n != 1 || wcs[0].ID != uint64(i) || wcs[0].Err() != nil {
				t.Fatalf("message %d: %d completions, %+v", i, n, wcs[0])
			}
			wantReceiver(t, p.B.QP, "nobody")
		}
		w.want(t, map[string]int{"Poll": 50})
	}, w.options(polled))
}

// A program that polls now and then does not get the role: its peer would be
// served in between only after a while.
func TestWhoPollsSeldomIsNotGivenTheRole(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		var wcs [1]rnic.WC
		for range 200 {
			p.B.RecvCQ.Poll(wcs[:])
			time.Sleep(50 * time.Microsecond)
			wantReceiver(t, p.B.QP, "goroutine")
		}
	}, polled)
}

// An RNIC works while its program does something else.
func TestPeerIsServedWhileTheProgramStaysAway(t *testing.T) {
	ways := map[string]func(t *testing.T, p *rnictest.Pair){
		"after a Wait": func(t *testing.T, p *rnictest.Pair) {
			p.B.Recv(t, receives(1, 1)...)
			b := drives(t.Context(), t, p.B.QP, p.B.RecvCQ)
			p.A.Send(t, empties(1, 1, 0)...)
			b.want(t, 1)
			rnictest.Want(t, p.A.SendCQ, 1)
		},
		"after a Wait that was given up": func(t *testing.T, p *rnictest.Pair) {
			ctx, cancel := context.WithCancel(t.Context())
			b := drives(ctx, t, p.B.QP, p.B.RecvCQ)
			cancel()
			<-b.done
		},
		"after polling": func(t *testing.T, p *rnictest.Pair) { freed(t, p.B.QP, p.B.RecvCQ) },
		"after polling for an empty slice": func(_ *testing.T, p *rnictest.Pair) {
			spin(p.B.RecvCQ)
			p.B.RecvCQ.Poll(nil)
		},
	}
	for name, before := range ways {
		t.Run(name, func(t *testing.T) {
			w := new(witness)
			rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
				target := p.B.Register(t, pattern(100, 1), everyRight)
				sink := p.A.Register(t, make([]byte, 100), rnic.LocalWrite)
				before(t, p)
				if got := rnic.Receiver(p.B.QP); got != "nobody" {
					t.Fatalf("the receiver is %q", got)
				}
				w.want(t, maps.Clone(w.by)) // whatever came until now
				for i := range 3 {
					start := time.Now()
					p.A.Send(t,
						rnic.SendWR{ID: 8, Op: rnic.OpWrite, SGL: []rnic.SGE{sink.SGE(0, 100)}, Remote: target.Remote(0)},
						rnic.SendWR{ID: 9, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 100)}, Remote: target.Remote(0)},
					)
					rnictest.Want(t, p.A.SendCQ, 8)
					rnictest.Want(t, p.A.SendCQ, 9)
					d := time.Since(start)
					if d > time.Millisecond || i > 0 && d != 0 {
						t.Errorf("Read %d was answered after %v", i, d)
					}
				}
				w.want(t, map[string]int{"goroutine": 6})
				wantReceiver(t, p.B.QP, "goroutine")
			}, w.options(polled))
		})
	}
}

// Who receives a Read answers it, whatever it is waiting or looking for itself.
func TestWhoReceivesAnswersTheReadsOfThePeer(t *testing.T) {
	w := new(witness)
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		target := p.B.Register(t, pattern(100, 1), everyRight)
		sink := p.A.Register(t, make([]byte, 100), rnic.LocalWrite)
		read := rnic.SendWR{ID: 9, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 100)}, Remote: target.Remote(0)}
		add := rnic.SendWR{ID: 9, Op: rnic.OpFetchAdd, Remote: target.Remote(0)}
		p.B.Recv(t, receives(1, 1)...)
		b := drives(t.Context(), t, p.B.QP, p.B.RecvCQ)
		for range 5 {
			p.A.Send(t, read, add)
			a := waits(t.Context(), p.A.SendCQ)
			a.want(t, 9)
			a = waits(t.Context(), p.A.SendCQ)
			a.want(t, 9)
			b.stillWaits(t)
			wantReceiver(t, p.B.QP, "driver")
		}
		w.want(t, map[string]int{"Wait": 10})
		p.A.Send(t, empties(1, 1, rnic.FlagUnsignaled)...)
		b.want(t, 1)
		freed(t, p.B.QP, p.B.RecvCQ)
		clear(w.by)
		for range 5 {
			p.A.Send(t, read)
			a := waits(t.Context(), p.A.SendCQ)
			synctest.Wait()
			var wcs [1]rnic.WC
			if n := p.B.RecvCQ.Poll(wcs[:]); n != 0 {
				t.Errorf("%+v", wcs[0])
			}
			a.want(t, 9)
		}
		w.want(t, map[string]int{"Poll": 5})
	}, w.options(polled))
}

// The role stays with a program as long as it comes back for it in time.
func TestRoleStaysWithAProgramThatComesBack(t *testing.T) {
	w := new(witness)
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		freed(t, p.B.QP, p.B.RecvCQ)
		var wcs [1]rnic.WC
		for i := range 100 {
			time.Sleep(60 * time.Microsecond)
			p.B.Recv(t, receives(i, 1)...)
			p.A.Send(t, empties(i, 1, 0)...)
			synctest.Wait()
			for p.B.RecvCQ.Poll(wcs[:]) == 0 {
				t.Fatalf("message %d is not there", i)
			}
		}
		w.want(t, map[string]int{"Poll": 100})
	}, w.options(polled))
}

// A queue that is armed fires although nobody polls or waits any more.
func TestArmedQueueFiresWhoeverHasReceived(t *testing.T) {
	for _, armed := range []string{"the receive queue", "the send queue"} {
		for name, before := range map[string]func(t *testing.T, p *rnictest.Pair) (after func()){
			"a waiter": func(t *testing.T, p *rnictest.Pair) func() {
				b := drives(t.Context(), t, p.B.QP, p.B.RecvCQ)
				return func() { b.want(t, 1) }
			},
			"a poller": func(t *testing.T, p *rnictest.Pair) func() {
				freed(t, p.B.QP, p.B.RecvCQ)
				return func() {}
			},
			"a poller of the other queue": func(t *testing.T, p *rnictest.Pair) func() {
				freed(t, p.B.QP, p.B.SendCQ)
				return func() {}
			},
			"the goroutine": func(*testing.T, *rnictest.Pair) func() { return func() {} },
		} {
			t.Run(armed+", after "+name, func(t *testing.T) {
				rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
					after := before(t, p)
					p.B.Recv(t, receives(1, 1)...)
					cq := p.B.RecvCQ
					if armed == "the send queue" {
						cq = p.B.SendCQ
						open(t, p.A.QP)
					}
					arm(t, cq, rnic.NextCompletion)
					wantReceiver(t, p.B.QP, "goroutine")
					spin(p.B.SendCQ) // asks in vain
					wantReceiver(t, p.B.QP, "goroutine")
					if cq == p.B.SendCQ {
						p.B.Send(t, rnic.SendWR{ID: 5, Op: rnic.OpRead})
					} else {
						p.A.Send(t, empties(1, 1, 0)...)
					}
					if !hasFired(cq) {
						t.Error("it has not fired")
					}
					if cq == p.B.SendCQ {
						p.A.Send(t, empties(1, 1, 0)...)
					}
					synctest.Wait()
					after()
					// It has fired: the role may go again.
					spin(p.B.SendCQ)
					if got := rnic.Receiver(p.B.QP); got != "nobody" {
						t.Errorf("after it has fired, the receiver is %q", got)
					}
					p.B.SendCQ.Poll(make([]rnic.WC, 1))
					wantReceiver(t, p.B.QP, "nobody")
				}, polled)
			})
		}
	}
}

// The goroutine is asked while it is in the middle of something, and no longer
// when it has done that.
func TestRoleIsTakenBackBeforeTheGoroutineHasLetGo(t *testing.T) {
	var hold, held chan struct{}
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		p.B.Recv(t, receives(1, 2)...)
		p.A.Send(t, empties(1, 1, 0)...)
		<-held
		spin(p.B.RecvCQ)
		if got := rnic.Receiver(p.B.QP); got != "asked" {
			t.Fatalf("the receiver is %q", got)
		}
		arm(t, p.B.RecvCQ, rnic.NextCompletion)
		if got := rnic.Receiver(p.B.QP); got != "goroutine" {
			t.Errorf("the receiver is %q", got)
		}
		hold <- struct{}{}
		if !hasFired(p.B.RecvCQ) {
			t.Error("it has not fired")
		}
		wantReceiver(t, p.B.QP, "goroutine")
		rnictest.Want(t, p.B.RecvCQ, 1)
		p.A.Send(t, empties(2, 1, 0)...) // the interrupt that is left over costs nothing
		<-held
		hold <- struct{}{}
		rnictest.Want(t, p.B.RecvCQ, 2)
	}, rnictest.Options{Polls: true, Device: func(side string, cfg *rnic.Config) {
		if side != "B" {
			return
		}
		hold, held = make(chan struct{}), make(chan struct{})
		cfg.Trace = func(t rnic.Trace) {
			if !t.Sent {
				held <- struct{}{}
				<-hold
			}
		}
	}})
}

// Several programs wait at one queue, of which one receives for all.
func TestNobodyWhoWaitsIsLeftBehind(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d programs, messages together %v", n, together), func(t *testing.T) {
				rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
					for round := range 20 {
						p.B.Recv(t, receives(0, n)...)
						var all []*waitingProgram
						for range n {
							all = append(all, waits(t.Context(), p.B.RecvCQ))
						}
						if round%2 > 0 { // else they meet as they come
							synctest.Wait()
						}
						if together {
							p.A.Send(t, empties(0, n, rnic.FlagUnsignaled)...)
							synctest.Wait()
						} else {
							for i := range n {
								p.A.Send(t, empties(i, 1, rnic.FlagUnsignaled)...)
								synctest.Wait()
							}
						}
						seen := map[uint64]bool{}
						for i, w := range all {
							if !w.isDone() {
								t.Fatalf("round %d: program %d still waits", round, i)
							}
							if w.err != nil || w.wc.Err() != nil {
								t.Fatalf("%v, %v", w.err, w.wc.Err())
							}
							seen[w.wc.ID] = true
						}
						if len(seen) != n {
							t.Errorf("%d messages were taken by %d programs", len(seen), n)
						}
					}
				}, polled)
			})
		}
	}
}

// When the one who receives has what it wants, another one continues for those
// who still wait, at once.
func TestAnotherWaiterTakesTheRoleOver(t *testing.T) {
	for _, same := range []bool{true, false} {
		w := new(witness)
		rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
			open(t, p.A.QP)
			for range 3 {
				p.B.Recv(t, receives(1, 1)...)
				other := p.B.SendCQ
				if same {
					p.B.Recv(t, receives(2, 1)...)
					other = p.B.RecvCQ
				}
				first := drives(t.Context(), t, p.B.QP, p.B.RecvCQ)
				second := waits(t.Context(), other)
				synctest.Wait()
				p.A.Send(t, empties(1, 1, rnic.FlagUnsignaled)...)
				if same && second.isDone() { // it was quicker
					first, second = second, first
				}
				first.want(t, 1)
				wantReceiver(t, p.B.QP, "driver")
				if same {
					p.A.Send(t, empties(2, 1, rnic.FlagUnsignaled)...)
				} else {
					p.B.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpRead})
				}
				second.want(t, 2)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.by["Wait"] < 6 {
				t.Errorf("same queue %v: received by %v", same, w.by)
			}
		}, w.options(polled))
	}
}

// A completion of the other queue, or of a request that is sent, is no less
// awaited than one that comes with a message.
func TestCompletionFromElsewhereWakesTheDriver(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		q := newQP(t, p.B.Device, p.B.PD, rnic.QPAttr{SendCQ: p.B.RecvCQ, RecvCQ: p.B.RecvCQ})
		qa := newQP(t, p.A.Device, p.A.PD, rnic.QPAttr{})
		if err := p.B.QP.Close(); err != nil { // so that the queue is that of one connection
			t.Fatal(err)
		}
		synctest.Wait() // until its link has left the queue
		p.Link(t, qa.QP, q.QP)
		open(t, qa.QP)
		for i := range uint64(20) {
			b := drives(t.Context(), t, q.QP, p.B.RecvCQ)
			q.Send(t, rnic.SendWR{ID: i, Op: rnic.OpWrite}) // completes in the poster's hands
			b.want(t, i)
		}
		// A second connection of the same queue, whose goroutine receives.
		b := drives(t.Context(), t, q.QP, p.B.RecvCQ)
		q2 := newQP(t, p.B.Device, p.B.PD, rnic.QPAttr{RecvCQ: p.B.RecvCQ})
		qa2 := newQP(t, p.A.Device, p.A.PD, rnic.QPAttr{})
		p.Link(t, qa2.QP, q2.QP)
		q2.Recv(t, receives(77, 1)...)
		qa2.Send(t, empties(1, 1, 0)...)
		b.want(t, 77)
		// Now nobody can wait at one connection only.
		b = waits(t.Context(), p.B.RecvCQ)
		synctest.Wait()
		time.Sleep(unattended)
		wantReceiver(t, q.QP, "goroutine")
		wantReceiver(t, q2.QP, "goroutine")
		q.Send(t, rnic.SendWR{ID: 5, Op: rnic.OpRead})
		b.want(t, 5)
	}, polled)
}

// The wait of a program that receives ends with its context, and only with its.
func TestContextEndsTheWaitOfADriver(t *testing.T) {
	errOver := errors.New("over")
	w := new(witness)
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		p.B.Recv(t, receives(0, 100)...)
		next := uint64(0)
		served := func() {
			t.Helper()
			b := waits(t.Context(), p.B.RecvCQ)
			p.A.Send(t, empties(int(next), 1, rnic.FlagUnsignaled)...)
			b.want(t, next)
			next++
		}
		wantEnd := func(b *waitingProgram, want error) {
			t.Helper()
			if !b.isDone() {
				t.Fatal("the wait has not ended")
			}
			if !errors.Is(b.err, want) {
				t.Errorf("%v; want %v", b.err, want)
			}
		}
		// At once, and with its cause.
		ctx, cancel := context.WithCancelCause(t.Context())
		for range 3 { // the same context again, which is alive
			b := drives(ctx, t, p.B.QP, p.B.RecvCQ)
			p.A.Send(t, empties(int(next), 1, rnic.FlagUnsignaled)...)
			b.want(t, next)
			next++
		}
		b := drives(ctx, t, p.B.QP, p.B.RecvCQ)
		cancel(errOver)
		wantEnd(b, errOver)
		wantEnd(waits(ctx, p.B.RecvCQ), errOver) // and again, when it is over
		served()
		// A deadline.
		start := time.Now()
		deadline, cancel2 := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel2()
		b = waits(deadline, p.B.RecvCQ)
		<-b.done
		if d := time.Since(start); d != 3*time.Second || !errors.Is(b.err, context.DeadlineExceeded) {
			t.Errorf("it ended after %v with %v", d, b.err)
		}
		served()
		// That of another one does not: neither an old one, nor one who only waits.
		old, cancelOld := context.WithCancel(t.Context())
		b = drives(old, t, p.B.QP, p.B.RecvCQ)
		p.A.Send(t, empties(int(next), 1, rnic.FlagUnsignaled)...)
		b.want(t, next)
		next++
		b = drives(t.Context(), t, p.B.QP, p.B.RecvCQ)
		cancelOld()
		if b.isDone() {
			t.Fatalf("the end of a context that nobody waits with has ended a wait: %v", b.err)
		}
		beside, cancelBeside := context.WithCancel(t.Context())
		c := waits(beside, p.B.RecvCQ)
		synctest.Wait()
		cancelBeside()
		wantEnd(c, context.Canceled)
		if b.isDone() {
			t.Fatalf("another program's context has ended the wait: %v", b.err)
		}
		// When the driver goes, the one beside it continues.
		driving, cancelDriving := context.WithCancel(t.Context())
		p.A.Send(t, empties(int(next), 1, rnic.FlagUnsignaled)...)
		b.want(t, next)
		next++
		b = drives(driving, t, p.B.QP, p.B.RecvCQ)
		c = waits(t.Context(), p.B.RecvCQ)
		synctest.Wait()
		cancelDriving()
		wantEnd(b, context.Canceled)
		wantReceiver(t, p.B.QP, "driver")
		p.A.Send(t, empties(int(next), 1, rnic.FlagUnsignaled)...)
		c.want(t, next)
		next++
		w.mu.Lock()
		if w.by["goroutine"] > 2 {
			t.Errorf("messages were received by %v", w.by)
		}
		w.mu.Unlock()
		// Nobody is left: the goroutine continues.
		time.Sleep(unattended)
		wantReceiver(t, p.B.QP, "goroutine")
	}, w.options(polled))
}

// One Poll looks after 8 links, in turn.
func TestPollLooksAfterManyLinksInTurn(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		const n = 21
		as, bs := []*rnic.QP{p.A.QP}, []*rnic.QP{p.B.QP}
		for len(bs) < n {
			a, b := newQP(t, p.A.Device, p.A.PD, rnic.QPAttr{}), newQP(t, p.B.Device, p.B.PD, rnic.QPAttr{SendCQ: p.B.SendCQ, RecvCQ: p.B.RecvCQ})
			p.Link(t, a.QP, b.QP)
			as, bs = append(as, a.QP), append(bs, b.QP)
		}
		for round := range 3 {
			for i, b := range bs {
				if err := b.PostRecv(receives(i, 1)...); err != nil {
					t.Fatal(err)
				}
			}
			for range 10 {
				spin(p.B.RecvCQ)
			}
			for i, b := range bs {
				if got := rnic.Receiver(b); got != "nobody" {
					t.Fatalf("the receiver of queue pair %d is %q", i, got)
				}
			}
			for i, a := range as {
				postSend(t, a, empties(i, 1, 0)...)
			}
			synctest.Wait()
			seen := map[uint64]bool{}
			polls := 0
			for ; len(seen) < n && polls < n; polls++ {
				var wcs [n]rnic.WC
				got := p.B.RecvCQ.Poll(wcs[:])
				if got > 8 {
					t.Errorf("one Poll has received from %d queue pairs", got)
				}
				for _, wc := range wcs[:got] {
					seen[wc.ID] = true
				}
			}
			if len(seen) != n || polls > 5 {
				t.Errorf("round %d: after %d polls there are messages of %d queue pairs; want %d", round, polls, len(seen), n)
			}
			time.Sleep(unattended)
			for i, b := range bs {
				if got := rnic.Receiver(b); got != "goroutine" {
					t.Errorf("after the polling, the receiver of queue pair %d is %q", i, got)
				}
			}
		}
	}, polled)
}
