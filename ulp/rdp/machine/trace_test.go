package machine

import (
	"strings"
	"testing"

	"urnic/ulp/rdp/wire"
)

// A trace is an example of RFC 908 chapter 5: two endpoints, host A and host B. A line is
//
//	A <SEQ=100><SYN>           A sends this, and B gets it
//	B -4- <SEQ=201><ACK=100>   B sends this, which is under way as number 4
//	A (lost) <SEQ=101>...      A sends this, and it is lost
//	-4-                        number 4 arrives
//	A OPEN                     A is in OPEN
//
// Where a line has data that was not sent yet, the program of the host sends it.
type trace struct {
	t     *testing.T
	hosts map[string]*host
	under map[string]flight
	now   Time
	drop  func() bool // whether exchange loses the next segment; nil: it loses none
}

type host struct {
	*Machine
	path Path
	c    *Conn
}

type flight struct {
	to   string
	data []byte
}

// newTrace makes hosts with initial numbers, B listening.
func newTrace(t *testing.T, issA, issB uint32, change func(*Config), pa Params) *trace {
	t.Helper()
	tr := &trace{t: t, hosts: map[string]*host{}, under: map[string]flight{}}
	for i, name := range []string{"A", "B"} {
		tr.boot(name, pathTo(1-i), []uint32{issA, issB}[i], change)
	}
	if _, err := tr.hosts["B"].Listen(ListenConfig{Port: 2000, Params: pa}); err != nil {
		t.Fatal(err)
	}
	return tr
}

func (tr *trace) boot(name string, path Path, iss uint32, change func(*Config)) {
	tr.t.Helper()
	cfg := Config{AckDelay: -1}
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		tr.t.Fatal(err)
	}
	m.iss = func(Name) uint32 { return iss }
	tr.hosts[name] = &host{Machine: m, path: path}
}

// opens has A open a connection from its port 3000.
func (tr *trace) opens(pa Params) {
	tr.t.Helper()
	h := tr.hosts["A"]
	c, err := h.Open(tr.now, OpenConfig{Path: h.path, Port: 3000, Remote: 2000, Params: pa})
	if err != nil {
		tr.t.Fatal(err)
	}
	h.c = c
}

// other returns the other host.
func other(name string) string {
	if name == "A" {
		return "B"
	}
	return "A"
}

// arrive delivers a segment.
func (tr *trace) arrive(f flight) {
	h := tr.hosts[f.to]
	h.Receive(tr.now, h.path, f.data)
	for _, e := range h.Events() {
		if e.Kind == StateChanged && e.State == SynRcvd {
			h.c = e.Conn
		}
	}
	for h.c != nil { // its program reads at once
		if _, err := h.c.Receive(); err != nil {
			break
		}
	}
}

// run carries out lines.
func (tr *trace) run(lines string) {
	tr.t.Helper()
	for line := range strings.Lines(lines) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case len(f) == 1:
			p, ok := tr.under[f[0]]
			if !ok {
				tr.t.Fatalf("%s is not under way", f[0])
			}
			tr.arrive(p)
		case f[1][0] == '<':
			tr.arrive(flight{other(f[0]), tr.sends(f[0], f[1])})
		case len(f) == 3:
			b := tr.sends(f[0], f[2])
			tr.under[f[1]] = flight{other(f[0]), b}
		default:
			tr.state(f[0], f[1])
		}
	}
}

func (tr *trace) state(name, want string) {
	tr.t.Helper()
	got := Closed
	if c := tr.hosts[name].c; c != nil {
		got = c.State()
	}
	if got.String() != want {
		tr.t.Fatalf("%s is in %v; want %s", name, got, want)
	}
}

// sends verifies what a host sends next.
func (tr *trace) sends(name, want string) []byte {
	tr.t.Helper()
	h := tr.hosts[name]
	if s, data := parse(tr.t, want); len(data) > 0 && h.c != nil && s.Seq == h.c.end {
		if err := h.c.Send(tr.now, []byte("x")); err != nil {
			tr.t.Fatal(err)
		}
	}
	buf := make([]byte, 0, 1500)
	b, _, ok := h.Pull(tr.now, buf)
	if !ok {
		tr.t.Fatalf("%s sends nothing; want %s", name, want)
	}
	var s wire.Header
	data, err := s.Parse(b, nil)
	if err != nil {
		tr.t.Fatal(err)
	}
	// The example writes an acknowledgement without data with its flag or without it.
	if got := write(&s, data, false); got != want && got+"<ACK>" != want {
		tr.t.Fatalf("%s sends\n\t%s\nand should send\n\t%s", name, got, want)
	}
	return b
}

// silent verifies that nothing is sent.
func (tr *trace) silent() {
	tr.t.Helper()
	for name, h := range tr.hosts {
		if b, _, ok := h.Pull(tr.now, make([]byte, 0, 1500)); ok {
			var s wire.Header
			data, err := s.Parse(b, nil)
			tr.t.Fatalf("at the end, %s sends %s, %v", name, write(&s, data, false), err)
		}
	}
}

// exchange has both hosts do what they like.
func (tr *trace) exchange() {
	buf := make([]byte, 0, 1500)
	for _, h := range tr.hosts {
		h.Advance(tr.now)
	}
	for busy := true; busy; {
		busy = false
		for _, name := range []string{"A", "B"} {
			if b, _, ok := tr.hosts[name].Pull(tr.now, buf); ok {
				if busy = true; tr.drop == nil || !tr.drop() {
					tr.arrive(flight{other(name), b})
				}
			}
		}
	}
}
