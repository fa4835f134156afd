package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"urnic/conformance/wire"
)

// ErrNoSight says that a profile can't look into the target's memory.
var ErrNoSight = errors.New("the profile can't look into the target's memory")

// ended describes why nothing more came.
func ended(err error) string {
	if end, ok := errors.AsType[*wire.EndError](err); ok {
		return end.Error()
	}
	if errors.Is(err, wire.ErrSilence) {
		return "nothing"
	}
	return err.Error()
}

// next reads the next segment that is for the case. In profiles where the target
// runs a program of its own, the requests that it makes meanwhile are let pass.
func (s *Stream) next(timeout time.Duration) (wire.Arrival, error) {
	deadline := time.Now().Add(timeout)
	for {
		a, err := s.Next(time.Until(deadline))
		if err != nil || !s.t.lasting {
			return a, err
		}
		switch a.Opcode {
		case wire.Write, wire.Send, wire.SendSE, wire.SendInvalidate, wire.SendSEInvalidate, wire.ReadRequest:
		default:
			return a, nil
		}
	}
}

// Answer returns the next segment that is for the case. It is Next, but for the
// requests that a program of the target's own makes meanwhile.
func (s *Stream) Answer(timeout time.Duration) (wire.Arrival, error) { return s.next(timeout) }

// Await returns the next segment, which has to be of the opcode.
func (s *Stream) Await(op wire.Opcode) wire.Arrival {
	expected := "a segment of " + op.String()
	a, err := s.Next(s.t.opts.Timeout)
	if err != nil {
		s.t.Fail(expected, "%s", ended(err))
	}
	s.t.Check(a.Opcode == op, expected, "%s", a.Segment)
	return a
}

// AwaitMessage returns the next message, whole, which has to be of the opcode: its
// first segment, with the payload of all.
func (s *Stream) AwaitMessage(op wire.Opcode) wire.Segment {
	m := s.Await(op).Segment
	m.Payload = bytes.Clone(m.Payload)
	for last := m.Last; !last; {
		a := s.Await(op)
		m.Payload = append(m.Payload, a.Payload...)
		last = a.Last
	}
	return m
}

// AwaitResponse returns the data of the Read Response that has to come next, for a
// sink of n bytes at stag and to.
func (s *Stream) AwaitResponse(stag uint32, to uint64, n int) []byte {
	expected := fmt.Sprintf("an RDMA Read Response of %d octets to STag 0x%08x TO 0x%x", n, stag, to)
	var data []byte
	for {
		a, err := s.next(s.t.opts.Timeout)
		if err != nil {
			s.t.Fail(expected, "%s", ended(err))
		}
		at := to + uint64(len(data))
		if a.Opcode != wire.ReadResponse || a.STag != stag || a.TO != at || len(data)+len(a.Payload) > n {
			s.t.Fail(expected, "%s", a.Segment)
		}
		data = append(data, a.Payload...)
		if a.Last {
			s.t.Check(len(data) == n, expected, "one of %d octets", len(data))
			return data
		}
	}
}

// AwaitTerminate waits for a Terminate with one of the codes, or with any if none
// is given, and returns it. How its header control bits and headers stand is not
// looked at, nor whether layer and error type are in their places, as Linux siw has
// them swapped: other cases do that, so that one fault is not found a hundred times.
func (s *Stream) AwaitTerminate(codes ...wire.Code) wire.Arrival {
	expected := "a Terminate with " + Codes(codes...)
	for {
		a, err := s.next(s.t.opts.Timeout)
		if err != nil {
			s.t.Fail(expected, "%s", ended(err))
		}
		if a.Opcode != wire.Terminate {
			s.t.Fail(expected, "%s", a.Segment)
		}
		h, err := wire.ParseTerminate(a.Payload)
		if err != nil {
			s.t.Fail(expected, "a Terminate of %d octets", len(a.Payload))
		}
		if len(codes) == 0 {
			return a
		}
		for _, c := range codes {
			if h.Code.Is(c) {
				if h.Code != c {
					s.t.Note("layer and error type stand the other way round: a fault that has a case of its own (RFC 5040 §4.8)")
				}
				return a
			}
		}
		s.t.Fail(expected, "one with %s", h.Code)
	}
}

// Codes names codes one of which is expected.
func Codes(codes ...wire.Code) string {
	if len(codes) == 0 {
		return "any code"
	}
	names := make([]string, len(codes))
	for i, c := range codes {
		names[i] = c.String()
	}
	return strings.Join(names, " or ")
}

