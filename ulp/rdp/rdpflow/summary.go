package rdpflow

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"urnic/internal/program/dissect"
)

// Counts counts what one side has sent.
type Counts struct {
	Carried   int            `json:"carried"`       // datagrams of UDP, or packets of IP
	Bytes     uint64         `json:"carried_bytes"` // in them
	Segments  map[string]int `json:"segments"`      // by kind
	Data      uint64         `json:"data_bytes"`    // of each number once
	Numbered  int            `json:"numbers"`       // that were used
	Repeats   int            `json:"repeats"`       // segments under a number that was seen before
	EACKs     int            `json:"eacks"`         // numbers in all lists
	MostEACKs int            `json:"most_eacks"`    // in one of them
	Strays    int            `json:"strays"`        // segments whose numbers have nothing to do with the connection
	Largest   int            `json:"largest"`       // segment, in bytes
	Limits    *Limits        `json:"syn"`           // of its SYN, if that was seen
}

// A Summary sums up a connection of RDP.
type Summary struct {
	Kind    string // "connection", or "malformed": segments that belong to none
	Version uint8
	Ports   [2]uint16 // of the client and of the server
	State   string    // "open", "closed", "reset" before it was open, "refused"; "" if nothing is known
	Client  Counts
	Server  Counts
}

func newSummary(kind string, version uint8, client, server uint16) *Summary {
	return &Summary{Kind: kind, Version: version, Ports: [2]uint16{client, server}}
}

// Name returns the name of the protocol.
func (s *Summary) Name() string { return "RDP" }

func (s *Summary) side(d dissect.Side) *Counts {
	if d == dissect.Client {
		return &s.Client
	}
	return &s.Server
}

// MarshalJSON writes the summary as an object.
func (s *Summary) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind       string `json:"kind"`
		Version    uint8  `json:"version"`
		ClientPort uint16 `json:"client_port"`
		ServerPort uint16 `json:"server_port"`
		State      string `json:"state"`
		Client     Counts `json:"client"`
		Server     Counts `json:"server"`
	}{s.Kind, s.Version, s.Ports[dissect.Client], s.Ports[dissect.Server], s.State, s.Client.filled(), s.Server.filled()})
}

// filled has no map that is nil.
func (n Counts) filled() Counts {
	if n.Segments == nil {
		n.Segments = map[string]int{}
	}
	return n
}

// clone returns counts that do not change any more.
func (n Counts) clone() Counts {
	n.Segments = maps.Clone(n.Segments)
	return n
}

// WriteTable writes the summary as human-readable text.
func (s *Summary) WriteTable(w io.Writer) error {
	var b strings.Builder
	if s.Kind == "connection" {
		fmt.Fprintf(&b, "version %d, ports %d>%d", s.Version, s.Ports[dissect.Client], s.Ports[dissect.Server])
		if s.State != "" {
			fmt.Fprintf(&b, ", %s", s.State)
		}
		b.WriteByte('\n')
	}
	for _, side := range []dissect.Side{dissect.Client, dissect.Server} {
		n := s.side(side)
		fmt.Fprintf(&b, "%v: %s, %s; %s of data, %s, %d sent again", side, count(uint64(n.Carried), "segment"), count(n.Bytes, "byte"),
			count(n.Data, "byte"), count(uint64(n.Numbered), "number"), n.Repeats)
		if l := n.Limits; l != nil {
			fmt.Fprintf(&b, "; takes %v", limits{l.Outstanding, l.Size, l.Sequenced})
		}
		fmt.Fprintf(&b, "; by kind: %s", tally(n.Segments))
		if n.EACKs > 0 {
			fmt.Fprintf(&b, "; %s, at most %d at a time", count(uint64(n.EACKs), "EACK"), n.MostEACKs)
		}
		if n.Strays > 0 {
			fmt.Fprintf(&b, "; %s", count(uint64(n.Strays), "stray"))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tally shows counts by name.
func tally(counts map[string]int) string {
	if len(counts) == 0 {
		return "none"
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%d %s", counts[k], k))
	}
	return strings.Join(all, ", ")
}

// carried counts a datagram, whatever it holds.
func (n *Counts) carried(s *Segment) {
	size := len(s.Raw) + s.Missing
	n.Carried++
	n.Bytes += uint64(size)
	n.Largest = max(n.Largest, size)
}

// segment counts a segment that has arrived.
func (n *Counts) segment(s *Segment) {
	if n.Segments == nil {
		n.Segments = map[string]int{}
	}
	n.Segments[string(s.Kind())]++
	switch {
	case s.Fault != nil || s.cut:
		return
	case s.Stray:
		n.Strays++
	case s.numbered() && s.Again:
		n.Repeats++
	case s.numbered():
		n.Numbered++
		n.Data += uint64(s.Length)
	}
	n.EACKs += len(s.Header.EACKs)
	n.MostEACKs = max(n.MostEACKs, len(s.Header.EACKs))
}

// limits keeps what a SYN says.
func (n *Counts) limits(l limits, seq uint32) {
	n.Limits = &Limits{Seq: seq, Outstanding: l.most, Size: l.size, Sequenced: l.sequenced}
}
