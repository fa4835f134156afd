package stag

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
)

// judgeLease checks what a Lease says of an access, and that Open says the same.
func (f *fixture) judgeLease(l *Lease, s STag, by Scope, need Access, to, n uint64, want Violation) {
	f.Helper()
	mem, err := l.Open(&f.Table, s, by, need, to, n)
	if err == nil && (uint64(len(mem)) != n || uint64(cap(mem)) != n) {
		f.Errorf("%d octets opened, which can grow to %d; want %d", len(mem), cap(mem), n)
	}
	if err != nil && mem != nil {
		f.Errorf("%v, and memory", err)
	}
	pin, whole := f.Open(s, by, need, to, n)
	pin.Release()
	for _, err := range []error{err, l.Check(&f.Table, s, by, need, to, n), whole} {
		e, refused := errors.AsType[*AccessError](err)
		switch {
		case want == 0 && err != nil, want != 0 && (!refused || e.Violation != want):
			f.Errorf("%v at 0x%x+%d for %v: %v; want %v", s, to, n, need, err, want)
		case want != 0 && (e.STag != s || e.TO != to || e.Len != n || e.Wanted != need):
			f.Errorf("%+v does not say what was asked", e)
		}
	}
}

// A look-up is for the whole run, a judgement for each access.
func TestLeaseJudgesEachAccessAnew(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(LocalWrite|RemoteWrite, 7)
	s, by := e.STag(), Scope{f.a, 7}
	const base = 0x10000
	for _, first := range []bool{true, false} { // with the entry held, and without
		tries := []struct {
			s     STag
			by    Scope
			need  Access
			to, n uint64
			want  Violation
		}{
			{s, by, RemoteWrite, base, 4096, 0},
			{s, by, RemoteWrite | LocalWrite, base + 4095, 1, 0},
			{s, by, 0, base, 4096, 0},
			{s, by, RemoteWrite, base + 4096, 0, 0},
			{s, by, RemoteRead, base, 1, NoRights},
			{s, by, RemoteWrite | RemoteRead, base, 1, NoRights},
			{s, Scope{f.a, 8}, RemoteWrite, base, 1, NotAssociated},
			{s, Scope{f.b, 7}, RemoteWrite, base, 1, NotAssociated},
			{s, Scope{}, RemoteWrite, base, 1, NotAssociated},
			{s, by, RemoteWrite, base - 1, 2, OutOfBounds},
			{s, by, RemoteWrite, base, 4097, OutOfBounds},
			{s, by, RemoteWrite, base + 1, 4096, OutOfBounds},
			{s, by, RemoteWrite, base + 1, math.MaxUint64, Wrap},
			{s.WithKey(s.Key() + 1), by, RemoteWrite, base, 1, InvalidSTag},
			{s.WithKey(s.Key() - 1), by, RemoteWrite, base, 1, InvalidSTag},
			{0, by, RemoteWrite, base, 1, InvalidSTag},
		}
		var l Lease
		for range 2 {
			for _, v := range tries {
				if first {
					l.End()
				}
				f.judgeLease(&l, v.s, v.by, v.need, v.to, v.n, v.want)
			}
		}
		l.End()
		if err := f.Invalidate(s, by); err != nil { // nothing is held any more, by whatever error
			t.Fatal(err)
		}
		f.judgeLease(&l, s, by, RemoteWrite, base, 1, InvalidSTag)
		l.End()
		if err := e.FastRegister(Memory{Mem: make([]byte, 4096), Base: base, Access: LocalWrite | RemoteWrite, Stream: 7}, s.Key()+1); err != nil {
			t.Fatal(err)
		}
		f.judgeLease(&l, s, by, RemoteWrite, base, 1, InvalidSTag)
		s = e.STag()
		f.judgeLease(&l, s, by, RemoteWrite, base, 1, 0)
		l.End()
	}
}

// refs returns how many hold an entry.
func refs(e *Entry) int64 { return e.refs.Load() }

