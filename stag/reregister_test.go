package stag

import (
	"errors"
	"testing"

	"urnic/pd"
)

// A region that is registered anew in place has its STag, and the rights and domain that
// were asked for; the quotas follow it.
func TestReregisterKeepsTheSTag(t *testing.T) {
	f := newFixture(t)
	mem := make([]byte, 64)
	e, err := f.Register(f.a, Memory{Mem: mem, Base: 0x1000, Access: LocalWrite})
	if err != nil {
		t.Fatal(err)
	}
	s := e.STag()
	if err := e.Reregister(f.b, Memory{Mem: mem, Base: 0x2000, Access: RemoteRead}); err != nil {
		t.Fatal(err)
	}
	if e.STag() != s || !e.Valid() || e.Base() != 0x2000 || e.Len() != 64 || e.Access() != RemoteRead {
		t.Errorf("STag %v, valid %v, %d octets at 0x%x, %v; before %v", e.STag(), e.Valid(), e.Len(), e.Base(), e.Access(), s)
	}
	if _, err := f.Acquire(s, Scope{f.a, 1}, RemoteRead, 0x2000, 8); err == nil {
		t.Error("a stream of the old domain can use it")
	}
	pin, err := f.Acquire(s, Scope{f.b, 1}, RemoteRead, 0x2000, 8)
	if err != nil {
		t.Fatal(err)
	}
	pin.Release()
	for _, d := range []struct {
		domain          *pd.Domain
		regions, octets uint64
	}{{f.a, 0, 0}, {f.b, 1, 64}} {
		if r, o := d.domain.Held(pd.Regions), d.domain.Held(pd.MemoryOctets); r != d.regions || o != d.octets {
			t.Errorf("a domain holds %d regions of %d octets; want %d of %d", r, o, d.regions, d.octets)
		}
	}
	if err := e.Deregister(); err != nil {
		t.Error(err)
	}
	if n := f.b.Held(pd.MemoryOctets); n != 0 {
		t.Errorf("%d octets are held after all", n)
	}
}

// What can't be changed stays as it is.
func TestReregisterIsChecked(t *testing.T) {
	f := newFixture(t)
	mem := make([]byte, 64)
	good := Memory{Mem: mem, Base: 0x1000, Access: LocalWrite | RemoteRead | BindWindow}
	e, err := f.Register(f.a, good)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := f.AllocateWindow(f.a, Window1)
	dead, _ := f.Allocate(f.a, 64)
	wantRule(t, w.Reregister(f.a, good), "invalid region")
	wantRule(t, dead.Reregister(f.a, good), "invalid region")
	wantRule(t, e.Reregister(f.a, Memory{Mem: mem[:63], Base: 0x1000}), "memory")
	wantRule(t, e.Reregister(f.a, Memory{Mem: make([]byte, 64), Base: 0x1000}), "memory")
	wantRule(t, e.Reregister(f.a, Memory{Mem: mem, Access: RemoteWrite}), "access rights")
	if _, err := w.Bind(Binding{Region: e, Base: 0x1000, Len: 8, Access: RemoteRead, By: Scope{f.a, 3}}); err != nil {
		t.Fatal(err)
	}
	wantRule(t, e.Reregister(f.b, good), RuleInUse)
	if !e.Valid() || e.Access() != good.Access || e.Base() != 0x1000 || f.a.Held(pd.MemoryOctets) != 128 || f.b.Held(pd.Regions) != 0 {
		t.Error("a refusal has changed the region")
	}
}

// A region of one stream stays that stream's.
func TestReregisteredRegionKeepsItsStream(t *testing.T) {
	f := newFixture(t)
	e, mem := f.register(RemoteRead, 3)
	if err := e.Reregister(f.a, Memory{Mem: mem, Base: 0x10000, Access: RemoteRead}); err != nil {
		t.Fatal(err)
	}
	f.wantAccess(e.STag(), Scope{f.a, 3}, RemoteRead, 0x10000, 1, 0)
	f.wantAccess(e.STag(), Scope{f.a, 4}, RemoteRead, 0x10000, 1, NotAssociated)
}

// A domain that has no room for the region leaves it where it is, and holds nothing.
func TestReregisterKeepsTheLimitsOfTheNewDomain(t *testing.T) {
	for name, limits := range map[string]pd.Limits{
		"regions": {pd.Regions: 1, pd.MemoryOctets: 1000},
		"octets":  {pd.Regions: 2, pd.MemoryOctets: 100},
	} {
		f := newFixture(t)
		f.m = pd.NewManager(pd.Limits{}, limits)
		f.a, _ = f.m.NewDomain()
		f.b, _ = f.m.NewDomain()
		mem := make([]byte, 64)
		e, err := f.Register(f.a, Memory{Mem: mem, Access: RemoteRead})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Register(f.b, Memory{Mem: make([]byte, 64)}); err != nil {
			t.Fatal(err)
		}
		var limit *pd.LimitError
		if err := e.Reregister(f.b, Memory{Mem: mem}); !errors.As(err, &limit) {
			t.Errorf("%s: got %v; want the domain's limit", name, err)
		}
		if r, o := f.b.Held(pd.Regions), f.b.Held(pd.MemoryOctets); r != 1 || o != 64 {
			t.Errorf("%s: the domain holds %d regions of %d octets", name, r, o)
		}
		f.wantAccess(e.STag(), Scope{Domain: f.a}, RemoteRead, 0, 64, 0)
	}
}
