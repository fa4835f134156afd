package dissect

import (
	"fmt"
	"io"
	"strings"
	"time"

	"urnic/internal/host/plural"
)

// Options choose what a renderer shows.
type Options struct {
	Segments   bool // each segment, not only messages
	Connection int  // only the connection of this number; 0: all
	Upper      bool // not the RDMA messages of a connection whose ULP is followed
}

// Shows reports whether an event is to be shown.
func (o *Options) Shows(e *Event) bool {
	if o.Connection != 0 && o.Connection != e.Conn.Number {
		return false
	}
	if o.Upper && e.Conn.Upper != nil && (e.Kind == KindMessage || e.Kind == KindSegment) {
		return false
	}
	if d, ok := e.Upper.(UpperDetail); ok && d.Detail() && !o.Segments {
		return false
	}
	return e.Kind != KindSegment || o.Segments
}

// Text returns a Handler that writes a line for each start-up frame, message,
// violation, note and close: seconds since the first one, the number of the
// packet, the number of the connection, > for what the client and < for what
// the server sent, and what it was. A line in front of each connection's first
// tells the addresses.
func Text(w io.Writer, o Options) Handler {
	var clock clock
	known := 0
	return func(e *Event) error {
		if !o.Shows(e) {
			return nil
		}
		if e.Conn.Number > known {
			known = e.Conn.Number
			if _, err := fmt.Fprintf(w, "connection %d: client %s, server %s\n", e.Conn.Number, e.Conn.Addr[Client], e.Conn.Addr[Server]); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "%12.6f %6d %3d %c %s\n", clock.seconds(e.At.Time), e.At.Packet, e.Conn.Number, arrow(e.From), e.String())
		return err
	}
}

// A clock tells time from the first event on.
type clock struct{ start time.Time }

func (c *clock) seconds(t time.Time) float64 {
	if c.start.IsZero() {
		c.start = t
	}
	return t.Sub(c.start).Seconds()
}

func arrow(s Side) rune {
	if s == Client {
		return '>'
	}
	return '<'
}

// String shows an event in one line.
func (e *Event) String() string {
	switch e.Kind {
	case KindFrame:
		if e.Offer != nil {
			return e.Offer.String()
		}
		return e.Frame.String()
	case KindSegment:
		return e.Segment.String()
	case KindMessage:
		return e.Message.String()
	case KindViolation:
		return e.Violation.String()
	case KindNote:
		return "note: " + e.Note
	case KindUpper:
		return e.Upper.String()
	case KindClose:
	}
	if e.Conn.Transport == RDP {
		return e.closeOfDDP()
	}
	if e.Reset {
		return "TCP reset"
	}
	return "TCP close"
}

// String shows the violation in one line.
func (v *Violation) String() string {
	return fmt.Sprintf("VIOLATION of %s by the %v: %s", v.Clause, v.From, v.Detail)
}

// String shows the segment in one line.
func (s *Segment) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "segment %d", s.Number)
	switch {
	case s.HasOp:
		fmt.Fprintf(&b, " %v", s.Op)
	default:
		b.WriteString(" without opcode")
	}
	switch {
	case !s.Whole:
		fmt.Fprintf(&b, ", a ULPDU of %s", plural.Count(len(s.ULPDU), "byte"))
	case s.DDP.Control.Tagged():
		fmt.Fprintf(&b, " %v len=%d", s.DDP.Tagged, len(s.DDP.Payload))
	default:
		fmt.Fprintf(&b, " %v len=%d", s.DDP.Untagged, len(s.DDP.Payload))
	}
	if s.BadCRC {
		b.WriteString(" BAD CRC")
	}
	return b.String()
}

// String shows the message in one line.
func (m *Message) String() string {
	var b strings.Builder
	b.WriteString(m.Op.String())
	if m.Tagged {
		fmt.Fprintf(&b, " stag=%v to=0x%x", m.STag, m.TO)
	} else {
		if m.QN != m.Op.Queue() {
			fmt.Fprintf(&b, " qn=%d", m.QN)
		}
		fmt.Fprintf(&b, " msn=%d", m.MSN)
	}
	switch {
	case m.ReadRequest != nil:
		fmt.Fprintf(&b, " %v", m.ReadRequest)
	case m.Terminate != nil:
		fmt.Fprintf(&b, " %v", m.Terminate)
	case m.Immediate != nil:
		fmt.Fprintf(&b, " data=%x", *m.Immediate)
	case m.AtomicRequest != nil:
		fmt.Fprintf(&b, " %v", m.AtomicRequest)
	case m.AtomicResponse != nil:
		fmt.Fprintf(&b, " %v", m.AtomicResponse)
	default:
		fmt.Fprintf(&b, " len=%d", m.Length)
	}
	if m.Op.Invalidates() {
		fmt.Fprintf(&b, " invalidate=%v", m.Invalidate)
	}
	if m.Segments > 1 {
		fmt.Fprintf(&b, " segments=%d", m.Segments)
	}
	if m.Use != "" {
		fmt.Fprintf(&b, " (%s)", m.Use)
	}
	if m.Partial {
		b.WriteString(" (its beginning was not captured)")
	}
	return b.String()
}
