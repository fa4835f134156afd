package rdpflow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

const (
	client = dissect.Client
	server = dissect.Server
)

// A found is what an analysis has found.
type found struct {
	*dissect.Result
	broken  []string // "rule by side", in order
	details []string // of what is broken
	notes   []string
	opens   []Open
	ends    []End
}

// analyze analyses a capture.
func analyze(t testing.TB, file []byte, handlers ...dissect.Handler) found {
	t.Helper()
	return analyzeWith(t, file, &Analyzer{}, handlers...)
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
			f.details = append(f.details, fmt.Sprintf("packet %d: %v", e.At.Packet, e.Violation))
		case dissect.KindNote:
			f.notes = append(f.notes, e.Note)
		case dissect.KindUpper:
			switch u := e.Upper.(type) {
			case *Open:
				f.opens = append(f.opens, *u)
			case *End:
				f.ends = append(f.ends, *u)
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
	if a.order.Len() != 0 || len(a.conns) != 0 || len(a.pairs) != 0 || a.hashes != 0 {
		t.Errorf("after the end, the analyzer holds %d followers, %d connections, %d pairs, %d hashes", a.order.Len(), len(a.conns), len(a.pairs), a.hashes)
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

// summary returns the summary of the only connection.
func (f found) summary(t testing.TB) *Summary {
	t.Helper()
	if len(f.Connections) != 1 {
		t.Fatalf("%d connections", len(f.Connections))
	}
	return f.Connections[0].Upper.(*Summary)
}

// golden returns the bytes of a capture.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	v1Sequenced   = "v1-sequenced-loss"
	v2Unsequenced = "v2-unsequenced-loss-reorder"
)

var (
	clientAddr = netip.MustParseAddrPort("192.0.2.1:40908")
	serverAddr = netip.MustParseAddrPort("192.0.2.2:10908")
)

// Where the numbers of the two sides begin.
const (
	clientISS = 1000
	serverISS = 5000
)

// A player plays the two sides of a connection into a recording, a segment a millisecond.
type player struct {
	t       testing.TB
	file    bytes.Buffer
	w       *capture.Writer
	version uint8
	ip      bool // over IP, not UDP
	lose    bool // the capture lacks what comes
	shift   uint32
	now     time.Time
	times   []time.Time
}

func newPlayer(t testing.TB) *player {
	t.Helper()
	p := &player{t: t, version: 2, now: time.Unix(1e9, 0)}
	w, err := capture.NewWriter(&p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.w = w
	return p
}

// recording returns the capture.
func (p *player) recording() []byte {
	p.t.Helper()
	if err := p.w.Close(); err != nil {
		p.t.Fatal(err)
	}
	all := packetsOf(p.t, p.file.Bytes())
	if len(all) != len(p.times) {
		p.t.Fatalf("%d packets at %d times", len(all), len(p.times))
	}
	for i := range all {
		all[i].Time = p.times[i]
	}
	return fileOf(p.t, all)
}

// packetsOf returns the packets of a capture.
func packetsOf(t testing.TB, file []byte) []capture.Packet {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var all []capture.Packet
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Data = bytes.Clone(p.Data)
		all = append(all, p)
	}
}

// fileOf returns a capture of Ethernet packets.
func fileOf(t testing.TB, all []capture.Packet) []byte {
	t.Helper()
	var out bytes.Buffer
	w := pcapgo.NewWriterNanos(&out)
	if err := w.WriteFileHeader(1<<18, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		ci := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: p.Length}
		if err := w.WritePacket(ci, p.Data); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// wait lets time pass.
func (p *player) wait(d time.Duration) { p.now = p.now.Add(d) }

// raw plays a datagram.
func (p *player) raw(from dissect.Side, pieces ...[]byte) {
	p.wait(time.Millisecond)
	if p.lose {
		return
	}
	a, b := clientAddr, serverAddr
	if from == server {
		a, b = b, a
	}
	p.times = append(p.times, p.now)
	if p.ip {
		p.w.Packet(a.Addr(), b.Addr(), wire.Protocol, pieces...)
		return
	}
	p.w.Datagram(a, b, pieces...)
}

// segment plays a segment.
func (p *player) segment(from dissect.Side, h wire.Header, data string, change ...func(h *wire.Header)) {
	h.Version, h.Source, h.Dest = p.version, 70, 7
	shifts := [2]uint32{p.shift, p.shift * 3}
	if from == server {
		h.Source, h.Dest = 7, 70
		shifts[0], shifts[1] = shifts[1], shifts[0]
	}
	if h.Seq != 0 {
		h.Seq += shifts[0]
	}
	h.Ack += shifts[1]
	for i := range h.EACKs {
		h.EACKs[i] += shifts[1]
	}
	for _, c := range change {
		c(&h)
	}
	p.raw(from, h.AppendTo(nil, []byte(data), nil))
}

// syn is the header of a SYN.
func syn(iss uint32, most uint16) wire.Header {
	return wire.Header{Flags: wire.SYN, Seq: iss, MaxOutstanding: most, MaxSegment: 600, Sequenced: true}
}

// synAck is the header of a SYN,ACK.
func synAck(iss, ack uint32, most uint16) wire.Header {
	h := syn(iss, most)
	h.Flags, h.Ack = wire.SYN|wire.ACK, ack
	return h
}

// open opens the connection: the client takes 8 segments, the server 4.
func (p *player) open() {
	p.segment(client, syn(clientISS, 8), "")
	p.segment(server, synAck(serverISS, clientISS, 4), "")
	p.ack(client, clientISS+1, serverISS)
}

// ack plays an ACK, or an EACK.
func (p *player) ack(from dissect.Side, seq, ack uint32, eacks ...uint32) {
	h := wire.Header{Flags: wire.ACK, Seq: seq, Ack: ack, EACKs: eacks}
	if len(eacks) > 0 {
		h.Flags |= wire.EACK
	}
	p.segment(from, h, "")
}

// data plays data.
func (p *player) data(from dissect.Side, seq, ack uint32, data string) {
	p.segment(from, wire.Header{Flags: wire.ACK, Seq: seq, Ack: ack}, data)
}

// nul plays a NUL.
func (p *player) nul(from dissect.Side, seq, ack uint32) {
	p.segment(from, wire.Header{Flags: wire.NUL | wire.ACK, Seq: seq, Ack: ack}, "")
}

// rst plays a RST.
func (p *player) rst(from dissect.Side, seq uint32) {
	p.segment(from, wire.Header{Flags: wire.RST, Seq: seq}, "")
}
