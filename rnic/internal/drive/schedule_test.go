package drive

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Posters, pollers, waiters, those who recall the role, what arrives and the room there
// is meet in random orders. Each seed has an order of its own, as far as the processors
// allow. Whatever it is: nobody has a role twice (fake sees to that), all is sent, all that
// arrives is taken and found, and the connection ends.
func TestNothingIsLostInAnyOrder(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { anyOrder(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func anyOrder(t *testing.T, seed uint64) {
	const (
		posts    = 200
		arrivals = 200
	)
	var places []*place
	for range 1 + seed%2 {
		places = append(places, newPlace())
	}
	p := places[len(places)-1] // where the news come
	f := newFake(t, places...)
	f.room = int(seed % 5)
	source := uint64(0)
	chance := func() *rand.Rand {
		source++
		return rand.New(rand.NewPCG(seed, source))
	}
	pause := func(r *rand.Rand) {
		switch r.IntN(8) {
		case 0:
			time.Sleep(time.Duration(r.Int64N(int64(3 * away))))
		case 1, 2:
			runtime.Gosched()
		}
	}
	var producers, consumers sync.WaitGroup
	for range 4 {
		r := chance()
		producers.Go(func() {
			for range posts / 4 {
				f.post(1)
				pause(r)
			}
		})
	}
	r := chance()
	producers.Go(func() {
		for range arrivals {
			if r.IntN(4) == 0 {
				f.Wake()
			}
			f.set(func() { f.arrived, f.held = f.arrived+1, r.IntN(10) == 0 })
			pause(r)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	found := make(chan struct{}, arrivals+1)
	for i := range 2 + int(seed%3) {
		r, waits := chance(), i%2 == 0
		consumers.Go(func() {
			for ctx.Err() == nil {
				switch {
				case r.IntN(20) == 0: // it changes its mind
					waits = !waits
				case waits:
					short, end := context.WithTimeout(ctx, time.Duration(1+r.Int64N(int64(5*away))))
					if p.wait(short) == nil {
						found <- struct{}{}
					}
					end()
				default:
					for range r.IntN(3 * spinPolls) {
						if p.poll() {
							found <- struct{}{}
						}
					}
					time.Sleep(time.Microsecond) // a bubble's time stands still while anybody runs
				}
			}
		})
	}
	bystanders := context.WithoutCancel(ctx)
	bystanders, stop := context.WithCancel(bystanders)
	var beside sync.WaitGroup
	for range 2 {
		r := chance()
		beside.Go(func() {
			for bystanders.Err() == nil {
				switch r.IntN(4) {
				case 0:
					f.armed.Store(true)
					p.group.Recall()
				case 1:
					f.armed.Store(false)
				case 2:
					f.make(r.IntN(10))
				case 3:
					places[0].group.Poll()
				}
				time.Sleep(time.Duration(r.Int64N(int64(away))))
			}
		})
	}
	producers.Wait()
	stop()
	beside.Wait()
	f.make(1 << 20)
	f.armed.Store(false)
	if seed%4 < 2 { // else all programs are gone from now on, but for who looks what is there
		cancel()
		consumers.Wait()
	}
	time.Sleep(forAWhile)
	for p.take() {
		found <- struct{}{}
	}
	synctest.Wait()
	f.mu.Lock()
	if f.queued > 0 || f.sent != posts {
		t.Errorf("%d are not sent, %d are", f.queued, f.sent)
	}
	if f.arrived > 0 || len(found) != arrivals {
		t.Errorf("%d are not taken, and %d of %d are found", f.arrived, len(found), arrivals)
	}
	f.mu.Unlock()
	if seed%3 > 0 { // the end comes while there are programs
		cancel()
		consumers.Wait()
	}
	f.end()
	cancel()
	consumers.Wait()
}
