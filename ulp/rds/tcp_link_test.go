package rds

import (
	"net"
	"net/netip"
	"testing"

	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// What is flushed while TCP is asked for acknowledgements is written as soon as that is done.
func TestFlushWhileTCPIsAsked(t *testing.T) {
	n := nodes(t, 1, transports["tcp"], nil)[0]
	ours, theirs := net.Pipe()
	l := newTCPLink(ours)
	n.mu.Lock()
	p, id, err := n.m.Request(n.now(), machine.Request{Key: machine.Key{Peer: netip.MustParseAddr("127.0.0.9")}})
	if err != nil {
		t.Fatal(err)
	}
	l.attach(n, p, id)
	l.tx.Lock() // as when TCP is asked
	n.links[p] = attached{link: l, id: id}
	p.Up(n.now(), id, machine.Params{})
	n.unlock() // there is a map to be sent
	l.tx.Unlock()
	go l.asked()
	if _, err := theirs.Read(make([]byte, wire.HeaderLen)); err != nil {
		t.Error(err)
	}
	l.abort()
	_ = theirs.Close() // it is the end of a pipe
}
