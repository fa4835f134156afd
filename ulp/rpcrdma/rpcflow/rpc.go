package rpcflow

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// An RPC is a call or a reply (RFC 5531), put together from the Send that has announced it
// and from its chunks.
type RPC struct {
	Reply     bool
	XID       uint32
	Program   uint32 // of a reply, its call's; 0 if that is not known
	Version   uint32
	Procedure uint32
	Known     bool // the three are known

	Credential string // of a call
	Status     string // of a reply
	Failed     bool   // the reply says that the call was not carried out
	Detail     string // of arguments or results, if the program is known

	Length  uint64        // bytes of the whole message
	Moved   uint64        // of them, data items in chunks
	Long    bool          // the message itself came in a chunk
	Whole   bool          // Bytes is all of it
	Octets  []byte        // the message, or what is known from its beginning on
	Latency time.Duration // of a reply: since its call
	Matched bool          // the reply has a call
}

// Name returns the event's name in JSON.
func (r *RPC) Name() string { return "rpc" }

// Title names program and procedure.
func (r *RPC) Title() string {
	if !r.Known {
		return "unknown procedure"
	}
	return procedureName(r.Program, r.Version, r.Procedure)
}

func (r *RPC) String() string {
	var b strings.Builder
	if r.Reply {
		fmt.Fprintf(&b, "reply %s xid=%08x %s", r.Title(), r.XID, r.Status)
	} else {
		fmt.Fprintf(&b, "call %s xid=%08x %s", r.Title(), r.XID, r.Credential)
	}
	if r.Detail != "" {
		b.WriteString(" " + r.Detail)
	}
	fmt.Fprintf(&b, " len=%d", r.Length)
	if r.Moved > 0 {
		fmt.Fprintf(&b, " moved=%d", r.Moved)
	}
	if r.Long {
		b.WriteString(" long")
	}
	if !r.Whole {
		b.WriteString(" (not all of it is known)")
	}
	if r.Reply && r.Matched {
		fmt.Fprintf(&b, " after %v", r.Latency.Round(time.Microsecond))
	}
	return b.String()
}

type jsonRPC struct {
	Type       string   `json:"type"`
	XID        string   `json:"xid"`
	Program    uint32   `json:"program"`
	Version    uint32   `json:"version"`
	Procedure  uint32   `json:"procedure"`
	Name       string   `json:"name"`
	Credential string   `json:"credential,omitempty"`
	Status     string   `json:"status,omitempty"`
	Detail     string   `json:"detail,omitempty"`
	Length     uint64   `json:"length"`
	Moved      uint64   `json:"moved"`
	Long       bool     `json:"long"`
	Whole      bool     `json:"whole"`
	Matched    bool     `json:"matched"`
	Latency    *float64 `json:"latency_seconds,omitempty"`
}

// MarshalJSON writes the message as an object, without its bytes.
func (r *RPC) MarshalJSON() ([]byte, error) {
	j := jsonRPC{
		Type: "call", XID: xidString(r.XID), Program: r.Program, Version: r.Version, Procedure: r.Procedure, Name: r.Title(),
		Credential: r.Credential, Status: r.Status, Detail: r.Detail, Length: r.Length, Moved: r.Moved, Long: r.Long, Whole: r.Whole,
		Matched: r.Matched,
	}
	if r.Reply {
		j.Type = "reply"
		if r.Matched {
			s := r.Latency.Seconds()
			j.Latency = &s
		}
	}
	return json.Marshal(j)
}

