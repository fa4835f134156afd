package datagramflow

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"urnic/internal/dropin/datagram"
	"urnic/internal/program/dissect"
)

// A Message is one datagram of a queue pair: dissect.UpperEvent.
type Message struct {
	datagram.Header
	Payload int // bytes

	group bool
	fault string
	next  bool   // it has the number that is due
	gap   uint32 // datagrams that are missing before it
}

// Name returns the event's name in JSON.
func (m *Message) Name() string { return "datagram" }

// op names what it is.
func (m *Message) op() string {
	name := "UD Send"
	switch m.Op {
	case datagram.Send:
	case datagram.UCSend:
		name = "UC Send"
	case datagram.UCWrite:
		name = "UC RDMA Write"
	case datagram.Ack:
		return "Ack"
	default:
		return "" // it is malformed
	}
	if m.Flags&datagram.Immediate != 0 {
		name += " with Immediate"
	}
	return name
}

func (m *Message) String() string {
	if m.fault != "" {
		return "datagram: " + m.fault
	}
	var b strings.Builder
	if m.Op == datagram.Ack {
		fmt.Fprintf(&b, "datagram Ack of %d, %d receives", m.Sequence, m.Length)
		return b.String()
	}
	to := fmt.Sprintf("QP 0x%x", m.Dest)
	if m.group {
		to = "group"
	}
	key := fmt.Sprintf("Q_Key 0x%x", m.Key)
	if m.OfUC() {
		key = fmt.Sprintf("PSN 0x%x", m.Key)
	}
	fmt.Fprintf(&b, "datagram %d: %s, QP 0x%x to %s, %s, %d bytes", m.Sequence, m.op(), m.Source, to, key, m.Length)
	if !m.Whole(m.Payload) {
		fmt.Fprintf(&b, ", of which [%d, %d)", m.Offset, m.Offset+uint32(m.Payload))
	}
	if m.Op == datagram.UCWrite {
		fmt.Fprintf(&b, ", to 0x%x of rkey 0x%x", m.Address, m.RKey)
	}
	if m.Flags&datagram.Immediate != 0 {
		fmt.Fprintf(&b, ", immediate % x", m.Imm)
	}
	if m.Flags&datagram.Solicited != 0 {
		b.WriteString(", solicited")
	}
	if m.Flags&datagram.AskAck != 0 {
		b.WriteString(", asks for an Ack")
	}
	switch {
	case m.gap > 0:
		fmt.Fprintf(&b, " (%d missing before it)", m.gap)
	case !m.next:
		b.WriteString(" (late, or again)")
	}
	return b.String()
}

// MarshalJSON writes it as an object.
func (m *Message) MarshalJSON() ([]byte, error) {
	j := struct {
		Op        string  `json:"op"`
		Dest      uint32  `json:"dest_qp"`
		Source    uint32  `json:"source_qp"`
		Key       *uint32 `json:"qkey,omitempty"`
		PSN       *uint32 `json:"psn,omitempty"`
		Group     bool    `json:"group"`
		Address   *uint64 `json:"address,omitempty"`
		RKey      *uint32 `json:"rkey,omitempty"`
		Immediate string  `json:"immediate,omitempty"`
		Solicited bool    `json:"solicited"`
		AskAck    bool    `json:"asks_ack"`
		Sequence  uint32  `json:"sequence"`
		Length    uint32  `json:"length"` // of an Ack: how many receives there are
		Offset    uint32  `json:"offset"`
		Payload   int     `json:"payload"`
		Missing   uint32  `json:"missing_before"`
		Fault     string  `json:"fault,omitempty"`
	}{
		Op: m.op(), Dest: m.Dest, Source: m.Source, Group: m.group, Solicited: m.Flags&datagram.Solicited != 0, AskAck: m.Flags&datagram.AskAck != 0,
		Sequence: m.Sequence, Length: m.Length, Offset: m.Offset, Payload: m.Payload, Missing: m.gap, Fault: m.fault,
	}
	switch m.Op {
	case datagram.Send:
		j.Key = &m.Key
	case datagram.UCSend:
		j.PSN = &m.Key
	case datagram.UCWrite:
		j.PSN, j.Address, j.RKey = &m.Key, &m.Address, &m.RKey
	case datagram.Ack:
	}
	if m.Flags&datagram.Immediate != 0 {
		j.Immediate = fmt.Sprintf("%x", m.Imm)
	}
	return json.Marshal(j)
}

