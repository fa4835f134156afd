package rdpflow

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// What testdata/README.md says of the captures. Its counts were made by another decoder.
var captureCounts = map[string]struct {
	version        uint8
	ports          [2]uint16
	hash           string
	frames         int
	sequenced      bool
	client, server Counts
}{
	v1Sequenced: {
		1,
		[2]uint16{70, 7},
		"45e8a7941051fc7bf89eb3edec329ecf5b130c2bf9767e4930d9bb20b71b5608", 180, true,
		Counts{
			Bytes: 128992, Data: 100000, Numbered: 75, Repeats: 20,
			Segments: map[string]int{"SYN": 1, "data": 94, "ACK": 1, "RST": 1},
			Limits:   &Limits{Seq: 721775291, Outstanding: 32, Size: 1400, Sequenced: true},
		},
		Counts{
			Bytes: 6976, Numbered: 1, EACKs: 1369, MostEACKs: 29,
			Segments: map[string]int{"SYN,ACK": 1, "ACK": 5, "EACK": 77},
			Limits:   &Limits{Seq: 3783021270, Outstanding: 32, Size: 1400, Sequenced: true},
		},
	},
	v2Unsequenced: {
		2,
		[2]uint16{40000, 1200},
		"b6ab151ed19e5d5f1d4b33ddb901868e90b53075facb1a5e9b6aba325d2f6670", 127, false,
		Counts{
			Bytes: 79296, Data: 60360, Numbered: 50, Repeats: 15,
			Segments: map[string]int{"SYN": 1, "data": 58, "ACK": 1, "NUL": 6, "RST": 2},
			Limits:   &Limits{Seq: 1237843070, Outstanding: 32, Size: 1400},
		},
		Counts{
			Bytes: 4164, Numbered: 1, EACKs: 774, MostEACKs: 29,
			Segments: map[string]int{"SYN,ACK": 1, "ACK": 10, "EACK": 48},
			Limits:   &Limits{Seq: 2750691626, Outstanding: 32, Size: 1400},
		},
	},
}

func TestCapturesAreAsTheirTableSays(t *testing.T) {
	for name, want := range captureCounts {
		for _, complete := range []bool{false, true} {
			f := analyzeWith(t, golden(t, name), &Analyzer{Complete: complete})
			f.want(t)
			if len(f.notes) > 0 || f.Verdict() != dissect.VerdictOK || f.Stats.Packets != want.frames {
				t.Errorf("%s: %s, %d packets, notes %q", name, f.Verdict(), f.Stats.Packets, f.notes)
			}
			s := f.summary(t)
			if s.Version != want.version || s.Ports != want.ports || s.State != "closed" || f.Connections[0].Addr != [2]string{"10.9.0.1:40908", "10.9.0.2:10908"} {
				t.Errorf("%s: %+v", name, s)
			}
			if len(f.opens) != 1 || f.opens[0].Sequenced != want.sequenced || len(f.ends) != 1 || f.ends[0].How != "closed" || f.ends[0].By != client {
				t.Errorf("%s: opens %v, ends %v", name, f.opens, f.ends)
			}
			for side, n := range map[dissect.Side]Counts{client: want.client, server: want.server} {
				got := *s.side(side)
				n.Carried, n.Largest = got.Carried, got.Largest // not in the table
				if !maps.Equal(got.Segments, n.Segments) || got.Limits == nil || *got.Limits != *n.Limits {
					t.Errorf("%s, %v: %v, %+v", name, side, got.Segments, got.Limits)
				}
				got.Segments, n.Segments, got.Limits, n.Limits = nil, nil, nil, nil
				if !equalCounts(got, n) {
					t.Errorf("%s, %v:\n%+v\nwant\n%+v", name, side, got, n)
				}
			}
			if got := s.Client.Carried + s.Server.Carried; got != want.frames {
				t.Errorf("%s: %d segments", name, got)
			}
		}
	}
}

func equalCounts(a, b Counts) bool {
	return a.Carried == b.Carried && a.Bytes == b.Bytes && a.Data == b.Data && a.Numbered == b.Numbered && a.Repeats == b.Repeats &&
		a.EACKs == b.EACKs && a.MostEACKs == b.MostEACKs && a.Strays == b.Strays && a.Largest == b.Largest
}

// The files that went over the connections, put together from the segments, are whole.
func TestFilesInCapturesAreWhole(t *testing.T) {
	for name, want := range captureCounts {
		parts := map[uint32][]byte{}
		analyze(t, golden(t, name), func(e *dissect.Event) error {
			if s, ok := e.Upper.(*Segment); ok && s.Kind() == KindData && e.From == client {
				parts[s.Header.Seq] = bytes.Clone(s.Data)
			}
			return nil
		})
		var file []byte
		for _, seq := range slices.Sorted(maps.Keys(parts)) {
			part := parts[seq]
			if want.sequenced {
				file = append(file, part...)
				continue
			}
			offset := int(binary.BigEndian.Uint64(part))
			if part = part[8:]; offset+len(part) > len(file) {
				file = append(file, make([]byte, offset+len(part)-len(file))...)
			}
			copy(file[offset:], part)
		}
		if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != want.hash {
			t.Errorf("%s: %d bytes with the hash %x", name, len(file), sum)
		}
	}
}

// Each segment of the captures encodes to the same bytes again.
func TestSegmentsInCapturesEncodeTheSame(t *testing.T) {
	for name, want := range captureCounts {
		n := 0
		analyze(t, golden(t, name), func(e *dissect.Event) error {
			if s, ok := e.Upper.(*Segment); ok {
				n++
				if b := s.Header.AppendTo(nil, s.Data, nil); !bytes.Equal(b, s.Raw) {
					t.Errorf("%s, packet %d:\n%x\nencodes as\n%x", name, e.At.Packet, s.Raw, b)
				}
				var h wire.Header
				if _, err := h.Parse(s.Raw, nil); err != nil {
					t.Errorf("%s, packet %d: %v", name, e.At.Packet, err)
				}
			}
			return nil
		})
		if n != want.frames {
			t.Errorf("%s: %d segments", name, n)
		}
	}
}
