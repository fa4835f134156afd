package rdsflow

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
)

// known are the rules that Linux breaks in a capture: without the peer-to-peer model, the side
// that has accepted sends its congestion map first.
var known = map[string]string{"iwarp-duel": "responder-first by server"}

// counts are what a capture holds. Those of the table were counted by a decoder that is not ours.
type counts map[string]int

// parse reads counts as the table has them: name:number.
func parse(s string) counts {
	c := counts{}
	for word := range strings.FieldsSeq(s) {
		name, n, _ := strings.Cut(word, ":")
		for _, digit := range n {
			c[name] = c[name]*10 + int(digit-'0')
		}
	}
	return c
}

var captures = map[string]string{
	"iwarp-basic":        "request:1 reply:1 data:14 payload:49354 map:2 ack:2 ackreq:2 send:8 send-se:18 rdma-write:1 good:26 headers:26",
	"iwarp-congestion":   "request:1 reply:1 data:118 payload:118000 map:4 ack:14 ackreq:14 send:4 send-se:136 rdma-write:1 good:140 headers:140",
	"iwarp-credits":      "request:1 reply:1 data:60 payload:65204 map:2 ack:4 ackreq:7 credits:5 send:12 send-se:67 rdma-write:1 good:79 headers:79",
	"iwarp-cut":          "request:2 reply:2 data:4 payload:5600 map:4 ackreq:1 send:5 send-se:8 rdma-write:2 good:13 headers:13",
	"iwarp-duel":         "request:60 reply:60 data:18 payload:49354 map:12 ack:1 ackreq:4 retrans:4 send:18 send-se:31 good:49 headers:49",
	"iwarp-ping":         "request:1 reply:1 ping:4 pong:4 map:2 ack:2 ackreq:2 send:2 send-se:12 rdma-write:1 good:14 headers:14",
	"iwarp-rdma":         "request:1 reply:1 data:6 payload:43 map:2 ack:2 ackreq:2 send:2 send-se:10 rdma-write:3 good:12 dest:4 rdma:2 headers:12",
	"iwarp-v6":           "request:1 reply:1 data:4 payload:10200 map:2 ack:1 ackreq:2 send:4 send-se:7 rdma-write:1 good:11 headers:11",
	"rxe-cut":            "REQ:14 REP:2 RTU:2 REJ:10 DREQ:1 data:4 payload:5600 map:4 ack:1 ackreq:1 repeat:2 send:5 send-se:9 good:14 headers:14",
	"rxe-rdma":           "REQ:1 REP:1 RTU:1 data:10 payload:70 map:2 ack:2 ackreq:2 read-request:2 read-response:2 send:2 send-se:14 rdma-write:3 good:16 dest:5 rdma:5 headers:16",
	"tcp-stress":         "data:394 payload:78800 probe:2 ppong:2 map:5 none:403 npaths:4 headers:403",
	"rds-tcp-basic":      "data:5 payload:9197 probe:2 ppong:2 map:4 none:13 npaths:4 headers:13",
	"rds-tcp-congestion": "data:334 payload:334000 probe:2 ppong:2 map:7 none:345 npaths:4 headers:345",
	"rds-tcp-large":      "data:4 payload:271072 probe:2 ppong:2 map:4 none:12 npaths:4 headers:12",
	"rds-tcp-ping":       "ping:2 pong:2 probe:2 ppong:2 map:4 none:12 npaths:4 headers:12",
	"rds-tcp-ports":      "data:16 payload:22000 probe:1 ppong:1 map:4 none:22 npaths:2 headers:22",
}

// count counts what an analysis shows.
func (c counts) event(t *testing.T, e *dissect.Event) {
	switch e.Kind {
	case dissect.KindFrame:
		if e.Frame.Reply {
			c["reply"]++
		} else {
			c["request"]++
		}
	case dissect.KindMessage:
		c[e.Message.Op.Name()]++
	case dissect.KindUpper:
		switch u := e.Upper.(type) {
		case *Message:
			c.message(t, u)
		case *Operation:
			c[operations[u.Op]]++
			if u.Repeated && operations[u.Op] == "" {
				c["repeat"]++
			}
		}
	default:
	}
}

