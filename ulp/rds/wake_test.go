package rds

import (
	"sync"
	"testing"
)

// Many may wait in Send for different reasons, and in Flush: whatever has become possible, the
// one that waits for it continues.
func TestAllWhoWaitToSendGoOn(t *testing.T) { overAll(t, allWhoWait) }

func allWhoWait(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	ns := nodes(2, nil)
	ctx := within(t)
	for range 20 {
		from, err := ns[0].Bind(0, SendBuffer(4000))
		if err != nil {
			t.Fatal(err)
		}
		slow, err := ns[1].Bind(0, ReceiveBuffer(1000))
		if err != nil {
			t.Fatal(err)
		}
		quick := bind(t, ns[1], 0)
		const senders, messages = 4, 10
		var congested, free sync.WaitGroup
		for range senders {
			congested.Go(func() { // until slow reads
				for range messages {
					if err := from.SendTo(ctx, make([]byte, 1000), slow.Addr()); err != nil {
						t.Error(err)
					}
				}
			})
			free.Go(func() {
				for range messages {
					if err := from.SendTo(ctx, make([]byte, 1000), quick.Addr()); err != nil {
						t.Error(err)
					}
				}
			})
			congested.Go(func() {
				if err := from.Flush(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		free.Wait() // though slow does not read
		for _, s := range []*Socket{quick, slow} {
			for range senders * messages {
				if _, err := s.Receive(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		congested.Wait()
		for _, s := range []*Socket{from, slow, quick} {
			s.Close()
		}
	}
}
