package rds

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// cut ends some connection of a node.
func (n *Node) cut(rng *rand.Rand) {
	n.mu.Lock()
	defer n.mu.Unlock()
	skip := 0
	if len(n.links) > 0 {
		skip = rng.IntN(len(n.links))
	}
	for _, a := range n.links {
		if skip == 0 {
			a.link.abort()
			return
		}
		skip--
	}
}

// Connections are cut at random while messages of random sizes flow both ways between many
// sockets. Each message comes once, and in order.
func TestMessagesSurviveTheirConnections(t *testing.T) { overAll(t, messagesSurvive) }

func messagesSurvive(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	ns := nodes(3, nil)
	ctx := within(t)
	const sockets, messages = 12, 300
	received := make(chan struct{}, sockets*messages)
	for i := range uint16(sockets) {
		from, to := bind(t, ns[i%3], 100+i), bind(t, ns[(i+1+i/3%2)%3], 200+i)
		go func() {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			for k := range uint32(messages) {
				data := make([]byte, 4+rng.IntN(1<<rng.IntN(18)))
				for j := range data {
					data[j] = byte(k)
				}
				binary.BigEndian.PutUint32(data, k)
				if err := from.SendTo(ctx, data, to.Addr()); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		go func() {
			for k := range uint32(messages) {
				msg, err := to.Receive(ctx)
				if err != nil {
					t.Errorf("socket %d, message %d: %v", i, k, err)
					return
				}
				if got := binary.BigEndian.Uint32(msg.Data); got != k || msg.Addr != from.Addr() {
					t.Errorf("socket %d: message %d from %v; want %d", i, got, msg.Addr, k)
					return
				}
				if rest := msg.Data[4:]; bytes.Count(rest, []byte{byte(k)}) != len(rest) {
					t.Errorf("socket %d: message %d is damaged", i, k)
					return
				}
				received <- struct{}{}
			}
		}()
	}
	rng := rand.New(rand.NewPCG(1, 1))
	cuts, next := 0, 1
	for n := 1; n <= sockets*messages; n++ {
		select {
		case <-received:
		case <-ctx.Done():
			t.Fatalf("%d of %d messages have come", n-1, sockets*messages)
		}
		if n == next {
			ns[rng.IntN(3)].cut(rng)
			cuts++
			next += 1 + rng.IntN(20)
		}
	}
	t.Logf("%d cuts", cuts)
}
