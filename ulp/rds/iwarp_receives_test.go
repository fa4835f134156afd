package rds

import (
	"testing"
)

// A peer that does not use flow control may send more than there are receives: it waits
// for them, and the connection stays.
func TestPeerWithoutFlowControlWaitsForReceives(t *testing.T) {
	dropped := make(chan Event, 100)
	ns := nodes(t, 2, func(t testing.TB) Transport { return newIWARP(t, &IWARP{NoCredits: true, Receives: 2}) }, func(c *Config) {
		c.Events = func(e Event) {
			if e.Kind == Disconnected || e.Kind == PeerViolation {
				dropped <- e
			}
		}
	})
	ctx := within(t)
	from, to := bind(t, ns[0], 0), bind(t, ns[1], 0)
	const messages = 20
	go func() {
		for range messages {
			if err := from.SendTo(ctx, make([]byte, 500_000), to.Addr()); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range messages {
		if _, err := to.Receive(ctx); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case e := <-dropped:
		t.Errorf("%v: %v", e.Kind, e.Err)
	default:
	}
}
