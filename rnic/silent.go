package rnic

import (
	"errors"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/rdmap"
)

// silent is the ULP of a stream that carries nothing but a Terminate.
type silent struct{}

func (silent) ReceiveBuffer(uint32, bool) ddp.Buffer { return nil }
func (silent) Deliver(rdmap.Delivery) error          { return nil }
func (silent) Completed(*rdmap.Operation) error      { return nil }
func (silent) Terminated(rdmap.Terminate)            {}
func (silent) Wake()                                 {}
func (silent) Next() *rdmap.Operation                { return nil }
func (silent) Submitted(*rdmap.Operation, uint64)    {}
func (silent) Failed(*rdmap.Operation, error)        {}

// recorder records for a start-up whose byte stream is known only once it is
// dialled.
type recorder struct{ s *startup }

// Sent implements mpa.Recorder.
func (r recorder) Sent(pieces ...[]byte) { r.s.stream.Sent(pieces...) }

// Received implements mpa.Recorder.
func (r recorder) Received(pieces ...[]byte) { r.s.stream.Received(pieces...) }

// Close implements mpa.Recorder.
func (r recorder) Close(byUs bool) { r.s.stream.Close(byUs) }

// Reset implements mpa.Recorder.
func (r recorder) Reset(byUs bool) { r.s.stream.Reset(byUs) }

// asMPA returns the error of MPA that err wraps, or nil.
func asMPA(err error) *mpa.Error {
	if e, ok := errors.AsType[*mpa.Error](err); ok {
		return e
	}
	return nil
}
