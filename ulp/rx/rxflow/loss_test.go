package rxflow

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"

	"urnic/internal/capture"
)

// worsen returns a capture that lacks some packets, and has others out of order: those that a
// capture of several queues may have so.
func worsen(t *testing.T, file []byte, rng *rand.Rand, loss, swap float64) []byte {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	type packet struct {
		ci   gopacket.CaptureInfo
		data []byte
	}
	var all []packet
	var out bytes.Buffer
	w := pcapgo.NewWriter(&out)
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Number == 1 {
			if err := w.WriteFileHeader(1<<18, p.Link); err != nil {
				t.Fatal(err)
			}
		}
		if rng.Float64() >= loss {
			all = append(all, packet{gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: p.Length}, bytes.Clone(p.Data)})
		}
	}
	for i := range len(all) - 1 {
		if rng.Float64() < swap {
			all[i], all[i+1] = all[i+1], all[i]
		}
	}
	for _, p := range all {
		if err := w.WritePacket(p.ci, p.data); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// Nobody is blamed for what a bad capture of good traffic looks like.
func TestBadCapturesBlameNobody(t *testing.T) {
	for name := range rows(t) {
		if strings.HasPrefix(name, "probe-") {
			continue
		}
		file := golden(t, name)
		for seed := range uint64(24) {
			rng := rand.New(rand.NewPCG(seed, 1))
			loss, swap := []float64{0.01, 0.1, 0.5, 0}[seed%4], []float64{0, 0.1, 0.5}[seed%3]
			f := analyze(t, worsen(t, file, rng, loss, swap))
			if len(f.broken) > 0 {
				t.Errorf("%s, seed %d, loss %v, out of order %v:\n%s", name, seed, loss, swap, strings.Join(f.details, "\n"))
			}
		}
	}
}