func TestLeaseHoldsAnEntryOnce(t *testing.T) {
	f := newFixture(t)
	e, mem := f.register(LocalWrite|RemoteWrite, 0)
	s, by := e.STag(), Scope{Domain: f.a}
	var l Lease
	if !l.Idle() {
		t.Error("a new Lease holds something")
	}
	for i := range uint64(10) {
		b, err := l.Open(&f.Table, s, by, RemoteWrite, 0x10000+i, 1)
		if err != nil {
			t.Fatal(err)
		}
		b[0] = byte(i + 1)
		if n := refs(e); n != 1 {
			t.Errorf("after %d accesses the entry is held %d times", i+1, n)
		}
	}
	// The table is not asked again: an entry that it does not know any more is
	// judged all the same.
	f.mu.Lock()
	f.index.remove(e)
	f.mu.Unlock()
	if _, err := l.Open(&f.Table, s, by, RemoteWrite, 0x10000, 1); err != nil {
		t.Errorf("it was looked up again: %v", err)
	}
	f.mu.Lock()
	f.index.insert(e)
	f.mu.Unlock()
	if l.Idle() {
		t.Error("a Lease that holds an entry says that it is idle")
	}
	l.End()
	if refs(e) != 0 || !l.Idle() || mem[9] != 10 {
		t.Errorf("after the end, the entry is held %d times; idle %v", refs(e), l.Idle())
	}
	if l.held[:1][0].entry != nil {
		t.Error("the Lease keeps an entry alive that it does not hold any more")
	}
	l.End() // has nothing to end
	if refs(e) != 0 {
		t.Errorf("a second end has let go again: %d", refs(e))
	}
}

