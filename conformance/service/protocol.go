package service

import (
	"encoding/json"
	"errors"
)

// Version is that of the protocol. A server answers another one with an error.
const Version = 1

// MaxLine is how many bytes a line may have, in either direction.
const MaxLine = 4 << 20

// A Request asks for one operation.
type Request struct {
	ID   uint64          `json:"id"` // comes back in the answer
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`
}

// An Answer is the answer to a Request.
type Answer struct {
	ID     uint64          `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// A Code is the kind of an error, for programs.
type Code string

// The codes.
const (
	CodeRequest     Code = "request"     // the request can't be understood, or breaks a rule of the protocol
	CodeVersion     Code = "version"     // the server speaks another version
	CodeOp          Code = "op"          // the server has no such operation
	CodeUnsupported Code = "unsupported" // the RNIC can't do this
	CodeUnknown     Code = "unknown"     // the session has no such object
	CodeLimit       Code = "limit"       // the session would hold more than it may
	CodeForbidden   Code = "forbidden"   // the server does not do this for strangers
	CodeRefused     Code = "refused"     // the RNIC refuses: something is wrong with the arguments
	CodeState       Code = "state"       // the object is in another state, or in use
	CodeTimeout     Code = "timeout"     // it did not happen in time
	CodeRejected    Code = "rejected"    // the peer has rejected the connection
	CodeStartup     Code = "startup"     // start-up has failed
	CodeNetwork     Code = "network"     // there is no connection to the peer, or it was lost
	CodeStream      Code = "stream"      // the RDMA stream has ended with an error
	CodeInternal    Code = "internal"    // something is wrong with the server
)

// An Error is the answer to a Request that has come to nothing.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"` // for people

	Failure *Failure      `json:"failure,omitempty"` // what the RNIC knows of it
	Request *StartRequest `json:"request,omitempty"` // accepted: what the peer has asked for, as far as it was read
	Peer    string        `json:"peer,omitempty"`    // accepted: whose request it was
	IDs     []uint64      `json:"ids,omitempty"`     // post, recv: of the requests before the one that was refused
}

// Error implements error.
func (e *Error) Error() string { return "conformance service: " + string(e.Code) + ": " + e.Message }

// CodeOf returns the code of the *Error that err wraps, or "" if it wraps none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// The classes of a Failure.
const (
	ClassPeer     = "peer"     // the peer has sent a Terminate
	ClassRDMAP    = "rdmap"    // this side has found an error of RDMAP or DDP, and sends a Terminate
	ClassMPA      = "mpa"      // this side has found an error of MPA; in operation, it sends a Terminate
	ClassRejected = "rejected" // the peer has rejected the connection
	ClassLost     = "lost"     // the connection was lost, reset or closed by the peer
	ClassAborted  = "aborted"  // this side's program has ended it
	ClassOther    = "other"
)

// A Failure is what an RNIC knows of an error.
type Failure struct {
	Class  string `json:"class"`
	Text   string `json:"text"`             // for people
	Clause string `json:"clause,omitempty"` // the rule that was broken

	MPACode   uint8      `json:"mpa_code,omitempty"` // RFC 5044 §8, RFC 6581 §8
	Terminate *Terminate `json:"terminate,omitempty"`

	// Of a peer that rejects: what it has sent along.
	PrivateData Hex    `json:"private_data,omitempty"`
	Enhanced    bool   `json:"enhanced,omitempty"`
	IRD         uint16 `json:"ird,omitempty"`
	ORD         uint16 `json:"ord,omitempty"`
}

// Which end of a stream a Terminate was of.
const (
	Sent     = "sent"
	Received = "received"
)

// A Terminate is a Terminate message (RFC 5040 §4.8).
type Terminate struct {
	Direction string `json:"direction"` // "sent" or "received"
	Layer     uint8  `json:"layer"`
	EType     uint8  `json:"etype"`
	Code      uint8  `json:"code"`
	Name      string `json:"name"` // of the error, for people

	SegmentLength *uint16 `json:"segment_length,omitempty"` // if M
	DDPHeader     Hex     `json:"ddp_header,omitempty"`     // if D
	RDMAHeader    Hex     `json:"rdma_header,omitempty"`    // if R
}

// Word returns the first two bytes of the message as a number.
func (t *Terminate) Word() uint16 {
	return uint16(t.Layer)<<12 | uint16(t.EType&0xF)<<8 | uint16(t.Code)
}
