package rdpflow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// Name returns the event's name in JSON.
func (s *Segment) Name() string { return "rdp" }

// Detail reports whether the segment is shown only where segments are: what carries DDP is no more than what TCP is to MPA.
func (s *Segment) Detail() bool { return s.within }

func (s *Segment) String() string {
	var b strings.Builder
	h := &s.Header
	fmt.Fprintf(&b, "RDP %s", s.Kind())
	switch {
	case s.cut:
		fmt.Fprintf(&b, " of which %d bytes were captured", len(s.Raw))
	case s.Fault != nil && !s.ported():
		fmt.Fprintf(&b, ", %d bytes: %s", len(s.Raw)+s.Missing, s.Fault.Fault)
	case s.Fault != nil:
		fmt.Fprintf(&b, ", %s: %v", s.Fault.Fault, h)
	default:
		fmt.Fprintf(&b, " seq=%d", h.Seq)
		s.fields(&b)
	}
	switch {
	case s.Stray:
		b.WriteString(" (stray)")
	case s.Again:
		b.WriteString(" (sent before)")
	}
	if s.message != nil {
		fmt.Fprintf(&b, " (%v)", s.message)
	}
	if s.Missing > 0 {
		b.WriteString(" (not all of it was captured)")
	}
	return b.String()
}

// fields shows what a segment of the right form has besides its number.
func (s *Segment) fields(b *strings.Builder) {
	h := &s.Header
	if s.has(wire.ACK) {
		fmt.Fprintf(b, " ack=%d", h.Ack)
	}
	switch {
	case s.has(wire.SYN):
		fmt.Fprintf(b, " %v v%d %d>%d", limits{h.MaxOutstanding, h.MaxSegment, h.Sequenced}, h.Version, h.Source, h.Dest)
	case s.has(wire.EACK):
		b.WriteString(" eacks=" + wire.Ranges(h.EACKs))
	}
	if s.Length > 0 {
		fmt.Fprintf(b, " len=%d", s.Length)
	}
}

func (l limits) String() string {
	mode := "unsequenced"
	if l.sequenced {
		mode = "sequenced"
	}
	return fmt.Sprintf("max=%d size=%d %s", l.most, l.size, mode)
}

type jsonSegment struct {
	Type        string   `json:"type"`
	Version     uint8    `json:"version"`
	Flags       string   `json:"flags"`
	Source      uint16   `json:"source_port"`
	Dest        uint16   `json:"dest_port"`
	Seq         uint32   `json:"sequence"`
	Ack         *uint32  `json:"ack,omitempty"`
	Outstanding *uint16  `json:"max_outstanding,omitempty"`
	Size        *uint16  `json:"max_segment,omitempty"`
	Sequenced   *bool    `json:"sequenced,omitempty"`
	EACKs       []uint32 `json:"eacks,omitempty"`
	Length      int      `json:"length"` // of the data
	Missing     int      `json:"missing"`
	Again       bool     `json:"again"`
	Stray       bool     `json:"stray"`
	Fault       string   `json:"fault,omitempty"`
	DDP         *carried `json:"ddp,omitempty"`
}

// MarshalJSON writes the segment as an object.
func (s *Segment) MarshalJSON() ([]byte, error) {
	h := &s.Header
	j := jsonSegment{Type: string(s.Kind()), Length: s.Length, Missing: s.Missing, Again: s.Again, Stray: s.Stray, DDP: s.message}
	if s.Fault != nil {
		j.Fault = s.Fault.Fault.String()
	}
	if s.ported() {
		j.Version, j.Flags, j.Source, j.Dest, j.Seq = h.Version, h.Flags.String(), h.Source, h.Dest, h.Seq
		if s.has(wire.ACK) {
			j.Ack = &h.Ack
		}
		if s.has(wire.SYN) {
			j.Outstanding, j.Size, j.Sequenced = &h.MaxOutstanding, &h.MaxSegment, &h.Sequenced
		}
		j.EACKs = h.EACKs
	}
	return json.Marshal(j)
}

