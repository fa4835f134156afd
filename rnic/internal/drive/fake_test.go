package drive

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A fake is a pump whose work is counted: what comes in, what is to go out, and how much
// there is room for. It notes if two have the same role at a time.
type fake struct {
	Driver
	t  testing.TB
	wg sync.WaitGroup

	mu        sync.Mutex
	arrived   int            // and not taken
	closed    bool           // the peer has ended
	held      bool           // what has arrived is for the goroutine
	interrupt bool           // the next wait, or this one
	changed   chan struct{}  // closed when one of these changes
	taken     map[string]int // by whom
	queued    int            // to be transmitted
	sent      int
	inline    int // passes that may not wait
	room      int
	roomMade  chan struct{}
	onPass    func() // is called in each pass of the transmitter
	endless   bool   // there is always more

	armed atomic.Bool
	inTx  atomic.Bool
	inRx  atomic.Bool
	place *place
}

// A place is where the news of fakes come to: a completion queue.
type place struct {
	mu    sync.Mutex
	group Group
	news  int
}

func newPlace() *place {
	p := new(place)
	p.group.Init(&p.mu)
	return p
}

func (p *place) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.news += n
	p.group.Wake()
}

func (p *place) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.news == 0 {
		return false
	}
	p.news--
	return true
}

// poll is a program's look for news.
func (p *place) poll() bool {
	switch {
	case p.take():
		p.group.Found()
		return true
	case p.group.Poll():
		return p.take()
	}
	return false
}

// wait waits for news, and takes one.
func (p *place) wait(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.group.Enter()
	defer func() {
		p.group.Leave()
		if p.news > 0 {
			p.group.Wake()
		}
	}()
	for p.news == 0 {
		if err := p.group.Wait(ctx); err != nil {
			return err
		}
	}
	p.news--
	return nil
}

// spin polls until it is taken for a program that spins.
func (p *place) spin() {
	for range 2 * spinPolls {
		p.poll()
	}
	synctest.Wait()
}

func newFake(t testing.TB, places ...*place) *fake {
	f := &fake{t: t, changed: make(chan struct{}), roomMade: make(chan struct{}), taken: map[string]int{}, room: 1 << 30}
	var groups []*Group
	for _, p := range places {
		f.place = p
		groups = append(groups, &p.group)
	}
	f.Start(f, &f.wg, groups...)
	return f
}

// end ends the connection, and waits until the goroutines are gone.
func (f *fake) end() {
	f.End()
	f.set(func() { f.closed = true })
	f.wg.Wait()
	if tx, rx := f.Roles(); tx != "stopped" || rx != "kept" {
		f.t.Errorf("at the end, the roles are %s and %s", tx, rx)
	}
	if f.bound != nil || f.unbind != nil {
		f.t.Error("after the end, a context is bound")
	}
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) arrive(n int) { f.set(func() { f.arrived += n }) }

func (f *fake) post(n int) {
	f.mu.Lock()
	f.queued += n
	f.mu.Unlock()
	f.Kick()
}

func (f *fake) make(room int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room += room
	close(f.roomMade)
	f.roomMade = make(chan struct{})
}

func (f *fake) enter(role *atomic.Bool) func() {
	if role.Swap(true) {
		f.t.Error("two have the same role")
	}
	return func() { role.Store(false) }
}

func (f *fake) Transmit(wait bool) Result {
	defer f.enter(&f.inTx)()
	if f.onPass != nil {
		f.onPass()
	}
	f.mu.Lock()
	if !wait {
		f.inline++
	}
	n := min(f.queued, f.room)
	f.queued, f.room, f.sent = f.queued-n, f.room-n, f.sent+n
	left, endless, room, closed := f.queued, f.endless, f.roomMade, f.closed
	changed := f.changed
	f.mu.Unlock()
	switch {
	case endless:
		return More
	case left == 0:
		return Idle
	case wait && n == 0 && !closed:
		select {
		case <-room:
		case <-changed: // the end of the connection, too
		}
		return More
	}
	return Blocked
}

// await waits until there is something.
func (f *fake) await() Outcome {
	for {
		f.mu.Lock()
		interrupted := f.interrupt
		if !f.closed && f.arrived == 0 || interrupted {
			f.interrupt = false
		}
		some, changed := f.arrived > 0 || f.closed, f.changed
		f.mu.Unlock()
		switch {
		case interrupted:
			return Interrupted
		case some:
			return Some
		}
		<-changed
	}
}

func (f *fake) Receive() Outcome {
	defer f.enter(&f.inRx)()
	o := f.await()
	if o == Some {
		f.pass("goroutine")
	}
	return o
}

// pass takes what has arrived.
func (f *fake) pass(who string) (some bool) {
	f.mu.Lock()
	n := f.arrived
	f.arrived, f.held = 0, false
	f.taken[who] += n
	f.mu.Unlock()
	if n > 0 && f.place != nil {
		f.place.add(n)
	}
	return n > 0
}

func (f *fake) TryReceive() Outcome {
	defer f.enter(&f.inRx)()
	f.mu.Lock()
	held, closed := f.held, f.closed
	f.mu.Unlock()
	switch {
	case held || !f.pass("program") && !closed:
		return Nothing
	case closed:
		return ForGoroutine
	}
	return Some
}

func (f *fake) Await() Outcome {
	defer f.enter(&f.inRx)()
	f.mu.Lock()
	held := f.held && f.arrived > 0
	f.mu.Unlock()
	if held {
		return ForGoroutine
	}
	return f.await()
}

func (f *fake) Interrupt() { f.set(func() { f.interrupt = true }) }

func (f *fake) Received() bool {
	f.mu.Lock()
	closed := f.closed && f.arrived == 0
	f.mu.Unlock()
	if closed {
		f.End()
		if f.Stop(); f.inTx.Load() {
			f.t.Error("somebody transmits still")
		}
	}
	return closed
}

func (f *fake) MayLeave() bool { return !f.armed.Load() }

func (f *fake) wantTaken(t *testing.T, who string, n int) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken[who] != n {
		t.Errorf("%v were taken; want %d by the %s", f.taken, n, who)
	}
}

func (f *fake) wantRoles(t *testing.T, tx, rx string) {
	t.Helper()
	synctest.Wait()
	if gotTx, gotRx := f.Roles(); gotTx != tx || gotRx != rx {
		t.Errorf("the roles are %s and %s; want %s and %s", gotTx, gotRx, tx, rx)
	}
}

// bubble runs f with a connection and the place of its news, and ends it.
func bubble(t *testing.T, run func(t *testing.T, f *fake, p *place)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace()
		f := newFake(t, p)
		run(t, f, p)
		f.end()
		if n := len(p.group.list()); n > 0 {
			t.Errorf("after the end, the group has %d members", n)
		}
		p.add(1000) // for all who wait still
		synctest.Wait()
		if n := p.group.waiters.Load(); n != 0 {
			t.Errorf("after the end, %d programs wait", n)
		}
	})
}

// waiting is a program that waits, in the background.
func waiting(ctx context.Context, p *place) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.wait(ctx) }()
	synctest.Wait()
	return done
}

// wantDone checks that a program waits no more.
func wantDone(t *testing.T, done <-chan error, want error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if err != want { //nolint:errorlint // the very error that was given
			t.Errorf("the wait has ended with %v; want %v", err, want)
		}
	default:
		t.Fatal("a program still waits")
	}
}

// forAWhile is longer than the watch waits for anybody.
const forAWhile = 3 * longestAway
