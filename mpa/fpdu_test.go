package mpa

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sendULPDU is the ULPDU of RFC 5044 Figures 5 and 6: a DDP Send segment with
// 24 zero bytes.
func sendULPDU(msn byte) []byte {
	b := make([]byte, 42)
	b[0], b[1] = 0x41, 0x43 // DDP L=1 DV=1 | RDMAP RV=1 Send
	b[13] = msn
	return b
}

func TestCRC32cCheckValue(t *testing.T) {
	if got := UpdateCRC(0, []byte("123456789")); got != 0xE3069283 {
		t.Errorf("CRC32c of 123456789 is %#x; want 0xE3069283", got)
	}
	whole := UpdateCRC(0, []byte("123456789"))
	if got := UpdateCRC(UpdateCRC(0, []byte("1234")), []byte("56789")); got != whole {
		t.Errorf("in two pieces %#x; in one %#x", got, whole)
	}
}

func TestFPDUOfRFC5044Figure5(t *testing.T) {
	want := unhex(t, "00000000"+ // marker, FPDUPTR 0
		"002a"+ // ULPDU_Length 42
		"4143000000000000000000000001"+"00000000"+
		"000000000000000000000000000000000000000000000000"+
		"52239983") // CRC
	f := Framer{CRC: true, Markers: true}
	if n := f.FPDULen(42); n != len(want) {
		t.Errorf("FPDULen says %d octets; want %d", n, len(want))
	}
	got, err := f.AppendFPDU(nil, sendULPDU(1))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got  %x, %v\nwant %x", got, err, want)
	}
	d := Deframer{CRC: true, Markers: true}
	ulpdu, n, err := d.Next(got)
	if err != nil || n != len(want) || !bytes.Equal(ulpdu, sendULPDU(1)) {
		t.Fatalf("deframed %x, %d, %v", ulpdu, n, err)
	}
}

func TestFPDUOfRFC5044Figure6(t *testing.T) {
	f := Framer{CRC: true, Markers: true}
	first, _ := f.AppendFPDU(nil, make([]byte, 492-MarkerLen-lengthLen-CRCLen)) // "a length of 492 octets", marker included
	if len(first) != 0x1EC {
		t.Fatalf("the first FPDU has %d octets; want %d", len(first), 0x1EC)
	}
	want := unhex(t, "002a"+"4143000000000000000000000002"+"00000000"+
		"00000014"+ // marker: FPDUPTR 0x14
		"000000000000000000000000000000000000000000000000"+
		"84925898")
	got, err := f.AppendFPDU(nil, sendULPDU(2))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got  %x, %v\nwant %x", got, err, want)
	}
}

func TestFPDUWithoutMarkers(t *testing.T) {
	f := Framer{CRC: true}
	got, _ := f.AppendFPDU(nil, sendULPDU(1))
	if crc := got[len(got)-4:]; !bytes.Equal(crc, []byte{0xB7, 0x24, 0x3E, 0xC3}) {
		t.Errorf("CRC %x; want b7243ec3", crc)
	}
}

func TestPadIsZeroAndAlignsToFour(t *testing.T) {
	f := Framer{}
	for n := range 9 {
		b, _ := f.AppendFPDU(nil, bytes.Repeat([]byte{0xEE}, n))
		if len(b)%4 != 0 || len(b) > 2+n+3+4 || len(b) != f.FPDULen(n) {
			t.Errorf("a ULPDU of %d octets makes an FPDU of %d", n, len(b))
		}
		for _, c := range b[2+n:] { // PAD, and the CRC field while CRCs are off
			if c != 0 {
				t.Errorf("a ULPDU of %d octets: pad and CRC are %x", n, b[2+n:])
			}
		}
	}
}

func TestReceiverIgnoresPadValue(t *testing.T) {
	var f Framer
	b, _ := f.AppendFPDU(nil, []byte{1}) // one pad byte
	b[3] = 0xAA
	var d Deframer
	if u, n, err := d.Next(b); err != nil || n != len(b) || len(u) != 1 {
		t.Errorf("an FPDU with a non-zero pad: %x, %d, %v", u, n, err)
	}
}

