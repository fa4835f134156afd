package pd

import "testing"

func TestChargeTakesWhateverTheLimitsAndTellsOfThem(t *testing.T) {
	m := NewManager(Limits{StreamOctets: 10}, Limits{StreamOctets: 6})
	a, err := m.NewDomain()
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.NewDomain()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		d                    *Domain
		n                    uint64
		within, overA, overM bool
	}{
		{a, 6, true, false, false},
		{a, 1, false, true, false},
		{b, 3, true, true, false},
		{b, 1, false, true, true},
	} {
		if within := step.d.Charge(StreamOctets, step.n); within != step.within {
			t.Errorf("charging %d: within the limits: %v", step.n, within)
		}
		if a.Exceeds(StreamOctets) != step.overA || m.Exceeds(StreamOctets) != step.overM || b.Exceeds(StreamOctets) {
			t.Errorf("after %d: the first domain exceeds its limit: %v, the device: %v", step.n, a.Exceeds(StreamOctets), m.Exceeds(StreamOctets))
		}
	}
	a.Release(StreamOctets, 7)
	b.Release(StreamOctets, 4)
	if a.Held(StreamOctets) != 0 || b.Held(StreamOctets) != 0 || m.Held(StreamOctets) != 0 || m.Exceeds(StreamOctets) {
		t.Error("something is held after all was released")
	}
	const unknown = Resource(NumResources)
	if a.Charge(unknown, 1) || a.Exceeds(unknown) || m.Exceeds(unknown) {
		t.Error("of an unknown resource something can be had")
	}
}
