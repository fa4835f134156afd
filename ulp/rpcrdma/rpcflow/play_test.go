package rpcflow

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
	"urnic/ulp/rpcrdma"
)

const (
	client = dissect.Client
	server = dissect.Server
)

// A player plays both sides of a connection into a recording.
type player struct {
	t    testing.TB
	file bytes.Buffer
	w    *capture.Writer
	s    *capture.Stream
	msn  [2][rdmap.NumQueues]uint32
}

func newPlayer(t testing.TB, port uint16) *player {
	t.Helper()
	p := &player{t: t}
	w, err := capture.NewWriter(&p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.w = w
	p.s = w.Stream(netip.MustParseAddrPort("192.0.2.1:40000"), netip.AddrPortFrom(netip.MustParseAddr("192.0.2.2"), port), true)
	return p
}

func (p *player) raw(from dissect.Side, b []byte) {
	if from == client {
		p.s.Sent(b)
	} else {
		p.s.Received(b)
	}
}

// frame plays a start-up frame.
func (p *player) frame(f mpa.Frame) {
	p.t.Helper()
	b, err := f.AppendBinary(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	from := client
	if f.Reply {
		from = server
	}
	p.raw(from, b)
}

// start plays start-up with private data; both is what both sides say of themselves.
func (p *player) start(both rpcrdma.Private) *player {
	p.t.Helper()
	p.frame(frame(false, both.Append(nil)))
	p.frame(frame(true, both.Append(nil)))
	return p
}

// fpdu plays a DDP segment.
func (p *player) fpdu(from dissect.Side, s *ddp.Segment) {
	p.t.Helper()
	b, err := s.AppendBinary(nil)
	if err == nil {
		b, err = (&mpa.Framer{}).AppendFPDU(nil, b)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.raw(from, b)
}

func (p *player) untagged(from dissect.Side, op rdmap.Opcode, invalidate stag.STag, payload []byte) {
	p.t.Helper()
	c := ddp.NewControl(false, true)
	v := uint32(invalidate)
	p.msn[from][op.Queue()]++
	p.fpdu(from, &ddp.Segment{Control: c, Payload: payload, Untagged: ddp.UntaggedHeader{
		Control: c, RsvdULP: [5]byte{byte(rdmap.NewControl(op)), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)},
		QN: op.Queue(), MSN: p.msn[from][op.Queue()],
	}})
}

func (p *player) tagged(from dissect.Side, op rdmap.Opcode, tag stag.STag, to uint64, data []byte) {
	p.t.Helper()
	c := ddp.NewControl(true, true)
	p.fpdu(from, &ddp.Segment{Control: c, Payload: data, Tagged: ddp.TaggedHeader{
		Control: c, RsvdULP: byte(rdmap.NewControl(op)), STag: tag, TO: to,
	}})
}

// send plays a Send of a header and what follows it.
func (p *player) send(from dissect.Side, h rpcrdma.Header, stream []byte) {
	p.t.Helper()
	h.Version = max(h.Version, rpcrdma.Version)
	h.Credits = max(h.Credits, 8)
	p.untagged(from, rdmap.OpSend, 0, append(h.Append(nil), stream...))
}

// write plays a Write to the client's memory.
func (p *player) write(to uint64, data []byte) {
	p.tagged(server, rdmap.OpWrite, tag, to, data)
}

// read plays a Read of the client's memory, and its response.
func (p *player) read(tag stag.STag, to uint64, data []byte) {
	const sink, at = 0x5151, 0x10000
	b, err := rdmap.ReadRequest{SinkSTag: sink, SinkTO: at, Size: uint32(len(data)), SrcSTag: tag, SrcTO: to}.AppendBinary(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.untagged(server, rdmap.OpReadRequest, 0, b)
	p.tagged(client, rdmap.OpReadResponse, sink, at, data)
}

// recording ends the connection and returns the capture.
func (p *player) recording() []byte {
	p.t.Helper()
	p.s.Close(true)
	p.s.Close(false)
	if err := p.w.Close(); err != nil {
		p.t.Fatal(err)
	}
	return p.file.Bytes()
}

// A found is what an analysis has found.
type found struct {
	*dissect.Result
	broken   []string // "rule by side", in order
	details  []string // of what is broken
	notes    []string
	messages []*RPC
	headers  int
}

// frame returns a start-up frame with private data.
func frame(reply bool, private []byte) mpa.Frame {
	return mpa.Frame{Reply: reply, Revision: 1, PrivateData: private}
}

func analyze(t testing.TB, file []byte, a *Analyzer, handlers ...dissect.Handler) found {
	t.Helper()
	f := analyzeWith(t, file, a, handlers...)
	if a.kept != 0 || a.regions != 0 || a.open != 0 || a.past != 0 {
		t.Errorf("%d bytes, %d segments, %d calls and %d past segments are still remembered", a.kept, a.regions, a.open, a.past)
	}
	return f
}

func analyzeWith(t testing.TB, file []byte, a *Analyzer, handlers ...dissect.Handler) found {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var f found
	f.Result, err = dissect.AnalyzeULP(t.Context(), r, a, func(e *dissect.Event) error {
		switch e.Kind {
		case dissect.KindViolation:
			f.broken = append(f.broken, fmt.Sprintf("%s by %v", e.Violation.ID, e.From))
			f.details = append(f.details, e.Violation.String())
		case dissect.KindNote:
			f.notes = append(f.notes, e.Note)
		case dissect.KindUpper:
			switch u := e.Upper.(type) {
			case *RPC:
				f.messages = append(f.messages, u)
			case *Transport:
				f.headers++
			}
		default:
		}
		for _, h := range handlers {
			if err := h(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// want compares what is broken with what a test expects.
func (f found) want(t testing.TB, broken ...string) {
	t.Helper()
	if !slices.Equal(f.broken, broken) {
		t.Errorf("broken are\n  %s\nwant\n  %s\nnotes\n  %s", strings.Join(f.details, "\n  "), strings.Join(broken, "\n  "), strings.Join(f.notes, "\n  "))
	}
}

func (f found) noted(t testing.TB, part string) {
	t.Helper()
	if !strings.Contains(strings.Join(f.notes, "\n"), part) {
		t.Errorf("no note says %q: %q", part, f.notes)
	}
}

func (f found) summary(t testing.TB) *Summary {
	t.Helper()
	if len(f.Connections) != 1 {
		t.Fatalf("%d connections", len(f.Connections))
	}
	s, ok := f.Connections[0].Upper.(*Summary)
	if !ok {
		t.Fatal("the connection was not taken for RPC-over-RDMA")
	}
	return s
}

// golden returns the bytes of a capture.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "internal", "program", "dissect", "testdata", "captures", name+".pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
