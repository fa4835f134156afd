package drive

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// groupOf runs f with the connections of one place.
func groupOf(t *testing.T, n int, run func(t *testing.T, p *place, all []*fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace()
		var all []*fake
		for range n {
			all = append(all, newFake(t, p))
		}
		run(t, p, all)
		for _, f := range all {
			f.end()
		}
	})
}

// spinFor polls so often that each of many members is asked for its role.
func spinFor(p *place, members int) {
	for range 1 + members/perPoll {
		p.spin()
	}
}

func TestPollLooksAfterMembersInTurn(t *testing.T) {
	const n = 2*perPoll + 3
	groupOf(t, n, func(t *testing.T, p *place, all []*fake) {
		for range 4 {
			spinFor(p, n)
		}
		for _, f := range all {
			f.wantRoles(t, "idle", "free")
			f.arrive(1)
		}
		synctest.Wait()
		for polls := 1; polls <= n/perPoll+2; polls++ {
			p.group.Poll()
			if p.news > polls*perPoll {
				t.Errorf("%d polls have received for %d members", polls, p.news)
			}
		}
		if p.news != n {
			t.Errorf("in turn, polls have received for %d members of %d", p.news, n)
		}
	})
}

// A turn of more members than that would come too late for each of them.
func TestPollLeavesVeryManyMembersToTheirGoroutines(t *testing.T) {
	groupOf(t, most, func(t *testing.T, p *place, all []*fake) {
		spinFor(p, most)
		if _, rx := all[0].Roles(); rx != "free" {
			t.Errorf("of %d members, the receiver of the first is %s", most, rx)
		}
		one := newFake(t, p)
		time.Sleep(forAWhile)
		for _, f := range all {
			f.wantRoles(t, "idle", "goroutine")
		}
		spinFor(p, most)
		for _, f := range append(all, one) {
			f.wantRoles(t, "idle", "goroutine")
		}
		one.end()
	})
}

// Who waits for several can receive for none: free roles go back at once.
func TestWaiterOfManyReceivesForNone(t *testing.T) {
	groupOf(t, 2, func(t *testing.T, p *place, all []*fake) {
		p.spin()
		all[1].wantRoles(t, "idle", "free")
		w := waiting(t.Context(), p)
		for _, f := range all {
			f.wantRoles(t, "idle", "goroutine")
		}
		all[1].arrive(1)
		wantDone(t, w, nil)
	})
}

func TestPollOfNoMembersFindsNothing(t *testing.T) {
	groupOf(t, 0, func(t *testing.T, p *place, _ []*fake) {
		p.spin()
		ctx, cancel := context.WithCancel(t.Context())
		w := waiting(ctx, p)
		cancel()
		wantDone(t, w, context.Canceled)
	})
}

// A program that polls now and then, or finds something now and then, has other work to do.
func TestWhoDoesNotSpinIsNotGivenTheRole(t *testing.T) {
	for name, between := range map[string]func(f *fake, p *place){
		"polls seldom": func(*fake, *place) { time.Sleep(away/(spinPolls-1) + 1) },
		"finds something": func(f *fake, p *place) {
			f.arrive(1)
			synctest.Wait()
			p.poll()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake, p *place) {
				for range 4 * spinPolls {
					p.poll()
					between(f, p)
				}
				f.wantRoles(t, "idle", "goroutine")
			})
		})
	}
}

// A connection of two places: each of them may receive for both.
func TestDriverOfTwoGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sends, recvs := newPlace(), newPlace()
		f := newFake(t, sends, recvs) // what comes is for recvs
		f.wantRoles(t, "idle", "goroutine")
		beside := waiting(t.Context(), sends)
		f.wantRoles(t, "idle", "program")
		w := waiting(t.Context(), recvs)
		f.arrive(1)
		wantDone(t, w, nil)
		sends.add(1)
		wantDone(t, beside, nil)
		// Who waits at one of them continues for who has waited at the other.
		ctx, cancel := context.WithCancel(t.Context())
		first := waiting(ctx, sends)
		f.wantRoles(t, "idle", "program")
		w = waiting(t.Context(), recvs)
		cancel()
		wantDone(t, first, context.Canceled)
		f.wantRoles(t, "idle", "program")
		f.arrive(1)
		wantDone(t, w, nil)
		f.end()
		if len(sends.group.list())+len(recvs.group.list()) > 0 {
			t.Error("after the end, it is still a member")
		}
	})
}
