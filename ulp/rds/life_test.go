package rds

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// The numbers of a node's messages are higher than those of its last life: Linux, which does not learn of the restart,
// drops lower ones that are sent again.
func TestNumbersOfALaterLifeAreHigher(t *testing.T) {
	peer := Addr{Host: ownAddr(9), Port: 1}
	last := uint64(0)
	for range 3 {
		n := nodes(t, 1, transports["tcp"], nil)[0]
		if err := bind(t, n, 4000).SendTo(within(t), nil, peer); err != nil {
			t.Fatal(err)
		}
		next := n.Info(0).Connections[0].Paths[0].NextTX
		if next <= last {
			t.Errorf("the first number is %d; in the life before it was %d", next, last)
		}
		last = next
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A peer that has been idle loses its slot to another one, and an event tells.
func TestIdlePeerIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &simnet.Network{}
		l, err := network.Listen(t.Context(), "192.0.2.2:1")
		if err != nil {
			t.Fatal(err)
		}
		hosts := make(chan netip.Addr, 3)
		events := newEventLog()
		n, err := Open(t.Context(), Config{
			Addr: simNode, Events: events.add, MaxPeers: 1,
			Transports: []Transport{&TCP{Listener: l, PeerOf: func(net.Addr) (netip.Addr, error) { return <-hosts, nil }}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		socket := bind(t, n, 4000)
		connect := func(host netip.Addr) net.Conn {
			hosts <- host
			c, err := network.Dial(t.Context(), "192.0.2.2:1")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write(segment(wire.Header{Sequence: 1, Len: 1, SourcePort: 5000, DestPort: 4000}, []byte("x"))) // unless it is refused
			synctest.Wait()
			return c
		}
		first := connect(simHostile)
		if _, err := socket.TryReceive(); err != nil {
			t.Fatal(err)
		}
		_ = first.Close()
		refused := connect(simGood) // the first has been there just now
		events.wait(t.Context(), t, "refused", func(e *Event) bool { return e.Kind == Refused && e.Peer == simGood })
		_ = refused.Close()
		time.Sleep(11 * time.Second)
		second := connect(simGood)
		defer second.Close()
		if msg, err := socket.TryReceive(); err != nil || msg.Addr.Host != simGood {
			t.Errorf("the second peer's message: %v, %v", msg, err)
		}
		e := events.wait(t.Context(), t, "forgotten", func(e *Event) bool { return e.Kind == Forgotten })
		if e.Peer != simHostile || !errors.Is(e.Err, machine.ErrTooMany) || e.Kind.String() != "peer forgotten" {
			t.Errorf("the event is %v of %v: %v", e.Kind, e.Peer, e.Err)
		}
	})
}
