package crc32c

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// reference is a table of hash/crc32 that it does not recognize as CRC32c's, so
// that it computes one octet after the other.
var reference = func() *crc32.Table {
	t := *crc32.MakeTable(crc32.Castagnoli)
	return &t
}()

// inEachTier runs a test with each way to compute.
func inEachTier(t *testing.T, f func(t *testing.T)) {
	for _, tr := range tiers() {
		t.Run(tr.name, func(t *testing.T) {
			tr.use(t)
			f(t)
		})
	}
}

// random returns n octets that are the same in each run.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{'c', 'r', 'c'}).Read(b)
	return b
}

// sequence returns 32 octets that begin with first and differ by step.
func sequence(first, step int) []byte {
	b := make([]byte, 32)
	for i := range b {
		b[i] = byte(first + i*step)
	}
	return b
}

func TestFiguresOfRFC3720(t *testing.T) {
	read, err := hex.DecodeString("01c00000000000000000000000000000" +
		"14000000000004000000001400000018" + "28000000000000000200000000000000")
	if err != nil {
		t.Fatal(err)
	}
	inEachTier(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			p    []byte
			want string // as the octets go on the wire
		}{
			{"nothing", nil, "00000000"}, // ours; the others are of RFC 3720 §B.4
			{"zeros", make([]byte, 32), "aa36918a"},
			{"ones", bytes.Repeat([]byte{0xff}, 32), "43aba862"},
			{"incrementing", sequence(0, 1), "4e79dd46"},
			{"decrementing", sequence(31, -1), "5cdb3f11"},
			{"a Read command", read, "563a96d9"},
		} {
			got := binary.LittleEndian.AppendUint32(nil, Update(0, c.p))
			if hex.EncodeToString(got) != c.want {
				t.Errorf("%s: %x, not %s", c.name, got, c.want)
			}
		}
	})
}

func TestEachLengthAtEachAlignment(t *testing.T) {
	const most, alignments = 4096, 64
	b := random(most + alignments)
	for a := range alignments {
		crc := uint32(a) * 0x9e3779b1
		want := make([]uint32, most+1)
		want[0] = crc
		for n := range most { // the portable way, one octet more each time
			want[n+1] = crc32.Update(want[n], reference, b[a+n:a+n+1])
		}
		for _, tr := range tiers() {
			tr.use(t)
			for n, w := range want {
				if got := Update(crc, b[a:a+n]); got != w {
					t.Fatalf("%s: %d octets at %d: %08x, not %08x", tr.name, n, a, got, w)
				}
			}
		}
	}
}

func TestLongMessages(t *testing.T) {
	b := random(1 << 20)
	inEachTier(t, func(t *testing.T) {
		for _, n := range []int{4097, 9000, 65535, 65536, 1<<20 - 1, 1 << 20} {
			if got, want := Update(1, b[:n]), crc32.Update(1, reference, b[:n]); got != want {
				t.Errorf("%d octets: %08x, not %08x", n, got, want)
			}
		}
	})
}

func TestSumOfPartsIsSumOfTheWhole(t *testing.T) {
	b := random(3000)
	inEachTier(t, func(t *testing.T) {
		want := Update(0, b)
		for i := range b {
			if got := Update(Update(0, b[:i]), b[i:]); got != want {
				t.Errorf("in two parts, the first of %d octets: %08x, not %08x", i, got, want)
			}
		}
	})
}

func FuzzUpdate(f *testing.F) {
	b := random(1500)
	for _, n := range []int{0, 1, 7, 8, 63, 71, 72, 255, 256, 511, 960, 1500} {
		f.Add(uint32(n), b[:n], n/3)
	}
	f.Fuzz(func(t *testing.T, crc uint32, p []byte, cut int) {
		cut = min(max(cut, 0), len(p))
		want := crc32.Update(crc, reference, p)
		for _, tr := range tiers() {
			tr.use(t)
			if got := Update(crc, p); got != want {
				t.Errorf("%s: %08x, not %08x", tr.name, got, want)
			}
			dst := make([]byte, len(p)-cut)
			if got := Copy(dst, p[cut:], Update(crc, p[:cut])); got != want || !bytes.Equal(dst, p[cut:]) {
				t.Errorf("%s: the first %d octets, and the others copied: %08x, not %08x", tr.name, cut, got, want)
			}
		}
	})
}