func TestMarkersStandEvery512Octets(t *testing.T) {
	f := Framer{CRC: true, Markers: true}
	var stream []byte
	var starts []int // of each FPDU's ULPDU_Length
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		at := len(stream)
		if at%MarkerInterval == 0 {
			at += MarkerLen
		}
		starts = append(starts, at)
		stream, _ = f.AppendFPDU(stream, make([]byte, 1+rng.IntN(3000)))
	}
	for at := 0; at < len(stream); at += MarkerInterval {
		// The FPDU that contains the marker: the last one begun, or the next
		// one if the marker stands between two.
		start := at
		for _, s := range starts {
			if s <= at {
				start = s
			}
		}
		want := at - start
		if slices.Contains(starts, at+MarkerLen) {
			want = 0
		}
		m := stream[at : at+MarkerLen]
		if m[0] != 0 || m[1] != 0 || int(m[2])<<8|int(m[3]) != want || want%4 != 0 {
			t.Fatalf("marker at %d is %x; want FPDUPTR %#x", at, m, want)
		}
	}
}

// fpduStream returns the ULPDUs and the stream that a Framer makes of them.
func fpduStream(seed uint64, crc, markers bool, count, maxLen int) (ulpdus [][]byte, stream []byte) {
	rng := rand.New(rand.NewPCG(seed, 0))
	f := Framer{CRC: crc, Markers: markers}
	for range count {
		u := make([]byte, 1+rng.IntN(maxLen))
		for i := range u {
			u[i] = byte(rng.Uint32())
		}
		ulpdus = append(ulpdus, u)
		cut := rng.IntN(len(u) + 1)
		want := f.FPDULen(len(u))
		before := len(stream)
		stream, _ = f.AppendFPDU(stream, u[:cut], u[cut:])
		if got := len(stream) - before; got != want {
			panic(fmt.Sprintf("FPDULen said %d, the FPDU has %d", want, got))
		}
	}
	return ulpdus, stream
}

func TestFramingRoundTrip(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, markers := range []bool{false, true} {
			for _, maxLen := range []int{20, 600, 5000, MaxULPDU} {
				t.Run(fmt.Sprintf("crc=%v markers=%v max=%d", crc, markers, maxLen), func(t *testing.T) {
					ulpdus, stream := fpduStream(uint64(maxLen), crc, markers, 60, maxLen)
					d := Deframer{CRC: crc, Markers: markers}
					for i, want := range ulpdus {
						total := d.FPDULen(stream)
						for _, short := range []int{0, 1, 3, total - 1} {
							if _, n, err := d.Next(stream[:short]); n != 0 || err != nil {
								t.Fatalf("FPDU %d cut to %d octets: took %d, %v", i, short, n, err)
							}
						}
						got, n, err := d.Next(stream)
						if err != nil || n != total || !bytes.Equal(got, want) {
							t.Fatalf("FPDU %d: %d octets of ULPDU, want %d; took %d, %v", i, len(got), len(want), n, err)
						}
						stream = stream[n:]
					}
					if len(stream) != 0 {
						t.Errorf("%d octets left over", len(stream))
					}
				})
			}
		}
	}
}

func TestCorruptionOfAnyOctetIsACRCError(t *testing.T) {
	for _, markers := range []bool{false, true} {
		// With markers: a leading one alone, one inside, and one between PAD and CRC.
		for _, ulpdu := range [][]byte{sendULPDU(1), make([]byte, 600), make([]byte, MarkerInterval-MarkerLen-lengthLen)} {
			f := Framer{CRC: true, Markers: markers}
			good, _ := f.AppendFPDU(nil, ulpdu)
			for i := range good {
				if lead := (&Deframer{Markers: markers}).lead(); i >= lead && i < lead+lengthLen {
					continue // another length: the FPDU ends elsewhere
				}
				bad := slices.Clone(good)
				bad[i] ^= 0x10
				d := Deframer{CRC: true, Markers: markers}
				var e *Error
				if _, _, err := d.Next(bad); !errors.As(err, &e) || e.Code != CodeCRC {
					t.Errorf("markers=%v, %d octets of ULPDU, octet %d flipped: %v; want code 2", markers, len(ulpdu), i, err)
				}
			}
		}
	}
}