// A Resolution is a request or a reply of service resolution: dissect.UpperEvent.
type Resolution struct{ datagram.Service }

// Name returns the event's name in JSON.
func (r *Resolution) Name() string { return "datagram-service" }

func (r *Resolution) String() string {
	var b strings.Builder
	switch {
	case r.Kind == datagram.ServiceRequest:
		fmt.Fprintf(&b, "datagram service request 0x%x", r.ID)
	case r.Status != datagram.ServiceOK:
		fmt.Fprintf(&b, "datagram service reply 0x%x: rejected with status %d", r.ID, r.Status)
	default:
		fmt.Fprintf(&b, "datagram service reply 0x%x: QP 0x%x, Q_Key 0x%x", r.ID, r.QPN, r.Key)
	}
	if len(r.Data) > 0 {
		fmt.Fprintf(&b, ", %d bytes of private data", len(r.Data))
	}
	return b.String()
}

// MarshalJSON writes it as an object.
func (r *Resolution) MarshalJSON() ([]byte, error) {
	kind := "request"
	if r.Kind == datagram.ServiceReply {
		kind = "reply"
	}
	return json.Marshal(struct {
		Kind    string `json:"kind"`
		ID      uint32 `json:"id"`
		Status  uint8  `json:"status"`
		QPN     uint32 `json:"qp"`
		Key     uint32 `json:"qkey"`
		Private int    `json:"private_bytes"`
	}{kind, r.ID, uint8(r.Status), r.QPN, r.Key, len(r.Data)})
}

// Counts counts what one side has sent.
type Counts struct {
	Datagrams int    `json:"datagrams"`
	UD        int    `json:"ud"` // of them of UD
	UC        int    `json:"uc"`
	Acks      int    `json:"acks"`
	Bytes     uint64 `json:"payload_bytes"`
	Fragments int    `json:"fragments"` // that are not all of their message
	Missing   uint64 `json:"missing"`   // numbers that were left out
	Late      int    `json:"late"`      // late, or captured twice
	Malformed int    `json:"malformed"`
	Corrupt   int    `json:"corrupt"`
}

func (n *Counts) count(h *datagram.Header, payload []byte, m *Message) {
	if h.Op == datagram.Send {
		n.UD++
	} else {
		n.UC++
	}
	n.Bytes += uint64(len(payload))
	if !h.Whole(len(payload)) {
		n.Fragments++
	}
	n.Missing += uint64(m.gap)
	if !m.next && m.gap == 0 {
		n.Late++
	}
}

// A Summary sums up what two processes have sent each other: dissect.UpperSummary.
type Summary struct {
	Service bool   `json:"service"` // it is an exchange of rdma_cm
	Client  Counts `json:"client"`
	Server  Counts `json:"server"`
}

// Name returns the name of the protocol.
func (s *Summary) Name() string { return "urnic datagrams" }

func (s *Summary) side(d dissect.Side) *Counts {
	if d == dissect.Client {
		return &s.Client
	}
	return &s.Server
}

// WriteTable writes the summary as human-readable text.
func (s *Summary) WriteTable(w io.Writer) error {
	for _, side := range []dissect.Side{dissect.Client, dissect.Server} {
		n := s.side(side)
		_, err := fmt.Fprintf(w, "%v: %d datagrams: %d of UD, %d of UC, %d Acks; %d bytes, %d fragments, %d missing, %d late, %d malformed, %d corrupt\n",
			side, n.Datagrams, n.UD, n.UC, n.Acks, n.Bytes, n.Fragments, n.Missing, n.Late, n.Malformed, n.Corrupt)
		if err != nil {
			return err
		}
	}
	return nil
}
