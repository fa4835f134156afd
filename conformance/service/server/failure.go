package server

import (
	"context"
	"errors"
	"net"

	"urnic/conformance/service"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
)

// failureOf says what the RNIC knows of an error; nil stands for nil.
func failureOf(err error) *service.Failure {
	if err == nil {
		return nil
	}
	f := &service.Failure{Class: service.ClassOther, Text: err.Error()}
	if e, ok := errors.AsType[*rdmap.PeerError](err); ok {
		f.Class, f.Terminate = service.ClassPeer, terminateOf(&e.Terminate, service.Received)
		return f
	}
	if e, ok := errors.AsType[*mpa.RejectedError](err); ok {
		f.Class, f.PrivateData, f.Enhanced, f.IRD, f.ORD = service.ClassRejected, e.PrivateData, e.Enhanced, e.IRD, e.ORD
		return f
	}
	if e, ok := errors.AsType[*mpa.Error](err); ok {
		f.Class, f.Clause, f.MPACode = service.ClassMPA, e.Clause, uint8(e.Code)
		if e.Code == mpa.CodeConnectionLost {
			f.Class = service.ClassLost
			return f // there was nobody to tell
		}
	}
	if e, ok := errors.AsType[*rdmap.Error](err); ok {
		t := e.Terminate()
		f.Terminate = terminateOf(&t, service.Sent)
		if f.Class == service.ClassOther {
			f.Class, f.Clause = service.ClassRDMAP, e.Clause
		}
	}
	if errors.Is(err, rnic.ErrAborted) || errors.Is(err, rnic.ErrClosed) {
		f.Class = service.ClassAborted
	}
	return f
}

func terminateOf(t *rdmap.Terminate, direction string) *service.Terminate {
	m := &service.Terminate{
		Direction: direction, Layer: t.Code.Layer(), EType: t.Code.EType(), Code: t.Code.Code(), Name: t.Code.String(),
		DDPHeader: t.DDPHeader, RDMAHeader: t.RDMAHeader,
	}
	if t.M() {
		m.SegmentLength = &t.SegmentLen
	}
	return m
}

// errTimeout is the cause with which the context of an operation ends.
var errTimeout = &service.Error{Code: service.CodeTimeout, Message: "it did not happen in time"}

// errorOf returns the answer to a request that has come to nothing.
func errorOf(err error) *service.Error {
	if e, ok := errors.AsType[*service.Error](err); ok {
		return e
	}
	e := &service.Error{Code: codeOf(err), Message: err.Error(), Failure: failureOf(err)}
	if e.Failure.Class == service.ClassOther {
		e.Failure = nil // the message says it all
	}
	return e
}

func codeOf(err error) service.Code {
	if _, ok := errors.AsType[*pd.LimitError](err); ok {
		return service.CodeLimit
	}
	for _, state := range []error{rnic.ErrNotIdle, rnic.ErrNoStream, rnic.ErrBusy, rnic.ErrClosed, rnic.ErrOverflow} {
		if errors.Is(err, state) {
			return service.CodeState
		}
	}
	if _, ok := errors.AsType[*rnic.StateError](err); ok {
		return service.CodeState
	}
	if _, ok := errors.AsType[*mpa.RejectedError](err); ok {
		return service.CodeRejected
	}
	if _, ok := errors.AsType[*rdmap.PeerError](err); ok {
		return service.CodeStream
	}
	if _, ok := errors.AsType[*rdmap.Error](err); ok {
		return service.CodeStream
	}
	if _, ok := errors.AsType[*mpa.Error](err); ok {
		return service.CodeStream
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return service.CodeNetwork
	}
	if _, ok := errors.AsType[*rnic.OpError](err); ok {
		return service.CodeRefused
	}
	return service.CodeInternal
}

// startupErrorOf is errorOf for a connection that did not come to be.
func startupErrorOf(err error) *service.Error {
	e := errorOf(err)
	if e.Code == service.CodeStream {
		e.Code = service.CodeStartup
	}
	return e
}
