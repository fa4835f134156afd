package rdsflow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"urnic/ulp/rds/wire"
)

// A Private is the private data of a connection over RDMA.
type Private struct{ wire.Private }

// Name returns the event's name in JSON.
func (p *Private) Name() string { return "rds-private" }

func (p *Private) String() string { return "RDS private data " + p.Private.String() }

// MarshalJSON writes the private data as an object.
func (p *Private) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Source     string `json:"source"`
		Dest       string `json:"dest"`
		Version    string `json:"version"`
		MinorMask  string `json:"minor_mask"`
		TOS        uint8  `json:"tos"`
		Ack        uint64 `json:"ack"`
		Credit     uint32 `json:"credit"`
		Generation uint32 `json:"generation,omitempty"`
	}{
		p.Source.String(), p.Dest.String(), fmt.Sprintf("%d.%d", p.Major, p.Minor), fmt.Sprintf("0x%04x", p.MinorMask),
		p.TOS, p.AckSequence, p.Credit, p.Generation,
	})
}

// A Reject says that a side does not want the connection. Linux gives the same reason for a
// wrong version and for a request of its own that is outstanding.
type Reject struct {
	Reason []byte `json:"-"`
}

// Name returns the event's name in JSON.
func (r *Reject) Name() string { return "rds-reject" }

func (r *Reject) String() string { return fmt.Sprintf("RDS reject %x", r.Reason) }

// MarshalJSON writes the reason in hexadecimal.
func (r *Reject) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Reason string `json:"reason"`
	}{fmt.Sprintf("%x", r.Reason)})
}

// A Message is a message, at its end; or, if Part, one of several fragments of it.
type Message struct {
	Header    wire.Header
	Raw       [wire.HeaderLen]byte // the header, as it was sent
	Part      bool
	Offset    int // of a part
	Length    int // bytes of it
	Fragments int // of a whole message over RDMA
	// Missing reports that not all of its bytes were captured.
	Missing bool

	Congested int           // ports in a congestion map
	Ports     []uint16      // the first of them
	Latency   time.Duration // of a pong, from its ping; 0 if that is not known
}

// Name returns the event's name in JSON.
func (m *Message) Name() string {
	if m.Part {
		return "rds-fragment"
	}
	return "rds"
}

// Detail reports whether it is a part of something that is shown as well.
func (m *Message) Detail() bool { return m.Part }

func (m *Message) String() string {
	var b strings.Builder
	b.WriteString("RDS ")
	if m.Part {
		fmt.Fprintf(&b, "fragment at %d of ", m.Offset)
	}
	b.WriteString(m.Header.String())
	if m.Fragments > 1 {
		fmt.Fprintf(&b, " fragments=%d", m.Fragments)
	}
	if m.Header.Kind() == wire.Map && !m.Part {
		b.WriteString(" congested=" + m.congested())
	}
	if m.Latency > 0 {
		fmt.Fprintf(&b, " after %v", m.Latency.Round(time.Microsecond))
	}
	if m.Missing {
		b.WriteString(" (not all of it was captured)")
	}
	return b.String()
}

// congested lists ports, or says how many more there are.
func (m *Message) congested() string {
	if m.Congested == 0 {
		return "none"
	}
	var s []string
	for _, p := range m.Ports {
		s = append(s, fmt.Sprint(p))
	}
	if n := m.Congested - len(m.Ports); n > 0 {
		s = append(s, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(s, ",")
}

// checksum says what the header's checksum is worth.
func checksum(raw *[wire.HeaderLen]byte) string {
	switch {
	case raw[30] == 0 && raw[31] == 0:
		return "none"
	case wire.Sum(raw) == 0xffff:
		return "good"
	default:
		return "bad"
	}
}

// Keys are strings in hexadecimal in JSON, as STags are in what dissect writes.
type jsonMessage struct {
	Kind       string    `json:"kind"`
	Sequence   uint64    `json:"sequence"`
	Ack        uint64    `json:"ack"`
	Length     uint32    `json:"length"`
	SourcePort uint16    `json:"source_port"`
	DestPort   uint16    `json:"dest_port"`
	Flags      string    `json:"flags"`
	Credit     uint8     `json:"credit"`
	Checksum   string    `json:"checksum"`
	Offset     *int      `json:"offset,omitempty"`    // of a fragment
	Bytes      *int      `json:"bytes,omitempty"`     // of a fragment
	Fragments  *int      `json:"fragments,omitempty"` // over RDMA
	Missing    bool      `json:"missing"`
	Congested  *int      `json:"congested,omitempty"` // of a congestion map
	Ports      []uint16  `json:"congested_ports,omitempty"`
	Latency    float64   `json:"latency_seconds,omitempty"`
	Paths      *uint16   `json:"npaths,omitempty"`
	Generation *uint32   `json:"generation,omitempty"`
	SportIdx   *uint8    `json:"sport_idx,omitempty"`
	Urnic      bool      `json:"urnic,omitempty"`
	RDMA       string    `json:"rdma,omitempty"`
	Dest       *jsonDest `json:"rdma_dest,omitempty"`
	Moved      *jsonMove `json:"rdma_bytes,omitempty"`
	Extensions string    `json:"extensions,omitempty"` // all of them
}

type jsonMove struct {
	Bytes uint32 `json:"bytes"`
	Write bool   `json:"write"`
	Read  bool   `json:"read"`
}

type jsonDest struct {
	RKey   string `json:"rkey"`
	Offset uint32 `json:"offset"`
}

// MarshalJSON writes the message as an object.
func (m *Message) MarshalJSON() ([]byte, error) {
	h := &m.Header
	j := jsonMessage{
		Kind: h.Kind().String(), Sequence: h.Sequence, Ack: h.Ack, Length: h.Len, SourcePort: h.SourcePort, DestPort: h.DestPort,
		Flags: h.Flags.String(), Credit: h.Credit, Checksum: checksum(&m.Raw), Missing: m.Missing, Latency: m.Latency.Seconds(),
	}
	switch {
	case m.Part:
		j.Offset, j.Bytes = &m.Offset, &m.Length
	case h.Kind() == wire.Map:
		j.Congested, j.Ports = &m.Congested, m.Ports
	}
	if m.Fragments > 0 && !m.Part {
		j.Fragments = &m.Fragments
	}
	x, _ := wire.ParseExtensions(h.Extensions) // those in front of a wrong one
	j.Extensions = x.String()
	if x.With(wire.ExtNPaths) {
		j.Paths = &x.Paths
	}
	if x.With(wire.ExtGeneration) {
		j.Generation = &x.Generation
	}
	if x.With(wire.ExtSportIdx) {
		j.SportIdx = &x.SportIdx
	}
	j.Urnic = x.With(wire.ExtUrnic)
	if x.With(wire.ExtRDMABytes) {
		j.Moved = &jsonMove{x.Bytes, x.Write, x.Read}
	}
	if x.With(wire.ExtRDMA) {
		j.RDMA = fmt.Sprintf("0x%08x", x.RKey)
	}
	if x.With(wire.ExtRDMADest) {
		j.Dest = &jsonDest{fmt.Sprintf("0x%08x", x.Dest.RKey()), x.Dest.Offset()}
	}
	return json.Marshal(j)
}
