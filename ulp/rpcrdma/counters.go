package rpcrdma

import "sync/atomic"

type counters struct {
	received, discarded, late, refused, served atomic.Uint64
}

// Stats counts what has come over a connection.
type Stats struct {
	Received  uint64 // messages
	Discarded uint64 // of them, those that were for nobody, or malformed (RFC 8166 §4.5)
	Late      uint64 // replies to calls whose caller had given up
	Refused   uint64 // calls that were answered with an RDMA_ERROR
	Served    uint64 // calls that were handed to a service
}

func (c *counters) read() Stats {
	return Stats{
		Received: c.received.Load(), Discarded: c.discarded.Load(), Late: c.late.Load(),
		Refused: c.refused.Load(), Served: c.served.Load(),
	}
}
