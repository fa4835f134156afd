package rnic

import (
	"context"
	"fmt"

	"urnic/rdmap"
)

// An EventType says what an asynchronous event tells.
type EventType uint8

// The asynchronous events.
const (
	EventCloseComplete     EventType = iota + 1 // QP: the connection was closed gracefully
	EventTerminateReceived                      // QP: the peer has ended the stream with a Terminate
	EventLost                                   // QP: the connection was lost or reset
	EventBadClose                               // QP: something arrived while it was closing
	EventBadLLPClose                            // QP: the peer closed while work was outstanding
	EventIntegrity                              // QP: CRC or marker error
	EventRemoteOperation                        // QP: the peer broke a rule
	EventProtection                             // QP: the peer touched what it may not touch
	EventCatastrophic                           // QP: it has failed for a reason of this side
	EventCQOverflow                             // CQ: a completion found no place
	EventSRQLimit                               // SRQ: fewer receives than its limit are left
	EventSRQShare                               // QP, SRQ: the peer has taken its whole share of receives
	EventSQDrained                              // QP: after StopSending, all requests that were begun have completed
)

var eventNames = [...]string{
	EventCloseComplete: "LLP close complete", EventTerminateReceived: "Terminate message received", EventLost: "LLP connection lost",
	EventBadClose: "bad close", EventBadLLPClose: "bad LLP close", EventIntegrity: "LLP integrity error",
	EventRemoteOperation: "remote operation error", EventProtection: "protection error", EventCatastrophic: "local QP catastrophic error",
	EventCQOverflow: "CQ overflow", EventSRQLimit: "SRQ limit reached", EventSRQShare: "SRQ share exceeded",
	EventSQDrained: "send queue drained",
}

// String names the event.
func (t EventType) String() string {
	if int(t) < len(eventNames) && t != 0 {
		return eventNames[t]
	}
	return fmt.Sprintf("event %d", uint8(t))
}

// An Event is an asynchronous event of a device.
type Event struct {
	Type EventType
	QP   *QP // whose event it is, or nil
	CQ   *CQ
	SRQ  *SRQ

	Err       error            // what happened, for people; may be nil
	Terminate *rdmap.Terminate // EventTerminateReceived
	Lost      uint64           // how many events before this one were dropped, as nobody fetched them
}

// String shows the event in one line.
func (e Event) String() string {
	s := e.Type.String()
	switch {
	case e.QP != nil:
		s += fmt.Sprintf(" (QP %d)", e.QP.Num())
	case e.CQ != nil:
		s += fmt.Sprintf(" (CQ %d)", e.CQ.Num())
	case e.SRQ != nil:
		s += fmt.Sprintf(" (SRQ %d)", e.SRQ.Num())
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// PollEvent returns the oldest asynchronous event that nobody has fetched, or
// false if there is none.
func (d *Device) PollEvent() (Event, bool) {
	if !d.made() {
		return Event{}, false
	}
	return d.events.take()
}

// WaitEvent waits for an asynchronous event. It returns the context's error, or
// ErrClosed after the device was closed.
func (d *Device) WaitEvent(ctx context.Context) (Event, error) {
	const op = "wait for event"
	if !d.made() {
		return Event{}, notMade(op, "device")
	}
	if ctx == nil {
		return Event{}, d.fail(op, ErrNoContext)
	}
	for closed := false; ; {
		changed := d.events.wait()
		if e, ok := d.events.take(); ok {
			return e, nil
		}
		if closed {
			return Event{}, d.fail(op, ErrClosed)
		}
		select {
		case <-changed:
		case <-d.done:
			closed = true // what was reported before is fetched first
		case <-ctx.Done():
			return Event{}, d.fail(op, context.Cause(ctx))
		}
	}
}

// EventFD returns a file descriptor that is readable while there are
// asynchronous events to fetch. It belongs to the device. It fails where the
// operating system has no such thing.
func (d *Device) EventFD() (int, error) {
	if !d.made() {
		return -1, notMade("event descriptor", "device")
	}
	fd, err := d.events.descriptor()
	if err != nil {
		return -1, d.fail("event descriptor", err)
	}
	return fd, nil
}

// report queues an event and logs it.
func (d *Device) report(e Event) {
	d.log.Info("event", "device", d.cfg.Name, "event", e.String())
	d.events.put(e)
}
