package udp

import (
	"bytes"
	"net/netip"
	"testing"
)

// Who sends to a port at which nobody is hears where, and which datagram it was.
func TestDatagramThatIsRefused(t *testing.T) {
	var ends [2]*Socket
	for i := range ends {
		s, err := Open(t.Context(), "udp4", "127.0.0.1:0", 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = s
	}
	nobody := ends[1].Local()
	if err := ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	defer ends[0].Close()
	sent := bytes.Repeat([]byte("refused "), 100)
	var o Outbox
	copy(o.Room(len(sent)), sent)
	o.Add(len(sent), nobody, false)
	if err := ends[0].Send(&o); err != nil {
		t.Fatal(err)
	}
	for told := false; !told; {
		_, _, err := ends[0].Receive(0, true, func(Datagram) { t.Error("a datagram has come") }, func(to netip.AddrPort, datagram []byte) {
			told = true
			if to != nobody || !bytes.Equal(datagram, sent[:refusedBytes]) {
				t.Errorf("%v refuses %q", to, datagram)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
