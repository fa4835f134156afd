package rdsflow

import (
	"fmt"
	"io"
	"strings"

	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
)

// Counts counts what one side has sent.
type Counts struct {
	Data          int    `json:"data"`
	DataBytes     uint64 `json:"data_bytes"`
	Pings         int    `json:"pings"`
	Pongs         int    `json:"pongs"`
	Probes        int    `json:"probes"`
	Maps          int    `json:"congestion_maps"`
	Acks          int    `json:"acks"` // alone
	AckRequired   int    `json:"ack_required"`
	Retransmitted int    `json:"retransmitted"`
	Headers       int    `json:"headers"` // one for each fragment
	Credits       int    `json:"credits"`
	Bad           int    `json:"bad_headers"`
	MaxLength     uint32 `json:"max_length"`
	LastSequence  uint64 `json:"last_sequence"`
	LastAck       uint64 `json:"last_ack"`
}

// A Summary sums up the RDS of a connection.
type Summary struct {
	Client   Counts `json:"client"`
	Server   Counts `json:"server"`
	Rejected bool   `json:"rejected"`
}

// Name returns the name of the protocol.
func (s *Summary) Name() string { return "RDS" }

func (s *Summary) side(d dissect.Side) *Counts {
	if d == dissect.Client {
		return &s.Client
	}
	return &s.Server
}

// Carried returns how many headers, messages and bytes of data both sides have sent.
func (s *Summary) Carried() dissect.Carried {
	var sum dissect.Carried
	for _, c := range []*Counts{&s.Client, &s.Server} {
		sum.Segments += c.Headers
		sum.Messages += c.Data + c.Pings + c.Pongs + c.Probes + c.Maps + c.Acks
		sum.Bytes += c.DataBytes
	}
	return sum
}

// WriteTable writes the summary as human-readable text: a row for each side.
func (s *Summary) WriteTable(w io.Writer) error {
	var b strings.Builder
	if s.Rejected {
		b.WriteString("rejected\n")
	}
	b.WriteString("side\tdata\tbytes\tpings\tpongs\tprobes\tmaps\tACK-only\tACK required\tsent again\tbad headers\tlast sequence\tlast ack\n")
	for _, side := range []dissect.Side{dissect.Client, dissect.Server} {
		c := s.side(side)
		fmt.Fprintf(&b, "%v\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", side,
			c.Data, c.DataBytes, c.Pings, c.Pongs, c.Probes, c.Maps, c.Acks, c.AckRequired, c.Retransmitted, c.Bad, c.LastSequence, c.LastAck)
	}
	return dissect.WriteCells(w, b.String())
}

// header counts a header.
func (c *Counts) header(h *wire.Header) {
	c.Headers++
	c.Credits += int(h.Credit)
	c.LastAck = max(c.LastAck, h.Ack)
}

// message counts a message that is there to its end.
func (c *Counts) message(h *wire.Header) {
	switch h.Kind() {
	case wire.Data:
		c.Data++
		c.DataBytes += uint64(h.Len)
		c.MaxLength = max(c.MaxLength, h.Len)
	case wire.Ping:
		c.Pings++
	case wire.Pong:
		c.Pongs++
	case wire.Probe:
		c.Probes++
	case wire.Map:
		c.Maps++
	case wire.Ack:
		c.Acks++
	}
	if h.Flags&wire.AckRequired != 0 {
		c.AckRequired++
	}
	if h.Flags&wire.Retransmitted != 0 {
		c.Retransmitted++
	}
	if h.Kind().Sequenced() {
		c.LastSequence = max(c.LastSequence, h.Sequence)
	}
}
