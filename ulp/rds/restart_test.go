package rds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"urnic/internal/test/leakcheck"
)

// A node that restarts in mid-traffic is told from one that has lost its connection: the other
// one reports what may be lost, and what it sends later arrives once and in order.
func TestRestartInMidTraffic(t *testing.T) {
	for name, transport := range transports {
		for _, restarts := range []byte{19, 21} { // the one that dials over TCP, or the other one
			t.Run(fmt.Sprint(name, restarts), func(t *testing.T) {
				leakcheck.Check(t)
				restartInMidTraffic(t, ownAddr(restarts), func(addr netip.Addr, events func(Event)) *Node {
					n, err := Open(t.Context(), Config{Addr: addr, Transports: []Transport{transport(t)}, Events: events})
					if err != nil {
						t.Fatal(err)
					}
					return n
				})
			})
		}
	}
}

func restartInMidTraffic(t *testing.T, addr netip.Addr, open func(netip.Addr, func(Event)) *Node) {
	ctx := within(t)
	const lives, messages = 4, 1000 // many more than may be on their way when a life ends
	var mu sync.Mutex
	lost := map[uint64]bool{}
	restarts := 0
	stays := open(ownAddr(20), func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Kind {
		case MessageLost:
			if lost[e.ID] || !errors.Is(e.Err, ErrPeerRestarted) {
				t.Errorf("message %d is lost: %v; again: %v", e.ID, e.Err, lost[e.ID])
			}
			lost[e.ID] = true
		case PeerRestarted:
			restarts++
		case PeerViolation:
			t.Error(e.Err)
		default:
		}
	})
	defer func() {
		if err := stays.Close(); err != nil {
			t.Error(err)
		}
	}()
	from := bind(t, stays, 4000)
	for life := range lives {
		node := open(addr, nil)
		to := bind(t, node, 4000)
		var ids []uint64
		sent := make(chan error, 1)
		go func() {
			for k := range messages {
				id, err := from.Send(ctx, &Message{Addr: to.Addr(), Data: binary.BigEndian.AppendUint32(nil, uint32(life*messages+k))})
				if err != nil {
					sent <- err
					return
				}
				ids = append(ids, id)
			}
			sent <- nil
		}()
		last := -1
		got := map[int]bool{}
		take := func(msg *Message) {
			k := int(binary.BigEndian.Uint32(msg.Data))
			if k <= last {
				t.Errorf("life %d: message %d comes after %d", life, k, last)
			}
			last = k
			got[k] = true
		}
		if life < lives-1 {
			for range messages / 4 {
				msg, err := to.Receive(ctx)
				if err != nil {
					t.Fatal(err)
				}
				take(msg)
			}
			if err := node.Close(); err != nil { // with messages on their way, and unread
				t.Error(err)
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if err := from.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		for msg, err := to.TryReceive(); err == nil; msg, err = to.TryReceive() {
			take(msg)
		}
		mu.Lock()
		for k, id := range ids {
			if !got[life*messages+k] && !lost[id] {
				t.Errorf("message %d was neither delivered nor reported as lost", k)
			}
		}
		mu.Unlock()
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if restarts != lives-1 {
		t.Errorf("%d restarts are reported; want %d", restarts, lives-1)
	}
}
