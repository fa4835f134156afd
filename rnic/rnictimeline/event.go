package rnictimeline

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"time"

	"urnic/rdmap"
	"urnic/rnic"
)

// A Kind says what an Event tells.
type Kind uint8

// The kinds.
const (
	// PostedSend: a request was posted to a send queue. Op, ID, Length, Messages.
	PostedSend Kind = iota + 1
	// PostedRecv: a receive was posted to a receive queue. ID, Length.
	PostedRecv
	// PostedShared: a receive was posted to the shared receive queue with number QPN. ID, Length.
	PostedShared
	// Polled: the program has polled a completion. ID, Failed, Op as in rnic.WC, Messages.
	Polled
	// Delivered: a message has arrived and is complete for the device. RDMAP, Length.
	Delivered
	// LocalAddr and RemoteAddr: of the connection that the queue pair has got. Addr.
	LocalAddr
	RemoteAddr

	lastKind = RemoteAddr
)

// An Event is something that a program has done with a queue pair, or that has happened to it.
type Event struct {
	Kind     Kind
	Op       rnic.Opcode  // of posted requests and completions
	RDMAP    rdmap.Opcode // of messages
	Failed   bool         // the completion's status is not success
	Hidden   bool         // the request is the library's, not the program's
	QPN      uint32
	ID       uint64 // of the work request
	Length   uint64 // bytes
	Messages uint16 // that a request sends, or that a receive's completion stands for
	Time     time.Time
	Addr     netip.AddrPort
}

// EventLen is the length of an encoded Event.
const EventLen = 40

// magic begins a file of events. The last byte is the version of the format.
var magic = [8]byte{'u', 'r', 'n', 'i', 'c', 't', 'l', 1}

// The flags of an encoded event.
const (
	flagFailed = 1 << iota
	flagHidden
)

// Append appends the encoding of an event: little-endian kind, opcode, flags, opcode of RDMAP, QPN, ID, Length,
// nanoseconds since 1970, Messages, and 6 bytes that are zero. An address takes the place of ID and Length, its port that of
// Messages.
func (e *Event) Append(b []byte) []byte {
	var flags byte
	if e.Failed {
		flags |= flagFailed
	}
	if e.Hidden {
		flags |= flagHidden
	}
	b = append(b, byte(e.Kind), byte(e.Op), flags, byte(e.RDMAP))
	b = binary.LittleEndian.AppendUint32(b, e.QPN)
	few := e.Messages
	if e.Kind == LocalAddr || e.Kind == RemoteAddr {
		a := e.Addr.Addr().As16()
		b, few = append(b, a[:]...), e.Addr.Port()
	} else {
		b = binary.LittleEndian.AppendUint64(b, e.ID)
		b = binary.LittleEndian.AppendUint64(b, e.Length)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Time.UnixNano()))
	b = binary.LittleEndian.AppendUint16(b, few)
	return append(b, 0, 0, 0, 0, 0, 0)
}

// ParseEvent decodes an event from its EventLen bytes. It returns an error if there is none of that kind.
func ParseEvent(b []byte) (e Event, err error) {
	if len(b) < EventLen {
		return e, fmt.Errorf("rnictimeline: an event of %d bytes; it has %d", len(b), EventLen)
	}
	e.Kind, e.Op, e.RDMAP = Kind(b[0]), rnic.Opcode(b[1]), rdmap.Opcode(b[3])
	if e.Kind == 0 || e.Kind > lastKind {
		return Event{}, fmt.Errorf("rnictimeline: there is no event of kind %d", b[0])
	}
	e.Failed, e.Hidden = b[2]&flagFailed != 0, b[2]&flagHidden != 0
	e.QPN = binary.LittleEndian.Uint32(b[4:])
	e.Time = time.Unix(0, int64(binary.LittleEndian.Uint64(b[24:])))
	few := binary.LittleEndian.Uint16(b[32:])
	if e.Kind == LocalAddr || e.Kind == RemoteAddr {
		e.Addr = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), few)
		return e, nil
	}
	e.ID, e.Length, e.Messages = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), few
	return e, nil
}

// ReadEvents reads the events of a file, in the order of their times, at most MostEvents. A part of an event at the end, of a
// program that was killed, is left out.
func ReadEvents(r io.Reader) ([]Event, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || head != magic {
		return nil, fmt.Errorf("rnictimeline: this is no file of events of this version")
	}
	var all []Event
	b := make([]byte, EventLen)
	for len(all) < MostEvents {
		if _, err := io.ReadFull(r, b); err != nil {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				break
			}
			return nil, fmt.Errorf("rnictimeline: %w", err)
		}
		e, err := ParseEvent(b)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	sortByTime(all)
	return all, nil
}
