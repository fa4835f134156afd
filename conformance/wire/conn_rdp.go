package wire

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A MessageConn is a connection of RDP: it moves messages, each whole and once. Read and Write are of one message each.
type MessageConn interface {
	net.Conn
	// ReadMessage returns the next message, until the read deadline.
	ReadMessage() ([]byte, error)
	// WriteMessages sends messages together, until the write deadline.
	WriteMessages(messages ...[]byte) error
	// Flush waits until the write deadline that the peer has acknowledged all.
	Flush() error
	// Record has a recorder, which may be nil, told of the segments of RDP that pass, and of those that have.
	Record(r SegmentRecorder)
}

// A SegmentRecorder sees the segments of RDP that pass, for a recording.
type SegmentRecorder interface {
	Segment(from, to netip.AddrPort, segment []byte)
}

// messages is what a Conn keeps of a connection of RDP.
type messages struct {
	nc    MessageConn
	held  [][]byte // to be sent, by Together; nil: what is sent leaves at once
	out   uint32   // the number of the next segment that is sent
	ended bool     // the end was sent

	in    uint32            // the number of the segment whose turn it is
	early map[uint32][]byte // those that came before their turn
	known bool              // the target has said how many there are
	total uint32            // so many
}

// maxEarly bounds how many segments are kept that came before their turn.
const maxEarly = 1 << 16

// OverRDP reports whether the connection is one of RDP.
func (c *Conn) OverRDP() bool { return c.msgs != nil }

// frame returns the message of a segment, with the number that is due.
func (m *messages) frame(ulpdu []byte, flaw Flaw) []byte {
	number := m.out
	m.out++
	if flaw.Number != nil {
		number = flaw.Number(number)
	}
	return makeMessage(kindSegment, number, ulpdu, flaw)
}

func (c *Conn) writeMessages(b ...[]byte) error {
	m := c.msgs
	if m.held != nil {
		m.held = append(m.held, b...)
		return nil
	}
	for some := range slices.Chunk(b, messagesAtOnce) {
		if err := m.nc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if err := m.nc.WriteMessages(some...); err != nil {
			c.Note(Tester, "could not send that: %v", err)
			return err
		}
	}
	return nil
}

// messagesAtOnce is how many messages are written at once. Each time, the target has writeTimeout.
const messagesAtOnce = 256

// sendEnd tells the target how many segments there were.
func (c *Conn) sendEnd() error {
	m := c.msgs
	m.ended = true
	b := makeMessage(kindEnd, m.out, nil, Flaw{})
	return c.send(b, Event{By: Tester, Conn: c.num, What: fmt.Sprintf("end, behind %d segments", m.out), Octets: b})
}

// departure is how long a target may take to acknowledge what was sent last, before the connection is closed, which would
// drop it.
const departure = time.Second

// depart ends the tester's half before the connection is closed.
func (c *Conn) depart() {
	m := c.msgs
	if c.end == Reset {
		return
	}
	_ = m.nc.SetWriteDeadline(time.Now().Add(departure)) // what can't be sent is of no use any more
	if !m.ended {
		m.ended = true
		_ = m.nc.WriteMessages(makeMessage(kindEnd, m.out, nil, Flaw{}))
	}
	_ = m.nc.Flush()
}

// readMessage reads the next message. It returns ErrSilence or an *EndError if none comes.
func (c *Conn) readMessage(deadline time.Time) (message, error) {
	if c.end != Open {
		return message{}, &EndError{End: c.end}
	}
	if err := c.nc.SetReadDeadline(deadline); err != nil {
		return message{}, err
	}
	b, err := c.msgs.nc.ReadMessage()
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		return message{}, ErrSilence
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		c.ended(Reset)
		return message{}, &EndError{End: Reset}
	default:
		return message{}, err
	}
	p, err := parseMessage(b)
	if err != nil {
		c.strange(p, err)
	}
	return p, err
}

// strange tapes a message that is none, or stands where it may not.
func (c *Conn) strange(p message, err error) {
	c.tape.Add(Event{By: Target, Conn: c.num, What: fmt.Sprintf("%s, %d octets", p.kind, len(p.octets)), Wrong: err.Error(), Octets: p.octets})
}

// keep keeps a segment until its turn, or takes note of the end.
func (c *Conn) keep(p message) {
	m := c.msgs
	var wrong string
	switch ahead := p.number - m.in; {
	case p.kind == kindEnd && (m.known || int32(ahead) < 0):
		wrong = fmt.Sprintf("an end behind %d segments, when %d have come", p.number, m.in)
	case p.kind == kindEnd:
		m.known, m.total = true, p.number
		c.tape.Add(Event{By: Target, Conn: c.num, What: fmt.Sprintf("end, behind %d segments", p.number), Wrong: sentence(p.faults), Octets: p.octets})
	case m.early[p.number] != nil || int32(ahead) < 0:
		wrong = fmt.Sprintf("segment %d comes again", p.number)
	case ahead >= maxEarly || m.known && int32(p.number-m.total) >= 0:
		wrong = fmt.Sprintf("segment %d comes where %d is due", p.number, m.in)
	default:
		m.early[p.number] = p.octets
	}
	if wrong != "" {
		c.faults = append(c.faults, Fault{FaultNumber, wrong})
		c.strange(p, errors.New(wrong))
	}
}

// nextMessage returns the next segment, in the order of their numbers.
func (c *Conn) nextMessage(deadline time.Time) (FPDU, error) {
	m := c.msgs
	for {
		if b := m.early[m.in]; b != nil {
			delete(m.early, m.in)
			m.in++
			p, _ := parseMessage(b) // it was long enough before
			return FPDU{Octets: b, ULPDU: p.body, CRC: p.crc, Faults: p.faults}, nil
		}
		if m.known && m.in == m.total && c.end == Open {
			c.ended(Finished)
		}
		p, err := c.readMessage(deadline)
		switch {
		case err != nil:
			return FPDU{}, err
		case p.kind == kindSegment, p.kind == kindEnd:
			c.keep(p)
		default:
			err := fmt.Errorf("%w: %s in full operation", ErrMessage, p.kind)
			c.strange(p, err)
			return FPDU{}, err
		}
	}
}

// readOffer reads the message that stands for a start-up frame. What overtakes it is kept.
func (c *Conn) readOffer(deadline time.Time) (Frame, error) {
	for {
		p, err := c.readMessage(deadline)
		if err != nil {
			return Frame{}, err
		}
		if p.kind == kindSegment || p.kind == kindEnd {
			c.keep(p)
			continue
		}
		f, err := frameOf(p)
		if err != nil {
			c.strange(p, err)
			return f, err
		}
		c.faults = append(c.faults, p.faults...)
		c.tape.Add(Event{By: Target, Conn: c.num, What: describeOffer(f), Wrong: sentence(p.faults), Octets: p.octets})
		return f, nil
	}
}

// sentence joins what is wrong.
func sentence(faults []Fault) string {
	all := make([]string, len(faults))
	for i, f := range faults {
		all[i] = f.What
	}
	return strings.Join(all, "; ")
}
