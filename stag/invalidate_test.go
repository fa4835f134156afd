package stag

import (
	"errors"
	"sync"
	"testing"

	"urnic/pd"
)

func TestFastRegisteredRegionLivesFromKeyToKey(t *testing.T) {
	f := newFixture(t)
	e, err := f.Allocate(f.a, 100)
	if err != nil {
		t.Fatal(err)
	}
	by := Scope{f.a, 3}
	old := e.STag()
	f.wantAccess(old, by, 0, 0, 1, InvalidSTag)
	if !f.Exists(old) || f.Exists(0) {
		t.Error("the table does not know which regions there are")
	}
	mem := Memory{Mem: make([]byte, 100), Access: LocalWrite | RemoteWrite | RemoteInvalidate}
	wantRule(t, e.FastRegister(mem, old.Key()), "key")
	wantRule(t, e.FastRegister(Memory{Mem: make([]byte, 101)}, old.Key()+1), "length")
	wantRule(t, e.FastRegister(Memory{}, old.Key()+1), "length")
	wantRule(t, e.FastRegister(Memory{Mem: make([]byte, 1), Access: RemoteWrite}, old.Key()+1), "access rights")
	if err := e.FastRegister(mem, old.Key()+1); err != nil {
		t.Fatal(err)
	}
	s := e.STag()
	if s.Index() != old.Index() || s.Key() != old.Key()+1 {
		t.Errorf("STag %v after %v", s, old)
	}
	f.wantAccess(s, by, RemoteWrite, 0, 100, 0)
	f.wantAccess(old, by, RemoteWrite, 0, 100, InvalidSTag)
	wantRule(t, e.FastRegister(mem, old.Key()+2), "STag not in invalid state")
	if err := f.Invalidate(s, by); err != nil {
		t.Fatal(err)
	}
	f.wantAccess(s, by, RemoteWrite, 0, 100, InvalidSTag)
	wantRule(t, e.FastRegister(mem, s.Key()), "key")
	if err := e.FastRegister(mem, s.Key()+1); err != nil {
		t.Fatal(err)
	}
	f.wantAccess(s, by, RemoteWrite, 0, 100, InvalidSTag)
	f.wantAccess(e.STag(), by, RemoteWrite, 0, 100, 0)
}

func TestRemoteInvalidationNeedsTheRightAndAnUnsharedSTag(t *testing.T) {
	f := newFixture(t)
	wantViolation := func(err error, want Violation) {
		t.Helper()
		var e *AccessError
		if !errors.As(err, &e) || e.Violation != want {
			t.Errorf("got %v; want %v", err, want)
		}
	}
	if err := f.a.Reserve(pd.QueuePairs, 1); err != nil {
		t.Fatal(err)
	}
	by := Scope{f.a, 3}

	plain, _ := f.register(LocalWrite|RemoteWrite, 0)
	wantViolation(f.RemoteInvalidate(plain.STag(), by), NoRights)
	wantViolation(f.RemoteInvalidate(plain.STag().WithKey(plain.STag().Key()+1), by), InvalidSTag)
	wantViolation(f.RemoteInvalidate(0, by), InvalidSTag)

	own, _ := f.register(LocalWrite|RemoteWrite|RemoteInvalidate, 3)
	wantViolation(f.RemoteInvalidate(own.STag(), Scope{f.a, 4}), NotAssociated)
	wantViolation(f.RemoteInvalidate(own.STag(), Scope{f.b, 3}), NotAssociated)

	shared, _ := f.register(LocalWrite|RemoteWrite|RemoteInvalidate, 0)
	if err := f.a.Reserve(pd.QueuePairs, 1); err != nil { // a second stream can use it
		t.Fatal(err)
	}
	wantRule(t, f.RemoteInvalidate(shared.STag(), by), "shared STag")
	if err := f.RemoteInvalidate(own.STag(), by); err != nil {
		t.Errorf("an STag of the one stream: %v", err)
	}
	f.a.Release(pd.QueuePairs, 1)
	if err := f.RemoteInvalidate(shared.STag(), by); err != nil {
		t.Errorf("an STag of the domain's only stream: %v", err)
	}
	f.wantAccess(shared.STag(), by, 0, 0x10000, 1, InvalidSTag)
	f.wantAccess(plain.STag(), by, RemoteWrite, 0x10000, 1, 0)
}

