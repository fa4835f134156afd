package drive

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPosterTransmitsIfNobodyDoes(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, _ *place) {
		f.post(3)
		if f.sent != 3 { // when the call returns
			t.Errorf("%d were sent", f.sent)
		}
		f.wantRoles(t, "idle", "goroutine")
	})
}

func TestPostDuringAPassIsSeenTo(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, _ *place) {
		passes := 0
		f.onPass = func() {
			if passes++; passes < 4 {
				f.post(1) // too late for this pass, as far as the driver knows
			}
		}
		f.post(1)
		if passes != 4 || f.sent != 4 {
			t.Errorf("%d were sent in %d passes; want 4 in 4", f.sent, passes)
		}
	})
}

func TestGoroutineGoesOnForAPoster(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(f *fake)
		passes  int // of the poster
	}{
		"that finds no room":   {func(f *fake) { f.room = 1 }, 1},
		"after so many passes": {func(f *fake) { f.endless = true }, inlinePasses},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake, _ *place) {
				c.prepare(f)
				passes := 0
				gate := make(chan struct{})
				f.onPass = func() {
					if passes++; passes > c.passes { // the poster would wait forever
						<-gate
						f.mu.Lock()
						f.endless = false
						f.mu.Unlock()
					}
				}
				f.post(2)
				f.wantRoles(t, "busy", "goroutine")
				if f.inline != c.passes {
					t.Errorf("the poster has made %d passes; want %d", f.inline, c.passes)
				}
				f.make(5)
				close(gate)
				f.wantRoles(t, "idle", "goroutine")
				if f.sent != 2 {
					t.Errorf("%d were sent", f.sent)
				}
			})
		})
	}
}

func TestReceiverTransmitsWhatItHasBroughtAbout(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		answer := func() {
			f.mu.Lock()
			f.queued++
			f.mu.Unlock()
			f.Wake()
		}
		answer()
		f.arrive(1)
		synctest.Wait()
		if f.sent != 1 {
			t.Error("the goroutine has not transmitted")
		}
		p.spin()
		f.wantRoles(t, "idle", "free")
		answer()
		f.arrive(1)
		if p.poll(); f.sent != 2 {
			t.Error("the poller has not transmitted")
		}
	})
}

func TestProgramReceivesItself(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		f.arrive(1)
		f.wantTaken(t, "goroutine", 1)
		p.spin()
		f.wantRoles(t, "idle", "free")
		f.arrive(2)
		f.wantTaken(t, "program", 0)
		if !p.poll() {
			t.Error("a poll finds nothing")
		}
		f.wantTaken(t, "program", 2)
		p.poll()
		w := waiting(t.Context(), p)
		f.wantRoles(t, "idle", "program")
		f.arrive(1)
		wantDone(t, w, nil)
		f.wantTaken(t, "program", 3)
		f.wantTaken(t, "goroutine", 1)
	})
}

// The watch gives the role back when no program comes for it any more.
func TestWatchGivesTheRoleBack(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		p.spin()
		start := time.Now()
		for time.Since(start) < longestAway {
			f.wantRoles(t, "idle", "free")
			p.poll()
			time.Sleep(away / 3)
		}
		f.arrive(1)
		time.Sleep(away)
		f.wantTaken(t, "goroutine", 0) // it has learned to be patient
		time.Sleep(forAWhile)
		f.wantTaken(t, "goroutine", 1)
		p.take()
		f.wantRoles(t, "idle", "goroutine")

		ctx, cancel := context.WithCancel(t.Context())
		w := waiting(ctx, p)
		time.Sleep(forAWhile)
		f.wantRoles(t, "idle", "program") // who waits is not away
		cancel()
		wantDone(t, w, context.Canceled)
		f.wantRoles(t, "idle", "free")
		time.Sleep(forAWhile)
		f.wantRoles(t, "idle", "goroutine")
	})
}

// However the role is recalled, and wherever it is then, the goroutine gets it.
func TestRoleIsRecalledFromEverywhere(t *testing.T) {
	for name, bring := range map[string]func(t *testing.T, f *fake, p *place){
		"goroutine": func(*testing.T, *fake, *place) {},
		"free":      func(_ *testing.T, _ *fake, p *place) { p.spin() },
		"program":   func(t *testing.T, _ *fake, p *place) { waiting(t.Context(), p) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake, p *place) {
				p.news = 0
				bring(t, f, p)
				f.wantRoles(t, "idle", name)
				f.armed.Store(true)
				p.group.Recall()
				f.wantRoles(t, "idle", "goroutine")
				p.spin() // asks in vain
				f.wantRoles(t, "idle", "goroutine")
				f.arrive(1)
				f.wantTaken(t, "goroutine", 1)
				f.armed.Store(false)
				if name == "program" { // which has got what has come, by the goroutine
					return
				}
				p.take()
				p.spin()
				f.wantRoles(t, "idle", "free")
			})
		})
		t.Run(name+", and ends", func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake, p *place) {
				bring(t, f, p)
				f.End()
				if !f.Ending() {
					t.Error("it is not ending")
				}
				f.wantRoles(t, "idle", "kept")
				p.spin()
				f.wantRoles(t, "idle", "kept")
				f.arrive(1)
				f.wantTaken(t, "goroutine", 1)
				if name != "program" {
					p.take()
				}
			})
		})
	}
}

