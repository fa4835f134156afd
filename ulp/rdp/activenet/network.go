package activenet

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Network has nodes, links between them, and the time. It is not for concurrent use.
type Network struct {
	seed   uint64
	now    time.Duration
	serial int
	events agenda
	nodes  []*Node
	links  []*Link
	flows  []*Flow
	free   []*Packet
}

// New returns an empty network at time 0. The seed decides everything random in it.
func New(seed uint64) *Network { return &Network{seed: seed} }

// Now returns the time in the network.
func (n *Network) Now() time.Duration { return n.now }

// At has something done at a time, or now if that is over. What is for the same time is done
// in the order in which it was asked for.
func (n *Network) At(t time.Duration, do func()) { n.schedule(event{at: t, do: do}) }

// schedule puts an event on the agenda.
func (n *Network) schedule(e event) {
	n.serial++
	e.at, e.serial = max(e.at, n.now), n.serial
	n.events.push(e)
}

// After has something done after a while.
func (n *Network) After(d time.Duration, do func()) { n.At(n.now+max(0, d), do) }

// Every has something done at each multiple of an interval from now on, as long as the
// network runs. An interval that is not positive does nothing.
func (n *Network) Every(interval time.Duration, do func()) {
	if interval <= 0 {
		return
	}
	n.After(interval, func() {
		do()
		n.Every(interval, do)
	})
}

// Run lets the time pass up to a moment, with all that is to be done until then.
func (n *Network) Run(until time.Duration) {
	for len(n.events) > 0 && n.events[0].at <= until {
		e := n.events.pop()
		n.now = e.at
		if e.packet != nil {
			e.pass(e.packet)
		} else {
			e.do()
		}
	}
	n.now = max(n.now, until)
}

// random returns a source of randomness of its own for a part of the network, so that one part does
// not change what another one draws.
func (n *Network) random(part uint64) *rand.Rand { return rand.New(rand.NewPCG(n.seed, part)) }

// A Node is a host or a hop.
type Node struct {
	name  string
	links []*Link // that leave it
}

// Node adds a node.
func (n *Network) Node(name string) *Node {
	node := &Node{name: name}
	n.nodes = append(n.nodes, node)
	return node
}

// String returns the name.
func (n *Node) String() string { return n.name }

// path returns the links from one node to another, as few as possible.
func (n *Network) path(from, to *Node) ([]*Link, error) {
	came := map[*Node]*Link{from: nil}
	for queue := []*Node{from}; len(queue) > 0; queue = queue[1:] {
		for _, l := range queue[0].links {
			if _, seen := came[l.to]; !seen {
				came[l.to] = l
				queue = append(queue, l.to)
			}
		}
	}
	if _, reached := came[to]; !reached {
		return nil, fmt.Errorf("activenet: no link leads from %v to %v: add one with Network.Link", from, to)
	}
	var path []*Link
	for at := to; at != from; at = came[at].from {
		path = append([]*Link{came[at]}, path...)
	}
	return path, nil
}
