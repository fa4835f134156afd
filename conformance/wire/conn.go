package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// A Recorder sees all that passes, for a recording.
type Recorder interface {
	Sent(pieces ...[]byte)
	Received(pieces ...[]byte)
	Close(byUs bool)
	Reset(byUs bool)
}

// A Conn is the tester's end of one connection. It is for one goroutine.
type Conn struct {
	nc     net.Conn
	msgs   *messages // over RDP; nil: MPA over TCP
	tape   *Tape
	num    int
	rec    Recorder
	in     []byte // received, and not taken apart yet
	held   []byte // to be sent, by Together; nil: what is sent leaves at once
	end    End    // of the target's half, once it was seen
	closed bool
	out    framer
	inward deframer
	watch  watch
	faults []Fault
}

// An End is how the target's half of a connection ended.
type End uint8

// The ends.
const (
	Open     End = iota // it has not
	Finished            // FIN
	Reset               // RST
)

// String names the end.
func (e End) String() string {
	switch e {
	case Open:
		return "open"
	case Finished:
		return "closed by FIN"
	case Reset:
		return "reset"
	}
	return fmt.Sprintf("End(%d)", uint8(e))
}

// EndError is what reading returns once the target's half has ended.
type EndError struct {
	End  End
	Rest int // how many bytes stand before the end that make nothing whole
}

// Error says how it ended.
func (e *EndError) Error() string {
	if e.Rest > 0 {
		return fmt.Sprintf("the connection was %s, after %d octets that make nothing whole", e.End, e.Rest)
	}
	return fmt.Sprintf("the connection was %s", e.End)
}

// ErrSilence is what reading returns if nothing whole comes in time.
var ErrSilence = errors.New("nothing came in time")

// NewConn returns a Conn that tapes what passes over nc: DDP over RDP if nc is a MessageConn, else MPA. The recorder, of
// MPA, may be nil.
func NewConn(nc net.Conn, tape *Tape, rec Recorder) *Conn {
	c := &Conn{nc: nc, tape: tape, num: tape.newConn(), rec: rec, watch: newWatch(1)}
	switch nc := nc.(type) {
	case *net.TCPConn:
		_ = nc.SetNoDelay(true) // what is sent in pieces leaves in pieces
	case MessageConn:
		c.msgs = &messages{nc: nc, early: map[uint32][]byte{}}
	}
	return c
}

// BeginMSNs says that the target's queues begin with another MSN than 1. It precedes
// the first segment.
func (c *Conn) BeginMSNs(first uint32) { c.watch = newWatch(first) }

// LocalAddr returns the tester's address.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr returns the target's.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// Note puts a remark on the tape.
func (c *Conn) Note(by Side, format string, args ...any) {
	c.tape.Add(Event{By: by, Conn: c.num, What: fmt.Sprintf(format, args...)})
}

// writeTimeout bounds how long the target may leave its receive buffer full.
const writeTimeout = 10 * time.Second

// SendRaw sends bytes as they are; over RDP, they are one message. What they are, and
// what is wrong with them, is human-readable.
func (c *Conn) SendRaw(b []byte, what, wrong string) error {
	return c.send(b, Event{By: Tester, Conn: c.num, What: what, Wrong: wrong, Octets: b})
}

