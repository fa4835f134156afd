package service

import (
	"context"
	"errors"
	"net"

	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
)

// Which end of a stream a Terminate was of.
const (
	Sent     = "sent"
	Received = "received"
)

// failureOf says what the RNIC knows of an error; nil stands for nil.
func failureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Class: ClassOther, Text: err.Error()}
	if e, ok := errors.AsType[*rdmap.PeerError](err); ok {
		f.Class, f.Terminate = ClassPeer, terminateOf(&e.Terminate, Received)
		return f
	}
	if e, ok := errors.AsType[*mpa.RejectedError](err); ok {
		f.Class, f.PrivateData, f.Enhanced, f.IRD, f.ORD = ClassRejected, e.PrivateData, e.Enhanced, e.IRD, e.ORD
		return f
	}
	if e, ok := errors.AsType[*mpa.Error](err); ok {
		f.Class, f.Clause, f.MPACode = ClassMPA, e.Clause, uint8(e.Code)
		if e.Code == mpa.CodeConnectionLost {
			f.Class = ClassLost
			return f // there was nobody to tell
		}
	}
	if e, ok := errors.AsType[*rdmap.Error](err); ok {
		t := e.Terminate()
		f.Terminate = terminateOf(&t, Sent)
		if f.Class == ClassOther {
			f.Class, f.Clause = ClassRDMAP, e.Clause
		}
	}
	if errors.Is(err, rnic.ErrAborted) || errors.Is(err, rnic.ErrClosed) {
		f.Class = ClassAborted
	}
	return f
}

func terminateOf(t *rdmap.Terminate, direction string) *Terminate {
	m := &Terminate{
		Direction: direction, Layer: t.Code.Layer(), EType: t.Code.EType(), Code: t.Code.Code(), Name: t.Code.String(),
		DDPHeader: t.DDPHeader, RDMAHeader: t.RDMAHeader,
	}
	if t.M() {
		m.SegmentLength = &t.SegmentLen
	}
	return m
}

// errTimeout is the cause with which the context of an operation ends.
var errTimeout = &Error{Code: CodeTimeout, Message: "it did not happen in time"}

// errorOf returns the answer to a request that has come to nothing.
func errorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Code: codeOf(err), Message: err.Error(), Failure: failureOf(err)}
	if e.Failure.Class == ClassOther {
		e.Failure = nil // the message says it all
	}
	return e
}

func codeOf(err error) Code {
	if _, ok := errors.AsType[*pd.LimitError](err); ok {
		return CodeLimit
	}
	for _, state := range []error{rnic.ErrNotIdle, rnic.ErrNoStream, rnic.ErrBusy, rnic.ErrClosed, rnic.ErrOverflow} {
		if errors.Is(err, state) {
			return CodeState
		}
	}
	if _, ok := errors.AsType[*rnic.StateError](err); ok {
		return CodeState
	}
	if _, ok := errors.AsType[*mpa.RejectedError](err); ok {
		return CodeRejected
	}
	if _, ok := errors.AsType[*rdmap.PeerError](err); ok {
		return CodeStream
	}
	if _, ok := errors.AsType[*rdmap.Error](err); ok {
		return CodeStream
	}
	if _, ok := errors.AsType[*mpa.Error](err); ok {
		return CodeStream
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return CodeNetwork
	}
	if _, ok := errors.AsType[*rnic.OpError](err); ok {
		return CodeRefused
	}
	return CodeInternal
}

// startupErrorOf is errorOf for a connection that did not come to be.
func startupErrorOf(err error) *Error {
	e := errorOf(err)
	if e.Code == CodeStream {
		e.Code = CodeStartup
	}
	return e
}
