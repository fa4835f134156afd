package dissect

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"urnic/internal/capture"
	"urnic/internal/test/tshark"
	"urnic/mpa"
	"urnic/rdmap"
)

// A golden says what a golden capture holds. Segments, other, cut, crc and
// max_ulpdu were counted by decoders that are not ours.
type golden struct {
	Segments map[string]int `json:"segments"`
	Other    int            `json:"other"` // FPDUs of reserved opcodes, or too short for one
	Cut      int            `json:"cut"`   // FPDUs cut by the end of their stream
	// CRC tells what the CRC fields hold: zero, a good CRC, or something else.
	CRC       map[string]int `json:"crc"`
	MaxULPDU  int            `json:"max_ulpdu"`
	Tshark    map[string]int `json:"tshark"` // where tshark's counts differ from Segments
	Violation []struct {
		Rule, Clause, From string
		Count              int
		Why                string
	} `json:"violations"`
}

func goldens(t testing.TB) map[string]golden {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var all map[string]golden
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

const captures = "testdata/captures"

func TestEveryGoldenCaptureIsDescribed(t *testing.T) {
	all := goldens(t)
	files, err := filepath.Glob(filepath.Join(captures, "*.gz"))
	if err != nil || len(files) != len(all) || len(all) == 0 {
		t.Errorf("%d files, %d descriptions, %v", len(files), len(all), err)
	}
	for _, f := range files {
		if _, ok := all[filepath.Base(f)]; !ok {
			t.Errorf("%s is not described", f)
		}
	}
}

func TestGoldenCaptures(t *testing.T) {
	for name, want := range goldens(t) {
		t.Run(strings.TrimSuffix(name, ".pcap.gz"), func(t *testing.T) {
			r := open(t, strings.TrimSuffix(name, ".pcap.gz"))
			crc, maxULPDU := map[string]int{}, 0
			re := reencoder{t: t}
			result, err := Analyze(t.Context(), r, func(e *Event) error {
				if e.Kind == KindSegment {
					crc[crcField(e.Segment.FPDU)]++
					maxULPDU = max(maxULPDU, len(e.Segment.ULPDU))
				}
				re.event(e)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Connections) == 0 {
				t.Fatal("no iWARP connection")
			}
			checkCounts(t, result, want)
			if !maps.Equal(crc, want.CRC) {
				t.Errorf("CRC fields are %v, want %v", crc, want.CRC)
			}
			if maxULPDU != want.MaxULPDU {
				t.Errorf("the longest ULPDU has %d bytes, want %d", maxULPDU, want.MaxULPDU)
			}
			checkViolations(t, result, want)
			if re.arbitrary != want.CRC["bad"] || re.pads != violationsOf(result, rulePad) {
				t.Errorf("%d FPDUs have an arbitrary CRC field, %d a pad that is not zero", re.arbitrary, re.pads)
			}
		})
	}
}

// crcField says what the CRC field of an FPDU without markers holds.
func crcField(fpdu []byte) string {
	end := len(fpdu) - mpa.CRCLen
	switch field := binary.LittleEndian.Uint32(fpdu[end:]); field {
	case 0:
		return "zero"
	case mpa.UpdateCRC(0, fpdu[:end]):
		return "good"
	}
	return "bad"
}

func checkCounts(t *testing.T, r *Result, want golden) {
	t.Helper()
	var segments Counts
	other, bad, undecoded := 0, 0, uint64(0)
	for _, c := range r.Connections {
		for op, n := range c.Segments {
			segments[op] += n
			if c.Messages[op] > n {
				t.Errorf("connection %d: %d messages in %d segments of %v", c.Number, c.Messages[op], n, rdmap.Opcode(op))
			}
		}
		other += c.Other
		bad += c.BadCRC
		undecoded += c.Undecoded
	}
	for op, n := range segments {
		if name := rdmap.Opcode(op).Name(); n != want.Segments[name] {
			t.Errorf("%d segments of %s, want %d", n, name, want.Segments[name])
		}
	}
	if other != want.Other || bad != 0 {
		t.Errorf("%d other segments, want %d; %d CRCs are bad", other, want.Other, bad)
	}
	cut := violationsOf(r, ruleCutFPDU)
	if cut != want.Cut {
		t.Errorf("%d FPDUs are cut, want %d", cut, want.Cut)
	}
	if (undecoded > 0) != (cut+violationsOf(r, ruleFrame) > 0) {
		t.Errorf("%d bytes are not decoded", undecoded)
	}
}

func violationsOf(r *Result, rule Rule) int {
	n := 0
	for _, c := range r.Connections {
		for i := range c.Violations {
			if c.Violations[i].Rule == rule {
				n++
			}
		}
	}
	return n
}

// checkViolations compares what was found with what is known: each violation in
// the captures is one that the peer committed, and golden.json says why.
func checkViolations(t *testing.T, r *Result, want golden) {
	t.Helper()
	got := map[string]int{}
	for _, c := range r.Connections {
		for i := range c.Violations {
			v := &c.Violations[i]
			got[fmt.Sprintf("%s (%s) by the %v", v.ID, v.Clause, v.From)]++
		}
	}
	known := map[string]int{}
	for _, v := range want.Violation {
		if v.Why == "" {
			t.Errorf("violation %s is not explained", v.Rule)
		}
		known[fmt.Sprintf("%s (%s) by the %s", v.Rule, v.Clause, v.From)] = v.Count
	}
	if !maps.Equal(got, known) {
		t.Errorf("violations:\n%v\nwant\n%v", got, known)
	}
}

// A reencoder puts frames and FPDUs through the codecs again: the bytes must
// come out as they were captured. Two things in an FPDU are not the codec's to
// reproduce: a CRC field while CRCs are off, which may hold anything and which
// our Framer sends as zero; and a pad that is not zero, which a sender must not
// make. Both are counted, so that the test knows how many there are.
type reencoder struct {
	t               *testing.T
	arbitrary, pads int
}

func (re *reencoder) event(e *Event) {
	switch e.Kind {
	case KindFrame:
		b, err := e.Frame.AppendBinary(nil)
		if err != nil || !bytes.Equal(b, e.FrameRaw) {
			re.t.Errorf("%v: %x, %v; captured %x", e.Frame, b, err, e.FrameRaw)
		}
	case KindSegment:
		re.segment(e)
	default:
	}
}

func (re *reencoder) segment(e *Event) {
	s := e.Segment
	framer := mpa.Framer{CRC: e.Conn.MPA.CRC}
	b, err := framer.AppendFPDU(nil, s.ULPDU)
	if err != nil || len(b) != len(s.FPDU) {
		re.t.Errorf("%v: %d bytes, %v; captured %d", s, len(b), err, len(s.FPDU))
		return
	}
	field := len(b) - mpa.CRCLen
	pad := 2 + len(s.ULPDU)
	switch {
	case bytes.Equal(b, s.FPDU):
	case !bytes.Equal(b[:pad], s.FPDU[:pad]):
		re.t.Errorf("%v: encodes as %x, captured %x", s, b, s.FPDU)
	case !bytes.Equal(b[pad:field], s.FPDU[pad:field]):
		re.pads++
	case framer.CRC:
		re.t.Errorf("%v: CRC field %x, captured %x", s, b[field:], s.FPDU[field:])
	default:
		re.arbitrary++
	}
	if !s.Whole {
		return
	}
	if b, err := s.DDP.AppendBinary(nil); err != nil || !bytes.Equal(b, s.ULPDU) {
		re.t.Errorf("%v: %x, %v; captured %x", s, b, err, s.ULPDU)
	}
	re.message(s)
}

// message re-encodes the RDMAP header of a message that has one.
func (re *reencoder) message(s *Segment) {
	payload := s.DDP.Payload
	var b []byte
	var err error
	switch s.Op {
	case rdmap.OpReadRequest:
		var r rdmap.ReadRequest
		if r, err = rdmap.ParseReadRequest(payload); err == nil {
			b, err = r.AppendBinary(nil)
		}
	case rdmap.OpTerminate:
		var r rdmap.Terminate
		if r, err = rdmap.ParseTerminate(payload); err == nil {
			b, err = r.AppendBinary(nil)
		}
	default:
		return
	}
	if err == nil && !bytes.Equal(b, payload) {
		re.t.Errorf("%v: encodes as %x, captured %x", s, b, payload)
	}
}

// tshark, an independent dissector, must see the same messages. It gets all
// captures in one file, as its start takes longer than its work.
func TestTsharkCountsTheSameSegments(t *testing.T) {
	all := goldens(t)
	names := slices.Sorted(maps.Keys(all))
	joined, ends := join(t, names)
	lines := tshark.Lines(t, joined, "-Y", "iwarp_rdma.opcode", "-T", "fields", "-e", "frame.number", "-e", "iwarp_rdma.opcode")
	got := map[string]map[string]int{}
	for _, line := range lines {
		number, ops, _ := strings.Cut(line, "\t")
		frame, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		name := names[sort.SearchInts(ends, frame)]
		if got[name] == nil {
			got[name] = map[string]int{}
		}
		for field := range strings.SplitSeq(ops, ",") {
			op, err := strconv.ParseUint(field, 0, 8)
			if err != nil {
				t.Fatal(err)
			}
			got[name][rdmap.Opcode(op).Name()]++
		}
	}
	for name, want := range all {
		count := maps.Clone(want.Segments)
		maps.Copy(count, want.Tshark)
		if !maps.Equal(got[name], count) {
			t.Errorf("%s: tshark counts %v, want %v", name, got[name], count)
		}
	}
}

// join writes captures one behind the other into a file. ends tells the number
// of the last packet of each.
func join(t *testing.T, names []string) (file string, ends []int) {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	if err := w.WriteFileHeader(1<<18, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, name := range names {
		r := open(t, strings.TrimSuffix(name, ".pcap.gz"))
		for {
			p, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			total++
			ci := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: p.Length}
			if err := w.WritePacket(ci, p.Data); err != nil {
				t.Fatal(err)
			}
		}
		ends = append(ends, total)
	}
	file = filepath.Join(t.TempDir(), "all.pcap")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, ends
}

func BenchmarkAnalyze(b *testing.B) {
	for _, name := range []string{"nfs3.pcap.gz", "ops-write-1MiB.pcap.gz"} {
		file, err := os.ReadFile(filepath.Join(captures, name))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(strings.TrimSuffix(name, ".pcap.gz"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := capture.NewReader(bytes.NewReader(file))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Analyze(b.Context(), r, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