// Limits are what a SYN says of the side that has sent it.
type Limits struct {
	Seq         uint32 `json:"sequence"`        // of the SYN
	Outstanding uint16 `json:"max_outstanding"` // segments that it may be sent unacknowledged
	Size        uint16 `json:"max_segment"`     // with 20 bytes for IP
	Sequenced   bool   `json:"sequenced"`
}

func newLimits(d *direction) Limits {
	return Limits{Seq: uint32(d.iss), Outstanding: d.limits.most, Size: d.limits.size, Sequenced: d.limits.sequenced}
}

// An Open reports that both sides have acknowledged each other's SYN.
type Open struct {
	Version        uint8
	Ports          [2]uint16 // of the client and of the server
	Client, Server Limits
	Sequenced      bool          // a side has asked for it, so that it holds for both
	Duration       time.Duration // from the first segment on
}

// Name returns the event's name in JSON.
func (o *Open) Name() string { return "rdp-open" }

func (o *Open) String() string {
	mode := "unsequenced"
	if o.Sequenced {
		mode = "sequenced"
	}
	return fmt.Sprintf("RDP open after %v: version %d, ports %d>%d, %s; the client takes %d segments of %d bytes, the server %d of %d",
		o.Duration.Round(time.Microsecond), o.Version, o.Ports[dissect.Client], o.Ports[dissect.Server], mode,
		o.Client.Outstanding, o.Client.Size, o.Server.Outstanding, o.Server.Size)
}

// MarshalJSON writes the event as an object.
func (o *Open) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Version    uint8   `json:"version"`
		ClientPort uint16  `json:"client_port"`
		ServerPort uint16  `json:"server_port"`
		Sequenced  bool    `json:"sequenced"`
		Client     Limits  `json:"client"`
		Server     Limits  `json:"server"`
		Seconds    float64 `json:"seconds"`
	}{o.Version, o.Ports[dissect.Client], o.Ports[dissect.Server], o.Sequenced, o.Client, o.Server, o.Duration.Seconds()})
}

// An End reports that a side has ended a connection, or that the capture has no more of it.
type End struct {
	How            string       // "closed", "reset" before it was open, "refused"; "" if nobody has ended it
	By             dissect.Side // who has ended it
	Opened         bool         // it was seen to open
	Duration       time.Duration
	Client, Server Counts // what each has sent until then
}

// Name returns the event's name in JSON.
func (e *End) Name() string { return "rdp-end" }

func (e *End) String() string {
	var b strings.Builder
	b.WriteString("RDP ")
	switch {
	case e.How != "":
		fmt.Fprintf(&b, "%s by the %v after %v", e.How, e.By, e.Duration.Round(time.Microsecond))
	case e.Opened:
		fmt.Fprintf(&b, "not closed until the end of the capture, %v", e.Duration.Round(time.Microsecond))
	default:
		b.WriteString("not seen to open or close")
	}
	for _, side := range []dissect.Side{dissect.Client, dissect.Server} {
		n := e.side(side)
		fmt.Fprintf(&b, "; %v: %s of data, %s, %d sent again", side, count(n.Data, "byte"), count(uint64(n.Numbered), "number"), n.Repeats)
	}
	return b.String()
}

// count shows how many there are of something.
func count(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (e *End) side(d dissect.Side) *Counts {
	if d == dissect.Client {
		return &e.Client
	}
	return &e.Server
}

// MarshalJSON writes the event as an object.
func (e *End) MarshalJSON() ([]byte, error) {
	how, by := e.How, e.By.String()
	if how == "" {
		how, by = "not ended", ""
	}
	return json.Marshal(struct {
		How     string  `json:"how"`
		By      string  `json:"by"`
		Opened  bool    `json:"opened"`
		Seconds float64 `json:"seconds"`
		Client  Counts  `json:"client"`
		Server  Counts  `json:"server"`
	}{how, by, e.Opened, e.Duration.Seconds(), e.Client.filled(), e.Server.filled()})
}
