package machine

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// U9 to U11: Receive in each state.
func TestReceive(t *testing.T) {
	for _, tt := range []struct {
		state string
		want  error
	}{
		{"OPEN", ErrWouldBlock},
		{"SYN-SENT", ErrWouldBlock},
		{"SYN-RCVD", ErrWouldBlock},
		{"CLOSE-WAIT", ErrNotOpen},
		{"reset CLOSE-WAIT", ErrReset},
	} {
		p := newPeer(t, nil)
		p.in(tt.state, params(nil))
		if msg, err := p.c.Receive(); !errors.Is(err, tt.want) {
			t.Errorf("in %s: %v, %v; want %v", tt.state, msg, err, tt.want)
		}
		if p.wait(time.Hour); p.c.State() == Closed && errors.Is(tt.want, ErrNotOpen) {
			if _, err := p.c.Receive(); !errors.Is(err, ErrNotOpen) {
				t.Errorf("in CLOSED: %v", err)
			}
		}
	}
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	p.says("<SEQ=201><ACK=100><Data=hello>")
	msg, err := p.c.Receive()
	if err != nil || string(msg.Data) != "hello" || msg.Seq != 201 || msg.Nulls != 0 {
		t.Errorf("%q, %v", msg.Data, err)
	}
	p.m.Free(msg.Data)
}

// A17: what was acknowledged can be read after the peer has closed; then comes the error.
func TestReceiveAfterReset(t *testing.T) {
	for _, closed := range []bool{false, true} {
		p := newPeer(t, nil)
		p.in("OPEN", params(nil))
		p.says("<SEQ=201><ACK=100><Data=a>")
		p.says("<SEQ=202><ACK=100><Data=b>")
		p.says("<SEQ=203><RST>")
		if closed {
			p.wait(time.Hour)
		}
		if s := p.c.Status(); s.Queued != 2 {
			t.Errorf("%d are queued", s.Queued)
		}
		if got := p.read(); got != "a b" {
			t.Errorf("in %v: read %q", p.c.State(), got)
		}
		if _, err := p.c.Receive(); !errors.Is(err, ErrReset) {
			t.Errorf("then: %v", err)
		}
		var why *ConnError
		if err := p.c.Err(); !errors.As(err, &why) || why.Name != p.c.Name() || p.m.Memory() != 0 {
			t.Errorf("%v, %d bytes are held", err, p.m.Memory())
		}
	}
}

// U11: after Close here nothing is read any more, and its memory is free.
func TestReceiveAfterClose(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	p.says("<SEQ=201><ACK=100><Data=a>")
	p.says("<SEQ=203><ACK=100><Data=c>")
	if err := p.c.Close(p.now); err != nil {
		t.Fatal(err)
	}
	if _, err := p.c.Receive(); !errors.Is(err, ErrNotOpen) || p.m.Memory() != 0 {
		t.Errorf("%v, %d bytes are held", err, p.m.Memory())
	}
}

// U12, U13: Send numbers messages, until as many are unacknowledged as the peer has allowed.
func TestSend(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(nil))
	p.send(4)
	p.expect("<SEQ=101><ACK=200><Data> <SEQ=102><ACK=200><Data> <SEQ=103><ACK=200><Data> <SEQ=104><ACK=200><Data>")
	if err := p.c.Send(p.now, []byte("x")); !errors.Is(err, ErrWouldBlock) {
		t.Errorf("a fifth: %v", err)
	}
	p.seen = nil
	p.says("<SEQ=201><ACK=101>")
	if len(p.seen) != 1 || p.seen[0].Kind != Writable || p.seen[0].Conn != p.c {
		t.Errorf("events: %+v", p.seen)
	}
	p.send(1)
	p.expect("<SEQ=105><ACK=200><Data>")
	if err := p.c.Send(p.now, []byte("x")); !errors.Is(err, ErrWouldBlock) {
		t.Errorf("a sixth: %v", err)
	}
}

// U14: a message that does not fit into a segment of the peer's size; A25: 20 bytes for IP and 18 of
// header count. An empty message can't be sent (RFC 908 §3.3).
func TestSendSizes(t *testing.T) {
	p := newPeer(t, nil)
	p.in("LISTEN", params(nil))
	p.says("<SEQ=200><MAX=4><BUFMAX=500><SYN>")
	p.says("<SEQ=201><ACK=100>")
	p.sent(false)
	var size *SizeError
	if err := p.c.Send(p.now, make([]byte, 463)); !errors.Is(err, ErrTooLong) || !errors.As(err, &size) || *size != (SizeError{463, 462}) {
		t.Errorf("463 bytes: %v", err)
	}
	if err := p.c.Send(p.now, nil); !errors.Is(err, ErrEmpty) {
		t.Errorf("no bytes: %v", err)
	}
	p.expect("")
	if err := p.c.Send(p.now, make([]byte, 462)); err != nil || p.c.MaxMessage() != 462 {
		t.Errorf("462 bytes: %v; MaxMessage is %d", err, p.c.MaxMessage())
	}
	p.c.SetSendLimit(100)
	if err := p.c.Send(p.now, make([]byte, 63)); !errors.As(err, &size) || size.Max != 62 {
		t.Errorf("63 bytes over a path of 100: %v", err)
	}
	p.c.SetSendLimit(9000)
	if p.c.MaxMessage() != 462 {
		t.Errorf("over a path of 9000 the peer takes %d", p.c.MaxMessage())
	}
}

