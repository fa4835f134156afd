package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The messages of docs/ddp-over-rdp.md, byte by byte.
func TestMessagesOfRDPOnTheWire(t *testing.T) {
	e := Enhanced{IRD: 4, ORD: 0x0102}
	for _, tt := range []struct {
		name, want string
		got        []byte
	}{
		{"request", "0100000000000000" + "0004" + "0102" + "6869", offerOf(Frame{Key: RequestKey, Rev: 2, Flags: FlagS, Private: append(e.Octets(), "hi"...)})},
		{"accept", "0200000000000000" + "0004" + "0102", offerOf(Frame{Key: ReplyKey, Rev: 2, Flags: FlagS, Private: e.Octets()})},
		{"reject", "0300000000000000" + "0004" + "0102", offerOf(Frame{Key: ReplyKey, Rev: 2, Flags: FlagS | FlagR, Private: e.Octets()})},
		{"segment", "0400000000000007" + "c140", makeMessage(kindSegment, 7, []byte{0xc1, 0x40}, Flaw{})},
		{"end", "0500000000000102", makeMessage(kindEnd, 0x102, nil, Flaw{})},
	} {
		if got := hex.EncodeToString(tt.got[:len(tt.got)-messageCRCLen]); got != tt.want {
			t.Errorf("%s: %s; want %s", tt.name, got, tt.want)
		}
		m, err := parseMessage(tt.got)
		if err != nil || len(m.faults) > 0 || m.kind.String() != tt.name {
			t.Errorf("%s: %v, %v, %v", tt.name, m.kind, m.faults, err)
		}
	}
	// The CRC32c stands with its least significant byte first; this one was worked out bit by bit.
	b := makeMessage(kindEnd, 0, nil, Flaw{})
	if got := hex.EncodeToString(b[len(b)-messageCRCLen:]); got != "c04d09e4" {
		t.Errorf("the CRC is %s", got)
	}
}

func TestWhatIsWrongWithAMessageOfRDPIsFound(t *testing.T) {
	for rule, b := range map[Rule][]byte{
		FaultCRC:    makeMessage(kindSegment, 0, nil, Flaw{CRC: func(crc uint32) uint32 { return crc ^ 1 }}),
		FaultHeader: makeMessage(kindRequest, 1, make([]byte, offerLen), Flaw{}),
	} {
		m, err := parseMessage(b)
		if err != nil || len(m.faults) != 1 || m.faults[0].Rule != rule {
			t.Errorf("%s: %v, %v", rule, m.faults, err)
		}
	}
	if _, err := parseMessage(make([]byte, messageHeaderLen+messageCRCLen-1)); !errors.Is(err, ErrMessage) {
		t.Errorf("a message that is too short: %v", err)
	}
	for name, m := range map[string]message{
		"a segment":        {kind: kindSegment},
		"a short accept":   {kind: kindAccept, body: make([]byte, offerLen-1)},
		"too much private": {kind: kindRequest, body: make([]byte, offerLen+MaxOfferPrivate+1)},
	} {
		if _, err := frameOf(m); !errors.Is(err, ErrMessage) {
			t.Errorf("%s in start-up: %v", name, err)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add(offerOf(Frame{Key: RequestKey}))
	f.Add(makeMessage(kindEnd, 3, nil, Flaw{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMessage(b)
		if err != nil {
			return
		}
		if len(m.faults) == 0 && !bytes.Equal(makeMessage(m.kind, m.number, m.body, Flaw{}), b) {
			t.Errorf("%x is not made again", b)
		}
		if _, err := frameOf(m); err != nil {
			return
		}
	})
}

// A script is a connection of RDP on which messages come as they are written down, and then an error.
type script struct {
	net.Conn
	in  [][]byte
	err error
	out [][]byte
}

func (s *script) ReadMessage() ([]byte, error) {
	if len(s.in) == 0 {
		return nil, s.err
	}
	b := s.in[0]
	s.in = s.in[1:]
	return b, nil
}

func (s *script) WriteMessages(b ...[]byte) error {
	s.out = append(s.out, b...)
	return nil
}
func (*script) Flush() error                     { return nil }
func (*script) Record(SegmentRecorder)           {}
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }
func (*script) Close() error                     { return nil }

// numbered is a Send with its number, and the MSN that goes with it.
func numbered(n uint32) []byte {
	s := Untagged(Send, []byte{byte(n)})
	s.MSN = n + 1
	return makeMessage(kindSegment, n, s.Octets(), Flaw{})
}

// Whatever order segments come in, cases see them in that of their numbers, and then the end.
func TestSegmentsAreShownInTheOrderOfTheirNumbers(t *testing.T) {
	end := makeMessage(kindEnd, 3, nil, Flaw{})
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}} {
		all := [][]byte{numbered(0), numbered(1), numbered(2), end}
		var in [][]byte
		for _, i := range order {
			in = append(in, all[i])
		}
		c := NewConn(&script{in: in, err: syscall.ECONNRESET}, NewTape(), nil)
		for want := range 3 {
			a, err := c.Next(soon)
			if err != nil || int(a.Payload[0]) != want || len(a.Faults) > 0 {
				t.Fatalf("order %v: segment %d is %v, %v", order, want, a, err)
			}
		}
		var ended *EndError
		if _, err := c.Next(soon); !errors.As(err, &ended) || ended.End != Finished {
			t.Errorf("order %v: the end is %v", order, err)
		}
	}
}

