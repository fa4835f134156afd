package rxflow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"urnic/internal/program/dissect"
	"urnic/ulp/rx/wire"
)

// A Packet is a packet of Rx, also one within a jumbogram.
type Packet struct {
	Header wire.Header
	Body   []byte // as far as it was captured
	Place  int    // in a jumbogram, from 1; 0 of a packet that is alone
	Length int    // of the body, in bytes

	Missing int  // bytes of the body that were not captured
	Copy    bool // the packet was captured before
	Again   bool // its data was sent before

	Ack       *wire.Ack  // of an acknowledgement
	Code      *wire.Code // of an abort
	Opened    bool       // the keys have opened it
	Data      int        // then, how many bytes of data it has
	Operation string     // what a request asks for, if the packet has its opcode
	Text      string     // of others, what they carry, in a few words
}

// Name returns the event's name in JSON.
func (p *Packet) Name() string { return "rx" }

func (p *Packet) String() string {
	var b strings.Builder
	h := &p.Header
	fmt.Fprintf(&b, "RX %v", h.Type)
	if h.Call != 0 || h.Type <= wire.TypeAckAll {
		fmt.Fprintf(&b, " %d/%d", h.Channel(), h.Call)
	}
	if h.Type == wire.TypeData {
		fmt.Fprintf(&b, " seq=%d", h.Seq)
	}
	fmt.Fprintf(&b, " serial=%d", h.Serial)
	if f := h.Flags &^ wire.FlagClient; f != 0 {
		b.WriteString(" " + f.Names(h.Type))
	}
	if h.UserStatus != 0 {
		fmt.Fprintf(&b, " status=%d", h.UserStatus)
	}
	switch {
	case p.Ack != nil:
		b.WriteString(" " + p.Ack.String())
	case p.Code != nil:
		b.WriteString(" " + p.Code.String())
	case p.Opened:
		fmt.Fprintf(&b, " len=%d data=%d", p.Length, p.Data)
	case h.Type == wire.TypeData || p.Length > 0:
		fmt.Fprintf(&b, " len=%d", p.Length)
	}
	if p.Place > 0 {
		fmt.Fprintf(&b, " (%d in a jumbogram)", p.Place)
	}
	for _, s := range []string{p.Operation, p.Text} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	switch {
	case p.Copy:
		b.WriteString(" (captured before)")
	case p.Again:
		b.WriteString(" (sent before)")
	}
	if p.Missing > 0 {
		b.WriteString(" (not all of it was captured)")
	}
	return b.String()
}

type jsonPacket struct {
	Type      string   `json:"type"`
	Epoch     string   `json:"epoch"`
	CID       string   `json:"connection"`
	Channel   uint8    `json:"channel"`
	Call      uint32   `json:"call"`
	Seq       uint32   `json:"sequence"`
	Serial    uint32   `json:"serial"`
	Flags     string   `json:"flags"`
	Status    uint8    `json:"user_status"`
	Security  uint8    `json:"security_index"`
	Checksum  uint16   `json:"checksum"`
	Service   uint16   `json:"service"`
	Length    int      `json:"length"`
	Data      *int     `json:"data_length,omitempty"` // of a packet that the keys have opened
	Place     int      `json:"jumbogram_place,omitempty"`
	Missing   int      `json:"missing"`
	Copy      bool     `json:"copy"`
	Again     bool     `json:"again"`
	Ack       *jsonAck `json:"ack,omitempty"`
	Code      *int32   `json:"code,omitempty"`
	Operation string   `json:"operation,omitempty"`
	Text      string   `json:"text,omitempty"`
}

type jsonAck struct {
	Reason   string   `json:"reason"`
	First    uint32   `json:"first"`
	Previous uint32   `json:"previous"`
	Serial   uint32   `json:"serial"`
	Acks     string   `json:"acks"` // + and -
	Trailer  []uint32 `json:"trailer"`
	Padding  int      `json:"padding"`
}

// MarshalJSON writes the packet as an object.
func (p *Packet) MarshalJSON() ([]byte, error) {
	h := &p.Header
	j := jsonPacket{
		Type: h.Type.String(), Epoch: hex32(h.Epoch), CID: hex32(h.ConnID()), Channel: h.Channel(), Call: h.Call, Seq: h.Seq, Serial: h.Serial,
		Flags: h.Flags.Names(h.Type), Status: h.UserStatus, Security: h.Security, Checksum: h.Checksum, Service: h.Service,
		Length: p.Length, Place: p.Place, Missing: p.Missing, Copy: p.Copy, Again: p.Again, Operation: p.Operation, Text: p.Text,
	}
	if p.Opened {
		j.Data = &p.Data
	}
	if p.Code != nil {
		code := int32(*p.Code)
		j.Code = &code
	}
	if a := p.Ack; a != nil {
		j.Ack = &jsonAck{
			Reason: a.Reason.String(), First: a.First, Previous: a.Previous, Serial: a.Serial,
			Acks: entries(a.Acks), Trailer: trailer(&a.Trailer), Padding: len(a.Padding),
		}
	}
	return json.Marshal(j)
}

