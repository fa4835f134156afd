package rpcflow

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/internal/test/tshark"
	"urnic/rdmap"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// What the captures of NFS over RDMA hold. Sends and bytes were counted by a decoder that
// is not ours.
var nfsCaptures = map[string]struct {
	calls        int    // a Send each, as are replies
	writeOctets  uint64 // of all RDMA Writes
	readOctets   uint64 // of all Read Responses
	chunks       [4]int // Read chunks, Write chunks, long calls, long replies
	invalidating int    // replies by Send with Invalidate
	known        map[string]string
}{
	"nfs3": {
		calls: 615, writeOctets: 1155730, readOctets: 1048576, chunks: [4]int{8, 9, 0, 306}, invalidating: 17,
		known: map[string]string{
			"pad by server":            "siw leaves what was in its buffer in the pad",
			"rpc-invalidate by server": "Linux's server looks at the client's R only, and does not set its own",
		},
	},
	"nfs41": {
		calls: 64, writeOctets: 367358, readOctets: 300000, chunks: [4]int{3, 4, 0, 10}, invalidating: 14,
		known: map[string]string{
			"pad by server":            "siw leaves what was in its buffer in the pad",
			"rpc-invalidate by server": "Linux's server looks at the client's R only, and does not set its own",
		},
	},
	"nfs41-crc": {
		calls: 66, writeOctets: 267358, readOctets: 196608, chunks: [4]int{3, 5, 0, 10}, invalidating: 15,
		known: map[string]string{
			"pad by server":            "siw leaves what was in its buffer in the pad",
			"rpc-invalidate by server": "Linux's server looks at the client's R only, and does not set its own",
		},
	},
}

// A spy sees each Send before the analyser does.
type spy struct {
	dissect.ULP
	see func(*dissect.Sent)
}

type spyConn struct {
	dissect.Upper
	see func(*dissect.Sent)
}

func (s spy) New(r *dissect.Reporter) dissect.Upper { return spyConn{s.ULP.New(r), s.see} }

func (s spyConn) Send(from dissect.Side, at capture.At, m *dissect.Sent) {
	s.see(m)
	s.Upper.Send(from, at, m)
}

func TestCapturesOfNFSDecodeCompletely(t *testing.T) {
	for name, want := range nfsCaptures {
		t.Run(name, func(t *testing.T) {
			octets := map[rdmap.Opcode]uint64{}
			f := analyze(t, golden(t, name), &Analyzer{}, func(e *dissect.Event) error {
				if e.Kind == dissect.KindMessage {
					octets[e.Message.Op] += e.Message.Length
					tagged := e.Message.Tagged || e.Message.Op == rdmap.OpReadRequest
					if tagged != (e.Message.Use != "") {
						t.Errorf("packet %d: %v is for %q", e.At.Packet, e.Message, e.Message.Use)
					}
				}
				return nil
			})
			for i, b := range f.broken {
				if want.known[b] == "" {
					t.Error(f.details[i])
				}
			}
			for b := range want.known {
				if !slices.Contains(f.broken, b) {
					t.Errorf("%s was not found", b)
				}
			}
			if len(f.notes) > 0 {
				t.Errorf("notes %q", f.notes)
			}
			s := f.summary(t)
			if s.Calls != want.calls || s.Replies != want.calls || s.Unanswered != 0 || s.BadHeaders != 0 || s.Errors != 0 {
				t.Errorf("%+v, want %d calls and replies, and no more", s, want.calls)
			}
			if f.headers != 2*want.calls || len(f.messages) != 2*want.calls {
				t.Errorf("%d headers, %d messages", f.headers, len(f.messages))
			}
			if s.Asked != [2]uint32{128, 128} || s.Granted != [2]uint32{64, 64} {
				t.Errorf("credits asked for %v, granted %v", s.Asked, s.Granted)
			}
			var written, read uint64
			var chunks [4]int
			for _, p := range s.Procedures() {
				if p.Calls != p.Replies || p.Failed > 0 || p.Shortest <= 0 || p.Mean() < p.Shortest || p.Longest < p.Mean() {
					t.Errorf("%+v", p)
				}
				written += p.WriteOctets + p.LongOctets
				read += p.ReadOctets
				chunks[0] += p.ReadChunks
				chunks[1] += p.WriteChunks
				chunks[2] += p.LongCalls
				chunks[3] += p.LongReplies
			}
			if written != octets[rdmap.OpWrite] || written != want.writeOctets || read != octets[rdmap.OpReadResponse] || read != want.readOctets {
				t.Errorf("chunks hold %d and %d bytes, Writes %d, Read Responses %d; want %d and %d",
					written, read, octets[rdmap.OpWrite], octets[rdmap.OpReadResponse], want.writeOctets, want.readOctets)
			}
			if chunks != want.chunks {
				t.Errorf("chunks %v, want %v", chunks, want.chunks)
			}
			for _, m := range f.messages {
				if !m.Whole || uint64(len(m.Octets)) != m.Length || !m.Known || m.Reply != m.Matched || m.Failed || len(m.Octets)%4 != 0 {
					t.Errorf("%v, %d bytes", m, len(m.Octets))
				}
			}
		})
	}
}

