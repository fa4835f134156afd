package pd

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
)

func TestLimitOfTheDeviceIsKept(t *testing.T) {
	m := NewManager(Limits{CQEntries: 10}, Limits{})
	a, _ := m.NewDomain()
	b, _ := m.NewDomain()
	wantHeld := func(device, ofA, ofB uint64) {
		t.Helper()
		if m.Held(CQEntries) != device || a.Held(CQEntries) != ofA || b.Held(CQEntries) != ofB {
			t.Errorf("%d, %d and %d are held; want %d, %d and %d", m.Held(CQEntries), a.Held(CQEntries), b.Held(CQEntries), device, ofA, ofB)
		}
	}
	if err := a.Reserve(CQEntries, 7); err != nil {
		t.Fatal(err)
	}
	if err := m.Reserve(CQEntries, 2); err != nil { // on behalf of no domain
		t.Fatal(err)
	}
	var limit *LimitError
	for name, reserve := range map[string]func(Resource, uint64) error{"device": m.Reserve, "domain a": a.Reserve, "domain b": b.Reserve} {
		if err := reserve(CQEntries, 2); !errors.As(err, &limit) || *limit != (LimitError{CQEntries, 0, 10, 9, 2}) {
			t.Errorf("%s: two on top of nine of ten: %v", name, err)
		}
		wantHeld(9, 7, 0)
	}
	if err := b.Reserve(CQEntries, 1); err != nil {
		t.Error(err)
	}
	wantHeld(10, 7, 1)
	a.Release(CQEntries, 7)
	b.Release(CQEntries, 1)
	m.Release(CQEntries, 2)
	wantHeld(0, 0, 0)
	if err := a.Reserve(CQEntries, 11); !errors.As(err, &limit) || *limit != (LimitError{CQEntries, a.ID(), 10, 0, 11}) {
		t.Errorf("eleven of ten: %v", err)
	}
}

func TestNoDomainTakesMoreThanItsShare(t *testing.T) {
	m := NewManager(Limits{QueuePairs: 10}, Limits{QueuePairs: 6})
	a, _ := m.NewDomain()
	b, _ := m.NewDomain()
	if err := a.Reserve(QueuePairs, 7); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("limit of the protection domain %d:", a.ID())) {
		t.Errorf("seven of ten for one domain: %v; want the domain's limit", err)
	}
	if err := a.Reserve(QueuePairs, 6); err != nil {
		t.Fatal(err)
	}
	var limit *LimitError
	if err := b.Reserve(QueuePairs, 5); !errors.As(err, &limit) || limit.Domain != 0 || !strings.Contains(err.Error(), "limit of the device") {
		t.Errorf("five more on top of six of ten: %v; want the device's limit", err)
	}
	if b.Held(QueuePairs) != 0 {
		t.Errorf("the refused domain holds %d", b.Held(QueuePairs))
	}
	if err := b.Reserve(QueuePairs, 4); err != nil {
		t.Errorf("the other domain's share: %v", err)
	}
}

func TestHugeReservationDoesNotWrap(t *testing.T) {
	m := NewManager(Limits{MemoryOctets: 100}, Limits{})
	if err := m.Reserve(MemoryOctets, 50); err != nil {
		t.Fatal(err)
	}
	if err := m.Reserve(MemoryOctets, math.MaxUint64-10); err == nil {
		t.Error("nearly 2^64 octets were granted")
	}
}

func TestDefaultsFillZeros(t *testing.T) {
	device, domain := NewManager(Limits{QueuePairs: 5}, Limits{Regions: 7}).Limits()
	def := DefaultLimits()
	for r := range Resource(NumResources) {
		if def[r] == 0 {
			t.Errorf("no default for %v", r)
		}
	}
	if device[QueuePairs] != 5 || domain[QueuePairs] != 5 || device[Regions] != def[Regions] || domain[Regions] != 7 {
		t.Errorf("limits %v and %v", device, domain)
	}
}

func TestDomainIDsAreNeverReused(t *testing.T) {
	m := NewManager(Limits{}, Limits{})
	seen := map[ID]bool{0: true}
	for range 100 {
		d, err := m.NewDomain()
		if err != nil || seen[d.ID()] {
			t.Fatalf("domain %v, %v", d, err)
		}
		seen[d.ID()] = true
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if m.Held(Domains) != 0 {
		t.Errorf("%d domains held", m.Held(Domains))
	}
}

func TestDomainInUseCannotBeClosed(t *testing.T) {
	m := NewManager(Limits{Domains: 1}, Limits{})
	d, _ := m.NewDomain()
	if _, err := m.NewDomain(); err == nil {
		t.Error("a second domain was granted")
	}
	if err := d.Reserve(Windows, 1); err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if err := d.Close(); !errors.As(err, &busy) || busy.Resource != Windows || !strings.Contains(err.Error(), "memory windows") {
		t.Errorf("close with a window: %v", err)
	}
	d.Release(Windows, 1)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	var closed *ClosedError
	if err := d.Reserve(Windows, 1); !errors.As(err, &closed) || closed.Error() == "" {
		t.Errorf("reservation after close: %v", err)
	}
	if _, err := m.NewDomain(); err != nil {
		t.Errorf("a domain after the other was closed: %v", err)
	}
}

func TestConcurrentReservationsNeverExceedTheLimit(t *testing.T) {
	m := NewManager(Limits{HalfOpen: 50}, Limits{})
	var wg sync.WaitGroup
	granted := make(chan bool, 800)
	for range 8 {
		wg.Go(func() {
			for range 100 {
				granted <- m.Reserve(HalfOpen, 1) == nil
			}
		})
	}
	wg.Wait()
	close(granted)
	n := 0
	for ok := range granted {
		if ok {
			n++
		}
	}
	if n != 50 || m.Held(HalfOpen) != 50 {
		t.Errorf("%d granted, %d held; want 50", n, m.Held(HalfOpen))
	}
}

func TestOfAnUnknownResourceThereIsNothing(t *testing.T) {
	const unknown = Resource(NumResources)
	m := NewManager(Limits{}, Limits{})
	d, err := m.NewDomain()
	if err != nil {
		t.Fatal(err)
	}
	for name, account := range map[string]interface {
		Reserve(r Resource, n uint64) error
		Release(r Resource, n uint64)
		Held(r Resource) uint64
	}{"device": m, "domain": d} {
		for _, n := range []uint64{0, 1} {
			var limit *LimitError
			if err := account.Reserve(unknown, n); !errors.As(err, &limit) || limit.Resource != unknown || limit.Limit != 0 {
				t.Errorf("%s: %d of it were asked for: %v", name, n, err)
			}
		}
		account.Release(unknown, 1)
		if n := account.Held(unknown); n != 0 {
			t.Errorf("%s: %d of it are held", name, n)
		}
	}
}

func TestResourcesHaveNames(t *testing.T) {
	for r := range Resource(NumResources) {
		if r.String() == "" {
			t.Errorf("resource %d has no name", uint8(r))
		}
	}
	if got := Resource(200).String(); got != "resource 200" {
		t.Errorf("got %q", got)
	}
}