// Revocation waits for placements: the plain reads of mem after it would race
// with a placement that was still in progress.
func TestNothingIsPlacedAfterInvalidationReturns(t *testing.T) {
	for name, revoke := range map[string]func(f *fixture, e *Entry) error{
		"invalidate": func(f *fixture, e *Entry) error { return f.Invalidate(e.STag(), Scope{f.a, 1}) },
		"deregister": func(_ *fixture, e *Entry) error { return e.Deregister() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for range 200 {
				mem := make([]byte, 1<<14)
				e, err := f.Register(f.a, Memory{Mem: mem, Access: LocalWrite | RemoteWrite})
				if err != nil {
					t.Fatal(err)
				}
				s := e.STag()
				var wg sync.WaitGroup
				var mu sync.Mutex // keeps the placers apart, not the revoker
				placed := make(chan struct{}, 2)
				for range 2 {
					wg.Go(func() {
						for i := byte(1); ; i++ {
							mu.Lock()
							pin, err := f.Acquire(s, Scope{f.a, 1}, RemoteWrite, 0, uint64(len(mem)))
							if err != nil {
								mu.Unlock()
								return
							}
							for j := range pin.Bytes() {
								pin.Bytes()[j] = i
							}
							pin.Release()
							mu.Unlock()
							select {
							case placed <- struct{}{}:
							default:
							}
						}
					})
				}
				<-placed
				if err := revoke(f, e); err != nil {
					t.Fatal(err)
				}
				first := mem[0]
				for j, c := range mem {
					if c != first {
						t.Fatalf("octet %d is %d, the first is %d: a placement is half done", j, c, first)
					}
				}
				wg.Wait()
				if mem[0] != first {
					t.Fatal("the memory changed after the revocation")
				}
			}
		})
	}
}

func TestRevocationWaitsForAPin(t *testing.T) {
	f := newFixture(t)
	e, _ := f.register(LocalWrite|RemoteWrite, 0)
	pin, err := f.Acquire(e.STag(), Scope{Domain: f.a}, RemoteWrite, 0x10000, 1)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- e.Deregister() }()
	for e.Valid() {
	}
	f.wantAccess(e.STag(), Scope{Domain: f.a}, 0, 0x10000, 1, InvalidSTag)
	select {
	case err := <-done:
		t.Fatalf("deregistration returned %v while the memory was pinned", err)
	default:
	}
	pin.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// window returns a window of domain a bound by stream 3 to 0x10100+0x100.
func (f *fixture) window(kind Kind, region *Entry, access Access) (*Entry, STag) {
	f.Helper()
	w, err := f.AllocateWindow(f.a, kind)
	if err != nil {
		f.Fatal(err)
	}
	s, err := w.Bind(Binding{Region: region, Base: 0x10100, Len: 0x100, Access: access, Key: w.STag().Key() + 1, By: Scope{f.a, 3}})
	if err != nil {
		f.Fatal(err)
	}
	return w, s
}

func TestWindowOpensItsRangeWithItsRights(t *testing.T) {
	f := newFixture(t)
	region, mem := f.register(LocalWrite|BindWindow, 0)
	for _, kind := range []Kind{Window1, Window2} {
		w, s := f.window(kind, region, RemoteWrite)
		by := Scope{f.a, 3}
		f.wantAccess(s, by, RemoteWrite, 0x10100, 0x100, 0)
		f.wantAccess(s, by, RemoteWrite, 0x100FF, 1, OutOfBounds)
		f.wantAccess(s, by, RemoteWrite, 0x10200, 1, OutOfBounds)
		f.wantAccess(s, by, RemoteRead, 0x10100, 1, NoRights)
		f.wantAccess(s, by, LocalWrite, 0x10100, 1, NoRights)
		f.wantAccess(region.STag(), by, RemoteWrite, 0x10100, 1, NoRights)
		pin, err := f.Acquire(s, by, RemoteWrite, 0x10100, 4)
		if err != nil {
			t.Fatal(err)
		}
		copy(pin.Bytes(), "data")
		pin.Release()
		if string(mem[0x100:0x104]) != "data" {
			t.Errorf("memory holds %q", mem[0x100:0x104])
		}
		if err := w.Deregister(); err != nil {
			t.Error(err)
		}
		f.wantAccess(s, by, RemoteWrite, 0x10100, 1, InvalidSTag)
	}
	if err := region.Deregister(); err != nil {
		t.Error(err)
	}
}