// In every order: the role is recalled, or the connection ends, while a program is in the
// middle of receiving.
func TestRoleIsRecalledWhileAProgramReceives(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		p.spin()
		if !f.take() {
			t.Fatal("the role is not free")
		}
		if f.take() {
			t.Fatal("two have taken the role")
		}
		f.GiveBack()
		f.wantRoles(t, "idle", "recalled")
		f.ask()
		f.drop(Nothing)
		f.wantRoles(t, "idle", "goroutine")
		p.spin()
		f.take()
		f.step()
		f.drop(ForGoroutine)
		f.wantRoles(t, "idle", "goroutine")
		p.spin()
		f.take()
		f.GiveBack()
		f.End()
		f.wantRoles(t, "idle", "ending")
		f.GiveBack()
		f.End()
		f.drop(Nothing)
		f.wantRoles(t, "idle", "kept")
	})
}

// The goroutine is asked while it can't let go yet, and no longer when it can.
func TestRoleIsRecalledBeforeTheGoroutineHasLetGo(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, _ *place) {
		f.change(rxAsk) // and not interrupted yet
		f.GiveBack()
		f.Interrupt()
		f.wantRoles(t, "idle", "goroutine")
		f.arrive(1)
		f.wantTaken(t, "goroutine", 1)
	})
}

func TestContextEndsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		errOver := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		w := waiting(ctx, p)
		f.wantRoles(t, "idle", "program")
		cancel(errOver)
		wantDone(t, w, errOver)
		wantDone(t, waiting(ctx, p), errOver) // at once
		// That of another program does not.
		old, cancelOld := context.WithCancel(t.Context())
		w = waiting(old, p)
		f.arrive(1)
		wantDone(t, w, nil)
		w = waiting(t.Context(), p)
		f.wantRoles(t, "idle", "program")
		cancelOld()
		synctest.Wait()
		f.mu.Lock()
		if f.interrupt || f.bound != t.Context().Done() {
			t.Error("the context of an earlier wait is bound")
		}
		f.mu.Unlock()
		f.arrive(1)
		wantDone(t, w, nil)
	})
}

// One receives for all who wait, and another goes on when that one has what it wants.
func TestWaitersFollowEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		var all []<-chan error
		for range 5 {
			all = append(all, waiting(t.Context(), p))
		}
		for range all {
			f.wantRoles(t, "idle", "program")
			f.arrive(1)
			synctest.Wait()
		}
		for _, w := range all {
			wantDone(t, w, nil)
		}
		f.wantTaken(t, "program", 5)
	})
}

// News from elsewhere interrupt who receives for them.
func TestNewsFromElsewhereWakeWhoReceives(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		w := waiting(t.Context(), p)
		f.wantRoles(t, "idle", "program")
		if n := p.group.waiters.Load(); n != 0 {
			t.Errorf("%d programs wait for a token", n)
		}
		p.add(1)
		wantDone(t, w, nil)
	})
}

// What a program can't take is the goroutine's.
func TestWaiterLeavesWhatIsHeldToTheGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		p.spin()
		f.set(func() { f.arrived, f.held = 1, true })
		w := waiting(t.Context(), p)
		wantDone(t, w, nil)
		f.wantTaken(t, "goroutine", 1)
	})
}

// A poller sends the rest itself when there is room, a waiter leaves it to a goroutine.
func TestRestIsParkedForAPoller(t *testing.T) {
	parked := func(t *testing.T, f *fake, p *place) {
		t.Helper()
		p.spin()
		p.poll()
		f.room = 1
		f.post(3)
		f.wantRoles(t, "parked", "free")
	}
	for name, c := range map[string]struct {
		do     func(t *testing.T, f *fake, p *place)
		tx, rx string
	}{
		"poll": {func(_ *testing.T, f *fake, p *place) {
			f.make(5)
			p.poll()
		}, "idle", "free"},
		"post": {func(_ *testing.T, f *fake, _ *place) {
			f.make(5)
			f.post(1)
		}, "idle", "free"},
		"poll in vain": {func(_ *testing.T, _ *fake, p *place) { p.poll() }, "parked", "free"},
		"wait":         {func(t *testing.T, _ *fake, p *place) { waiting(t.Context(), p) }, "busy", "program"},
		"stay away":    {func(*testing.T, *fake, *place) { time.Sleep(forAWhile) }, "busy", "goroutine"},
		"arm":          {func(_ *testing.T, _ *fake, p *place) { p.group.Recall() }, "busy", "goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake, p *place) {
				parked(t, f, p)
				c.do(t, f, p)
				f.wantRoles(t, c.tx, c.rx)
				f.make(5)
				if c.tx == "parked" {
					p.poll()
				}
				synctest.Wait()
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.queued > 0 {
					t.Errorf("%d are left", f.queued)
				}
			})
		})
	}
}