// operations are what the table calls those of RoCEv2.
var operations = map[string]string{
	"Send": "send", "Send with Solicited Event": "send-se", "Write": "rdma-write", "Read Request": "read-request", "Read Response": "read-response",
	"CM REQ": "REQ", "CM REP": "REP", "CM RTU": "RTU", "CM REJ": "REJ", "CM DREQ": "DREQ",
}

func (c counts) message(t *testing.T, m *Message) {
	h := &m.Header
	if m.Part || m.Fragments <= 1 {
		c["headers"]++
		c[checksum(&m.Raw)]++
		if h.Credit > 0 {
			c["credits"]++
		}
		reencode(t, m)
	}
	if m.Part {
		return
	}
	kind := h.Kind().String()
	if h.Kind() == wire.Pong && h.DestPort == wire.ProbePort {
		kind = "ppong"
	}
	c[kind]++
	if h.Kind() == wire.Data {
		c["payload"] += int(h.Len)
	}
	if h.Flags&wire.AckRequired != 0 {
		c["ackreq"]++
	}
	if h.Flags&wire.Retransmitted != 0 {
		c["retrans"]++
	}
	x, _ := wire.ParseExtensions(h.Extensions)
	for name, ext := range map[string]wire.ExtensionType{"npaths": wire.ExtNPaths, "dest": wire.ExtRDMADest, "rdma": wire.ExtRDMA} {
		if x.With(ext) {
			c[name]++
		}
	}
}

// reencode compares a header with what the codec makes of it.
func reencode(t *testing.T, m *Message) {
	t.Helper()
	if got := m.Header.AppendTo(nil, checksum(&m.Raw) != "none"); !bytes.Equal(got, m.Raw[:]) {
		t.Errorf("%v encodes as %x, was %x", &m.Header, got, m.Raw)
	}
	x, err := wire.ParseExtensions(m.Header.Extensions)
	if again, err2 := x.Encode(); err != nil || err2 != nil || again != m.Header.Extensions {
		t.Errorf("extension headers %v encode as %x, %v, %v; were %x", &x, again, err, err2, m.Header.Extensions)
	}
}

func TestEveryCaptureIsCounted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "captures", "*.gz"))
	if err != nil || len(files) != len(captures) || len(files) == 0 {
		t.Errorf("%d files, %d counted, %v", len(files), len(captures), err)
	}
	readme, err := os.ReadFile(filepath.Join("testdata", "captures", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".pcap.gz"); captures[name] == "" || !bytes.Contains(readme, []byte("`"+name+"`")) {
			t.Errorf("%s is not counted, or not in README.md", name)
		}
	}
}

// What the captures of Linux hold is what an independent decoder has counted; each header
// comes out of the codec as it was; and nobody is blamed.
func TestCapturesOfLinux(t *testing.T) {
	for name, want := range captures {
		t.Run(name, func(t *testing.T) {
			got := counts{}
			f := analyze(t, golden(t, name), func(e *dissect.Event) error {
				got.event(t, e)
				return nil
			})
			delete(got, "")
			if want := parse(want); !maps.Equal(got, want) {
				for _, k := range slices.Sorted(maps.Keys(join(got, want))) {
					if got[k] != want[k] {
						t.Errorf("%s: %d, want %d", k, got[k], want[k])
					}
				}
			}
			for i, b := range f.broken {
				if known[name] != b {
					t.Error(f.details[i])
				}
			}
			if known[name] != "" && !slices.Contains(f.broken, known[name]) {
				t.Errorf("%s was not found", known[name])
			}
			if n := f.Total.Undecoded; n > 0 {
				t.Errorf("%d bytes were not decoded", n)
			}
		})
	}
}

func join(a, b counts) counts {
	c := maps.Clone(a)
	maps.Copy(c, b)
	return c
}
