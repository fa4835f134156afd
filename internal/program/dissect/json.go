package dissect

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
)

// The JSON of events. STags and offsets are strings in hexadecimal: a number of
// 64 bits does not survive most readers of JSON.
type (
	jsonEvent struct {
		Event      string         `json:"event"`
		Connection int            `json:"connection"`
		Client     string         `json:"client"`
		Server     string         `json:"server"`
		Time       string         `json:"time"`
		Packet     int            `json:"packet"`
		From       string         `json:"from"`
		Startup    *jsonFrame     `json:"startup,omitempty"`
		Segment    *jsonSegment   `json:"segment,omitempty"`
		Message    *jsonMessage   `json:"message,omitempty"`
		Violation  *jsonViolation `json:"violation,omitempty"`
		Note       string         `json:"note,omitempty"`
		ULP        UpperEvent     `json:"ulp,omitempty"`
		Reset      *bool          `json:"reset,omitempty"`
	}
	jsonFrame struct {
		Frame       string `json:"frame"` // request or reply; over RDP request, accept or reject
		Revision    uint8  `json:"revision"`
		Markers     bool   `json:"markers"`
		CRC         bool   `json:"crc"`
		Rejected    bool   `json:"rejected"`
		Enhanced    bool   `json:"enhanced"`
		IRD         uint16 `json:"ird"`
		ORD         uint16 `json:"ord"`
		P2P         bool   `json:"p2p"`
		RTR         string `json:"rtr"`
		PrivateData string `json:"private_data"` // hexadecimal
	}
	jsonSegment struct {
		Number  int     `json:"number"`
		Op      string  `json:"op"`
		BadCRC  bool    `json:"crc_bad"`
		ULPDU   int     `json:"ulpdu"`
		Payload int     `json:"payload"`
		Last    bool    `json:"last"`
		STag    *string `json:"stag,omitempty"`
		TO      *string `json:"to,omitempty"`
		QN      *uint32 `json:"qn,omitempty"`
		MSN     *uint32 `json:"msn,omitempty"`
		MO      *uint32 `json:"mo,omitempty"`
	}
	jsonMessage struct {
		Op             string       `json:"op"`
		Segments       int          `json:"segments"`
		Length         uint64       `json:"length"`
		Partial        bool         `json:"partial"`
		Use            string       `json:"use,omitempty"`
		STag           *string      `json:"stag,omitempty"`
		TO             *string      `json:"to,omitempty"`
		QN             *uint32      `json:"qn,omitempty"`
		MSN            *uint32      `json:"msn,omitempty"`
		InvalidateSTag *string      `json:"invalidate_stag,omitempty"`
		ReadRequest    *jsonRead    `json:"read_request,omitempty"`
		Terminate      *jsonTerm    `json:"terminate,omitempty"`
		Immediate      *string      `json:"immediate,omitempty"`
		AtomicRequest  *jsonAtomic  `json:"atomic_request,omitempty"`
		AtomicResponse *jsonFetched `json:"atomic_response,omitempty"`
	}
	jsonRead struct {
		SinkSTag   string `json:"sink_stag"`
		SinkTO     string `json:"sink_to"`
		Size       uint32 `json:"size"`
		SourceSTag string `json:"source_stag"`
		SourceTO   string `json:"source_to"`
	}
	jsonTerm struct {
		Code       string `json:"code"`
		Text       string `json:"text"`
		SegmentLen uint16 `json:"ddp_segment_length"`
		DDPHeader  string `json:"ddp_header"`
		RDMAHeader string `json:"rdma_header"`
	}
	jsonAtomic struct {
		Operation   string `json:"operation"`
		RequestID   uint32 `json:"request_id"`
		STag        string `json:"stag"`
		TO          string `json:"to"`
		AddSwap     string `json:"add_swap"`
		AddSwapMask string `json:"add_swap_mask"`
		Compare     string `json:"compare"`
		CompareMask string `json:"compare_mask"`
	}
	jsonFetched struct {
		RequestID uint32 `json:"request_id"`
		Original  string `json:"original"`
	}
)