// A goroutine that waits for room leaves the rest to a program that has begun to poll.
func TestGoroutineParksForAPoller(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		f.room = 1
		f.post(5)
		f.wantRoles(t, "busy", "goroutine")
		p.spin()
		p.poll()
		f.make(1)
		f.wantRoles(t, "parked", "free")
		f.make(5)
		f.onPass = func() { p.add(1) } // what is sent completes
		if !p.poll() {
			t.Error("the poll that sends the rest does not find what has completed")
		}
		f.wantRoles(t, "idle", "free")
	})
}

// A poll says whether it may be worth to look.
func TestPollThatFindsNothingSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		p.spin()
		if p.group.Poll() {
			t.Error("nothing has come")
		}
		f.arrive(1)
		if !p.group.Poll() {
			t.Error("something has come")
		}
		f.End()
		f.wantRoles(t, "idle", "kept")
		if p.group.Poll() {
			t.Error("the goroutine receives")
		}
	})
}

// The role that a poller has left free goes back when a program waits beside a transmitter.
func TestWaiterGivesTheRoleBackBesideATransmitter(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		f.room = 1
		f.post(5)
		p.spin()
		f.wantRoles(t, "busy", "free")
		w := waiting(t.Context(), p)
		f.wantRoles(t, "busy", "goroutine")
		f.arrive(1)
		wantDone(t, w, nil)
	})
}

// Who waits for a transmitter leaves the goroutine alone, for some waits.
func TestWaiterYieldsToATransmitter(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake, p *place) {
		f.room = 1
		f.post(2)
		f.wantRoles(t, "busy", "goroutine")
		wait := func() (rx string) {
			ctx, cancel := context.WithCancel(t.Context())
			w := waiting(ctx, p)
			_, rx = f.Roles()
			cancel()
			wantDone(t, w, context.Canceled)
			return rx
		}
		if rx := wait(); rx != "goroutine" {
			t.Errorf("beside a transmitter, the receiver is %s", rx)
		}
		f.make(5)
		f.wantRoles(t, "idle", "goroutine")
		for i := range yieldWaits {
			if rx := wait(); rx != "goroutine" {
				t.Fatalf("wait %d: the receiver is %s", i, rx)
			}
		}
		if rx := wait(); rx != "program" {
			t.Errorf("after all of these waits, the receiver is %s", rx)
		}
	})
}

// Wherever the transmitter's role is, it stops, and nobody transmits any more.
func TestTransmitterStopsFromEverywhere(t *testing.T) {
	for tx, bring := range map[string]func(t *testing.T, f *fake, p *place){
		"idle": func(*testing.T, *fake, *place) {},
		"busy": func(_ *testing.T, f *fake, _ *place) {
			f.room = 0
			f.post(1)
		},
		"again": func(_ *testing.T, f *fake, _ *place) {
			f.room = 0
			f.post(1)
			synctest.Wait()
			f.post(1)
		},
		"stopping": func(_ *testing.T, f *fake, _ *place) { // in a long pass, that began before the end
			f.onPass = func() { time.Sleep(time.Second) }
			go f.post(1)
			time.Sleep(time.Millisecond)
			f.End()
			f.set(func() { f.closed = true })
		},
		"parked": func(_ *testing.T, f *fake, p *place) {
			p.spin()
			p.poll()
			f.room = 0
			f.post(1)
		},
	} {
		t.Run(tx, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlace()
				f := newFake(t, p)
				bring(t, f, p)
				synctest.Wait()
				if got, _ := f.Roles(); got != tx {
					t.Fatalf("the transmitter's role is %s", got)
				}
				f.end()
				sent := f.sent
				f.make(5)
				f.post(1)
				if f.sent != sent {
					t.Error("somebody transmits after the end")
				}
			})
		})
	}
}

func TestDriverWithoutProgramsKeepsTheRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.arrive(1)
		f.wantTaken(t, "goroutine", 1)
		f.post(1)
		f.wantRoles(t, "idle", "goroutine")
		f.end()
	})
}
