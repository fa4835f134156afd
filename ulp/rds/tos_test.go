package rds

import (
	"sync/atomic"
	"testing"
)

// Over RDMA, a type of service has a connection of its own, and the receiver learns it. A
// connection of TCP does not tell one: all messages share it, as on Linux.
func TestTypesOfService(t *testing.T) { overAll(t, typesOfService) }

func typesOfService(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	var lost atomic.Int32
	ns := nodes(2, func(c *Config) {
		c.Events = func(e Event) {
			if e.Kind == Disconnected {
				lost.Add(1)
			}
		}
	})
	ctx := within(t)
	a, b := bind(t, ns[0], 0), bind(t, ns[1], 0)
	told := uint8(0)
	for range 3 {
		for _, tos := range []uint8{0, 5, 255} {
			to := b.Addr()
			to.TOS = tos
			if err := a.SendTo(ctx, []byte{tos}, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := map[byte]int{}
	for range 9 {
		msg, err := b.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		seen[msg.Data[0]]++
		told |= msg.Addr.TOS
		if _, ok := ns[0].cfg.Transports[0].(*IWARP); ok && msg.Addr.TOS != msg.Data[0] {
			t.Errorf("a message with type %d came with %d", msg.Data[0], msg.Addr.TOS)
		}
	}
	if n := lost.Load(); n != 0 {
		t.Errorf("%d connections were lost", n)
	}
	if len(seen) != 3 || seen[0] != 3 || seen[5] != 3 || seen[255] != 3 {
		t.Errorf("messages came of these types: %v", seen)
	}
	if _, ok := ns[0].cfg.Transports[0].(*TCP); ok && told != 0 {
		t.Errorf("over TCP, a message came with type %d", told)
	}
}
