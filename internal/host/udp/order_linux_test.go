package udp

import (
	"net/netip"
	"testing"
)

// What the sender of a datagram has written, its receiver may read: the race detector knows that too.
func TestDatagramsOrderWhatTheirEndsDo(t *testing.T) {
	var ends [2]*Socket
	for i := range ends {
		s, err := Open(t.Context(), "udp4", "127.0.0.1:0", 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ends[i] = s
	}
	var shared int
	go func() {
		shared = 1
		var o Outbox
		o.Room(1)[0] = 'x'
		o.Add(1, ends[1].Local(), false)
		if err := ends[0].Send(&o); err != nil {
			t.Error(err)
		}
	}()
	got := 0
	for got == 0 {
		_, _, err := ends[1].Receive(0, true, func(Datagram) { got++ }, func(netip.AddrPort, []byte) {})
		if err != nil {
			t.Fatal(err)
		}
	}
	if shared != 1 {
		t.Errorf("the sender wrote %d", shared)
	}
}
