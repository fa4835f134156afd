package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ddp"
	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// patient makes two queue pairs, B's with messages that wait for receives.
func patient(t *testing.T, p *rnictest.Pair, attr rnic.QPAttr) (a, b *rnic.QP) {
	t.Helper()
	if attr.RecvWait == 0 {
		attr.RecvWait = time.Hour
	}
	attr.RecvCQ = p.B.RecvCQ
	a, b = labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{SendCQ: p.A.SendCQ}), labOf(t, p.B).qp(p.B.PD, attr)
	p.Link(t, a, b)
	return a, b
}

// waitingSizes are of messages of one segment and of several.
var waitingSizes = []int{16, 100_000, 0, 300_000, 16}

// sendWithoutReceives sends messages for which B has no receive.
func sendWithoutReceives(t *testing.T, p *rnictest.Pair, a *rnic.QP) (want [][]byte) {
	t.Helper()
	for i, n := range waitingSizes {
		mem := bytes.Repeat([]byte{byte(i + 1)}, n)
		want = append(want, mem)
		wr := rnic.SendWR{ID: uint64(i), Op: rnic.OpSend}
		if n > 0 {
			mr := p.A.Register(t, mem, 0)
			wr.SGL = []rnic.SGE{mr.SGE(0, n)}
		}
		postSend(t, a, wr)
	}
	synctest.Wait()
	return want
}

// A queue pair that asks for no wait has the one of its policy, if that has one, and else
// none; what it asks for itself goes before.
func TestMessageWaitsAsLongAsThePolicySays(t *testing.T) {
	for _, c := range []struct{ policy, attr, want time.Duration }{
		{0, 0, 0},
		{2 * time.Second, 0, 2 * time.Second},
		{2 * time.Second, time.Second, time.Second},
		{0, time.Second, time.Second},
	} {
		t.Run(fmt.Sprintf("%v, %v", c.policy, c.attr), func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				attr := rnic.QPAttr{RecvWait: c.attr}
				door.SetPolicyOfQP(&attr, policy.Lenient{Wait: c.policy})
				a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{}), labOf(t, p.B).qp(p.B.PD, attr)
				p.Link(t, a, b)
				start, done := time.Now(), b.Done()
				postSend(t, a, empties(1, 1, 0)...)
				<-done
				if d := time.Since(start); d < c.want || d > c.want+time.Second/2 {
					t.Errorf("the stream ended after %v; want %v", d, c.want)
				}
			})
		})
	}
}

func TestMessageWaitsForAReceive(t *testing.T) {
	for _, program := range []string{"away", "polls", "waits"} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, shared %v", program, shared), func(t *testing.T) {
				onBoth(t, func(t *testing.T, p *rnictest.Pair) {
					attr := rnic.QPAttr{}
					if shared {
						attr.SRQ = labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})
					}
					a, b := patient(t, p, attr)
					if program == "polls" {
						spin(p.B.RecvCQ)
					}
					want := sendWithoutReceives(t, p, a)
					if program == "polls" {
						spin(p.B.RecvCQ)
					}
					for i, data := range want {
						wantState(t, b, rnic.RTS)
						wantCompletions(t, p.B.RecvCQ)
						var w *waitingProgram
						if program == "waits" {
							w = waits(t.Context(), p.B.RecvCQ)
							synctest.Wait()
						}
						mem := make([]byte, len(data)+1)
						mr := p.B.Register(t, mem, rnic.LocalWrite)
						wr := rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{mr.SGE(0, len(mem))}}
						if shared {
							fill(t, attr.SRQ, wr)
						} else if err := b.PostRecv(wr); err != nil {
							t.Fatal(err)
						}
						if w != nil {
							w.want(t, uint64(i))
						} else {
							rnictest.Want(t, p.B.RecvCQ, uint64(i))
						}
						if !bytes.Equal(mem[:len(data)], data) {
							t.Errorf("message %d arrived changed", i)
						}
					}
				})
			})
		}
	}
}

// Of several streams whose messages wait for a receive of the same queue, one gets it,
// and the others wait on.
func TestMessagesOfSeveralStreamsWaitForOneReceive(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		const streams, each = 8, 100
		srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})
		var to []*rnic.QP
		for range streams {
			a, b := patient(t, p, rnic.QPAttr{SRQ: srq})
			for i := range uint64(each) {
				postSend(t, a, rnic.SendWR{ID: i, Op: rnic.OpSend})
			}
			to = append(to, b)
		}
		synctest.Wait()
		for i := range uint64(streams * each) {
			fill(t, srq, rnic.RecvWR{ID: i})
			rnictest.Want(t, p.B.RecvCQ, i)
		}
		for _, b := range to {
			wantState(t, b, rnic.RTS)
		}
	})
}

