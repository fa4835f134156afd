package rdpconn

import (
	"bytes"
	"maps"
	"net/netip"
	"sync"

	"urnic/conformance/wire"
)

// Of how many peers, and how many segments of each, a tap keeps what comes before it is known whether it is recorded.
const (
	maxPeers = 64
	maxEarly = 64
)

// A tap is the recorder of an endpoint. It sorts segments by the peer, and keeps those that come before it is known who
// records them: a connection is accepted by then, or dialed.
type tap struct {
	local netip.AddrPort

	mu    sync.Mutex
	peers map[netip.AddrPort]*trace
}

// A trace is what passes between the endpoint and one peer.
type trace struct {
	known bool // whether it is recorded
	to    wire.SegmentRecorder
	early []event
}

type event struct {
	from, to netip.AddrPort
	segment  []byte
}

func newTap(local netip.AddrPort) *tap {
	return &tap{local: local, peers: map[netip.AddrPort]*trace{}}
}

// Segment implements rdp.Recorder.
func (t *tap) Segment(from, to netip.AddrPort, segment []byte) {
	peer := from
	if from.Port() == t.local.Port() && to.Port() != t.local.Port() {
		peer = to
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.peers[peer]
	if tr == nil {
		if len(t.peers) >= maxPeers { // what is left of connections that are over
			maps.DeleteFunc(t.peers, func(_ netip.AddrPort, tr *trace) bool { return !tr.known })
		}
		tr = &trace{}
		t.peers[peer] = tr
	}
	switch {
	case tr.known && tr.to != nil:
		tr.to.Segment(from, to, segment)
	case !tr.known && len(tr.early) < maxEarly:
		tr.early = append(tr.early, event{from, to, bytes.Clone(segment)})
	}
}

// record says who records what passes to and from a peer; nil: nobody.
func (t *tap) record(peer netip.AddrPort, to wire.SegmentRecorder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.peers[peer]
	if tr == nil {
		tr = &trace{}
		t.peers[peer] = tr
	}
	if to != nil {
		for _, e := range tr.early {
			to.Segment(e.from, e.to, e.segment)
		}
	}
	tr.known, tr.to, tr.early = true, to, nil
}

// forget is the end of a recording.
func (t *tap) forget(peer netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.peers, peer)
}
