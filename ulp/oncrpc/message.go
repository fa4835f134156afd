package oncrpc

import (
	"errors"
	"fmt"

	"urnic/ulp/oncrpc/xdr"
)

// Version is that of the protocol: "rpcvers MUST be equal to 2" (RFC 5531 §9).
const Version = 2

// A MessageType says what a message is.
type MessageType uint32

// The types of messages.
const (
	TypeCall  MessageType = 0
	TypeReply MessageType = 1
)

// ErrType says that a message is not what it was taken for, or neither call nor reply.
var ErrType = errors.New("oncrpc: not that type of message")

// Peek returns what all messages begin with. It returns an *xdr.Error if there is less,
// or ErrType if it is neither a call nor a reply.
func Peek(message []byte) (xid uint32, t MessageType, err error) {
	d := xdr.NewDecoder(message)
	xid, t = d.Uint32(), MessageType(d.Uint32())
	if err := d.Err(); err != nil {
		return 0, 0, err
	}
	if t != TypeCall && t != TypeReply {
		return xid, t, ErrType
	}
	return xid, t, nil
}

// A Call is the header of a call; what follows it are the arguments (RFC 5531 §9).
type Call struct {
	XID       uint32
	Program   uint32
	Version   uint32 // of the program
	Procedure uint32
	Cred      Auth
	Verf      Auth
}

// Encode writes the header. It returns an error, and writes nothing, if a credential or
// verifier is too long.
func (c *Call) Encode(e *xdr.Encoder) error {
	if err := errors.Join(c.Cred.check(), c.Verf.check()); err != nil {
		return err
	}
	e.Uint32(c.XID)
	e.Uint32(uint32(TypeCall))
	e.Uint32(Version)
	e.Uint32(c.Program)
	e.Uint32(c.Version)
	e.Uint32(c.Procedure)
	c.Cred.encode(e)
	c.Verf.encode(e)
	return nil
}

// A VersionError says that a call is of another version of the protocol. Its XID has
// been read, so that the server can say so: RPC_MISMATCH.
type VersionError struct{ Version uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("oncrpc: the call is of version %d of the protocol; there is 2", e.Version)
}

// Decode reads the header. It returns an *xdr.Error, ErrType, or a *VersionError. The
// credential and the verifier lie in the stream's memory.
func (c *Call) Decode(d *xdr.Decoder) error {
	*c = Call{XID: d.Uint32()}
	if t := MessageType(d.Uint32()); d.Err() == nil && t != TypeCall {
		return ErrType
	}
	if v := d.Uint32(); d.Err() == nil && v != Version {
		return &VersionError{v}
	}
	c.Program, c.Version, c.Procedure = d.Uint32(), d.Uint32(), d.Uint32()
	c.Cred.decode(d)
	c.Verf.decode(d)
	return d.Err()
}

// A Reply is the header of a reply. If Err is nil, the results follow it (RFC 5531 §9).
type Reply struct {
	XID  uint32
	Verf Auth  // the server's, if it has accepted the call
	Err  error // nil, an *AcceptedError or a *RejectedError
}

// Encode writes the header. It returns an error, and writes nothing, if Err is another
// one, or the verifier is too long.
func (r *Reply) Encode(e *xdr.Encoder) error {
	if err := r.Verf.check(); err != nil {
		return err
	}
	accepted, isAccepted := errors.AsType[*AcceptedError](r.Err)
	rejected, isRejected := errors.AsType[*RejectedError](r.Err)
	if r.Err != nil && !isAccepted && !isRejected {
		return fmt.Errorf("oncrpc: no reply says %w", r.Err)
	}
	e.Uint32(r.XID)
	e.Uint32(uint32(TypeReply))
	if isRejected && !isAccepted {
		e.Uint32(replyDenied)
		rejected.encode(e)
		return nil
	}
	e.Uint32(replyAccepted)
	r.Verf.encode(e)
	if !isAccepted {
		e.Uint32(uint32(Success))
		return nil
	}
	accepted.encode(e)
	return nil
}

// Decode reads the header. It returns an *xdr.Error or ErrType if that is none; what the
// server says is in r.Err. The verifier lies in the stream's memory.
func (r *Reply) Decode(d *xdr.Decoder) error {
	*r = Reply{XID: d.Uint32()}
	if t := MessageType(d.Uint32()); d.Err() == nil && t != TypeReply {
		return ErrType
	}
	switch d.Uint32() {
	case replyAccepted:
		r.Verf.decode(d)
		r.Err = decodeAccepted(d)
	case replyDenied:
		r.Err = decodeRejected(d)
	default:
		d.Fail("the status of a reply", xdr.ErrValue)
	}
	if err := d.Err(); err != nil {
		r.Err = nil
		return err
	}
	return nil
}