func TestMessageWaitsForAReceiveOnlySoLong(t *testing.T) {
	for _, program := range []string{"away", "waits"} {
		t.Run(program, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				const wait = 3 * time.Second
				a, b := patient(t, p, rnic.QPAttr{RecvWait: wait})
				if program == "waits" {
					waits(t.Context(), p.B.RecvCQ)
					synctest.Wait()
				}
				sendWithoutReceives(t, p, a)
				time.Sleep(wait - time.Millisecond)
				wantState(t, b, rnic.RTS)
				time.Sleep(10 * time.Millisecond)
				wantState(t, b, rnic.Error)
				var e *rdmap.Error
				if !errors.As(b.Err(), &e) || e.Code != rdmap.TermCode((&ddp.Error{Code: ddp.CodeMSNNoBuffer}).TermWord()) {
					t.Errorf("the stream ended with %v", b.Err())
				}
			})
		})
	}
}

// Each message waits for that long, however long the one before it has waited.
func TestEachMessageWaitsAnew(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		const wait = 3 * time.Second
		a, b := patient(t, p, rnic.QPAttr{RecvWait: wait})
		postSend(t, a, empties(1, 4, 0)...)
		for id := range 3 {
			synctest.Wait()
			time.Sleep(wait - 100*time.Millisecond)
			wantState(t, b, rnic.RTS)
			if err := b.PostRecv(receives(id, 1)...); err != nil {
				t.Fatal(err)
			}
			rnictest.Want(t, p.B.RecvCQ, uint64(id))
		}
		wantState(t, b, rnic.RTS)
		time.Sleep(wait)
		wantState(t, b, rnic.Error)
	})
}

// A logHook calls a function with what is logged.
type logHook struct {
	slog.Handler
	f func(message string)
}

func (h logHook) Enabled(context.Context, slog.Level) bool { return true }

func (h logHook) Handle(_ context.Context, r slog.Record) error {
	h.f(r.Message)
	return nil
}

// onWait calls f when the log of B says that a message waits for a receive.
func onWait(f func()) rnictest.Options {
	return rnictest.Options{Device: func(side string, cfg *rnic.Config) {
		if side == "B" {
			cfg.Logger = slog.New(logHook{slog.DiscardHandler, func(message string) {
				if strings.Contains(message, "waits for a receive") {
					f()
				}
			}})
		}
	}}
}

// The log says once for each stream that a message waits, and nothing if none does.
func TestWaitForAReceiveIsLoggedOnce(t *testing.T) {
	var logged atomic.Int32
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		for range 2 {
			logged.Store(0)
			a, b := patient(t, p, rnic.QPAttr{})
			if err := b.PostRecv(receives(0, 1)...); err != nil {
				t.Fatal(err)
			}
			postSend(t, a, empties(0, 1, 0)...)
			rnictest.Want(t, p.B.RecvCQ, 0)
			if n := logged.Load(); n != 0 {
				t.Errorf("it is logged %d times that a message waits that has a receive", n)
			}
			postSend(t, a, empties(1, 5, 0)...)
			for id := range 5 {
				synctest.Wait()
				time.Sleep(time.Second)
				if err := b.PostRecv(receives(1+id, 1)...); err != nil {
					t.Fatal(err)
				}
				rnictest.Want(t, p.B.RecvCQ, uint64(1+id))
			}
			if n := logged.Load(); n != 1 {
				t.Errorf("it is logged %d times that messages wait; want 1", n)
			}
		}
	}, onWait(func() { logged.Add(1) }))
}

