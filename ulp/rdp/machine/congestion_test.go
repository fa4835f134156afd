package machine

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rdp/congestion"
)

// A fixed is a controller with a window that a test sets.
type fixed struct {
	window int
	calls  []string
	acks   []congestion.Ack
	report congestion.Report
}

func (f *fixed) Window() int                             { return f.window }
func (f *fixed) Sent(time.Duration, int)                 { f.calls = append(f.calls, "sent") }
func (f *fixed) Acked(_ time.Duration, a congestion.Ack) { f.acks = append(f.acks, a) }
func (f *fixed) Lost(time.Duration, int)                 { f.calls = append(f.calls, "lost") }
func (f *fixed) TimedOut(time.Duration, int)             { f.calls = append(f.calls, "timeout") }
func (f *fixed) Reported(_ time.Duration, r congestion.Report) {
	f.report = r
}

func (f *fixed) take() string {
	s := strings.Join(f.calls, " ")
	f.calls = nil
	return s
}

// The controller's window bounds what is in flight; its calls tell what happens.
func TestCongestionWindow(t *testing.T) {
	f := &fixed{window: 2}
	p := newPeer(t, nil)
	p.in("LISTEN", params(func(p *Params) { p.Congestion = func() congestion.Controller { return f } }))
	p.says("<SEQ=200><MAX=10><SYN>")
	p.says("<SEQ=201><ACK=100>")
	p.sent(false)
	p.send(8)
	p.expect("<SEQ=101><ACK=200><Data> <SEQ=102><ACK=200><Data>")
	if got := f.take(); got != "sent sent" {
		t.Error(got)
	}
	p.wait(20 * time.Millisecond)
	p.says("<SEQ=201><ACK=102>")
	if len(f.acks) != 1 || f.acks[0] != (congestion.Ack{Segments: 2, RTT: 20 * time.Millisecond}) {
		t.Errorf("%+v", f.acks)
	}
	f.window = 6
	p.sent(false)
	f.calls = nil
	// 103 and 104 are lost: one round, in which the first is sent again though the window is full.
	f.window = 1
	p.says("<SEQ=201><ACK=102><EA=105-107>")
	p.expect("<SEQ=103><ACK=200><Data>")
	if got := f.take(); got != "lost sent" {
		t.Error(got)
	}
	if a := f.acks[1]; a.Segments != 3 || a.InFlight != 3 || a.RTT == 0 {
		t.Errorf("%+v", a)
	}
	// A report goes to the controller.
	r := congestion.Report{Window: 3, Drops: 1, From: "a node"}
	if p.c.Report(p.now, r); f.report != r {
		t.Errorf("%+v", f.report)
	}
}

// A controller that allows nothing does not stop a connection, and there always is one.
func TestControllersThatAllowNothing(t *testing.T) {
	for _, control := range []congestion.Controller{nil, &fixed{window: -1}} {
		p := newPeer(t, nil)
		p.in("OPEN", params(func(p *Params) { p.Congestion = func() congestion.Controller { return control } }))
		p.send(1)
		p.expect("<SEQ=101><ACK=200><Data>")
	}
}

// The timeouts of one window of data are one for the controller; that of what was sent again is another.
func TestOneTimeoutForAWindow(t *testing.T) {
	f := &fixed{window: 100}
	p := newPeer(t, nil)
	p.in("OPEN", params(func(p *Params) { p.Congestion = func() congestion.Controller { return f } }))
	p.unmeasured()
	for range 3 {
		p.send(1)
		p.sent(false)
		p.wait(10 * time.Millisecond)
	}
	f.calls = nil
	for _, want := range []string{"timeout sent sent sent", "timeout sent sent sent"} {
		for range 10 {
			p.wait(p.m.cfg.RTOInitial / 10)
			p.sent(false)
		}
		if got := f.take(); got != want {
			t.Errorf("%q; want %q", got, want)
		}
		p.wait(p.m.cfg.RTOInitial)
		p.sent(false)
	}
}

// Losses of one window of data are one for the controller, also if they show one by one.
func TestOneLossForAWindow(t *testing.T) {
	f := &fixed{window: 100}
	p := newPeer(t, nil)
	p.in("LISTEN", params(func(p *Params) { p.Congestion = func() congestion.Controller { return f } }))
	p.says("<SEQ=200><MAX=20><SYN>")
	p.says("<SEQ=201><ACK=100>")
	p.send(8)
	p.sent(false)
	f.calls = nil
	for i, want := range []string{"lost", "", ""} {
		p.says("<SEQ=201><ACK=100><EA=103-" + strconv.Itoa(104+i) + ">") // 101, then 102
		if got := f.take(); got != want {
			t.Errorf("step %d: %q; want %q", i, got, want)
		}
	}
	p.sent(false)
	p.send(8) // 109 to 116
	p.sent(false)
	f.calls = nil
	p.says("<SEQ=201><ACK=108><EA=112>") // 109 was sent after the loss of 101 had shown
	if got := f.take(); got != "lost" {
		t.Errorf("the next window: %q", got)
	}
}

// Acknowledgements that are delayed are no timeouts, on a path with a long and steady round trip.
func TestNoTimeoutsOnASteadyPath(t *testing.T) {
	s := newSim(&world{version: 2, window: 60, config: func(c *Config) {
		*c = Config{Congestion: reno, Secret: c.Secret}
	}}, 1)
	s.net = simNet{delay: 150 * time.Millisecond}
	s.open(s.nodes[0], simClient, simListen)
	c := s.conns[0]
	for s.now < 20*time.Second {
		s.run(s.now + time.Millisecond)
		for c.state == Open && c.room() {
			s.send(c)
			s.after(s.nodes[0])
		}
		s.readSome(s.nodes[1])
		s.after(s.nodes[1])
	}
	if st := c.Status(); st.Stats.Timeouts > 0 || st.Stats.Resent > 0 || st.Stats.Sent < 2000 {
		t.Errorf("%+v", st)
	}
}
