package rxflow

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"urnic/internal/program/dissect"
	"urnic/ulp/rx/wire"
)

// maxCodes bounds how many abort codes a Summary tells apart.
const maxCodes = 64

// Counts counts what one side has sent.
type Counts struct {
	Datagrams   int            `json:"datagrams"` // over an RNIC, messages
	Packets     map[string]int `json:"packets"`   // by type
	Reasons     map[string]int `json:"acks"`      // by reason
	Aborts      map[int32]int  `json:"aborts"`    // by code
	Copies      int            `json:"copies"`    // packets that were captured twice
	Again       int            `json:"again"`     // data packets that were sent again
	Missing     int            `json:"nacks"`     // entries of acknowledgements that say so
	Bytes       uint64         `json:"bytes"`     // of data; of bodies, if they are protected and were not opened
	Opened      int            `json:"opened"`    // packets that the keys have opened
	Largest     int            `json:"largest"`   // datagram or message, in bytes
	Jumbograms  int            `json:"jumbograms"`
	MostPackets int            `json:"most_packets"` // in one of them
}

// A Summary sums up a connection of Rx, or what two endpoints have asked each other by debug
// and version packets.
type Summary struct {
	Kind     string // "connection", over UDP; "rdma", a connection over an RNIC; or "queries"
	Epoch    uint32
	ID       uint32
	Service  uint16
	Security uint8
	Caller   string // who the client is, if that is known
	Calls    int
	Complete int // calls of which all was captured
	Client   Counts
	Server   Counts
}

// Name returns the name of the protocol.
func (s *Summary) Name() string { return "Rx" }

func (s *Summary) side(d dissect.Side) *Counts {
	if d == dissect.Client {
		return &s.Client
	}
	return &s.Server
}

// MarshalJSON writes the summary as an object.
func (s *Summary) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind     string `json:"kind"`
		Epoch    string `json:"epoch"`
		ID       string `json:"connection"`
		Service  uint16 `json:"service"`
		Security uint8  `json:"security_index"`
		Caller   string `json:"caller"`
		Calls    int    `json:"calls"`
		Complete int    `json:"complete_calls"`
		Client   Counts `json:"client"`
		Server   Counts `json:"server"`
	}{s.Kind, hex32(s.Epoch), hex32(s.ID), s.Service, s.Security, s.Caller, s.Calls, s.Complete, s.Client.filled(), s.Server.filled()})
}

// filled has no map that is nil.
func (n Counts) filled() Counts {
	if n.Packets == nil {
		n.Packets = map[string]int{}
	}
	if n.Reasons == nil {
		n.Reasons = map[string]int{}
	}
	if n.Aborts == nil {
		n.Aborts = map[int32]int{}
	}
	return n
}

// WriteTable writes the summary as human-readable text.
func (s *Summary) WriteTable(w io.Writer) error {
	var b strings.Builder
	if s.Kind != "queries" {
		fmt.Fprintf(&b, "epoch %08x, connection %08x, service %d, security index %d", s.Epoch, s.ID, s.Service, s.Security)
		if s.Caller != "" {
			fmt.Fprintf(&b, ", %s", s.Caller)
		}
		fmt.Fprintf(&b, "; %d calls, %d of them complete\n", s.Calls, s.Complete)
	}
	unit := "datagrams"
	if s.Kind == "rdma" {
		unit = "messages"
	}
	for _, side := range []dissect.Side{dissect.Client, dissect.Server} {
		n := s.side(side)
		fmt.Fprintf(&b, "%v: %d %s, %d bytes of data", side, n.Datagrams, unit, n.Bytes)
		if n.Jumbograms > 0 {
			fmt.Fprintf(&b, ", %d jumbograms of up to %d packets", n.Jumbograms, n.MostPackets)
		}
		if s.Kind != "rdma" {
			fmt.Fprintf(&b, ", %d sent again, %d captured twice", n.Again, n.Copies)
		}
		fmt.Fprintf(&b, "; by type: %s", tally(n.Packets))
		if len(n.Reasons) > 0 {
			fmt.Fprintf(&b, "; acks: %s, %d missing", tally(n.Reasons), n.Missing)
		}
		for _, code := range slices.Sorted(maps.Keys(n.Aborts)) {
			fmt.Fprintf(&b, "; aborted %d times: %v", n.Aborts[code], wire.Code(code))
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

// packet counts a packet.
func (n *Counts) packet(p *Packet) {
	if n.Packets == nil {
		n.Packets = map[string]int{}
	}
	n.Packets[p.Header.Type.String()]++ // at most 256
	if p.Ack != nil {
		if n.Reasons == nil {
			n.Reasons = map[string]int{}
		}
		n.Reasons[p.Ack.Reason.String()]++
		for _, e := range p.Ack.Acks {
			if !wire.Held(e) {
				n.Missing++
			}
		}
	}
	if p.Code != nil {
		n.aborted(int32(*p.Code))
	}
}

// count counts a message over an RNIC.
func (n *Counts) count(m *Message) {
	if n.Packets == nil {
		n.Packets = map[string]int{}
	}
	n.Packets[m.Type.String()]++
}

// aborted counts an abort.
func (n *Counts) aborted(code int32) {
	if n.Aborts == nil {
		n.Aborts = map[int32]int{}
	}
	if n.Aborts[code] > 0 || len(n.Aborts) < maxCodes {
		n.Aborts[code]++
	}
}
