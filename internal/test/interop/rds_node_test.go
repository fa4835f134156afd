//go:build interop

package interop

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"urnic/ulp/rds"
)

// An rdsNode is a node of ours that keeps its events.
type rdsNode struct {
	*rds.Node
	t testing.TB

	mu      sync.Mutex
	events  []rds.Event
	changed chan struct{}
}

// openRDS opens a node with an address. It is closed with the test.
func openRDS(t testing.TB, cfg rds.Config) *rdsNode {
	t.Helper()
	n := &rdsNode{t: t, changed: make(chan struct{})}
	cfg.Events = n.event
	var err error
	if n.Node, err = rds.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			n.describe()
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// describe logs what a node is about when its test fails.
func (n *rdsNode) describe() {
	i := n.Info(10)
	i.Sockets = slices.DeleteFunc(i.Sockets, func(s rds.SocketInfo) bool { return s.Unsent+s.Unread == 0 })
	state, err := json.Marshal(i)
	n.t.Logf("%s %v", state, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.of(rds.PeerViolation) {
		n.t.Log(e.Err)
	}
}

func (n *rdsNode) event(e rds.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, e)
	close(n.changed)
	n.changed = make(chan struct{})
}

// until waits for as many events of a kind.
func (n *rdsNode) until(kind rds.EventKind, count int) {
	n.t.Helper()
	ctx, cancel := n.patient()
	defer cancel()
	for {
		n.mu.Lock()
		all, changed := n.of(kind), n.changed
		n.mu.Unlock()
		if len(all) >= count {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			n.t.Fatalf("%d times %q was reported, and not %d times", len(all), kind, count)
		}
	}
}

// of returns the events of a kind. The caller has the lock.
func (n *rdsNode) of(kind rds.EventKind) (all []rds.Event) {
	for _, e := range n.events {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

// wantNone checks that there were no events of some kinds.
func (n *rdsNode) wantNone(kinds ...rds.EventKind) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range kinds {
		if all := n.of(k); len(all) > 0 {
			n.t.Errorf("%d times %q was reported; the first is %+v", len(all), k, all[0])
		}
	}
}

// patient returns a context for what happens for certain.
func (n *rdsNode) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(n.t.Context(), patience)
}

// bind binds sockets to count ports from first on.
func (n *rdsNode) bind(first uint16, count int, options ...rds.SocketOption) []*rds.Socket {
	n.t.Helper()
	sockets := make([]*rds.Socket, count)
	for i := range sockets {
		var err error
		if sockets[i], err = n.Bind(first+uint16(i), options...); err != nil {
			n.t.Fatal(err)
		}
	}
	return sockets
}

// rdsMessage is message number of so many bytes, as rdspeer makes it.
func rdsMessage(size int, number uint64) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(number*7 + uint64(i*31+i>>8))
	}
	if size >= 8 {
		binary.BigEndian.PutUint64(b, number)
	}
	return b
}

// An rdsPair is two sockets, and what goes from the one to the other.
type rdsPair struct{ from, to uint16 }

// An rdsFlow is what has gone from a socket to another.
type rdsFlow struct {
	messages, lost, doubled, wrong int
	next                           uint64
	sum                            hash.Hash
}

// add notes a message, as rdspeer does.
func (f *rdsFlow) add(b []byte) {
	if f.sum == nil {
		f.sum = sha256.New()
	}
	f.sum.Write(b)
	number := f.next
	if len(b) >= 8 {
		number = binary.BigEndian.Uint64(b)
	}
	f.messages++
	if string(rdsMessage(len(b), number)) != string(b) {
		f.wrong++
	}
	if number < f.next {
		f.doubled++
		return
	}
	f.lost += int(number - f.next)
	f.next = number + 1
}

// sha256 returns the hash of all messages, as text.
func (f *rdsFlow) sha256() string { return hex.EncodeToString(f.sum.Sum(nil)) }

// sendNumbered sends from each socket so many messages to the peer's port with the same index, and returns what went.
func (n *rdsNode) sendNumbered(sockets []*rds.Socket, peer rds.Addr, count int, sizes []int) map[rdsPair]*rdsFlow {
	n.t.Helper()
	ctx, cancel := n.patient()
	defer cancel()
	flows := map[rdsPair]*rdsFlow{}
	var wg sync.WaitGroup
	for i, s := range sockets {
		to := peer
		to.Port += uint16(i)
		f := &rdsFlow{}
		flows[rdsPair{s.Addr().Port, to.Port}] = f
		wg.Go(func() {
			for k := range count {
				b := rdsMessage(sizes[(k+i)%len(sizes)], uint64(k))
				if err := s.SendTo(ctx, b, to); err != nil {
					n.t.Errorf("message %d from port %d: %v", k, s.Addr().Port, err)
					return
				}
				f.add(b)
			}
		})
	}
	wg.Wait()
	return flows
}

// recvNumbered receives so many messages at each socket, and returns what came.
func (n *rdsNode) recvNumbered(sockets []*rds.Socket, count int) map[rdsPair]*rdsFlow {
	n.t.Helper()
	ctx, cancel := n.patient()
	defer cancel()
	flows := map[rdsPair]*rdsFlow{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, s := range sockets {
		wg.Go(func() {
			for k := range count {
				msg, err := s.Receive(ctx)
				if err != nil {
					n.t.Errorf("message %d to port %d: %v", k, s.Addr().Port, err)
					return
				}
				pair := rdsPair{msg.Addr.Port, s.Addr().Port}
				mu.Lock()
				f := flows[pair]
				if f == nil {
					f = &rdsFlow{}
					flows[pair] = f
				}
				mu.Unlock()
				f.add(msg.Data) // from each port goes to one socket only
			}
		})
	}
	wg.Wait()
	return flows
}

// flush waits until the peer has acknowledged all that sockets have sent.
func (n *rdsNode) flush(sockets []*rds.Socket) {
	n.t.Helper()
	ctx, cancel := n.patient()
	defer cancel()
	for _, s := range sockets {
		if err := s.Flush(ctx); err != nil {
			n.t.Errorf("port %d: flush: %v", s.Addr().Port, err)
		}
	}
}

// wantSame checks that rdspeer has printed the same about each pair: as many messages, with
// the same hash, and none of them lost, doubled, out of order or changed on either side.
func wantSame(t testing.TB, ours map[rdsPair]*rdsFlow, theirs *process) {
	t.Helper()
	found := 0
	theirs.mu.Lock()
	defer theirs.mu.Unlock()
	for _, line := range theirs.lines {
		var p rdsPair
		if n, _ := fmt.Sscanf(line, "pair from=%d to=%d", &p.from, &p.to); n != 2 {
			continue
		}
		found++
		f := ours[p]
		switch {
		case f == nil:
			t.Errorf("nothing of ours: %s", line)
		case f.lost+f.doubled+f.wrong > 0:
			t.Errorf("of %d messages from port %d to port %d, %d are lost, %d doubled, %d changed", f.messages, p.from, p.to, f.lost, f.doubled, f.wrong)
		case !containsAll(line+" ", []string{fmt.Sprintf("messages=%d ", f.messages), "sha256=" + f.sha256()}):
			t.Errorf("%d messages with SHA-256 %s on our side: %s", f.messages, f.sha256(), line)
		}
	}
	if found != len(ours) {
		t.Errorf("the guest tells of %d pairs; there are %d", found, len(ours))
	}
}

// at is a port of a host.
func at(host string, port uint16) rds.Addr {
	return rds.Addr{Host: netip.MustParseAddr(host), Port: port}
}