func entries(acks []byte) string {
	b := make([]byte, len(acks))
	for i, e := range acks {
		b[i] = '-'
		if wire.Held(e) {
			b[i] = '+'
		}
	}
	return string(b)
}

func trailer(t *wire.Trailer) []uint32 {
	all := []uint32{t.MaxMTU, t.IfMTU, t.Window, t.MaxPackets}
	return all[:max(0, min(t.Words, len(all)))]
}

func hex32(n uint32) string { return fmt.Sprintf("0x%08x", n) }

// A Part is what one side has sent of a call.
type Part struct {
	Packets int    `json:"packets"` // of data, without those sent again
	Again   int    `json:"again"`
	Bytes   uint64 `json:"bytes"` // of data; of bodies, if they are protected and were not opened
}

// A Call is a call that has ended, or of which nothing more comes.
type Call struct {
	Channel   uint8
	Number    uint32
	Service   uint16
	Opcode    uint32 // with HasOp
	HasOp     bool
	Operation string // its name, if it is known
	Request   Part
	Reply     Part
	Busy      int // how often the server said that the channel has another call
	Whole     bool
	Start     time.Time
	Duration  time.Duration // of a whole call, from the first packet of the request to the last one of the reply
	Code      *wire.Code    // of the abort that has ended it
	By        dissect.Side  // who has sent that
}

func (k *Call) side(s dissect.Side) *Part {
	if s == dissect.Client {
		return &k.Request
	}
	return &k.Reply
}

// Name returns the event's name in JSON.
func (k *Call) Name() string { return "rx-call" }

// operation is what is known of what the call asks for.
func (k *Call) operation() string {
	switch {
	case k.Operation != "":
		return " " + k.Operation
	case k.HasOp:
		return fmt.Sprintf(" operation %d", int32(k.Opcode))
	}
	return ""
}

func (p *Part) String() string {
	s := fmt.Sprintf("%d bytes in %d packets", p.Bytes, p.Packets)
	if p.Packets == 1 {
		s = s[:len(s)-1]
	}
	if p.Again > 0 {
		s += fmt.Sprintf(", %d sent again", p.Again)
	}
	return s
}

func (k *Call) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "RX call %d/%d service=%d%s: request %v; reply %v", k.Channel, k.Number, k.Service, k.operation(), &k.Request, &k.Reply)
	if k.Busy > 0 {
		fmt.Fprintf(&b, "; busy %d times", k.Busy)
	}
	switch {
	case k.Code != nil:
		fmt.Fprintf(&b, "; aborted by the %v: %v", k.By, k.Code)
	case k.Whole:
		fmt.Fprintf(&b, "; %v", k.Duration.Round(time.Microsecond))
	default:
		b.WriteString("; not complete")
	}
	return b.String()
}

// MarshalJSON writes the call as an object.
func (k *Call) MarshalJSON() ([]byte, error) {
	j := struct {
		Channel   uint8   `json:"channel"`
		Call      uint32  `json:"call"`
		Service   uint16  `json:"service"`
		Opcode    *uint32 `json:"opcode,omitempty"`
		Operation string  `json:"operation,omitempty"`
		Request   Part    `json:"request"`
		Reply     Part    `json:"reply"`
		Busy      int     `json:"busy"`
		Whole     bool    `json:"complete"`
		Seconds   float64 `json:"seconds"`
		Code      *int32  `json:"code,omitempty"`
		Meaning   string  `json:"code_meaning,omitempty"`
		By        string  `json:"aborted_by,omitempty"`
	}{
		Channel: k.Channel, Call: k.Number, Service: k.Service, Operation: k.Operation, Request: k.Request, Reply: k.Reply,
		Busy: k.Busy, Whole: k.Whole, Seconds: k.Duration.Seconds(),
	}
	if k.HasOp {
		j.Opcode = &k.Opcode
	}
	if k.Code != nil {
		code := int32(*k.Code)
		j.Code, j.Meaning, j.By = &code, k.Code.String(), k.By.String()
	}
	return json.Marshal(j)
}
