package rdpflow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/ulp/rdp/wire"
)

// worsen returns a capture that lacks some packets, and has others out of order: those that a
// capture of several queues may have so.
func worsen(t *testing.T, file []byte, rng *rand.Rand, loss, swap float64) []byte {
	t.Helper()
	all := slices.DeleteFunc(packetsOf(t, file), func(capture.Packet) bool { return rng.Float64() < loss })
	for i := range len(all) - 1 {
		if rng.Float64() < swap {
			all[i], all[i+1] = all[i+1], all[i]
		}
	}
	return fileOf(t, all)
}

// Nobody is blamed for what a bad capture of good traffic looks like.
func TestBadCapturesBlameNobody(t *testing.T) {
	files := map[string][]byte{"exchange": exchange(t)}
	for name := range captureCounts {
		files[name] = golden(t, name)
	}
	for name, file := range files {
		for seed := range uint64(120) {
			rng := rand.New(rand.NewPCG(seed, 1))
			loss, swap := []float64{0.01, 0.1, 0.5, 0}[seed%4], []float64{0, 0.1, 0.5}[seed%3]
			f := analyze(t, worsen(t, file, rng, loss, swap))
			if len(f.broken) > 0 {
				t.Errorf("%s, seed %d, loss %v, out of order %v:\n%s", name, seed, loss, swap, strings.Join(f.details, "\n"))
			}
		}
	}
}

// exchange returns a capture of two connections of data both ways that keep the window full, one
// after another, each with losses behind the place of the capture.
func exchange(t *testing.T) []byte {
	p := newPlayer(t)
	p.version = 1
	rng := rand.New(rand.NewPCG(7, 7))
	for round := range uint32(2) {
		p.shift = round * 5000
		p.open()
		// What each side has sent is lost for the other one at times; then it is sent again.
		type side struct {
			next, cur uint32
			held      []uint32
		}
		sides := [2]side{{next: clientISS + 1, cur: serverISS}, {next: serverISS + 1, cur: clientISS}}
		most := [2]uint32{4, 8} // what the other side allows
		for range 300 {
			from := client
			if rng.IntN(2) == 0 {
				from = server
			}
			s, o := &sides[from], &sides[1-from]
			arrive := func(n uint32) {
				if n > o.cur && !slices.Contains(o.held, n) {
					o.held = append(o.held, n)
				}
				for i := slices.Index(o.held, o.cur+1); i >= 0; i = slices.Index(o.held, o.cur+1) {
					o.cur++
					o.held = slices.Delete(o.held, i, i+1)
				}
			}
			number := s.next
			if out := s.next - 1 - o.cur; out-uint32(len(o.held)) >= most[from] || out >= 2*most[from] {
				number = o.cur + 1 // again
				p.wait(30 * time.Millisecond)
			} else {
				s.next++
			}
			p.data(from, number, s.cur, fmt.Sprint(number))
			if rng.IntN(5) > 0 {
				arrive(number)
			}
			h := wire.Header{Flags: wire.ACK, Seq: o.next, Ack: o.cur}
			if len(o.held) > 0 {
				h.Flags |= wire.EACK
				h.EACKs = slices.Clone(o.held)
			}
			p.segment(1-from, h, "") // all acknowledgements arrive
		}
		p.rst(client, sides[client].next)
	}
	file := p.recording()
	for _, complete := range []bool{false, true} {
		f := analyzeWith(t, file, &Analyzer{Complete: complete})
		f.want(t)
		if len(f.Connections) != 2 || len(f.notes) > 0 || f.ends[0].Client.Repeats == 0 {
			t.Fatalf("%d connections, notes %q, %+v", len(f.Connections), f.notes, f.ends)
		}
	}
	return file
}
