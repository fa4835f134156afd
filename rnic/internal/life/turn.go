package life

import (
	"errors"

	"urnic/rdmap"
)

// A Transmission is what decides, beside the queue, what can be begun.
type Transmission interface {
	// MayRead reports whether ORD has room for a Read or an atomic.
	MayRead() bool
	// HoldsMemory reports whether memory of requests is open until the next flush, for
	// which a local request might wait.
	HoldsMemory() bool
	// Check checks a Read or an atomic that was not checked when it was posted, see
	// policy.CheckAtTurn. It returns the status and the error with which it fails.
	Check(r *Request) (Status, error)
}

// A Turn says what to do next for the send queue.
type Turn uint8

// What Next can say.
const (
	Wait     Turn = iota // nothing: the queue is empty, or something holds its next request back
	Send                 // send the message
	CarryOut             // carry out the local request and say so by CarriedOut
	Flush                // flush first, and ask again: a local request waits for memory
	Failed               // the request has failed, and with it the stream
)

var errNoORD = errors.New("the connection was set up with an ORD of 0")

// Next begins the next request of the send queue, or continues with the one that
// has messages left. All rules that hold requests back are here.
func (m *Machine) Next(t Transmission) (Turn, *Request, *rdmap.Operation) {
	if !m.stream.live || m.begun >= m.Outstanding() {
		return Wait, nil, nil
	}
	r := *m.queue.At(m.begun)
	fresh := r.progress == queued
	switch {
	case m.stopped && fresh:
		return Wait, nil, nil
	case r.Flags&LocalFence != 0 && m.begun > 0:
		return Wait, nil, nil
	case r.Flags&ReadFence != 0 && m.reads > 0 && fresh: // for RDMAP, a Read is over a little before Answered is called
		return Wait, nil, nil
	case r.isLocal() && t.HoldsMemory():
		return Flush, nil, nil
	case r.isLocal():
		m.begun++
		return CarryOut, r, nil
	case !r.isRead():
	case m.stream.ORD == 0:
		_ = r.Refuse(NoReadResources, errNoORD)
		return Failed, r, nil
	case !t.MayRead():
		return Wait, nil, nil
	case fresh && m.checksAtTurn:
		if status, err := t.Check(r); err != nil {
			_ = r.Refuse(status, err)
			return Failed, r, nil
		}
	}
	r.progress = begun
	o := &r.Messages[r.sent]
	if r.sent++; r.sent == len(r.Messages) {
		m.begun++
	}
	if r.isRead() {
		m.reads++
	}
	return Send, r, o
}

// Batch begins the requests behind the one that Next has returned as long as nothing can hold
// them back, appends them to batch, and returns it. It stops when batch is full, and
// reports whether it has begun all there are.
func (m *Machine) Batch(batch []*Request) (_ []*Request, all bool) {
	for m.stream.live && m.begun < m.Outstanding() && !m.stopped {
		r := *m.queue.At(m.begun)
		if len(batch) == cap(batch) || !r.plain() {
			return batch, false
		}
		r.progress, r.sent = begun, 1
		m.begun++
		batch = append(batch, r)
	}
	return batch, true
}
