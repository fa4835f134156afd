package stag

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"urnic/pd"
)

// A change is one of the calls that change the state of an entry whose STag is
// s. The region is the one that a window can be bound to.
type change func(f *fixture, e *Entry, s STag, region *Entry) error

func deregister(_ *fixture, e *Entry, _ STag, _ *Entry) error { return e.Deregister() }

func invalidate(f *fixture, _ *Entry, s STag, _ *Entry) error {
	return f.Invalidate(s, Scope{f.a, 3})
}

func remoteInvalidate(f *fixture, _ *Entry, s STag, _ *Entry) error {
	return f.RemoteInvalidate(s, Scope{f.a, 3})
}

func fastRegister(_ *fixture, e *Entry, s STag, _ *Entry) error {
	return e.FastRegister(Memory{Mem: make([]byte, 8), Base: 0x10000, Access: RemoteRead}, s.Key()+1)
}

func bind(f *fixture, e *Entry, _ STag, region *Entry) error {
	_, err := e.Bind(Binding{Region: region, Base: 0x10000, Len: 8, Access: RemoteRead, By: Scope{f.a, 3}})
	return err
}

// While one call waits for a placement, another one waits for that call: it
// finds the entry as the first one leaves it, never in between.
func TestChangeOfAnSTagWaitsForTheOneUnderWay(t *testing.T) {
	for name, tt := range map[string]struct {
		kind          Kind
		first, second change
		rule          string // that the second one breaks; "STag" if there is no such STag
		valid         bool   // at the end
	}{
		"Bind after Bind":                          {kind: Window1, first: bind, second: bind, valid: true},
		"Invalidate of the old STag after Bind":    {kind: Window1, first: bind, second: invalidate, rule: "STag", valid: true},
		"Deregister after Bind":                    {kind: Window1, first: bind, second: deregister},
		"Bind after Invalidate":                    {kind: Window1, first: invalidate, second: bind, valid: true},
		"Bind after Deregister":                    {kind: Window1, first: deregister, second: bind, rule: "invalid window"},
		"FastRegister after Invalidate":            {kind: Region, first: invalidate, second: fastRegister, valid: true},
		"FastRegister after a peer's invalidation": {kind: Region, first: remoteInvalidate, second: fastRegister, valid: true},
		"Invalidate after Invalidate":              {kind: Region, first: invalidate, second: invalidate, rule: "STag"},
		"Deregister after Invalidate":              {kind: Region, first: invalidate, second: deregister},
		"Deregister after Deregister":              {kind: Region, first: deregister, second: deregister},
		"FastRegister after Deregister":            {kind: Region, first: deregister, second: fastRegister, rule: "STag not in invalid state"},
		"a peer's invalidation after Deregister":   {kind: Region, first: deregister, second: remoteInvalidate, rule: "STag"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			region, _ := f.register(LocalWrite|BindWindow, 0)
			e, _ := f.register(LocalWrite|RemoteRead|RemoteInvalidate, 3)
			s := e.STag()
			to := uint64(0x10000)
			if tt.kind != Region {
				e, s = f.window(tt.kind, region, RemoteRead)
				to = 0x10100
			}
			pin, err := f.Acquire(s, Scope{f.a, 3}, RemoteRead, to, 1)
			if err != nil {
				t.Fatal(err)
			}
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- tt.first(f, e, s, region) }()
			for e.Valid() {
				runtime.Gosched()
			}
			go func() { second <- tt.second(f, e, s, region) }()
			for range 1000 {
				runtime.Gosched()
			}
			select {
			case err := <-first:
				t.Errorf("the first call did not wait for the pin: %v", err)
			case err := <-second:
				t.Errorf("the second call did not wait for the first: %v", err)
				second <- err
			default:
			}
			pin.Release()
			if err := <-first; err != nil {
				t.Errorf("the first call: %v", err)
			}
			err = <-second
			var access *AccessError
			switch {
			case tt.rule == "STag":
				if !errors.As(err, &access) || access.Violation != InvalidSTag {
					t.Errorf("the second call: %v; want an invalid STag", err)
				}
			case tt.rule != "":
				wantRule(t, err, tt.rule)
			case err != nil:
				t.Errorf("the second call: %v", err)
			}
			f.wantAccess(s, Scope{f.a, 3}, RemoteRead, to, 1, InvalidSTag)
			if e.Valid() != tt.valid {
				t.Errorf("valid: %v", e.Valid())
			}
		})
	}
}

// Windows are bound by many streams at once, as a type 1 window may be.
func TestConcurrentBindsLeaveOneWindowBound(t *testing.T) {
	f := newFixture(t)
	region, _ := f.register(LocalWrite|BindWindow, 0)
	w, _ := f.window(Window1, region, RemoteRead)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				if err := bind(f, w, 0, region); err != nil {
					t.Errorf("Bind: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	f.wantAccess(w.STag(), Scope{f.a, 3}, RemoteRead, 0x10000, 8, 0)
	wantRule(t, region.Deregister(), "region in use")
	if err := w.Deregister(); err != nil {
		t.Error(err)
	}
	if err := region.Deregister(); err != nil {
		t.Errorf("no window is bound any more: %v", err)
	}
}

// A region that is about to get a window is as much in use as one that has it.
func TestRegionIsInUseWhileAWindowIsBoundAnew(t *testing.T) {
	f := newFixture(t)
	old, _ := f.register(LocalWrite|BindWindow, 0)
	region, _ := f.register(LocalWrite|BindWindow, 0)
	w, s := f.window(Window1, old, RemoteRead)
	pin, err := f.Acquire(s, Scope{f.a, 3}, RemoteRead, 0x10100, 1)
	if err != nil {
		t.Fatal(err)
	}
	bound := make(chan error)
	go func() { bound <- bind(f, w, 0, region) }()
	for w.Valid() {
		runtime.Gosched()
	}
	wantRule(t, region.Deregister(), "region in use")
	pin.Release()
	if err := <-bound; err != nil {
		t.Error(err)
	}
	if err := old.Deregister(); err != nil {
		t.Errorf("its window is bound to another region now: %v", err)
	}
	f.wantAccess(w.STag(), Scope{f.a, 3}, RemoteRead, 0x10000, 8, 0)
}

// A region that is being given up gets no window any more.
func TestWindowIsNotBoundToARegionThatIsGivenUp(t *testing.T) {
	f := newFixture(t)
	region, _ := f.register(RemoteRead|BindWindow, 0)
	w, _ := f.AllocateWindow(f.a, Window1)
	pin, err := f.Acquire(region.STag(), Scope{f.a, 3}, RemoteRead, 0x10000, 1)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- region.Deregister() }()
	for region.Valid() {
		runtime.Gosched()
	}
	wantRule(t, bind(f, w, 0, region), "invalid region")
	pin.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRegionDeregisteredByManyAtOnceIsGivenBackOnce(t *testing.T) {
	f := newFixture(t)
	for range 2000 {
		e, err := f.Register(f.a, Memory{Mem: make([]byte, 8), Access: LocalWrite})
		if err != nil {
			t.Fatal(err)
		}
		key := e.STag().Key()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := e.Deregister(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			for range 20 {
				if e.FastRegister(Memory{Mem: make([]byte, 8)}, key+1) == nil {
					t.Error("a region that was being deregistered has been registered")
				}
			}
		})
		wg.Wait()
		if e.Valid() || f.Exists(e.STag()) {
			t.Fatal("the region is still there")
		}
	}
	if n := f.a.Held(pd.Regions); n != 0 {
		t.Errorf("%d regions are held", int64(n))
	}
}
