package rdsstress

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

// original returns what the original has sent, of one side and one kind.
func original(t testing.TB, side, kind string) (all [][]byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/original.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == side && f[1] == kind {
			b, err := hex.DecodeString(f[2])
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		t.Fatalf("there is no %s of the %s side", kind, side)
	}
	return all
}

// The options were -t 1 -d 1 -q 300 -a 100 -T 1 -v.
func originalParams(t testing.TB) Params {
	t.Helper()
	p, err := ReadParams(bytes.NewReader(original(t, "active", "control")[0]))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParamsOfTheOriginal(t *testing.T) {
	p := originalParams(t)
	want := Params{
		Depth: 1, RequestSize: 300, AckSize: 100, Tasks: 1, Port: 4000, Seconds: 1, Vectors: 1,
		Send: netip.MustParseAddr("10.9.0.2"), Receive: netip.MustParseAddr("10.9.0.1"),
	}
	want.Flags[Verify], want.Flags[CongestionMonitor], want.Flags[Fence], want.Flags[SuppressWarnings] = 1, 1, 1, 255
	if p != want {
		t.Errorf("the parameters are\n%+v; want\n%+v", p, want)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if got := p.AppendTo(nil); !bytes.Equal(got, original(t, "active", "control")[0]) {
		t.Errorf("they encode as\n%x, and were\n%x", got, original(t, "active", "control")[0])
	}
}

// Given what the original has received, a pair sends what the original has sent, byte for
// byte; and it takes all of that from the original.
func TestPairSendsWhatTheOriginalSends(t *testing.T) {
	p := originalParams(t)
	contents := pattern(300 - HeaderLen)
	for _, side := range []string{"active", "passive"} {
		self, peer, other := p.Receive, p.Send, "passive"
		if side == "passive" {
			self, peer, other = p.Send, p.Receive, "active"
		}
		q := newPair(&p, self, peer, 0, 0, contents)
		incoming := original(t, other, "msg")
		for i, want := range original(t, side, "msg") {
			h, err := ParseHeader(want)
			if err != nil {
				t.Fatal(err)
			}
			var next Header
			for {
				if h.Op == Ack || q.unacked == 0 { // else the pair would acknowledge first
					if next = q.compose(time.Time{}, h.Op == Request, free); next.Op != 0 {
						break
					}
				}
				if len(incoming) == 0 {
					t.Fatalf("%s: message %d, a %v, never comes", side, i, h.Op)
				}
				if _, _, err := q.arrived(incoming[0], 0); err != nil {
					t.Fatal(err)
				}
				incoming = incoming[1:]
			}
			if msg := q.encode(&next); !bytes.Equal(msg, want) {
				t.Fatalf("%s: message %d is\n%x; the original's is\n%x", side, i, msg, want)
			}
		}
	}
}

// free has no slot blocked.
func free(uint32) bool { return false }
