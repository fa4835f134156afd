package wire

import (
	"encoding/binary"
	"testing"
)

// The document describes the map as 1,024 little-endian words of 64 bits (RDS 3.1,
// "Congestion control").
func TestCongestionMapHasTheDocumentsBitOrder(t *testing.T) {
	for _, port := range []uint16{0, 1, 7, 8, 63, 64, 4000, 32768, 65535} {
		var m CongestionMap
		if m.Congested(port) || !m.Set(port) || m.Set(port) || !m.Congested(port) {
			t.Errorf("port %d is not set once", port)
		}
		for word := range MapLen / 8 {
			want := uint64(0)
			if word == int(port)/64 {
				want = 1 << (port % 64)
			}
			if got := binary.LittleEndian.Uint64(m[8*word:]); got != want {
				t.Errorf("port %d: word %d is %#x, want %#x", port, word, got, want)
			}
		}
		if got := m.Ports(2); len(got) != 1 || got[0] != port {
			t.Errorf("port %d: the congested ports are %v", port, got)
		}
		if !m.Clear(port) || m.Clear(port) || m != (CongestionMap{}) {
			t.Errorf("port %d is not cleared once", port)
		}
	}
	var m CongestionMap
	m.Set(4000)
	if m[500] != 1 { // as in Linux's map
		t.Errorf("byte 500 is %#x", m[500])
	}
	m.Set(4001)
	m.Set(0)
	if got := m.Ports(2); len(got) != 2 || got[0] != 0 || got[1] != 4000 {
		t.Errorf("of three ports, the first two are %v", got)
	}
}

// Taking a map tells whether a port is free that was not: those that have become congested
// do not count.
func TestTakeTellsOfFreedPorts(t *testing.T) {
	var m, next CongestionMap
	for _, step := range []struct {
		set, clear uint16
		freed      bool
	}{{set: 77}, {set: 65535}, {}, {set: 3, clear: 77, freed: true}, {clear: 65535, freed: true}} {
		if step.set != 0 {
			next.Set(step.set)
		}
		if step.clear != 0 {
			next.Clear(step.clear)
		}
		if freed := m.Take(next[:]); freed != step.freed || m != next {
			t.Errorf("%+v: freed: %v; the same map: %v", step, freed, m == next)
		}
	}
}