// SendPieces sends bytes as SendRaw does, size bytes at a time: in a TCP segment
// each, as far as TCP is told.
func (c *Conn) SendPieces(b []byte, size int, what, wrong string) error {
	c.tape.Add(Event{By: Tester, Conn: c.num, What: what, Wrong: wrong, Octets: b})
	for piece := range slices.Chunk(b, size) {
		if err := c.write(piece); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) send(b []byte, e Event) error {
	c.tape.Add(e)
	return c.write(b)
}

// Together calls send, and lets all that it sends leave by one write: so the target
// has it at once, however busy the tester's machine is.
func (c *Conn) Together(send func()) error {
	if c.msgs != nil {
		c.msgs.held = [][]byte{}
		send()
		b := c.msgs.held
		c.msgs.held = nil
		return c.writeMessages(b...)
	}
	c.held = []byte{}
	send()
	b := c.held
	c.held = nil
	return c.write(b)
}

// atOnce is how many bytes SendFrames writes at once. Each time, the target has writeTimeout.
const atOnce = 1 << 16

// SendFrames sends what Frame has returned, together. What it is, and what is wrong with it,
// is human-readable.
func (c *Conn) SendFrames(frames [][]byte, what, wrong string) error {
	b := slices.Concat(frames...)
	if c.msgs == nil {
		return c.SendPieces(b, atOnce, what, wrong)
	}
	c.tape.Add(Event{By: Tester, Conn: c.num, What: what, Wrong: wrong, Octets: b})
	return c.writeMessages(frames...)
}

func (c *Conn) write(b []byte) error {
	if c.msgs != nil {
		return c.writeMessages(b)
	}
	if c.held != nil {
		c.held = append(c.held, b...)
		return nil
	}
	if c.rec != nil {
		c.rec.Sent(b)
	}
	if err := c.nc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := c.nc.Write(b); err != nil {
		c.Note(Tester, "could not send that: %v", err)
		return err
	}
	return nil
}

// SendFrame sends a start-up frame; over RDP, what stands for it there.
func (c *Conn) SendFrame(f Frame, wrong string) error {
	if c.msgs != nil {
		return c.SendRaw(offerOf(f), describeOffer(f), wrong)
	}
	return c.SendRaw(f.Octets(), f.String(), wrong)
}

// Operate turns the connection to full operation (RFC 5044 §7.1.2): from here on,
// both directions carry FPDUs. Markers are what each side wants of the other.
func (c *Conn) Operate(sendMarkers, receiveMarkers, crc bool) {
	c.out = framer{markers: sendMarkers, crc: crc}
	c.inward = deframer{markers: receiveMarkers, crc: crc}
}

// Frame returns the FPDU of an ULPDU, with the markers that are due, as the next
// one in the stream; over RDP, it is the message with the number that is due. Who calls it
// sends it, as SendFrames does.
func (c *Conn) Frame(ulpdu []byte, flaw Flaw) []byte {
	if c.msgs != nil {
		return c.msgs.frame(ulpdu, flaw)
	}
	return c.out.frame(ulpdu, flaw)
}

// Lead returns how many bytes stand before the ULPDU in what Frame returns, if there are no
// markers.
func (c *Conn) Lead() int {
	if c.msgs != nil {
		return messageHeaderLen
	}
	return lengthLen
}

// SendULPDU sends an FPDU with whatever it is given.
func (c *Conn) SendULPDU(ulpdu []byte, flaw Flaw, what string) error {
	e := Event{By: Tester, Conn: c.num, What: what, Wrong: flaw.Wrong}
	return c.sendFPDU(ulpdu, flaw, e)
}

// SendSegment sends a segment in an FPDU.
func (c *Conn) SendSegment(s Segment, flaw Flaw) error {
	e := Event{By: Tester, Conn: c.num, What: s.String(), Fields: s.Fields(), Wrong: s.Wrong}
	if flaw.Wrong != "" {
		e.Wrong = flaw.Wrong
	}
	return c.sendFPDU(s.Octets(), flaw, e)
}

func (c *Conn) sendFPDU(ulpdu []byte, flaw Flaw, e Event) error {
	b := c.Frame(ulpdu, flaw)
	if flaw.CutTo > 0 {
		b = b[:min(flaw.CutTo, len(b))]
	}
	e.Octets = b
	return c.send(b, e)
}

var errNotTCP = errors.New("not a TCP connection")

// fill waits until n bytes are there.
func (c *Conn) fill(n int, deadline time.Time) error {
	for len(c.in) < n {
		if c.end != Open {
			return &EndError{End: c.end, Rest: len(c.in)}
		}
		if err := c.nc.SetReadDeadline(deadline); err != nil {
			return err
		}
		buf := make([]byte, max(n-len(c.in), 4096))
		m, err := c.nc.Read(buf)
		if m > 0 {
			c.in = append(c.in, buf[:m]...)
			if c.rec != nil {
				c.rec.Received(buf[:m])
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			if len(c.in) >= n {
				return nil
			}
			return ErrSilence
		case errors.Is(err, io.EOF):
			c.ended(Finished)
		case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
			c.ended(Reset)
		default:
			return err
		}
	}
	return nil
}

func (c *Conn) ended(e End) {
	c.end = e
	what := "FIN"
	if e == Reset {
		what = "RST"
	}
	if c.msgs == nil || e == Reset { // else it was a message, which is taped
		c.tape.Add(Event{By: Target, Conn: c.num, What: what})
	}
	if c.rec == nil {
		return
	}
	if e == Reset {
		c.rec.Reset(false)
	} else {
		c.rec.Close(false)
	}
}

// take removes n bytes that are there.
func (c *Conn) take(n int) []byte {
	b := c.in[:n:n]
	c.in = c.in[n:]
	return b
}

// ReadFrame reads a start-up frame. It returns ErrSilence or an *EndError if none
// comes.
func (c *Conn) ReadFrame(timeout time.Duration) (_ Frame, err error) {
	defer func() { c.tape.Look(!missing(err)) }()
	deadline := time.Now().Add(timeout)
	if c.msgs != nil {
		return c.readOffer(deadline)
	}
	if err := c.fill(FrameLen, deadline); err != nil {
		c.leftover()
		return Frame{}, err
	}
	f := parseFrameHeader(c.in)
	if f.Length > MaxPrivateData {
		c.leftover()
		return f, fmt.Errorf("the frame says that its private data have %d octets", f.Length)
	}
	if err := c.fill(FrameLen+f.Length, deadline); err != nil {
		c.leftover()
		return f, err
	}
	b := c.take(FrameLen + f.Length)
	f.Private, f.Length = b[FrameLen:], 0
	c.tape.Add(Event{By: Target, Conn: c.num, What: f.String(), Octets: b})
	return f, nil
}

// leftover tapes bytes that have come and make nothing whole.
func (c *Conn) leftover() {
	if len(c.in) > 0 {
		c.tape.Add(Event{By: Target, Conn: c.num, What: fmt.Sprintf("%d octets that make nothing whole", len(c.in)), Octets: c.in})
	}
}

// missing reports whether an error of reading says only that nothing came.
func missing(err error) bool {
	return errors.Is(err, ErrSilence) || errors.As(err, new(*EndError)) || errors.As(err, new(net.Error))
}

// An Arrival is a segment that came, in its FPDU.
type Arrival struct {
	Segment
	FPDU   FPDU
	Faults []Fault // rules that FPDU and segment break
}

// Next reads the next segment. It returns ErrSilence or an *EndError if none comes.
// What is wrong with the segment is in the Arrival, and in Faults.
func (c *Conn) Next(timeout time.Duration) (_ Arrival, err error) {
	defer func() { c.tape.Look(!missing(err)) }()
	deadline := time.Now().Add(timeout)
	if c.msgs != nil {
		p, err := c.nextMessage(deadline)
		if err != nil {
			return Arrival{}, err
		}
		return c.arrived(p), nil
	}
	before, state := c.in, c.inward
	taken := 0
	p, err := c.inward.read(func(n int) ([]byte, error) {
		if err := c.fill(taken+n, deadline); err != nil {
			return nil, err
		}
		taken += n
		return c.in[taken-n : taken], nil
	})
	if err != nil {
		c.inward = state
		if len(c.in) > len(before) || errors.As(err, new(*EndError)) {
			c.leftover()
		}
		return Arrival{}, err
	}
	c.take(taken)
	return c.arrived(p), nil
}

// arrived judges a segment that came.
func (c *Conn) arrived(p FPDU) Arrival {
	s, err := ParseSegment(p.ULPDU)
	a := Arrival{Segment: s, FPDU: p, Faults: p.Faults}
	if err != nil {
		a.Faults = append(a.Faults, Fault{FaultShort, fmt.Sprintf("a segment of %d octets", len(p.ULPDU))})
	} else {
		a.Faults = append(a.Faults, c.watch.check(s)...)
	}
	c.faults = append(c.faults, a.Faults...)
	e := Event{By: Target, Conn: c.num, What: s.String(), Fields: s.Fields(), Octets: p.Octets}
	for i, f := range a.Faults {
		if i > 0 {
			e.Wrong += "; "
		}
		e.Wrong += f.What
	}
	c.tape.Add(e)
	return a
}

// Faults returns the rules that the target has broken so far in what it sent.
func (c *Conn) Faults() []Fault { return c.faults }

// Buffered returns how many bytes have come that nothing has read yet.
func (c *Conn) Buffered() int { return len(c.in) }

// End returns how the target's half has ended, as far as it was seen.
func (c *Conn) End() End { return c.end }

// CloseWrite ends the tester's half by FIN; over RDP, by the message that takes its place.
func (c *Conn) CloseWrite() error {
	if c.msgs != nil {
		return c.sendEnd()
	}
	c.tape.Add(Event{By: Tester, Conn: c.num, What: "FIN"})
	if c.rec != nil {
		c.rec.Close(true)
	}
	if tcp, ok := c.nc.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return errNotTCP
}

// Reset resets the connection.
func (c *Conn) Reset() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.tape.Add(Event{By: Tester, Conn: c.num, What: "RST"})
	if c.rec != nil {
		c.rec.Reset(true)
	}
	// RDP does so whenever it is closed.
	if tcp, ok := c.nc.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return errors.Join(err, c.nc.Close())
		}
	}
	return c.nc.Close()
}

// Close gives the connection up. A second call does nothing.
func (c *Conn) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	if c.rec != nil {
		c.rec.Close(true)
	}
	if c.msgs != nil {
		c.depart()
	}
	return c.nc.Close()
}
