package rdsstress

import (
	"bytes"
	"math"
	"net/netip"
	"strings"
	"testing"
)

func valid() Params {
	return Params{Depth: 1, RequestSize: 1024, AckSize: HeaderLen, Port: 4000, Tasks: 1, Vectors: 1}
}

func TestParamsWithATypeOfServiceHaveTheLongForm(t *testing.T) {
	p := valid()
	p.Version, p.TOS = Version, 7
	b := p.AppendTo(nil)
	if len(b) != longLen || !bytes.HasPrefix(b, []byte("2.0.7\x00")) || b[75] != 7 {
		t.Fatalf("they are %d bytes: %x", len(b), b)
	}
	got, err := ReadParams(bytes.NewReader(append(b, 1)))
	if err != nil || got != p {
		t.Errorf("they decode as %+v, %v", got, err)
	}
	for n := range len(b) {
		if _, err := ReadParams(bytes.NewReader(b[:n])); err == nil {
			t.Errorf("%d of %d bytes are enough", n, len(b))
		}
	}
	b[3] = '\n'
	if _, err := ReadParams(bytes.NewReader(b)); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("a version with a control character: %v", err)
	}
}

func TestParamsThatCannotBe(t *testing.T) {
	if p := valid(); p.Check() != nil {
		t.Fatal(p.Check())
	}
	for name, change := range map[string]func(p *Params){
		"no task":         func(p *Params) { p.Tasks = 0 },
		"many tasks":      func(p *Params) { p.Tasks = MaxTasks + 1 },
		"no depth":        func(p *Params) { p.Depth = 0 },
		"index overflow":  func(p *Params) { p.Depth = MaxDepth + 1 },
		"many under way":  func(p *Params) { p.Tasks, p.Depth = MaxTasks, 17 },
		"depth overflow":  func(p *Params) { p.Tasks, p.Depth = MaxTasks, math.MaxUint32 },
		"no port":         func(p *Params) { p.Port = 0 },
		"last port":       func(p *Params) { p.Port = 65535 },
		"small request":   func(p *Params) { p.RequestSize = HeaderLen - 1 },
		"large request":   func(p *Params) { p.RequestSize = MaxMessage + 1 },
		"small ack":       func(p *Params) { p.AckSize = 0 },
		"large ack":       func(p *Params) { p.AckSize = math.MaxUint32 },
		"mode":            func(p *Params) { p.Flags[Mode] = 3 },
		"async":           func(p *Params) { p.Async = 1 },
		"RDMA memory":     func(p *Params) { p.RDMASize = MaxRDMA },
		"RDMA overflow":   func(p *Params) { p.RDMASize, p.Vectors, p.Tasks, p.Depth = math.MaxUint32, MaxVectors, 256, 16 },
		"long region":     func(p *Params) { p.RDMASize, p.Vectors = 4096, 257 },
		"many regions":    func(p *Params) { p.RDMASize, p.Tasks, p.Depth = 1, 32, 33 },
		"no vector":       func(p *Params) { p.RDMASize, p.Vectors = 4096, 0 },
		"many vectors":    func(p *Params) { p.RDMASize, p.Vectors = 1, MaxVectors+1 },
		"large alignment": func(p *Params) { p.RDMASize, p.Alignment = 1, 1<<16+1 },
	} {
		p := valid()
		change(&p)
		if err := p.Check(); err == nil {
			t.Errorf("%s: %+v is accepted", name, p)
		}
	}
}

func TestHeader(t *testing.T) {
	h := Header{
		Sequence: 0x01020304, From: netip.MustParseAddr("10.9.0.1"), To: netip.MustParseAddr("10.9.0.2"), FromPort: 4001, ToPort: 4002,
		Index: 5, Op: Request, RDMAOp: Write, Addr: 6 << 40, Phys: 7 << 40, Pattern: 8 << 40, Key: 9 << 40, Size: 10 << 16, Vectors: 11, Retry: 1,
	}
	b := h.AppendTo(nil)
	if len(b) != HeaderLen {
		t.Fatalf("a header has %d bytes", len(b))
	}
	if got, err := ParseHeader(b); err != nil || got != h {
		t.Errorf("it decodes as %+v, %v", got, err)
	}
	for n := range len(b) {
		if _, err := ParseHeader(b[:n]); err == nil {
			t.Errorf("%d bytes are enough", n)
		}
	}
	b[18] = 3
	if _, err := ParseHeader(b); err == nil {
		t.Error("operation 3 is accepted")
	}
}

func FuzzParams(f *testing.F) {
	p := valid()
	f.Add(p.AppendTo(nil))
	p.Version, p.TOS = Version, 1
	f.Add(p.AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		p, err := ReadParams(r)
		if err != nil {
			return
		}
		again, err := ReadParams(bytes.NewReader(p.AppendTo(nil)))
		if err != nil || again != p {
			t.Errorf("%+v encodes and decodes as %+v, %v", p, again, err)
		}
		if p.Check() == nil && uint64(p.Tasks)*uint64(p.Tasks)*uint64(p.Depth) > MaxUnderWay {
			t.Errorf("%+v takes too much memory", p)
		}
	})
}

// Whatever comes, a pair takes what it expects or refuses it, and its counts stay within the depth.
func FuzzPair(f *testing.F) {
	p := valid()
	p.Depth, p.RequestSize, p.RDMASize = 3, 64, 8
	h := Header{FromPort: 4001, ToPort: 4001, Op: Request}
	f.Add(append(h.AppendTo(nil), 0), false)
	h.Op = Ack
	f.Add(h.AppendTo(nil), true)
	f.Fuzz(func(t *testing.T, b []byte, send bool) {
		q := newPair(&p, netip.Addr{}, netip.Addr{}, 0, 0, nil)
		for len(b) > 0 {
			if send {
				q.compose(q.begun[0], true, free)
			}
			n := min(len(b), int(p.RequestSize))
			if _, _, err := q.arrived(b[:n], 1); err != nil {
				return
			}
			b = b[n:]
			if q.unacked > p.Depth || q.pending > p.Depth {
				t.Fatalf("%d requests are unacknowledged, %d under way", q.unacked, q.pending)
			}
		}
	})
}
