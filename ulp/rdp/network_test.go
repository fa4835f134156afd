package rdp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A network with a delay and without Jitter keeps the order of segments, those of one moment too; with Jitter they
// overtake each other.
func TestNetworkKeepsOrder(t *testing.T) {
	for _, jitter := range []time.Duration{0, 5 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			n := NewNetwork(1, Faults{Delay: 20 * time.Millisecond, Jitter: jitter})
			from, err := n.Carrier(netip.AddrPort{})
			if err != nil {
				t.Fatal(err)
			}
			to, err := n.Carrier(netip.AddrPort{})
			if err != nil {
				t.Fatal(err)
			}
			const count = 2000
			for i := range uint32(count) {
				from.(*memoryCarrier).send(binary.BigEndian.AppendUint32(nil, i), to.LocalAddr())
				if i%100 == 99 {
					time.Sleep(time.Millisecond)
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
			var got []uint32
			each := func(_ netip.AddrPort, b []byte) { got = append(got, binary.BigEndian.Uint32(b)) }
			if err := to.receive(each, nil); err != nil {
				t.Fatal(err)
			}
			if len(got) != count || slices.IsSorted(got) != (jitter == 0) {
				t.Errorf("jitter %v: %d segments arrive, in order: %t", jitter, len(got), slices.IsSorted(got))
			}
			for _, c := range []Carrier{from, to} {
				if err := c.close(); err != nil && !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}
		})
	}
}
