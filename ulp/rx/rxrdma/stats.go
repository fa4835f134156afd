package rxrdma

import (
	"net/netip"

	"urnic/ulp/rx/internal/work"
	"urnic/ulp/rx/rxrdma/machine"
)

// A Rule is a rule of the protocol that a peer can break.
type Rule = machine.Rule

// A Violation is how a peer has broken a rule. It has cost that connection.
type Violation struct {
	Peer netip.AddrPort
	Rule Rule
	Err  error
}

// Stats are what an endpoint has done and has.
type Stats struct {
	Accepted uint64 // connections of clients
	Refused  uint64 // requests of clients
	Dialled  uint64 // connections to servers
	Lost     uint64 // connections that ended without being closed
	Idle     uint64 // connections of clients that were closed, as they had no calls

	Calls       uint64 // that were begun, of both kinds
	Sends       uint64 // messages sent
	Receives    uint64 // messages received
	Writes      uint64 // RDMA Writes that were posted
	WriteBytes  uint64 // their bytes
	Placed      uint64 // parts that peers have written
	PlacedBytes uint64 // their bytes

	Violations [machine.Rules]uint64 // by rule

	Conns   int   // that there are, of both kinds
	Memory  int64 // bytes of the receives of clients' connections
	Workers work.Stats
}

// Stats reports what the endpoint has done and has.
func (e *Endpoint) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Conns, s.Memory = len(e.links), e.memory
	s.Workers = e.pool.Stats()
	for l := range e.links {
		l.mu.Lock()
		l.counts.addTo(&s)
		l.mu.Unlock()
	}
	return s
}

// counts are what a link has done.
type counts struct{ idle, calls, sends, receives, writes, writeBytes, placed, placedBytes uint64 }

func (c *counts) addTo(s *Stats) {
	s.Idle += c.idle
	s.Calls += c.calls
	s.Sends += c.sends
	s.Receives += c.receives
	s.Writes += c.writes
	s.WriteBytes += c.writeBytes
	s.Placed += c.placed
	s.PlacedBytes += c.placedBytes
}

// violated counts and reports that a peer has broken a rule.
func (e *Endpoint) violated(v Violation) {
	e.mu.Lock()
	e.stats.Violations[v.Rule]++
	e.mu.Unlock()
	e.cfg.Log.Warn("rxrdma: a peer has broken a rule", "peer", v.Peer, "rule", v.Rule.String(), "error", v.Err)
	if e.cfg.Report != nil {
		e.cfg.Report(v)
	}
}