// More entries than a Lease remembers are held more than once, and counted and
// let go of all the same.
func TestLeaseOfMoreEntriesThanItRemembers(t *testing.T) {
	f := newFixture(t)
	const n = 3 * leaseReach
	var all []*Entry
	for range n {
		e, _ := f.register(LocalWrite|RemoteWrite|RemoteRead, 0)
		all = append(all, e)
	}
	by := Scope{Domain: f.a}
	var l Lease
	for round := range uint64(5) {
		for i, e := range all {
			mem, err := l.Open(&f.Table, e.STag(), by, RemoteWrite, 0x10000, uint64(i+1))
			if err != nil {
				t.Fatal(err)
			}
			mem[0] = byte(round)
			if _, err := l.Open(&f.Table, e.STag(), by, RemoteRead, 0x10000, 2); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Open(&f.Table, e.STag(), by, RemoteAtomic, 0x10000, 2); err == nil {
				t.Fatal("a right was granted that the entry has not")
			}
			if err := l.Check(&f.Table, e.STag(), by, RemoteRead, 0x10000, 2); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.Count()
	want := func(i int) Stats { return Stats{Accesses: 10, OctetsIn: 5 * uint64(i+1), OctetsOut: 10} }
	for i, e := range all {
		if s := e.Stats(); s != want(i) {
			t.Errorf("entry %d counts %+v; want %+v", i, s, want(i))
		}
		if e.refs.Load() == 0 {
			t.Error("Count has let go")
		}
	}
	l.Count()
	l.End()
	for i, e := range all {
		if s := e.Stats(); s != want(i) || refs(e) != 0 {
			t.Errorf("after the end, entry %d counts %+v and is held %d times", i, s, refs(e))
		}
		if err := e.Deregister(); err != nil {
			t.Error(err)
		}
	}
}

// Stats are as exact as those of Acquire once they are brought up to date.
func TestLeaseCountsWithCountAndWithEnd(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(LocalWrite|RemoteWrite|RemoteRead|RemoteAtomic, 0)
	by := Scope{Domain: f.a}
	var l Lease
	var want Stats
	for i, need := range []Access{RemoteWrite, RemoteRead, 0, LocalWrite, RemoteAtomic} {
		n := uint64(10 * (i + 1))
		if _, err := l.Open(&f.Table, e.STag(), by, need, 0x10000, n); err != nil {
			t.Fatal(err)
		}
		_, _ = l.Open(&f.Table, e.STag(), by, need, 0, n) // refused, and not counted
		_ = l.Check(&f.Table, e.STag(), by, need, 0x10000, n)
		before := want
		want.Accesses++
		if need.writes() {
			want.OctetsIn += n
		} else {
			want.OctetsOut += n
		}
		if s := e.Stats(); s != before {
			t.Errorf("%v: %+v before the count; want %+v", need, s, before)
		}
		if i%2 == 0 {
			l.Count()
		} else {
			l.End()
		}
		if s := e.Stats(); s != want {
			t.Errorf("%v: %+v; want %+v", need, s, want)
		}
	}
	l.End()
	if s := e.Stats(); s != want {
		t.Errorf("%+v; want %+v", s, want)
	}
}

func TestRevocationWaitsForTheEndOfALease(t *testing.T) {
	ways := map[string]func(f *fixture, e *Entry) error{
		"Deregister":       func(_ *fixture, e *Entry) error { return e.Deregister() },
		"Invalidate":       func(f *fixture, e *Entry) error { return f.Invalidate(e.STag(), Scope{f.a, 3}) },
		"RemoteInvalidate": func(f *fixture, e *Entry) error { return f.RemoteInvalidate(e.STag(), Scope{f.a, 3}) },
	}
	use := map[string]func(l *Lease, f *fixture, s STag) error{
		"an access": func(l *Lease, f *fixture, s STag) error {
			_, err := l.Open(&f.Table, s, Scope{f.a, 3}, RemoteWrite, 0x10000, 1)
			return err
		},
		"a check": func(l *Lease, f *fixture, s STag) error {
			return l.Check(&f.Table, s, Scope{f.a, 3}, RemoteWrite, 0x10000, 1)
		},
		"an access that was refused": func(l *Lease, f *fixture, s STag) error {
			if _, err := l.Open(&f.Table, s, Scope{f.a, 3}, RemoteWrite, 0, 1); err == nil {
				return errors.New("it was not")
			}
			return nil
		},
	}
	for name, revoke := range ways {
		for what, use := range use {
			t.Run(name+" after "+what, func(t *testing.T) {
				f := newFixture(t)
				e, _ := f.register(LocalWrite|RemoteWrite|RemoteInvalidate, 3)
				s := e.STag()
				var l, other Lease
				if err := use(&l, f, s); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- revoke(f, e) }()
				for e.Valid() {
					runtime.Gosched()
				}
				// Who holds it may continue; nobody else can begin.
				if _, err := l.Open(&f.Table, s, Scope{f.a, 3}, RemoteWrite, 0x10000, 1); err != nil {
					t.Errorf("the Lease that holds it: %v", err)
				}
				f.judgeLease(&other, s, Scope{f.a, 3}, RemoteWrite, 0x10000, 1, InvalidSTag)
				if !other.Idle() {
					t.Error("an entry that could not be had is held")
				}
				l.Count()
				for range 100 {
					runtime.Gosched()
				}
				select {
				case err := <-done:
					t.Fatalf("it did not wait: %v", err)
				default:
				}
				l.End()
				if err := <-done; err != nil {
					t.Error(err)
				}
				f.judgeLease(&l, s, Scope{f.a, 3}, RemoteWrite, 0x10000, 1, InvalidSTag)
				l.End()
			})
		}
	}
}

// Leases of many users hold the same entry at once; whoever revokes it sees a
// whole run of each or nothing of it. The race detector sees to it that nobody
// writes afterwards.
func TestLeasesOfManyUsersAndRevocation(t *testing.T) {
	f := newFixture(t)
	const users, rounds, run = 4, 100, 6
	for range rounds {
		mem := make([]byte, users*run)
		e, err := f.Register(f.a, Memory{Mem: mem, Access: LocalWrite | RemoteWrite})
		if err != nil {
			t.Fatal(err)
		}
		s := e.STag()
		begun := make(chan struct{}, users)
		var wg sync.WaitGroup
		for u := range uint64(users) {
			wg.Go(func() {
				var l Lease
				defer l.End()
				for v := byte(1); ; v++ {
					for i := range uint64(run) {
						b, err := l.Open(&f.Table, s, Scope{Domain: f.a}, RemoteWrite, u*run+i, 1)
						if err != nil {
							if i > 0 {
								t.Errorf("it was revoked within a run: %v", err)
							}
							return
						}
						b[0] = v
					}
					l.End()
					select {
					case begun <- struct{}{}:
					default:
					}
				}
			})
		}
		<-begun
		if err := e.Deregister(); err != nil {
			t.Fatal(err)
		}
		for u := range users {
			for i := range run {
				if mem[u*run+i] != mem[u*run] {
					t.Fatalf("user %d: %v: a run is half done", u, mem[u*run:][:run])
				}
			}
		}
		wg.Wait()
		if in := e.Stats().OctetsIn; in%run != 0 || in == 0 {
			t.Errorf("%d octets are counted; want whole runs of %d", in, run)
		}
	}
}

func TestLeaseAllocatesNothing(t *testing.T) {
	f := newFixture(t)
	var all []STag
	for range 2 * leaseReach {
		e, _ := f.register(LocalWrite|RemoteWrite, 0)
		all = append(all, e.STag())
	}
	var l Lease
	by := Scope{Domain: f.a}
	if n := testing.AllocsPerRun(100, func() {
		for range 3 {
			for _, s := range all {
				if _, err := l.Open(&f.Table, s, by, RemoteWrite, 0x10000, 8); err != nil {
					t.Fatal(err)
				}
			}
		}
		l.Count()
		l.End()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
