package udp

import (
	"bytes"
	"net/netip"
	"testing"
)

var (
	here  = netip.MustParseAddrPort("127.0.0.1:7001")
	there = netip.MustParseAddrPort("127.0.0.1:7002")
)

func TestDatagramsThatAreAlikeLeaveTogether(t *testing.T) {
	type sent struct {
		to   netip.AddrPort
		n    int
		join bool
	}
	for _, tt := range []struct {
		name string
		sent []sent
		want []int // datagrams of each message
	}{
		{"the last may be shorter", []sent{{here, 100, true}, {here, 100, true}, {here, 50, true}, {here, 50, true}}, []int{3, 1}},
		{"none may be longer", []sent{{here, 100, true}, {here, 101, true}}, []int{1, 1}},
		{"to one destination", []sent{{here, 100, true}, {there, 100, true}, {here, 100, true}}, []int{1, 1, 1}},
		{"only where the kernel joins them", []sent{{here, 100, false}, {here, 100, false}}, []int{1, 1}},
		{"no more than the kernel takes", []sent{{here, 16384, true}, {here, 16384, true}, {here, 16384, true}, {here, 16384, true}, {here, 16384, true}}, []int{3, 2}},
	} {
		var o Outbox
		var want []byte
		for i, s := range tt.sent {
			b := o.Room(s.n)
			for j := range s.n {
				b[j] = byte(i)
			}
			want = append(want, b[:s.n]...)
			o.Add(s.n, s.to, s.join)
		}
		var got []byte
		for i, m := range o.messages {
			got = append(got, o.arena[m.off:m.off+m.n]...)
			if i >= len(tt.want) || m.datagrams != tt.want[i] {
				t.Errorf("%s: %+v", tt.name, o.messages)
				break
			}
		}
		if !bytes.Equal(got, want) || len(o.messages) != len(tt.want) {
			t.Errorf("%s: %d messages, and other bytes", tt.name, len(o.messages))
		}
	}
}

func TestOutboxHasNoRoomBeyondItsEnd(t *testing.T) {
	const size = 16384
	var o Outbox
	n := 0
	for o.Room(size) != nil {
		o.Add(size, here, true)
		n++
	}
	if n != OutboxSize/size {
		t.Errorf("%d datagrams", n)
	}
	if o.Reset(); o.Room(size) == nil {
		t.Error("there is no room in an empty outbox")
	}
}