// decodeCall decodes a call, as far as it is known.
func (c *conn) decodeCall(k *call, inline []byte, at capture.At) {
	s := c.assembleCall(k, inline, at)
	r := &RPC{XID: k.header.XID, Length: s.length(), Moved: s.moved, Long: s.long, Whole: !s.thin, Octets: s.octets}
	d := xdr.NewDecoder(s.octets)
	var m oncrpc.Call
	err := m.Decode(d)
	switch {
	case err != nil && s.thin:
		c.r.Emit(k.from, at, r)
		return
	case err != nil:
		c.r.Violate(ruleMessage, k.from, at, "the call with XID %08x can't be decoded: %v", r.XID, err)
		return
	case m.XID != r.XID:
		c.r.Violate(ruleXID, k.from, at, "the header has XID %08x, the call in it %08x", r.XID, m.XID)
	}
	r.Known, r.Program, r.Version, r.Procedure = true, m.Program, m.Version, m.Procedure
	r.Credential = credential(&m.Cred)
	r.Detail = callDetail(r, s.octets[len(s.octets)-d.Left():])
	if m.Program == programNFS {
		c.checkItems(k, s, at)
	}
	k.rpc = r
	c.sum.call(k, s)
	c.r.Emit(k.from, at, r)
}

// checkItems compares the lengths of Read chunks with those in front of their data, which
// are there in all data items of NFS that may be moved (RFC 8166 §3.4.5.2, RFC 8267).
func (c *conn) checkItems(k *call, s *stream, at capture.At) {
	for _, i := range s.items {
		if i.at < 4 || i.at > len(s.octets) {
			continue
		}
		n := uint64(binary.BigEndian.Uint32(s.octets[i.at-4:]))
		if i.length != n && i.length != n+-n&3 {
			c.r.Violate(ruleReadLen, k.from, at, "XID %08x has a Read chunk of %d bytes at %d for an item of %d", k.header.XID, i.length, i.at, n)
		}
	}
}

// decodeReply decodes a reply, as far as it is known. k is nil if its call is not known.
func (c *conn) decodeReply(k *call, h *rpcrdma.Header, inline []byte, from dissect.Side, at capture.At) {
	s := c.assembleReply(k, h, inline, from, at)
	r := &RPC{Reply: true, XID: h.XID, Length: s.length(), Moved: s.moved, Long: s.long, Whole: !s.thin, Octets: s.octets}
	if k != nil {
		r.Matched, r.Latency = true, at.Time.Sub(k.at.Time)
		if k.rpc != nil {
			r.Known, r.Program, r.Version, r.Procedure = true, k.rpc.Program, k.rpc.Version, k.rpc.Procedure
		}
	}
	d := xdr.NewDecoder(s.octets)
	var m oncrpc.Reply
	err := m.Decode(d)
	switch {
	case err != nil && s.thin:
	case err != nil:
		c.r.Violate(ruleMessage, from, at, "the reply with XID %08x can't be decoded: %v", h.XID, err)
	case m.XID != h.XID:
		c.r.Violate(ruleXID, from, at, "the header has XID %08x, the reply in it %08x", h.XID, m.XID)
	}
	switch {
	case err != nil:
	case m.Err != nil:
		r.Failed, r.Status = true, failure(m.Err)
	default:
		r.Status = "success"
		if r.Known {
			r.Detail = replyDetail(r, s.octets[len(s.octets)-d.Left():])
		}
	}
	c.sum.reply(k, h, r)
	c.r.Emit(from, at, r)
}

// failure says why a call was not carried out.
func failure(err error) string {
	if e, ok := errors.AsType[*oncrpc.AcceptedError](err); ok {
		return "accepted, but " + e.Stat.String()
	}
	if e, ok := errors.AsType[*oncrpc.RejectedError](err); ok {
		if e.Stat == oncrpc.RPCMismatch {
			return fmt.Sprintf("denied: versions %d to %d of RPC", e.Low, e.High)
		}
		return "denied: " + e.Auth.String()
	}
	return err.Error()
}

// credential shows who calls.
func credential(a *oncrpc.Auth) string {
	sys, err := a.Sys()
	if err != nil {
		return flavorName(a.Flavor)
	}
	return fmt.Sprintf("%s uid=%d gid=%d", flavorName(a.Flavor), sys.UID, sys.GID)
}