// Each transport header, and each call's and reply's own header, comes out of the codecs as
// it was captured.
func TestHeadersOfCapturesComeOutAsTheyWere(t *testing.T) {
	for name, want := range nfsCaptures {
		r, err := capture.NewReader(bytes.NewReader(golden(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		headers, messages, invalidating := 0, 0, 0
		u := spy{&Analyzer{}, func(m *dissect.Sent) {
			headers++
			if m.Invalidates {
				invalidating++
			}
			var h rpcrdma.Header
			rest, err := h.Decode(m.Octets, rpcrdma.Limits{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			was := m.Octets[:len(m.Octets)-len(rest)]
			if got := h.Append(nil); !bytes.Equal(got, was) || h.Len() != len(was) {
				t.Errorf("%s: %+v comes out as %x, was %x", name, h, got, was)
			}
		}}
		_, err = dissect.AnalyzeULP(t.Context(), r, u, func(e *dissect.Event) error {
			if m, ok := e.Upper.(*RPC); ok {
				messages++
				reencode(t, m)
			}
			return nil
		})
		if err != nil || headers != 2*want.calls || messages != headers || invalidating != want.invalidating {
			t.Errorf("%s: %d headers, %d messages, %d invalidate, %v", name, headers, messages, invalidating, err)
		}
	}
}

func reencode(t *testing.T, m *RPC) {
	t.Helper()
	d := xdr.NewDecoder(m.Octets)
	var e xdr.Encoder
	var err error
	if m.Reply {
		var r oncrpc.Reply
		if err = r.Decode(d); err == nil {
			err = r.Encode(&e)
		}
	} else {
		var c oncrpc.Call
		if err = c.Decode(d); err == nil {
			err = c.Encode(&e)
		}
	}
	if was := m.Octets[:len(m.Octets)-d.Left()]; err != nil || !bytes.Equal(e.AppendTo(nil), was) {
		t.Errorf("%v comes out as %x, %v; was %x", m, e.AppendTo(nil), err, was)
	}
}

// What was written to a file through Read chunks is what was read from it through Write
// chunks.
func TestFileIsReadAsItWasWritten(t *testing.T) {
	const megabyte = 1 << 20
	written, read := make([]byte, megabyte), make([]byte, megabyte)
	counts := map[string]int{}
	offsets := map[uint32]uint64{}
	for _, m := range analyze(t, golden(t, "nfs3"), &Analyzer{}).messages {
		const block = 131072
		if m.Program != programNFS || m.Procedure != nfs3Read && m.Procedure != nfs3Write {
			continue
		}
		var offset uint64
		if !m.Reply {
			d := xdr.NewDecoder(m.Octets)
			var c oncrpc.Call
			if err := c.Decode(d); err != nil {
				t.Fatal(err)
			}
			d.Opaque(64)
			offset = d.Uint64()
			offsets[m.XID] = offset
		}
		if m.Moved != block {
			continue
		}
		counts[m.Title()]++
		into := read
		if !m.Reply {
			into = written
		}
		copy(into[offsets[m.XID]:], m.Octets[len(m.Octets)-block:])
	}
	if !maps.Equal(counts, map[string]int{"NFSv3 WRITE": 8, "NFSv3 READ": 8}) {
		t.Errorf("blocks: %v", counts)
	}
	if !bytes.Equal(written, read) || bytes.Equal(written, make([]byte, megabyte)) {
		t.Error("the bytes read are not those written")
	}
}

// tshark, an independent dissector, must see the same headers.
func TestTsharkSeesTheSameHeaders(t *testing.T) {
	for name := range nfsCaptures {
		z, err := gzip.NewReader(bytes.NewReader(golden(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, plain, 0o600); err != nil {
			t.Fatal(err)
		}
		var theirs []string
		for _, line := range tshark.LinesRPC(t, file, "-Y", "rpcordma", "-T", "fields",
			"-e", "frame.number", "-e", "rpcordma.xid", "-e", "rpcordma.flow_control", "-e", "rpcordma.msg_type",
			"-e", "rpcordma.rdma_handle", "-e", "rpcordma.rdma_length", "-e", "rpcordma.position") {
			theirs = append(theirs, strings.TrimRight(line, "\t"))
		}
		var ours []string
		analyze(t, golden(t, name), &Analyzer{}, func(e *dissect.Event) error {
			h, ok := e.Upper.(*Transport)
			if !ok {
				return nil
			}
			var handles, lengths, positions []string
			for _, r := range h.Header.Read {
				positions = append(positions, fmt.Sprint(r.Position))
			}
			eachSegment(h.Header, func(s rpcrdma.Segment) {
				handles = append(handles, s.Handle.String())
				lengths = append(lengths, fmt.Sprint(s.Length))
			})
			ours = append(ours, strings.TrimRight(fmt.Sprintf("%d\t0x%08x\t%d\t%d\t%s\t%s\t%s", e.At.Packet, h.Header.XID, h.Header.Credits,
				h.Header.Proc, strings.Join(handles, ","), strings.Join(lengths, ","), strings.Join(positions, ",")), "\t"))
			return nil
		})
		if !slices.Equal(ours, theirs) {
			for i := range min(len(ours), len(theirs)) {
				if ours[i] != theirs[i] {
					t.Errorf("%s: %q, tshark has %q", name, ours[i], theirs[i])
					break
				}
			}
			t.Errorf("%s: %d headers, tshark has %d", name, len(ours), len(theirs))
		}
	}
}

func eachSegment(h *rpcrdma.Header, f func(rpcrdma.Segment)) {
	for _, r := range h.Read {
		f(r.Segment)
	}
	for _, c := range append(slices.Clone(h.Write), h.Reply) {
		for _, s := range c {
			f(s)
		}
	}
}

// Whatever is lost of a capture, nobody is blamed for it.
func TestLossIsNobodysFault(t *testing.T) {
	for name, drops := range map[string][]int{
		"nfs41-crc": {9, 12, 23, 58, 60, 75, 121, 176, 200, 261, 262, 300, 484, 490, 552, 707, 740},
		"nfs3":      {61, 2093, 2120, 2438, 3250, 3425},
	} {
		z, err := gzip.NewReader(bytes.NewReader(golden(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		want := analyze(t, plain, &Analyzer{}).broken
		lost := analyze(t, without(t, plain, func(n int) bool { return n <= 40 }), &Analyzer{})
		for i, b := range lost.broken {
			if !slices.Contains(want, b) {
				t.Errorf("%s without its beginning: %s", name, lost.details[i])
			}
		}
		if name == "nfs41-crc" && lost.summary(t).Replies < 40 {
			t.Errorf("%+v", lost.summary(t))
		}
		for _, drop := range drops {
			got := analyze(t, without(t, plain, func(n int) bool { return n == drop }), &Analyzer{})
			for i, b := range got.broken {
				if !slices.Contains(want, b) {
					t.Errorf("%s without packet %d: %s", name, drop, got.details[i])
				}
			}
		}
	}
}

// without returns a capture without some packets.
func without(t testing.TB, file []byte, drop func(n int) bool) []byte {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := pcapgo.NewWriter(&out)
	if err := w.WriteFileHeader(1<<18, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out.Bytes()
		}
		if err != nil {
			t.Fatal(err)
		}
		if drop(p.Number) {
			continue
		}
		ci := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: p.Length}
		if err := w.WritePacket(ci, p.Data); err != nil {
			t.Fatal(err)
		}
	}
}
