package rxudp

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"urnic/internal/host/udp"
)

func TestSpinsInVainBecomeSeldom(t *testing.T) {
	var s spinner
	spins := func(waits int, pays bool) (n int) {
		for range waits {
			if !s.due() {
				continue
			}
			n++
			if pays {
				s.won()
			} else {
				s.lost()
			}
		}
		return n
	}
	if n := spins(100, true); n != 100 {
		t.Errorf("%d spins of 100 that pay", n)
	}
	if n := spins(1000, false); n < 8 || n > 12 {
		t.Errorf("%d spins of 1000 in vain: want about one for each doubling", n)
	}
	if n := spins(100_000, false); n < 350 || n > 450 {
		t.Errorf("%d spins of 100000 in vain; want one in 256", n)
	}
	if n := spins(1000, true); n < 700 {
		t.Errorf("%d spins of 1000 once they pay again", n)
	}
	if n := spins(100, true); n != 100 {
		t.Errorf("%d spins of the next 100", n)
	}
}

func TestSocketSpinsNoLongerThanItShould(t *testing.T) {
	s, err := udp.Open(t.Context(), "udp4", "127.0.0.1:0", defaultBuffer)
	if err != nil {
		t.Fatal(err)
	}
	each := func(udp.Datagram) { t.Error("something has come") }
	unreachable := func(netip.AddrPort, []byte) { t.Error("somebody is unreachable") }
	if got, late, err := s.Receive(budget, false, each, unreachable); got || !late || err != nil {
		t.Errorf("a spin ends with %t, %t, %v", got, late, err)
	}
	ended := make(chan error)
	go func() {
		_, _, err := s.Receive(budget, true, each, unreachable)
		ended <- err
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a wait ends with %v", err)
	}
}