// JSON returns a Handler that writes each event as one line of JSON.
func JSON(w io.Writer, o Options) Handler {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return func(e *Event) error {
		if !o.Shows(e) {
			return nil
		}
		j := jsonEvent{
			Event: e.Kind.String(), Connection: e.Conn.Number,
			Client: e.Conn.Addr[Client], Server: e.Conn.Addr[Server],
			Time: timestamp(e.At.Time), Packet: e.At.Packet, From: e.From.String(),
			Note: e.Note,
		}
		switch e.Kind {
		case KindFrame:
			j.Startup = e.startup()
		case KindSegment:
			j.Segment = e.Segment.json()
		case KindMessage:
			j.Message = e.Message.json()
		case KindViolation:
			v := e.Violation.json()
			j.Violation = &v
		case KindClose:
			j.Reset = &e.Reset
		case KindUpper:
			j.Event, j.ULP = e.Upper.Name(), e.Upper
		case KindNote:
		}
		return enc.Encode(j)
	}
}

// startup returns what is shown of a start-up frame or an offer.
func (e *Event) startup() *jsonFrame {
	if o := e.Offer; o != nil {
		return &jsonFrame{
			Frame: o.Kind, CRC: true, Rejected: o.Rejects(), Enhanced: true, IRD: o.IRD, ORD: o.ORD,
			PrivateData: hex.EncodeToString(o.Private),
		}
	}
	return frameJSON(e.Frame)
}

func frameJSON(f *mpa.Frame) *jsonFrame {
	j := &jsonFrame{
		Frame: "request", Revision: f.Revision, Markers: f.Markers, CRC: f.CRC,
		Rejected: f.Rejected, Enhanced: f.Enhanced, PrivateData: hex.EncodeToString(f.ULPData()),
	}
	if f.Reply {
		j.Frame = "reply"
	}
	if f.Enhanced {
		if e, err := mpa.ParseEnhanced(f.PrivateData); err == nil {
			j.IRD, j.ORD, j.P2P = e.IRD, e.ORD, e.PeerToPeer
			if e.PeerToPeer {
				j.RTR = e.RTR.String()
			}
		}
	}
	return j
}

func (s *Segment) json() *jsonSegment {
	j := &jsonSegment{Number: s.Number, BadCRC: s.BadCRC, ULPDU: len(s.ULPDU)}
	if s.HasOp {
		j.Op = s.Op.Name()
	}
	if !s.Whole {
		return j
	}
	j.Payload, j.Last = len(s.DDP.Payload), s.DDP.Control.Last()
	if s.DDP.Control.Tagged() {
		j.STag, j.TO = hex32(s.DDP.Tagged.STag), hex64(s.DDP.Tagged.TO)
	} else {
		u := s.DDP.Untagged
		j.QN, j.MSN, j.MO = &u.QN, &u.MSN, &u.MO
	}
	return j
}

func (m *Message) json() *jsonMessage {
	j := &jsonMessage{Op: m.Op.Name(), Segments: m.Segments, Length: m.Length, Partial: m.Partial, Use: m.Use}
	if m.Tagged {
		j.STag, j.TO = hex32(m.STag), hex64(m.TO)
	} else {
		j.QN, j.MSN = &m.QN, &m.MSN
	}
	if m.Op.Invalidates() {
		j.InvalidateSTag = hex32(m.Invalidate)
	}
	if r := m.ReadRequest; r != nil {
		j.ReadRequest = &jsonRead{*hex32(r.SinkSTag), *hex64(r.SinkTO), r.Size, *hex32(r.SrcSTag), *hex64(r.SrcTO)}
	}
	if t := m.Terminate; t != nil {
		j.Terminate = &jsonTerm{
			Code: fmt.Sprintf("0x%04x", uint16(t.Code)), Text: t.String(), SegmentLen: t.SegmentLen,
			DDPHeader: hex.EncodeToString(t.DDPHeader), RDMAHeader: hex.EncodeToString(t.RDMAHeader),
		}
	}
	if m.Immediate != nil {
		s := hex.EncodeToString(m.Immediate[:])
		j.Immediate = &s
	}
	if r := m.AtomicRequest; r != nil {
		j.AtomicRequest = atomicJSON(r)
	}
	if r := m.AtomicResponse; r != nil {
		j.AtomicResponse = &jsonFetched{r.RequestID, *hex64(r.Original)}
	}
	return j
}

func atomicJSON(r *rdmap.AtomicRequest) *jsonAtomic {
	return &jsonAtomic{
		Operation: r.Op.String(), RequestID: r.RequestID, STag: *hex32(r.STag), TO: *hex64(r.TO),
		AddSwap: *hex64(r.AddSwap), AddSwapMask: *hex64(r.AddSwapMask),
		Compare: *hex64(r.Compare), CompareMask: *hex64(r.CompareMask),
	}
}

func hex32(s stag.STag) *string {
	v := s.String()
	return &v
}

func hex64(n uint64) *string {
	v := fmt.Sprintf("0x%016x", n)
	return &v
}
