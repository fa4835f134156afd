package rnic

import (
	"context"
	"fmt"

	"urnic/rdmap"
	"urnic/rnic/internal/life"
)

// An EventType is the type of an asynchronous event.
type EventType uint8

// The asynchronous events.
const (
	EventCloseComplete     = EventType(life.CloseComplete)     // QP: the connection was closed gracefully
	EventTerminateReceived = EventType(life.TerminateReceived) // QP: the peer has ended the stream with a Terminate
	EventLost              = EventType(life.Lost)              // QP: the connection was lost or reset
	EventBadClose          = EventType(life.BadClose)          // QP: a segment arrived while it was closing
	EventBadLLPClose       = EventType(life.BadLLPClose)       // QP: the peer closed while work was outstanding
	EventIntegrity         = EventType(life.Integrity)         // QP: CRC or marker error
	EventRemoteOperation   = EventType(life.RemoteOperation)   // QP: the peer broke a rule
	EventProtection        = EventType(life.Protection)        // QP: the peer accessed memory that it must not access
	EventCatastrophic      = EventType(life.Catastrophic)      // QP: it has failed, for a cause on this side
)

// The events of other objects, and of queues.
const (
	EventCQOverflow EventType = EventCatastrophic + 1 + iota // CQ: a completion found no slot
	EventSRQLimit                                            // SRQ: fewer receives than its limit are left
	EventSRQShare                                            // QP, SRQ: the peer has used its whole share of receives
	eventSQDrained                                           // QP: see door.EventSQDrained
)

var eventNames = [...]string{
	EventCloseComplete: "LLP close complete", EventTerminateReceived: "Terminate message received", EventLost: "LLP connection lost",
	EventBadClose: "bad close", EventBadLLPClose: "bad LLP close", EventIntegrity: "LLP integrity error",
	EventRemoteOperation: "remote operation error", EventProtection: "protection error", EventCatastrophic: "local QP catastrophic error",
	EventCQOverflow: "CQ overflow", EventSRQLimit: "SRQ limit reached", EventSRQShare: "SRQ share exceeded",
	eventSQDrained: "send queue drained",
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
	QP   *QP // the object that the event is about, or nil
	CQ   *CQ
	SRQ  *SRQ

	Err       error            // what happened, human-readable; may be nil
	Terminate *rdmap.Terminate // EventTerminateReceived
	Lost      uint64           // how many events before this one were dropped, as they were not fetched
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

// PollEvent returns and removes the oldest asynchronous event, or false if
// there is none.
func (d *Device) PollEvent() (Event, bool) {
	if !d.made() {
		return Event{}, false
	}
	return d.events.take()
}

// WaitEvent waits for an asynchronous event. It returns the context's error, or
// ErrClosed once the device is closed.
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
// asynchronous events to fetch. The device owns it. EventFD fails where the
// operating system has no such descriptor.
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