func TestTypeTwoWindowBelongsToItsStream(t *testing.T) {
	f := newFixture(t)
	region, _ := f.register(LocalWrite|BindWindow, 0)
	_, one := f.window(Window1, region, RemoteRead)
	_, two := f.window(Window2, region, RemoteRead)
	f.wantAccess(one, Scope{f.a, 4}, RemoteRead, 0x10100, 1, 0)
	f.wantAccess(two, Scope{f.a, 4}, RemoteRead, 0x10100, 1, NotAssociated)
	f.wantAccess(two, Scope{f.a, 3}, RemoteRead, 0x10100, 1, 0)
}

func TestRegionWithWindowsCannotBeGivenUp(t *testing.T) {
	f := newFixture(t)
	region, _ := f.register(LocalWrite|BindWindow, 0)
	w, s := f.window(Window2, region, RemoteRead)
	wantRule(t, region.Deregister(), "region in use")
	wantRule(t, f.Invalidate(region.STag(), Scope{f.a, 3}), "region in use")
	if err := f.Invalidate(s, Scope{f.a, 3}); err != nil {
		t.Fatal(err)
	}
	f.wantAccess(s, Scope{f.a, 3}, RemoteRead, 0x10100, 1, InvalidSTag)
	if err := region.Deregister(); err != nil {
		t.Error(err)
	}
	if err := w.Deregister(); err != nil {
		t.Error(err)
	}
}

func TestTypeOneWindowMayBeBoundAnew(t *testing.T) {
	f := newFixture(t)
	region, _ := f.register(LocalWrite|BindWindow, 0)
	w, first := f.window(Window1, region, RemoteRead)
	second, err := w.Bind(Binding{Region: region, Base: 0x10000, Len: 16, Access: RemoteRead, By: Scope{f.a, 3}})
	if err != nil || second == first || second.Index() != first.Index() {
		t.Fatalf("bound to %v after %v, %v", second, first, err)
	}
	by := Scope{f.a, 3}
	f.wantAccess(first, by, RemoteRead, 0x10100, 1, InvalidSTag)
	f.wantAccess(second, by, RemoteRead, 0x10000, 16, 0)
	if s, err := w.Bind(Binding{By: by}); err != nil || s != second {
		t.Fatalf("unbinding %v: %v, %v", second, s, err)
	}
	if w.region != nil {
		t.Error("the window keeps the region alive that it is not bound to any more")
	}
	f.wantAccess(second, by, RemoteRead, 0x10000, 16, InvalidSTag)
	if err := region.Deregister(); err != nil {
		t.Errorf("no window is bound any more: %v", err)
	}
}

// Who knows a window's STags of before can't tell the next one, nor does one of them
// open memory again soon.
func TestTypeOneWindowKeysAreUsedInNoOrderAndComeBackLate(t *testing.T) {
	f := newFixture(t)
	region, _ := f.register(LocalWrite|BindWindow, 0)
	w, s := f.window(Window1, region, RemoteRead)
	tags := []STag{s}
	for range 2*keys - 1 {
		s, err := w.Bind(Binding{Region: region, Base: 0x10000, Len: 16, Access: RemoteRead, By: Scope{f.a, 3}})
		if err != nil {
			t.Fatal(err)
		}
		tags = append(tags, s)
	}
	seen, steps := map[STag]int{}, map[STag]int{}
	for i, s := range tags {
		if last, ok := seen[s]; ok && i-last < keys {
			t.Errorf("%v came back after %d bindings", s, i-last)
		}
		seen[s] = i
		if i > 0 && i < keys {
			steps[s-tags[i-1]]++
		}
	}
	for step, n := range steps {
		if n > 20 { // one or two are to be expected
			t.Errorf("a step of %d, %d times in %d", step, n, keys)
		}
	}
}

