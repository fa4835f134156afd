package perf

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// messages of each type, as the two sides send them.
func messages() []*message {
	return []*message{
		{Type: msgSetup, Setup: &small, Memory: &memories{Sink: remote{STag: 7, TO: 1 << 40}}},
		{Type: msgReady, Memory: &memories{Source: remote{1, 2}}},
		{Type: msgConnected},
		{Type: msgRound, Round: &round{Seed: 1<<64 - 1, Iterations: 9, Duration: time.Second}},
		{Type: msgRunning},
		{Type: msgStop, Made: 5},
		{Type: msgResult, Result: &result{Messages: 5}},
		{Type: msgRemove},
		{Type: msgRemoved},
		{Type: msgRaw, Raw: &rawSetup{Kind: rawStream, Conns: 2, ToServer: true, Write: 1, Read: 2}},
		{Type: msgRawRound, RawRound: &rawRound{Set: 1, Octets: 1 << 63, Duration: time.Second, End: make([]byte, endLen)}},
		{Type: msgRawClose},
		{Type: msgListening, Port: 1234},
		{Type: msgError, Error: "too much"},
	}
}

func TestControlMessagesSurviveTheWire(t *testing.T) {
	for _, m := range messages() {
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %v\n%+v\n%+v", b, err, got, m)
		}
	}
}

func TestControlMessagesThatAreNotUnderstoodAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                                  "can't be understood",
		`{"type":"stop"`:                    "can't be understood",
		`[]`:                                "can't be understood",
		`{"type":"stop","hurry":true}`:      "can't be understood",
		`{"type":"stop"}{"type":"stop"}`:    "something follows",
		`{"type":"jump"}`:                   "unknown type \"jump\"",
		`{}`:                                "unknown type",
		`{"type":"setup"}`:                  "lacks something",
		`{"type":"listening","port":70000}`: "lacks something",
		`{"type":"raw-round"}`:              "lacks something",
		`{"type":"error"}`:                  "lacks something",
		strings.Repeat(" ", maxControl+1):   "4097 bytes",
	} {
		if _, err := decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v; want %q", text, err, want)
		}
	}
}

// Whatever comes, decode gives an error or a message that can be said again, and
// the checks of what is in it don't fall over it.
func FuzzControl(f *testing.F) {
	for _, m := range messages() {
		b, err := m.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decode(again)
		if len(again) <= maxControl && (err != nil || !reflect.DeepEqual(m, back)) {
			t.Fatalf("%v: %+v is said as %s", err, m, again)
		}
		const memory = 1 << 30
		if m.Setup != nil && m.Setup.check(memory) == nil && m.Setup.memory() > memory {
			t.Errorf("%+v passes", m.Setup)
		}
		if m.Raw != nil && m.Raw.check(memory) == nil && m.Raw.memory() > memory {
			t.Errorf("%+v passes", m.Raw)
		}
		if m.Round != nil {
			_ = m.Round.check()
		}
		if m.RawRound != nil && m.RawRound.check(rawStream) == nil && (len(m.RawRound.End) != endLen || m.RawRound.Duration > MaxDuration) {
			t.Errorf("%+v passes", m.RawRound)
		}
	})
}

// Whatever private data come, parseGreeting gives an error or what was said.
func FuzzGreeting(f *testing.F) {
	f.Add(controlHello(Version))
	f.Add(dataHello([tokenLen]byte{1, 2}, 77))
	f.Add([]byte("urnic-perf"))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := parseGreeting(b)
		if err != nil {
			return
		}
		want := controlHello(g.version)
		if !g.control {
			want = dataHello(g.token, int(g.index))
		}
		if string(want) != string(b) {
			t.Errorf("%q is taken for %+v", b, g)
		}
	})
}

func TestNotesSurviveTheWire(t *testing.T) {
	for _, n := range []uint64{0, 1, maxIterations} {
		if kind, got := unpackNote(packNote(noteEnd, n)); kind != noteEnd || got != n {
			t.Errorf("%d comes back as %d of kind %d", n, got, kind)
		}
	}
}
