package rpcflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"urnic/stag"
	"urnic/ulp/rpcrdma"
)

// A Private is the private data of RPC-over-RDMA in a start-up frame (RFC 8797 §4).
type Private struct {
	Invalidate bool `json:"invalidate"` // R
	Send       int  `json:"send"`       // bytes
	Receive    int  `json:"receive"`    // bytes
}

// Name returns the event's name in JSON.
func (p *Private) Name() string { return "rpcrdma-private" }

func (p *Private) String() string {
	r := 0
	if p.Invalidate {
		r = 1
	}
	return fmt.Sprintf("RPC-over-RDMA private data R=%d send=%d receive=%d", r, p.Send, p.Receive)
}

// A Transport is the transport header of a Send (RFC 8166 §4).
type Transport struct {
	Header *rpcrdma.Header
	Inline int // bytes of the Payload stream behind it
}

// Name returns the event's name in JSON.
func (t *Transport) Name() string { return "rpcrdma" }

// String shows segments as STag:TO+length.
func (t *Transport) String() string {
	h := t.Header
	var b strings.Builder
	fmt.Fprintf(&b, "%v xid=%08x credits=%d", h.Proc, h.XID, h.Credits)
	if h.Proc == rpcrdma.Error {
		fmt.Fprintf(&b, " %v", h.Err)
		if h.Err == rpcrdma.ErrVers {
			fmt.Fprintf(&b, " versions %d to %d", h.Low, h.High)
		}
		return b.String()
	}
	position := int64(-1)
	for i := range h.Read {
		r := &h.Read[i]
		if int64(r.Position) != position {
			position = int64(r.Position)
			fmt.Fprintf(&b, " read@%d=", position)
		} else {
			b.WriteByte(',')
		}
		b.WriteString(segmentString(r.Segment))
	}
	for _, c := range h.Write {
		b.WriteString(" write=" + chunkString(c))
	}
	if h.HasReply {
		b.WriteString(" reply=" + chunkString(h.Reply))
	}
	fmt.Fprintf(&b, " inline=%d", t.Inline)
	return b.String()
}

func segmentString(s rpcrdma.Segment) string {
	return fmt.Sprintf("%v:0x%x+%d", s.Handle, s.Offset, s.Length)
}

func chunkString(c []rpcrdma.Segment) string {
	if len(c) == 0 {
		return "empty"
	}
	words := make([]string, len(c))
	for i, s := range c {
		words[i] = segmentString(s)
	}
	return strings.Join(words, ",")
}

// STags and offsets are strings in hexadecimal in JSON, as they are in what dissect writes.
type (
	jsonSegment struct {
		Position *uint32 `json:"position,omitempty"` // of a Read segment
		STag     string  `json:"stag"`
		TO       string  `json:"to"`
		Length   uint32  `json:"length"`
	}
	jsonTransport struct {
		XID       string          `json:"xid"`
		Version   uint32          `json:"version"`
		Credits   uint32          `json:"credits"`
		Procedure string          `json:"procedure"`
		Read      []jsonSegment   `json:"read"`
		Write     [][]jsonSegment `json:"write"`
		Reply     []jsonSegment   `json:"reply,omitempty"`
		HasReply  bool            `json:"has_reply"`
		Inline    int             `json:"inline"`
		Error     string          `json:"error,omitempty"`
		Versions  *[2]uint32      `json:"versions,omitempty"`
	}
)

// MarshalJSON writes the header as an object.
func (t *Transport) MarshalJSON() ([]byte, error) {
	h := t.Header
	j := jsonTransport{
		XID: xidString(h.XID), Version: h.Version, Credits: h.Credits, Procedure: h.Proc.String(), Inline: t.Inline,
		Read: []jsonSegment{}, Write: [][]jsonSegment{}, Reply: jsonChunk(h.Reply), HasReply: h.HasReply,
	}
	for i := range h.Read {
		s := toJSON(h.Read[i].Segment)
		s.Position = &h.Read[i].Position
		j.Read = append(j.Read, s)
	}
	for _, c := range h.Write {
		j.Write = append(j.Write, jsonChunk(c))
	}
	if h.Proc == rpcrdma.Error {
		j.Error = h.Err.String()
		if h.Err == rpcrdma.ErrVers {
			j.Versions = &[2]uint32{h.Low, h.High}
		}
	}
	return json.Marshal(j)
}

func jsonChunk(c []rpcrdma.Segment) []jsonSegment {
	j := make([]jsonSegment, len(c))
	for i, s := range c {
		j[i] = toJSON(s)
	}
	return j
}

func toJSON(s rpcrdma.Segment) jsonSegment {
	return jsonSegment{STag: s.Handle.String(), TO: fmt.Sprintf("0x%016x", s.Offset), Length: s.Length}
}

func xidString(xid uint32) string { return fmt.Sprintf("%08x", xid) }

// clone copies a header, whose memory the next one uses again.
func clone(h *rpcrdma.Header) *rpcrdma.Header {
	c := *h
	c.Read = append([]rpcrdma.ReadSegment(nil), h.Read...)
	c.Write = nil
	for _, w := range h.Write {
		c.Write = append(c.Write, append([]rpcrdma.Segment(nil), w...))
	}
	c.Reply = append([]rpcrdma.Segment(nil), h.Reply...)
	return &c
}

// sums returns the bytes of segments.
func sum(c []rpcrdma.Segment) (n uint64) {
	for _, s := range c {
		n += uint64(s.Length)
	}
	return n
}

// has reports whether a header names a region with that STag.
func has(h *rpcrdma.Header, tag stag.STag) bool {
	for i := range h.Read {
		if h.Read[i].Handle == tag {
			return true
		}
	}
	for _, c := range append(slices.Clip(h.Write), h.Reply) {
		for _, s := range c {
			if s.Handle == tag {
				return true
			}
		}
	}
	return false
}

// Granted returns the credits that a server grants, or that a client asks for.
func (t *Transport) Granted() (credits uint32, ok bool) { return t.Header.Credits, true }