func TestCRCFieldIsNotCheckedWhenOff(t *testing.T) {
	var f Framer
	b, _ := f.AppendFPDU(nil, []byte("abc"))
	copy(b[len(b)-4:], "xxxx")
	var d Deframer
	if u, _, err := d.Next(b); err != nil || string(u) != "abc" {
		t.Errorf("got %q, %v", u, err)
	}
}

func TestMarkerThatDisagreesIsAMarkerError(t *testing.T) {
	f := Framer{Markers: true}
	stream, _ := f.AppendFPDU(nil, make([]byte, 1200))
	for _, at := range []int{0, 512, 1024} {
		bad := slices.Clone(stream)
		bad[at+3] ^= 4
		d := Deframer{Markers: true}
		var e *Error
		if _, _, err := d.Next(bad); !errors.As(err, &e) || e.Code != CodeMarker {
			t.Errorf("marker at %d changed: %v; want code 3", at, err)
		}
		bad = slices.Clone(stream)
		bad[at] = 0xFF   // reserved bytes are not checked,
		bad[at+3] ^= 0x3 // nor the two low bits of FPDUPTR
		d = Deframer{Markers: true}
		if _, n, err := d.Next(bad); err != nil || n == 0 {
			t.Errorf("marker at %d with reserved bits: %d, %v", at, n, err)
		}
	}
}

func TestMULPDU(t *testing.T) {
	for _, tt := range []struct{ emss, off, on int }{
		{536, 530, 522},
		{1448, 1442, 1430},
		{1460, 1454, 1442},
		{1024, 1018, 1010}, // two markers, and not one byte of a third interval
		{1535, 1526, 1514},
		{8960, 8954, 8882},
		{1449, 1442, 1430},
		{100, 128, 128},       // never below 128
		{65483, 64768, 64768}, // never above 64768
		{math.MaxInt, 64768, 64768},
		{0, 128, 128},
		{math.MinInt, 128, 128},
	} {
		if got := MULPDU(tt.emss, false); got != tt.off {
			t.Errorf("EMSS %d without markers: %d; want %d", tt.emss, got, tt.off)
		}
		if got := MULPDU(tt.emss, true); got != tt.on {
			t.Errorf("EMSS %d with markers: %d; want %d", tt.emss, got, tt.on)
		}
	}
}

func TestFPDUOfMULPDUFitsItsSegment(t *testing.T) {
	for emss := 140; emss < 9100; emss++ {
		for _, markers := range []bool{false, true} {
			for clock := 0; clock < MarkerInterval; clock += 4 {
				f := Framer{Markers: markers, clock: markerClock(clock)}
				if n := f.FPDULen(MULPDU(emss, markers)); n > emss {
					t.Fatalf("EMSS %d, markers %v, %d octets after a marker: FPDU of %d octets", emss, markers, clock, n)
				}
				if !markers {
					break
				}
			}
		}
	}
}

func TestTooLongULPDUIsRefused(t *testing.T) {
	var f Framer
	if b, err := f.AppendFPDU(nil, make([]byte, MaxULPDU), []byte{1}); err == nil || len(b) != 0 {
		t.Errorf("an FPDU of %d octets was made of 65536", len(b))
	}
}