// AwaitEnd waits until the target ends its half of the connection, by FIN or by RST,
// and returns how. Messages before it are let pass.
func (s *Stream) AwaitEnd() wire.End {
	deadline := time.Now().Add(s.t.opts.Timeout)
	for {
		a, err := s.Next(time.Until(deadline))
		if err == nil {
			_ = a
			continue
		}
		var end *wire.EndError
		if !errors.As(err, &end) {
			s.t.Fail("that the target closes the connection", "%s", ended(err))
		}
		return end.End
	}
}

// AwaitTeardown waits until the target ends the stream in whatever way: by a
// Terminate, by FIN or by RST. Other messages fail the case.
func (s *Stream) AwaitTeardown() {
	a, err := s.next(s.t.opts.Timeout)
	var end *wire.EndError
	switch {
	case errors.As(err, &end):
	case err != nil:
		s.t.Fail("that the target ends the stream", "%s", ended(err))
	case a.Opcode != wire.Terminate:
		s.t.Fail("that the target ends the stream", "%s", a.Segment)
	}
}

// AwaitQuiet makes sure that nothing comes for a while.
func (s *Stream) AwaitQuiet(why string) {
	a, err := s.next(s.t.Quiet())
	switch {
	case errors.Is(err, wire.ErrSilence):
	case err != nil:
		s.t.Fail("nothing, "+why, "%s", ended(err))
	default:
		s.t.Fail("nothing, "+why, "%s", a.Segment)
	}
}

// AwaitAlive makes sure that the stream continues: that the target answers a Read
// of no bytes, whose STags are not checked (RFC 5040 §5.2.1, RFC 5041 §5.2). It
// does not check the length of the answer, as Linux siw now and then uses that of
// the Read before: other cases do. The case is inconclusive with a target that
// accepts no Reads.
func (s *Stream) AwaitAlive() {
	if s.IRD == 0 {
		s.t.Inconclusive("the target takes no Reads, so that there is no way to see whether the stream goes on")
	}
	const stag, to = 0xA11FE000, 0x2000
	const expected = "that the stream goes on: an RDMA Read Response"
	s.Post(ReadRequest(stag, to, 0, 0, 0))
	for {
		a, err := s.next(s.t.opts.Timeout)
		if err != nil {
			s.t.Fail(expected, "%s", ended(err))
		}
		s.t.Check(a.Opcode == wire.ReadResponse && a.STag == stag, expected, "%s", a.Segment)
		if a.Last {
			return
		}
	}
}

// AwaitContents makes sure that the buffer holds data from offset off on. If
// the profile can't see that otherwise, it is read over the stream, which must
// continue.
func (s *Stream) AwaitContents(b *Buffer, off int, data []byte) {
	got, err := s.t.session.Contents(s.t.ctx, b)
	if errors.Is(err, ErrNoSight) {
		got, err = append(make([]byte, off), s.Read(b.STag, b.TO+uint64(off), len(data))...), nil
	}
	s.t.Try(err, "looking into the target's memory")
	got = got[off:min(off+len(data), len(got))]
	s.t.Check(bytes.Equal(got, data), fmt.Sprintf("%s in the buffer at %d", short(data), off), "%s", difference(got, data))
}

// AwaitUntouched makes sure that nothing has changed in the buffer since it was
// opened. If the profile can't see that, it says so on the tape.
func (s *Stream) AwaitUntouched(b *Buffer) {
	got, err := s.t.session.Contents(s.t.ctx, b)
	if errors.Is(err, ErrNoSight) || b.before == nil {
		s.t.Note("whether the memory was touched can't be seen with this profile")
		return
	}
	s.t.Try(err, "looking into the target's memory")
	s.t.Check(bytes.Equal(got, b.before), "that no octet of the buffer changes", "%s", difference(got, b.before))
}

// AwaitQuietEnd waits for what a target might do behind the end of its half.
func (s *Stream) AwaitQuietEnd() {
	select {
	case <-time.After(s.t.Quiet()):
	case <-s.t.ctx.Done():
	}
}

// difference says where bytes are not what they should be.
func difference(got, want []byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d octets in place of %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Sprintf("octet %d and on are %s, not %s", i, short(got[i:]), short(want[i:]))
		}
	}
	return "no difference"
}

// short shows the beginning of bytes.
func short(b []byte) string {
	const most = 16
	if len(b) > most {
		return fmt.Sprintf("%x… (%d octets)", b[:most], len(b))
	}
	return fmt.Sprintf("%x", b)
}
