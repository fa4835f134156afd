package rxflow

import (
	"encoding/json"
	"fmt"
	"strings"

	rdma "urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/wire"
)

// A Private is what a side says of itself when a connection over an RNIC is set up.
type Private struct{ rdma.Private }

// Name returns the event's name in JSON.
func (p *Private) Name() string { return "rx-private" }

func (p *Private) String() string {
	return fmt.Sprintf("RX private data epoch=%08x connection=%08x service=%d security=%d features=%s channels=%d credits=%d window=%d receive=%d bulk=%d",
		p.Epoch, p.ConnID, p.Service, p.Security, features(p.Features), p.Channels, p.Credits, p.Window, p.Receive, p.Bulk)
}

// features names features.
func features(f rdma.Features) string {
	var all []string
	for i, name := range []string{"offer", "place", "upgrade"} {
		if f&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	if rest := f &^ (rdma.FeatureOffer | rdma.FeaturePlace | rdma.FeatureUpgrade); rest != 0 {
		all = append(all, fmt.Sprintf("0x%02x", uint8(rest)))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "+")
}

// MarshalJSON writes the private data as an object.
func (p *Private) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Epoch    string `json:"epoch"`
		CID      string `json:"connection"`
		Service  uint16 `json:"service"`
		Security uint8  `json:"security_index"`
		Features string `json:"features"`
		Channels uint8  `json:"channels"`
		Credits  uint16 `json:"credits"`
		Window   uint16 `json:"window"`
		Receive  uint32 `json:"receive"`
		Bulk     uint32 `json:"bulk"`
	}{hex32(p.Epoch), hex32(p.ConnID), p.Service, p.Security, features(p.Features), p.Channels, p.Credits, p.Window, p.Receive, p.Bulk})
}

// A Refusal says that a server does not want a connection over an RNIC.
type Refusal struct {
	Code int32 `json:"code"`
}

// Name returns the event's name in JSON.
func (r *Refusal) Name() string { return "rx-refusal" }

func (r *Refusal) String() string { return "RX refused: " + wire.Code(r.Code).String() }

// A Message is a message of Rx over an RNIC.
type Message struct {
	rdma.Message
	Body      []byte
	Opened    bool // the keys have opened it
	Data      int  // then, how many bytes of data it has
	Operation string
	Text      string
}

// Name returns the event's name in JSON.
func (m *Message) Name() string { return "rx-rdma" }

func (m *Message) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "RX %v", m.Type)
	if m.Call != 0 || m.Type <= rdma.Abort {
		fmt.Fprintf(&b, " %d/%d", m.Channel, m.Call)
	}
	switch m.Type {
	case rdma.Data, rdma.Window, rdma.Ping, rdma.Pong:
		fmt.Fprintf(&b, " seq=%d", m.Seq)
	case rdma.Placed:
		fmt.Fprintf(&b, " seq=%d len=%d", m.Seq, m.Length)
	case rdma.Offer:
		fmt.Fprintf(&b, " seq=%d len=%d stag=0x%08x to=0x%x", m.Seq, m.Length, m.STag, m.TO)
	case rdma.Abort:
		b.WriteString(" " + wire.Code(m.Code).String())
	default:
	}
	if m.Flags&rdma.FlagLast != 0 {
		b.WriteString(" LAST")
	}
	if m.Flags&rdma.FlagLarge != 0 {
		b.WriteString(" LARGE")
	}
	if m.Credits != 0 {
		fmt.Fprintf(&b, " credits=%d", m.Credits)
	}
	if m.Type == rdma.Data || len(m.Body) > 0 {
		fmt.Fprintf(&b, " len=%d", len(m.Body))
	}
	if m.Opened {
		fmt.Fprintf(&b, " data=%d", m.Data)
	}
	for _, s := range []string{m.Operation, m.Text} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	return b.String()
}

// MarshalJSON writes the message as an object.
func (m *Message) MarshalJSON() ([]byte, error) {
	j := struct {
		Type      string `json:"type"`
		Flags     uint8  `json:"flags"`
		Credits   uint16 `json:"credits"`
		Channel   uint8  `json:"channel"`
		Call      uint32 `json:"call"`
		Seq       uint32 `json:"sequence"`
		Checksum  uint16 `json:"checksum"`
		Length    int    `json:"length"` // of the body; of what was placed or offered
		Data      *int   `json:"data_length,omitempty"`
		STag      string `json:"stag,omitempty"`
		TO        string `json:"to,omitempty"`
		Code      *int32 `json:"code,omitempty"`
		Operation string `json:"operation,omitempty"`
		Text      string `json:"text,omitempty"`
	}{
		Type: m.Type.String(), Flags: uint8(m.Flags), Credits: m.Credits, Channel: m.Channel, Call: m.Call, Seq: m.Seq,
		Checksum: m.Checksum, Length: len(m.Body), Operation: m.Operation, Text: m.Text,
	}
	switch m.Type {
	case rdma.Placed:
		j.Length = int(m.Length)
	case rdma.Offer:
		j.Length, j.STag, j.TO = int(m.Length), hex32(m.STag), fmt.Sprintf("0x%016x", m.TO)
	case rdma.Abort:
		j.Code = &m.Code
	default:
	}
	if m.Opened {
		j.Data = &m.Data
	}
	return json.Marshal(j)
}