func FuzzDeframer(f *testing.F) {
	for _, crc := range []bool{false, true} {
		for _, markers := range []bool{false, true} {
			_, stream := fpduStream(3, crc, markers, 4, 700)
			f.Add(stream, crc, markers)
		}
	}
	f.Add([]byte{0, 0}, false, false)
	f.Fuzz(func(t *testing.T, b []byte, crc, markers bool) {
		d := Deframer{CRC: crc, Markers: markers}
		back := Framer{CRC: crc, Markers: markers}
		for range 64 {
			before := slices.Clone(b)
			u, n, err := d.Next(b)
			if err != nil || n == 0 {
				return
			}
			if n > len(b) || len(u) > n {
				t.Fatalf("took %d of %d octets for a ULPDU of %d", n, len(b), len(u))
			}
			again, err := back.AppendFPDU(nil, u)
			if err != nil || len(again) != n {
				t.Fatalf("an FPDU of %d octets came back as %d, %v", n, len(again), err)
			}
			if crc && !markers && u != nil && padLen(len(u)) == 0 && !bytes.Equal(again, before[:n]) {
				t.Fatalf("%x came back as %x", before[:n], again)
			}
			b = b[n:]
		}
	})
}

func TestFPDUIsTheSameHoweverTheULPDUIsCut(t *testing.T) {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	rng := rand.New(rand.NewPCG(4, 4))
	before := []byte("octets before it")
	for _, n := range []int{0, 1, 100, sumWhileCopying - 1, sumWhileCopying, sumWhileCopying + 1, sumWhileCopying + 2, 9001, MaxULPDU} {
		u := make([]byte, n)
		for i := range u {
			u[i] = byte(rng.Uint32())
		}
		for _, on := range []bool{true, false} {
			want := append(binary.BigEndian.AppendUint16(nil, uint16(n)), u...)
			want = append(want, make([]byte, padLen(n))...)
			sum := uint32(0)
			if on {
				sum = crc32.Checksum(want, castagnoli)
			}
			want = binary.LittleEndian.AppendUint32(want, sum)
			for range 20 {
				i := rng.IntN(n + 1)
				j := i + rng.IntN(n-i+1)
				f := Framer{CRC: on}
				got, err := f.AppendFPDU(slices.Clone(before), u[:i], u[i:j], u[j:])
				if err != nil || !bytes.Equal(got, append(slices.Clone(before), want...)) {
					t.Fatalf("%d octets, CRC=%t, cut at %d and %d: another FPDU, %v", n, on, i, j, err)
				}
			}
		}
	}
}

func BenchmarkAppendFPDU(b *testing.B) {
	for _, n := range []int{64, 1442, 64768} {
		for _, markers := range []bool{false, true} {
			b.Run(fmt.Sprintf("ulpdu=%d/markers=%v", n, markers), func(b *testing.B) {
				f := Framer{CRC: true, Markers: markers}
				head, payload := make([]byte, 14), make([]byte, n-14)
				buf := make([]byte, 0, MaxFPDULen)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					buf, _ = f.AppendFPDU(buf[:0], head, payload)
				}
			})
		}
	}
}

func BenchmarkDeframer(b *testing.B) {
	for _, n := range []int{64, 1442, 64768} {
		for _, markers := range []bool{false, true} {
			b.Run(fmt.Sprintf("ulpdu=%d/markers=%v", n, markers), func(b *testing.B) {
				f := Framer{CRC: true, Markers: markers}
				fpdu, _ := f.AppendFPDU(nil, make([]byte, n))
				work := make([]byte, len(fpdu))
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					copy(work, fpdu) // closing the marker gaps changes it
					d := Deframer{CRC: true, Markers: markers}
					if _, m, err := d.Next(work); m != len(fpdu) || err != nil {
						b.Fatal(m, err)
					}
				}
			})
		}
	}
}

func TestDeframerGoesOnBehindWhatItSkipped(t *testing.T) {
	for _, markers := range []bool{false, true} {
		ulpdus, stream := fpduStream(11, true, markers, 40, 1500)
		whole, skipping := Deframer{CRC: true, Markers: markers}, Deframer{CRC: true, Markers: markers}
		b := stream
		for i := range ulpdus {
			n := whole.FPDULen(b)
			if i%3 == 1 {
				skipping.Skip(n)
			} else if got, _, err := skipping.Next(bytes.Clone(b)); err != nil || !bytes.Equal(got, ulpdus[i]) {
				t.Fatalf("markers=%t: FPDU %d: %v", markers, i, err)
			}
			if _, _, err := whole.Next(b); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
	}
}
