package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"urnic/rdmap"
)

func FuzzSegment(f *testing.F) {
	f.Add(Tagged(Write, 1, 2, []byte("data")).Octets())
	f.Add(Untagged(Terminate, TerminateHeader{Code: DDPBounds, Control: TermM | TermD, Tail: make([]byte, 16)}.Octets()).Octets())
	f.Add(Untagged(ReadRequest, ReadHeader{Length: 3}.Octets()).Octets())
	f.Add(Untagged(AtomicRequest, AtomicHeader{Operation: CmpSwap}.Octets()).Octets())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseSegment(b)
		if err != nil {
			return
		}
		if got := s.Octets(); !bytes.Equal(got, b) {
			t.Errorf("%x is made into %x", b, got)
		}
		_ = s.Fields()
		_ = s.String()
		if h, err := ParseTerminate(s.Payload); err == nil {
			_, _, _, _ = h.Headers()
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(Frame{Key: RequestKey, Flags: FlagC | FlagS, Rev: 2, Private: Enhanced{IRD: 1, ORD: 2}.Octets()}.Octets())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < FrameLen {
			return
		}
		h := parseFrameHeader(b)
		h.Private = b[FrameLen:min(len(b), FrameLen+h.Length)]
		if h.Length == 0 {
			h.Length = -1
		}
		if got := h.Octets(); !bytes.Equal(got, b[:len(got)]) {
			t.Errorf("%x is made into %x", b, got)
		}
		_ = h.String()
	})
}

// Headers come to what they were made of, and are short if a byte is missing.
func TestHeadersRoundTrip(t *testing.T) {
	read := ReadHeader{1, 2, 3, 4, 5}
	if got, err := ParseReadHeader(read.Octets()); got != read || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	atomic := AtomicHeader{0x0FFFFFFF, 2, 3, 4, 5, 6, 7, 8, 9}
	if got, err := ParseAtomicHeader(atomic.Octets()); got != atomic || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	result := AtomicResult{1, 2}
	if got, err := ParseAtomicResult(result.Octets()); got != result || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	term := TerminateHeader{DDPBounds, TermM | TermR, 1, []byte{0, 9, 1}}
	if got, err := ParseTerminate(term.Octets()); !reflect.DeepEqual(got, term) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, parse := range []func([]byte) error{
		func(b []byte) error { _, err := ParseReadHeader(b[:min(len(b), ReadRequestLen-1)]); return err },
		func(b []byte) error { _, err := ParseAtomicHeader(b[:min(len(b), AtomicRequestLen-1)]); return err },
		func(b []byte) error { _, err := ParseAtomicResult(b[:min(len(b), AtomicResponseLen-1)]); return err },
		func(b []byte) error { _, err := ParseTerminate(b[:1]); return err },
		func(b []byte) error { _, err := ParseSegment(b[:17]); return err },
	} {
		if err := parse(make([]byte, 60)); !errors.Is(err, ErrShort) {
			t.Errorf("a header that is not whole: %v", err)
		}
	}
}

// Opcodes and codes are those of package rdmap: two readings of the RFCs.
func TestNamesAreThoseOfPackageRDMAP(t *testing.T) {
	for op := range Opcode(opcodes) {
		theirs := rdmap.Opcode(op)
		if theirs.Queue() != op.Queue() && !op.Tagged() {
			t.Errorf("%s is on queue %d, in package rdmap %d", op, op.Queue(), theirs.Queue())
		}
		if theirs.Tagged() != op.Tagged() {
			t.Errorf("%s is tagged %t, in package rdmap %t", op, op.Tagged(), theirs.Tagged())
		}
	}
}

// The watch tells what every segment has to keep.
func TestWatch(t *testing.T) {
	send := func(change func(*Segment)) Segment {
		s := Untagged(Send, []byte("abc"))
		s.MSN = 1
		if change != nil {
			change(&s)
		}
		return s
	}
	write := func(change func(*Segment)) Segment {
		s := Tagged(Write, 7, 100, []byte("abc"))
		if change != nil {
			change(&s)
		}
		return s
	}
	open := func(s *Segment) { s.Last = false }
	for _, c := range []struct {
		name     string
		segments []Segment
		want     Rule
	}{
		{"a Send", []Segment{send(nil)}, ""},
		{"two segments", []Segment{send(open), send(func(s *Segment) { s.MO = 3 })}, ""},
		{"a Write in two segments", []Segment{write(open), write(func(s *Segment) { s.TO = 103 })}, ""},
		{"MSN 0", []Segment{send(func(s *Segment) { s.MSN = 0 })}, FaultMSN},
		{"MSN 1 twice", []Segment{send(nil), send(nil)}, FaultMSN},
		{"MO 1 at first", []Segment{send(func(s *Segment) { s.MO = 1 })}, FaultMO},
		{"a hole", []Segment{send(open), send(func(s *Segment) { s.MO = 4 })}, FaultMO},
		{"a hole in a Write", []Segment{write(open), write(func(s *Segment) { s.TO = 104 })}, FaultTO},
		{"another STag", []Segment{write(open), write(func(s *Segment) { s.TO, s.STag = 103, 8 })}, FaultMessage},
		{"another opcode", []Segment{send(open), write(nil)}, FaultMessage},
		{"DV 2", []Segment{write(func(s *Segment) { s.Version = 2 })}, FaultVersion},
		{"RV 0", []Segment{write(func(s *Segment) { s.RV = 0 })}, FaultRV},
		{"DDP's reserved bits", []Segment{write(func(s *Segment) { s.Reserved = 8 })}, FaultReserved},
		{"RDMAP's reserved bits", []Segment{write(func(s *Segment) { s.RDMAPReserved = 1 })}, FaultRDMAPReserved},
		{"opcode 12", []Segment{send(func(s *Segment) { s.Opcode = 12 })}, FaultOpcode},
		{"an untagged Write", []Segment{send(func(s *Segment) { s.Opcode = Write })}, FaultTagged},
		{"a Send on queue 1", []Segment{send(func(s *Segment) { s.QN = 1 })}, FaultQueue},
		{"an Invalidate STag of a Send", []Segment{send(func(s *Segment) { s.Invalidate = 1 })}, FaultInvalidate},
	} {
		w := newWatch(1)
		var faults []Fault
		for _, s := range c.segments {
			faults = append(faults, w.check(s)...)
		}
		if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || faults[0].Rule != c.want) {
			t.Errorf("%s: %v", c.name, faults)
		}
	}
}
