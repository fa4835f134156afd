package machine

import (
	"errors"
	"testing"
	"time"
)

// An arrival is a segment that arrives in a state, and what follows (RFC 908 §3.7.2 with RFC 1151
// p.2-3).
type arrival struct {
	rule  string
	state string
	says  string
	want  string // what is sent
	then  string // the state after it
	err   error  // why the connection has ended
	with  func(*Config)
}

func strict(c *Config)    { c.StrictReset = true }
func literalCW(c *Config) { c.SilentCloseWait = true }
func closes(c *Config)    { c.Restarts = -1 }

// arrivals are the rules of arriving segments. Numbers are ISS = 100 and IRS = 200, the windows are
// 4, so that 201 to 208 are acceptable.
var arrivals = []arrival{
	{"C1", "CLOSED", "<SEQ=5><RST>", "", "CLOSED", nil, nil},
	{"C1", "CLOSED", "<SEQ=5><ACK=9><RST>", "", "CLOSED", nil, nil},
	{"C2", "CLOSED", "<SEQ=5><ACK=9>", "<SEQ=10><RST>", "CLOSED", nil, nil},
	{"C2", "CLOSED", "<SEQ=5><ACK=9><Data>", "<SEQ=10><RST>", "CLOSED", nil, nil},
	{"C2", "CLOSED", "<SEQ=5><ACK=9><NUL>", "<SEQ=10><RST>", "CLOSED", nil, nil},
	{"C2", "CLOSED", "<SEQ=5><ACK=9><SYN,ACK>", "<SEQ=10><RST>", "CLOSED", nil, nil},
	{"C2", "CLOSED", "<SEQ=5><ACK=9><EA=11>", "<SEQ=10><RST>", "CLOSED", nil, nil},
	{"C3", "CLOSED", "<SEQ=300><SYN>", "<SEQ=0><ACK=300><RST>", "CLOSED", nil, nil},
	{"A11", "CLOSED", "<SEQ=300><NUL>", "<SEQ=0><ACK=300><RST>", "CLOSED", nil, nil},

	{"W1", "CLOSE-WAIT", "<SEQ=201><RST>", "", "CLOSE-WAIT", nil, nil},
	{"W1", "reset CLOSE-WAIT", "<SEQ=201><RST>", "", "CLOSE-WAIT", ErrReset, nil},
	{"W2", "reset CLOSE-WAIT", "<SEQ=201><ACK=100><Data>", "", "CLOSE-WAIT", ErrReset, nil},
	{"W2", "CLOSE-WAIT", "<SEQ=201><ACK=100><Data>", "", "CLOSE-WAIT", nil, literalCW},
	{"W2", "CLOSE-WAIT", "<SEQ=900><SYN>", "", "CLOSE-WAIT", nil, nil}, // A19
	{"A18", "CLOSE-WAIT", "<SEQ=201><ACK=100><Data>", "<SEQ=101><RST>", "CLOSE-WAIT", nil, nil},
	{"A18", "CLOSE-WAIT", "<SEQ=201><ACK=100>", "<SEQ=101><RST>", "CLOSE-WAIT", nil, nil},
	{"A18", "CLOSE-WAIT", "<SEQ=200><ACK=100><SYN,ACK>", "<SEQ=101><RST>", "CLOSE-WAIT", nil, nil},

	{"L1", "LISTEN", "<SEQ=5><RST>", "", "LISTEN", nil, nil},
	{"L2", "LISTEN", "<SEQ=5><ACK=9>", "<SEQ=10><RST>", "LISTEN", nil, nil},
	{"L2", "LISTEN", "<SEQ=5><ACK=9><NUL>", "<SEQ=10><RST>", "LISTEN", nil, nil},
	{"L2", "LISTEN", "<SEQ=5><ACK=9><SYN,ACK>", "<SEQ=10><RST>", "LISTEN", nil, nil},
	{"L2", "LISTEN", "<SEQ=5><ACK=9><Data>", "<SEQ=10><RST>", "LISTEN", nil, nil},
	{"L2", "LISTEN", "<SEQ=5><NUL>", "<SEQ=0><ACK=5><RST>", "LISTEN", nil, nil}, // A11
	{"L3", "LISTEN", "<SEQ=300><MAX=7><BUFMAX=500><SYN>", "<SEQ=100><ACK=300><MAX=4><BUFMAX=600><SYN,ACK>", "SYN-RCVD", nil, nil},
	{"A24", "LISTEN", "<SEQ=300><MAX=7><BUFMAX=500><SDM><SYN>", "<SEQ=100><ACK=300><MAX=4><BUFMAX=600><SDM><SYN,ACK>", "SYN-RCVD", nil, nil},
	{"A39", "LISTEN", "<SEQ=300><MAX=0><SYN>", "<SEQ=0><ACK=300><RST>", "LISTEN", nil, nil},
	{"A39", "LISTEN", "<SEQ=300><BUFMAX=38><SYN>", "<SEQ=0><ACK=300><RST>", "LISTEN", nil, nil},
	{"A39", "LISTEN", "<SEQ=300><MAX=1><BUFMAX=39><SYN>", "<SEQ=100><ACK=300><MAX=4><BUFMAX=600><SYN,ACK>", "SYN-RCVD", nil, nil},

	{"S1", "SYN-SENT", "<SEQ=0><ACK=100><RST>", "", "CLOSED", ErrRefused, nil},
	{"S2", "SYN-SENT", "<SEQ=0><RST>", "", "SYN-SENT", nil, nil},
	{"A8", "SYN-SENT", "<SEQ=0><ACK=99><RST>", "", "SYN-SENT", nil, nil},
	{"A8", "SYN-SENT", "<SEQ=0><ACK=101><RST>", "", "SYN-SENT", nil, nil},
	{"S3", "SYN-SENT", "<SEQ=200><ACK=100><SYN,ACK>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"S4", "SYN-SENT", "<SEQ=200><SYN>", "<SEQ=100><ACK=200><MAX=4><BUFMAX=600><SYN,ACK>", "SYN-RCVD", nil, nil},
	{"S5", "SYN-SENT", "<SEQ=200><ACK=150>", "<SEQ=151><RST> <SEQ=1100><SYN>", "SYN-SENT", nil, nil},
	{"S5", "SYN-SENT", "<SEQ=200><ACK=150>", "<SEQ=151><RST>", "CLOSED", ErrHalfOpen, closes},
	{"S5", "SYN-SENT", "<SEQ=200><ACK=150><Data>", "<SEQ=151><RST> <SEQ=1100><SYN>", "SYN-SENT", nil, nil},
	{"A6", "SYN-SENT", "<SEQ=200><ACK=99><SYN,ACK>", "<SEQ=100><RST> <SEQ=1100><SYN>", "SYN-SENT", nil, nil},
	{"A6", "SYN-SENT", "<SEQ=200><ACK=101><SYN,ACK>", "<SEQ=102><RST>", "CLOSED", ErrHalfOpen, closes},
	{"S6", "SYN-SENT", "<SEQ=200><ACK=100>", "", "SYN-SENT", nil, nil},
	{"S6", "SYN-SENT", "<SEQ=200><ACK=100><Data>", "", "SYN-SENT", nil, nil},
	{"S6", "SYN-SENT", "<SEQ=200><NUL>", "", "SYN-SENT", nil, nil},
	{"A39", "SYN-SENT", "<SEQ=200><ACK=100><MAX=0><SYN,ACK>", "<SEQ=101><RST>", "CLOSED", ErrBadLimits, nil},
	{"A39", "SYN-SENT", "<SEQ=200><BUFMAX=38><SYN>", "<SEQ=0><ACK=200><RST>", "SYN-SENT", nil, nil},

	{"R0", "SYN-RCVD", "<SEQ=200><SYN>", "<SEQ=100><ACK=200><MAX=4><BUFMAX=600><SYN,ACK>", "SYN-RCVD", nil, nil},
	{"R0", "active SYN-RCVD", "<SEQ=200><SYN>", "<SEQ=100><ACK=200><MAX=4><BUFMAX=600><SYN,ACK>", "SYN-RCVD", nil, nil},
	{"A4", "active SYN-RCVD", "<SEQ=200><ACK=100><SYN,ACK>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"A4", "SYN-RCVD", "<SEQ=200><ACK=100><SYN,ACK>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"R1", "SYN-RCVD", "<SEQ=200><MAX=5><SYN>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, nil},
	{"R1", "SYN-RCVD", "<SEQ=200><ACK=99><SYN,ACK>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, nil},
	{"R1", "SYN-RCVD", "<SEQ=200><ACK=100><Data>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, nil},
	{"R1", "SYN-RCVD", "<SEQ=209><ACK=100><Data>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, nil},
	{"R1", "SYN-RCVD", "<SEQ=209><ACK=100>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, nil},
	{"R1", "SYN-RCVD", "<SEQ=200><RST>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, nil},
	{"R2", "SYN-RCVD", "<SEQ=201><RST>", "", "LISTEN", ErrRefused, nil},
	{"R2", "SYN-RCVD", "<SEQ=208><RST>", "", "LISTEN", ErrRefused, nil},
	{"R2", "active SYN-RCVD", "<SEQ=201><RST>", "<SEQ=100><SYN>", "SYN-SENT", nil, nil}, // A48
	{"R2", "active SYN-RCVD", "<SEQ=201><RST>", "", "CLOSED", ErrRefused, closes},
	{"R2", "active SYN-RCVD", "<SEQ=202><RST>", "", "CLOSED", ErrRefused, nil},
	{"A28", "SYN-RCVD", "<SEQ=202><RST>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, strict},
	{"R3", "SYN-RCVD", "<SEQ=201><SYN>", "<SEQ=101><RST>", "LISTEN", ErrReset, nil}, // A41
	{"R3", "SYN-RCVD", "<SEQ=201><ACK=150><SYN,ACK>", "<SEQ=151><RST>", "LISTEN", ErrReset, nil},
	{"R3", "active SYN-RCVD", "<SEQ=201><SYN>", "<SEQ=101><RST>", "CLOSED", ErrReset, nil},
	{"A28", "SYN-RCVD", "<SEQ=201><SYN>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, strict},
	{"R4", "SYN-RCVD", "<SEQ=201><ACK=100><EA=102>", "<SEQ=101><RST>", "LISTEN", ErrReset, nil},
	{"R4", "active SYN-RCVD", "<SEQ=201><ACK=100><EA=102>", "<SEQ=101><RST>", "CLOSED", ErrHalfOpen, closes},
	{"R5", "SYN-RCVD", "<SEQ=201><ACK=100>", "", "OPEN", nil, nil},
	{"R5", "active SYN-RCVD", "<SEQ=208><ACK=100>", "", "OPEN", nil, nil},
	{"R6", "SYN-RCVD", "<SEQ=201><ACK=99>", "<SEQ=100><RST>", "LISTEN", ErrReset, nil},
	{"R6", "active SYN-RCVD", "<SEQ=201><ACK=101>", "<SEQ=102><RST>", "SYN-RCVD", nil, nil}, // A48
	{"R6", "active SYN-RCVD", "<SEQ=201><ACK=101>", "<SEQ=102><RST>", "CLOSED", ErrHalfOpen, closes},
	{"A48", "active SYN-RCVD", "<SEQ=900><ACK=99><SYN,ACK>", "<SEQ=100><RST>", "SYN-RCVD", nil, nil},
	{"A48", "active SYN-RCVD", "<SEQ=200><ACK=99><SYN,ACK>", "<SEQ=100><RST>", "SYN-RCVD", nil, nil},
	{"A48", "active SYN-RCVD", "<SEQ=900><ACK=99>", "<SEQ=100><RST>", "SYN-RCVD", nil, nil},
	{"A48", "active SYN-RCVD", "<SEQ=900><ACK=100><SYN,ACK>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, nil},
	{"A48", "active SYN-RCVD", "<SEQ=900><SYN>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, nil},
	{"A48", "active SYN-RCVD", "<SEQ=900><ACK=99><RST>", "<SEQ=101><ACK=200>", "SYN-RCVD", nil, nil},
	{"R7", "SYN-RCVD", "<SEQ=201><NUL>", "", "SYN-RCVD", nil, nil},
	{"R8", "SYN-RCVD", "<SEQ=202><ACK=100><Data>", "<SEQ=101><ACK=200><EA=202>", "OPEN", nil, nil},
	{"R8", "SYN-RCVD", "<SEQ=201><ACK=100><NUL>", "<SEQ=101><ACK=201>", "OPEN", nil, nil},

	{"O1", "OPEN", "<SEQ=200><ACK=100><Data>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"O1", "OPEN", "<SEQ=209><ACK=100><Data>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"O1", "OPEN", "<SEQ=200><ACK=100><NUL>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"O1", "OPEN", "<SEQ=200><SYN>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"O1", "OPEN", "<SEQ=200><ACK=100><SYN,ACK>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"O1", "OPEN", "<SEQ=200><RST>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"O1", "OPEN", "<SEQ=209><RST>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"O1", "OPEN", "<SEQ=200><ACK=100>", "<SEQ=101><ACK=200>", "OPEN", nil, nil},
	{"A13", "OPEN", "<SEQ=208><ACK=100><Data>", "<SEQ=101><ACK=200><EA=208>", "OPEN", nil, nil},
	{"O2", "OPEN", "<SEQ=201><RST>", "", "CLOSE-WAIT", ErrReset, nil},
	{"O2", "OPEN", "<SEQ=208><RST>", "", "CLOSE-WAIT", ErrReset, nil},
	{"A10", "OPEN", "<SEQ=201><ACK=100><RST>", "", "CLOSE-WAIT", ErrReset, nil},
	{"A28", "OPEN", "<SEQ=201><RST>", "", "CLOSE-WAIT", ErrReset, strict},
	{"A28", "OPEN", "<SEQ=202><RST>", "<SEQ=101><ACK=200>", "OPEN", nil, strict},
	{"A28", "OPEN", "<SEQ=201><SYN>", "<SEQ=101><ACK=200>", "OPEN", nil, strict},
	{"O3", "OPEN", "<SEQ=201><ACK=100><NUL>", "<SEQ=101><ACK=201>", "OPEN", nil, nil},
	{"A7", "OPEN", "<SEQ=203><ACK=100><NUL>", "<SEQ=101><ACK=200><EA=203>", "OPEN", nil, nil},
	{"O3", "OPEN", "<SEQ=201><NUL>", "<SEQ=101><ACK=201>", "OPEN", nil, nil},
	{"O4", "OPEN", "<SEQ=201><SYN>", "<SEQ=101><RST>", "LISTEN", ErrReset, nil}, // A12
	{"O4", "active OPEN", "<SEQ=201><ACK=150><SYN,ACK>", "<SEQ=151><RST>", "CLOSED", ErrReset, nil},
	{"O8", "OPEN", "<SEQ=201><ACK=100><Data>", "", "OPEN", nil, nil}, // the acknowledgement may wait
	{"O9", "OPEN", "<SEQ=202><ACK=100><Data>", "<SEQ=101><ACK=200><EA=202>", "OPEN", nil, nil},
	{"A45", "OPEN", "<SEQ=202><ACK=101><Data>", "<SEQ=101><ACK=200><EA=202>", "OPEN", nil, nil},
}

// Each rule of arriving segments has its answer and its next state, in both versions.
func TestArrivals(t *testing.T) {
	for _, a := range arrivals {
		for version := uint8(1); version <= 2; version++ {
			t.Run(a.rule, func(t *testing.T) {
				p := newPeer(t, a.with)
				if p.version = version; version == 1 {
					p.local, p.remote = 20, 30
				}
				p.in(a.state, params(nil))
				p.says(a.says)
				if p.m.Counters().Malformed > 0 {
					t.Fatal("the segment is malformed")
				}
				p.expect(a.want)
				if got := p.state(); got != a.then {
					t.Errorf("%s in %s: now in %s; want %s", a.says, a.state, got, a.then)
				}
				if p.c != nil && !errors.Is(p.c.Err(), a.err) || p.c == nil && a.err != nil {
					t.Errorf("%s in %s: the error is %v; want %v", a.says, a.state, p.c.Err(), a.err)
				}
				p.expect("")
				if a.then == "CLOSED" && (p.m.Conns() != 0 || len(p.m.timers) != 0) {
					t.Errorf("%s in %s: there are %d connections, %d timers", a.says, a.state, p.m.Conns(), len(p.m.timers))
				}
			})
		}
	}
}

// A segment that is malformed changes nothing and has no answer, in any state (H1 to H6).
func TestMalformedIsDiscarded(t *testing.T) {
	for _, state := range []string{"CLOSED", "LISTEN", "SYN-SENT", "SYN-RCVD", "OPEN", "CLOSE-WAIT"} {
		p := newPeer(t, nil)
		p.in(state, params(nil))
		h, data := parse(t, "<SEQ=201><ACK=100><Data>")
		h.Version, h.Source, h.Dest = p.version, p.remote, p.local
		good := h.AppendTo(nil, data, nil)
		n := uint64(0)
		for i := range good {
			bad := append([]byte(nil), good...)
			bad[i] ^= 0x10
			p.m.Receive(p.now, p.path, bad)
			p.m.Receive(p.now, p.path, good[:i])
			n += 2
		}
		p.m.Receive(p.now, p.path, append(good, 0))
		n++
		p.expect("")
		if got := p.state(); got != state || p.m.Counters().Malformed != n || p.m.Counters().BadChecksum == 0 {
			t.Errorf("in %s: now in %s, counters %+v; want %d malformed", state, got, p.m.Counters(), n)
		}
		p.wait(time.Millisecond)
		p.expect("")
	}
}