// U15: Send in other states than OPEN.
func TestSendWhenNotOpen(t *testing.T) {
	for _, state := range []string{"SYN-SENT", "SYN-RCVD", "CLOSE-WAIT", "reset CLOSE-WAIT"} {
		p := newPeer(t, nil)
		p.in(state, params(nil))
		if err := p.c.Send(p.now, []byte("x")); !errors.Is(err, ErrNotOpen) || p.c.MaxMessage() != 0 {
			t.Errorf("in %s: %v", state, err)
		}
		p.expect("")
	}
}

// U16: Status tells the state, what is unacknowledged, what is queued, and the sizes of segments.
func TestStatus(t *testing.T) {
	p := newPeer(t, nil)
	p.in("LISTEN", params(func(p *Params) { p.Sequenced = true }))
	p.says("<SEQ=200><MAX=7><BUFMAX=500><SYN>")
	if s := p.c.Status(); s.State != SynRcvd || s.SendMax != 0 || s.Room != 0 {
		t.Errorf("in SYN-RCVD: %+v", s)
	}
	p.says("<SEQ=201><ACK=100>")
	p.send(3)
	p.says("<SEQ=201><ACK=100><Data=a>")
	p.says("<SEQ=203><ACK=100><Data=c>")
	s := p.c.Status()
	want := Status{
		State: Open, Unacknowledged: 3, Queued: 1, Held: 1, RecvMax: 600, SendMax: 500, Room: 462,
		Window: 7, Congestion: s.Congestion, InFlight: 0, RTT: s.RTT, Deviation: s.Deviation, Timeout: s.Timeout, Stats: s.Stats,
	}
	if s != want {
		t.Errorf("%+v; want %+v", s, want)
	}
	p.sent(false)
	p.says("<SEQ=204><ACK=101><EA=103>") // A47: those named by an EACK are acknowledged
	if s := p.c.Status(); s.Unacknowledged != 1 || s.InFlight != 1 {
		t.Errorf("with one of three left: %+v", s)
	}
	p.says("<SEQ=204><RST>")
	if s := p.c.Status(); s.State != CloseWait || !errors.Is(s.Err, ErrReset) || s.Unacknowledged != 1 || s.Queued != 1 {
		t.Errorf("after the end: %+v", s)
	}
}

// A47: a NUL does not count as unacknowledged, as nothing of the user's is in it.
func TestStatusDoesNotCountNULs(t *testing.T) {
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Keepalive = time.Second }))
	p.wait(time.Second)
	p.expect("<SEQ=101><ACK=200><NUL>")
	if s := p.c.Status(); s.Unacknowledged != 0 || s.InFlight != 1 {
		t.Errorf("%+v", s)
	}
	p.seen = nil
	p.says("<SEQ=201><ACK=101>")
	if len(p.seen) != 1 || p.seen[0].Kind != Answered {
		t.Errorf("events of its acknowledgement: %+v", p.seen)
	}
}

// The events of a connection's life, each with its error.
func TestEvents(t *testing.T) {
	p := newPeer(t, nil)
	p.in("LISTEN", params(nil))
	p.says("<SEQ=200><SYN>")
	p.says("<SEQ=201><ACK=100><Data>")
	if p.l.Accept() != p.c || p.l.Accept() != nil {
		t.Error("Accept does not return the connection once")
	}
	p.send(1)
	p.sent(false)
	p.says("<SEQ=202><ACK=101><Data>")
	p.says("<SEQ=203><RST>")
	p.wait(time.Hour)
	var got []string
	for _, e := range p.seen {
		s := e.Kind.String()
		if e.Kind == StateChanged {
			s = e.State.String()
			if e.State == CloseWait != errors.Is(e.Err, ErrReset) && e.State != Closed {
				t.Errorf("%v: %v", e.State, e.Err)
			}
		}
		if (e.Kind == Acceptable) != (e.Listener == p.l) || (e.Kind == Acceptable) == (e.Conn == p.c) {
			t.Errorf("%s is of %v, %v", s, e.Conn, e.Listener)
		}
		got = append(got, s)
	}
	const want = "SYN-RCVD, OPEN, writable, acceptable, readable, accepted, readable, CLOSE-WAIT, readable, CLOSED, readable"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("events: %s\nwant: %s", s, want)
	}
	for k := range numEvents {
		if strings.HasPrefix(k.String(), "event") {
			t.Errorf("event %d has no name", k)
		}
	}
}