// A receive that is posted after the queue was found empty, and before the message
// begins to wait, is not overlooked.
func TestReceivePostedJustBeforeTheWaitIsUsed(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared %v", shared), func(t *testing.T) {
			var post func()
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				attr := rnic.QPAttr{RecvWait: time.Hour}
				if shared {
					attr.SRQ = labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{})
				}
				a, b := patient(t, p, attr)
				post = func() {
					err := error(nil)
					if shared {
						err = attr.SRQ.PostRecv(receives(1, 1)...)
					} else {
						err = b.PostRecv(receives(1, 1)...)
					}
					if err != nil {
						t.Error(err)
					}
				}
				start := time.Now()
				postSend(t, a, empties(1, 1, 0)...)
				rnictest.Want(t, p.B.RecvCQ, 1)
				if d := time.Since(start); d >= time.Hour {
					t.Errorf("the message waited for %v", d)
				}
			}, onWait(func() { post() }))
		})
	}
}

// A peer that has had its share of an SRQ does not wait for more of it: its stream
// ends at once, and one event says why.
func TestPeerBeyondItsShareDoesNotWait(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		const share = 2
		srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{PerQP: share})
		a, b := patient(t, p, rnic.QPAttr{SRQ: srq, RecvWait: time.Hour})
		fill(t, srq, receives(1, 5)...)
		start, done := time.Now(), b.Done()
		postSend(t, a, empties(1, share+1, 0)...)
		<-done
		if d := time.Since(start); d >= time.Hour {
			t.Errorf("the stream ended after %v", d)
		}
		wantEvents(t, p.B.Device, rnic.EventSRQShare, rnic.EventRemoteOperation)
		wantCompletions(t, p.B.RecvCQ, result{1, ok}, result{2, ok})
		if n := srq.Len(); n != 5-share {
			t.Errorf("%d receives are left; want %d", n, 5-share)
		}
	})
}

// The last receive of a share is waited for as any other.
func TestPeerWaitsForTheLastReceiveOfItsShare(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		srq := labOf(t, p.B).srq(p.B.PD, rnic.SRQAttr{PerQP: 2})
		a, b := patient(t, p, rnic.QPAttr{SRQ: srq})
		fill(t, srq, receives(1, 1)...)
		postSend(t, a, empties(1, 2, 0)...)
		wantState(t, b, rnic.RTS)
		fill(t, srq, receives(2, 1)...)
		wantState(t, b, rnic.RTS)
		wantEvents(t, p.B.Device)
		wantCompletions(t, p.B.RecvCQ, result{1, ok}, result{2, ok})
	})
}

// What ends the stream does not wait until somebody posts a receive.
func TestStreamEndsWhileAMessageWaits(t *testing.T) {
	for name, end := range map[string]func(a, b *rnic.QP) error{
		"close":      func(_, b *rnic.QP) error { return b.Close() },
		"abort":      func(_, b *rnic.QP) error { b.Abort(); return nil },
		"disconnect": func(_, b *rnic.QP) error { return b.Disconnect(context.Background()) },
		"disconnect behind a Read": func(_, b *rnic.QP) error { // whose response is behind the message
			if err := b.PostSend(rnic.SendWR{Op: rnic.OpRead}); err != nil {
				return err
			}
			synctest.Wait()
			return b.Disconnect(context.Background())
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				a, b := patient(t, p, rnic.QPAttr{RecvWait: time.Hour})
				sendWithoutReceives(t, p, a)
				start, done := time.Now(), b.Done()
				_ = end(a, b) // what is not placed makes it an end that is not graceful
				<-done
				if d := time.Since(start); d >= rnic.DefaultCloseTimeout {
					t.Errorf("the stream ended after %v, when time had run out", d)
				}
				wantState(t, b, rnic.Error)
			})
		})
	}
}

// A ready-to-receive indication is not for the program.
func TestReadyToReceiveWaitsForNoReceive(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		a := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{RecvCQ: p.A.RecvCQ})
		b := labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{SendCQ: p.B.SendCQ, RecvWait: time.Hour})
		mem := make([]byte, 8)
		mr := p.A.Register(t, mem, rnic.LocalWrite)
		if err := a.PostRecv(rnic.RecvWR{ID: 1, SGL: []rnic.SGE{mr.SGE(0, 8)}}); err != nil {
			t.Fatal(err)
		}
		rtr := rnic.ConnParam{MPA: &mpa.Config{PeerToPeer: true, RTR: mpa.RTRSend}}
		if err := p.TryLink(a, b, rtr, rtr); err != nil {
			t.Fatal(err)
		}
		postSend(t, b, rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: []byte("at once")})
		if wc := rnictest.Want(t, p.A.RecvCQ, 1); wc.ByteLen != 7 {
			t.Errorf("%d octets", wc.ByteLen)
		}
	})
}
