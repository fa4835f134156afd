package rpc

import (
	"fmt"
)

// Types of message, reply_stat and accept_stat of RFC 5531 §9.
const (
	callType  = 0
	replyType = 1

	accepted = 0

	Success      = 0
	ProgUnavail  = 1
	ProgMismatch = 2
	ProcUnavail  = 3
	GarbageArgs  = 4
	SystemErr    = 5
)

// rpcVersion is that of the protocol itself (RFC 5531 §9).
const rpcVersion = 2

// Flavors of RFC 5531 §8.2.
const (
	authNone = 0
	authSys  = 1
	maxAuth  = 400
)

// A Call is a call message. The zero credential is AUTH_NONE.
type Call struct {
	XID                         uint32
	Program, Version, Procedure uint32
	Cred                        []byte // body of AUTH_SYS, or nil
	Args                        []byte
}

// Root is the body of an AUTH_SYS credential of user and group 0 (RFC 5531 §8.2,
// appendix A).
func Root() []byte {
	b := Opaque(words(nil, 0), []byte("conform"))
	return words(b, 0, 0, 0)
}

// Octets returns the message as it stands in a Payload stream.
func (c Call) Octets() []byte {
	b := words(nil, c.XID, callType, rpcVersion, c.Program, c.Version, c.Procedure)
	if c.Cred == nil {
		b = words(b, authNone, 0)
	} else {
		b = Opaque(words(b, authSys), c.Cred)
	}
	b = words(b, authNone, 0)
	return append(b, c.Args...)
}

// ParseCall takes a call message apart.
func ParseCall(b []byte) (Call, error) {
	d := decoder{rest: b}
	c := Call{XID: d.word()}
	if t := d.word(); t != callType {
		d.fail("message type %d in a call", t)
	}
	if v := d.word(); v != rpcVersion {
		d.fail("version %d of RPC", v)
	}
	c.Program, c.Version, c.Procedure = d.word(), d.word(), d.word()
	for range 2 { // credential and verifier
		d.word()
		d.opaque(maxAuth)
	}
	c.Args = d.rest
	return c, d.err
}

// A Reply is a reply message.
type Reply struct {
	XID     uint32
	Denied  bool
	Status  uint32 // accept_stat or, denied, reject_stat
	Results []byte
}

// Octets returns the message as it stands in a Payload stream.
func (r Reply) Octets() []byte {
	if r.Denied {
		return append(words(nil, r.XID, replyType, 1, r.Status), r.Results...)
	}
	return append(words(nil, r.XID, replyType, accepted, authNone, 0, r.Status), r.Results...)
}

// ParseReply takes a reply message apart.
func ParseReply(b []byte) (Reply, error) {
	d := decoder{rest: b}
	r := Reply{XID: d.word()}
	if t := d.word(); t != replyType {
		d.fail("message type %d in a reply", t)
	}
	switch s := d.word(); s {
	case accepted:
		d.word()
		d.opaque(maxAuth)
	case 1:
		r.Denied = true
	default:
		d.fail("reply_stat %d", s)
	}
	r.Status = d.word()
	r.Results = d.rest
	return r, d.err
}

// String describes the reply.
func (r Reply) String() string {
	if r.Denied {
		return fmt.Sprintf("a reply that denies the call, status %d", r.Status)
	}
	names := []string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}
	if int64(r.Status) < int64(len(names)) {
		return "a reply with " + names[r.Status]
	}
	return fmt.Sprintf("a reply with status %d", r.Status)
}