func TestBindIsChecked(t *testing.T) {
	f := newFixture(t)
	region, _ := f.register(LocalWrite|BindWindow, 0)
	readOnly, _ := f.register(BindWindow, 0)
	noBind, _ := f.register(LocalWrite, 0)
	foreign, _ := f.Register(f.b, Memory{Mem: make([]byte, 4096), Base: 0x10000, Access: BindWindow})
	zeroBased, _ := f.Register(f.a, Memory{Mem: make([]byte, 4096), Access: BindWindow})
	dead, _ := f.Allocate(f.a, 4096)
	bound, _ := f.window(Window1, region, RemoteRead)
	var otherTable Table
	elsewhere, _ := otherTable.Register(f.a, Memory{Mem: make([]byte, 4096), Base: 0x10000, Access: BindWindow})
	w, _ := f.AllocateWindow(f.a, Window2)
	good := Binding{Region: region, Base: 0x10000, Len: 16, Access: RemoteRead, Key: w.STag().Key() + 1, By: Scope{f.a, 3}}
	for _, tt := range []struct {
		name   string
		change func(b *Binding)
		rule   string
	}{
		{"stream of another domain", func(b *Binding) { b.By.Domain = f.b }, "protection domain"},
		{"no length", func(b *Binding) { b.Len = 0 }, "length"},
		{"same key", func(b *Binding) { b.Key-- }, "key"},
		{"no region", func(b *Binding) { b.Region = nil }, "invalid region"},
		{"invalid region", func(b *Binding) { b.Region = dead }, "invalid region"},
		{"window as region", func(b *Binding) { b.Region = w }, "invalid region"},
		{"bound window as region", func(b *Binding) { b.Region, b.Base = bound, 0x10100 }, "invalid region"},
		{"region of another device", func(b *Binding) { b.Region = elsewhere }, "invalid region"},
		{"region of another domain", func(b *Binding) { b.Region = foreign }, "protection domain"},
		{"region without bind", func(b *Binding) { b.Region = noBind }, "access rights"},
		{"zero-based region", func(b *Binding) { b.Region, b.Base = zeroBased, 0 }, "virtual address"},
		{"local rights", func(b *Binding) { b.Access |= LocalWrite }, "access rights"},
		{"write to read-only region", func(b *Binding) { b.Region, b.Access = readOnly, RemoteWrite }, "access rights"},
		{"before the region", func(b *Binding) { b.Base-- }, "base and bounds"},
		{"beyond the region", func(b *Binding) { b.Base, b.Len = 0x10FF8, 9 }, "base and bounds"},
		{"behind the region", func(b *Binding) { b.Base, b.Len = 0x11008, 8 }, "base and bounds"},
		{"from the end of the region", func(b *Binding) { b.Base, b.Len = 0x11000, 1 }, "base and bounds"},
		{"length that wraps", func(b *Binding) { b.Base, b.Len = 0x10FF8, ^uint64(0) }, "base and bounds"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := good
			tt.change(&b)
			s, err := w.Bind(b)
			wantRule(t, err, tt.rule)
			if s != 0 {
				t.Errorf("%v comes with the error", s)
			}
		})
	}
	if _, err := region.Bind(good); err == nil {
		t.Error("a region was bound")
	}
	if _, err := w.Bind(good); err != nil {
		t.Error(err)
	}
	good.Key++
	_, err := w.Bind(good)
	wantRule(t, err, "STag not in invalid state")
	closed, _ := f.AllocateWindow(f.a, Window2)
	good.Key, good.Access = closed.STag().Key()+1, 0
	if _, err := closed.Bind(good); err != nil || !closed.Valid() || closed.Access() != 0 {
		t.Errorf("a window without rights: %v, valid %v, access %v", err, closed.Valid(), closed.Access())
	}
	wantRule(t, w.FastRegister(Memory{Mem: make([]byte, 1)}, 1), "invalid region")
	if err := w.Deregister(); err != nil {
		t.Error(err)
	}
	_, err = w.Bind(good)
	wantRule(t, err, "invalid window")
}

func TestWindowMayReachToTheEndOfItsRegion(t *testing.T) {
	f := newFixture(t)
	region, _ := f.register(BindWindow, 0) // which may be read only
	w, _ := f.AllocateWindow(f.a, Window1)
	s, err := w.Bind(Binding{Region: region, Base: 0x10FF8, Len: 8, Access: RemoteRead, By: Scope{f.a, 3}})
	if err != nil {
		t.Fatal(err)
	}
	f.wantAccess(s, Scope{f.a, 3}, RemoteRead, 0x10FF8, 8, 0)
}

func TestDrawnKeyIsTheNextOne(t *testing.T) {
	f := newFixture(t)
	region, _ := f.register(BindWindow, 0)
	w, _ := f.AllocateWindow(f.a, Window1)
	seen := map[uint8]bool{}
	for range 64 {
		key := w.DrawKey()
		s, err := w.Bind(Binding{Region: region, Base: 0x10000, Len: 8, Access: RemoteRead, By: Scope{f.a, 3}, Key: key, Drawn: true})
		if err != nil || s.Key() != key || seen[key] {
			t.Fatalf("bound under %v with key %#x, %v; used before: %v", s, key, err, seen[key])
		}
		seen[key] = true
	}
}