func TestEndsOfConnectionsOfRDP(t *testing.T) {
	for name, tt := range map[string]struct {
		in   [][]byte
		err  error
		want End
	}{
		"reset":                            {nil, syscall.ECONNRESET, Reset},
		"reset where a segment is missing": {[][]byte{numbered(1), makeMessage(kindEnd, 2, nil, Flaw{})}, syscall.ECONNRESET, Reset},
		"end":                              {[][]byte{makeMessage(kindEnd, 0, nil, Flaw{})}, syscall.ECONNRESET, Finished},
	} {
		c := NewConn(&script{in: tt.in, err: tt.err}, NewTape(), nil)
		var ended *EndError
		if _, err := c.Next(soon); !errors.As(err, &ended) || ended.End != tt.want || c.End() != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := NewConn(&script{err: os.ErrDeadlineExceeded}, NewTape(), nil)
	if _, err := c.Next(soon); !errors.Is(err, ErrSilence) {
		t.Errorf("nothing: %v", err)
	}
}

// Numbers that break the rules are faults of the target, and show nothing twice.
func TestNumbersOfSegmentsAreJudged(t *testing.T) {
	for name, in := range map[string][][]byte{
		"again":               {numbered(0), numbered(0), numbered(1)},
		"again, kept":         {numbered(1), numbered(1), numbered(0)},
		"beyond the end":      {numbered(0), makeMessage(kindEnd, 2, nil, Flaw{}), numbered(2), numbered(1)},
		"far ahead":           {numbered(0), numbered(1 << 20), numbered(1)},
		"two ends":            {numbered(0), makeMessage(kindEnd, 2, nil, Flaw{}), makeMessage(kindEnd, 2, nil, Flaw{}), numbered(1)},
		"an end that is past": {numbered(0), makeMessage(kindEnd, 0, nil, Flaw{}), numbered(1)},
	} {
		c := NewConn(&script{in: in, err: os.ErrDeadlineExceeded}, NewTape(), nil)
		for want := range 2 {
			a, err := c.Next(soon)
			if err != nil || int(a.Payload[0]) != want {
				t.Errorf("%s: segment %d is %v, %v", name, want, a, err)
			}
		}
		if _, err := c.Next(soon); err == nil {
			t.Errorf("%s: there is a third segment", name)
		}
		if !slices.ContainsFunc(c.Faults(), func(f Fault) bool { return f.Rule == FaultNumber }) {
			t.Errorf("%s: no fault is found", name)
		}
	}
}

// Start-up shows as the frames of MPA with the same content; segments that overtake the answer are kept.
func TestStartUpOverRDP(t *testing.T) {
	want := Frame{Key: ReplyKey, Rev: 2, Flags: FlagC | FlagS, Private: append(Enhanced{IRD: 3, ORD: 5}.Octets(), "yes"...)}
	s := &script{in: [][]byte{numbered(0), offerOf(want)}, err: os.ErrDeadlineExceeded}
	c := NewConn(s, NewTape(), nil)
	if err := c.SendFrame(Frame{Key: RequestKey, Rev: 2, Flags: FlagS, Private: Enhanced{IRD: 1, ORD: 2}.Octets()}, ""); err != nil {
		t.Fatal(err)
	}
	f, err := c.ReadFrame(soon)
	if err != nil || f.String() != want.String() || !bytes.Equal(f.Private, want.Private) {
		t.Errorf("%v, %v; want %v", f, err, want)
	}
	if a, err := c.Next(soon); err != nil || a.Payload[0] != 0 {
		t.Errorf("%v, %v", a, err)
	}
	if err := c.SendSegment(Untagged(Send, nil), Flaw{}); err != nil {
		t.Error(err)
	}
	if err := c.SendSegment(Untagged(Send, nil), Flaw{Number: func(n uint32) uint32 { return n + 5 }}); err != nil {
		t.Error(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Error(err)
	}
	var got []string
	for _, b := range s.out {
		got = append(got, hex.EncodeToString(b[:messageHeaderLen]))
	}
	if all := strings.Join(got, " "); all != "0100000000000000 0400000000000000 0400000000000006 0500000000000002" {
		t.Errorf("sent %s", all)
	}
}
