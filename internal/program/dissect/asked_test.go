package dissect

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"urnic/internal/capture"
	"urnic/rdmap"
	"urnic/stag"
)

// What finds Reads and Atomics finds what a search of all, the oldest first,
// would.
func TestRequestsAreFoundAsASearchFindsThem(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var a asked
	var all []*pending
	search := func(fits func(*pending) bool) *pending {
		if i := slices.IndexFunc(all, fits); i >= 0 {
			return all[i]
		}
		return nil
	}
	found := map[bool]int{}
	for range 100_000 {
		tag, to, id := stag.STag(rng.Uint32N(3)), uint64(rng.Uint32N(6)), rng.Uint32N(6)
		if len(all) < 20 && rng.Uint32N(2) == 0 {
			p := &pending{read: rdmap.ReadRequest{SinkSTag: tag, SinkTO: to, Size: rng.Uint32N(4)}}
			if rng.Uint32N(4) == 0 {
				p = &pending{atomic: true, id: id}
			}
			a.add(p)
			all = append(all, p)
			continue
		}
		exact := func(p *pending) bool { return !p.atomic && p.read.SinkSTag == tag && p.read.SinkTO == to }
		got := []*pending{
			a.first(), a.find(askKey{atomic: true, to: uint64(id)}), a.findRead(tag, to, false), a.findRead(tag, to, true), a.findInside(tag, to),
		}
		want := []*pending{
			search(func(*pending) bool { return true }),
			search(func(p *pending) bool { return p.atomic && p.id == id }),
			search(exact),
			search(func(p *pending) bool { return exact(p) || !p.atomic && p.read.Size == 0 }),
			search(func(p *pending) bool {
				return !p.atomic && p.read.SinkSTag == tag && to >= p.read.SinkTO && to < p.read.SinkTO+uint64(p.read.Size)
			}),
		}
		if !slices.Equal(got, want) || a.len() != len(all) {
			t.Fatalf("found %v of %d; want %v of %d", got, a.len(), want, len(all))
		}
		p := got[rng.IntN(len(got))]
		found[p != nil]++
		if p == nil {
			continue
		}
		if !a.remove(p) || a.remove(p) {
			t.Fatal("one that is there is removed once")
		}
		all = slices.DeleteFunc(all, func(q *pending) bool { return q == p })
	}
	for _, p := range all {
		a.remove(p)
	}
	if found[true] < 1000 || found[false] < 1000 || a.len() != 0 || len(a.keys) != 0 || a.empty.Len() != 0 {
		t.Errorf("found %v; %d, %d and %d are left", found, a.len(), len(a.keys), a.empty.Len())
	}
}

// manyReads plays n Reads, then their responses, in order or the last one first.
func manyReads(t testing.TB, n int, reversed bool) []byte {
	sc := newScript(t)
	sc.frame(plainFrame(false, ""))
	sc.frame(plainFrame(true, "")) // which says nothing of IRD and ORD
	for i := range n {
		sc.read(Client, 1, uint64(i), 1)
	}
	for i := range n {
		if reversed {
			i = n - 1 - i
		}
		sc.respond(Server, 1, uint64(i), 1)
	}
	sc.close()
	if err := sc.w.Close(); err != nil {
		t.Fatal(err)
	}
	return sc.file.Bytes()
}

func TestReadsBeyondWhatMPANegotiatesAreNotKept(t *testing.T) {
	for _, tt := range []struct {
		n    int
		note bool
	}{{maxAsked, false}, {maxAsked + 1, true}, {maxAsked + 100, true}} {
		o := analyze(t, manyReads(t, tt.n, false))
		o.want(t)
		if noted := len(o.notes) == 1 && strings.Contains(o.notes[0], "wait for their responses"); noted != tt.note || len(o.notes) > 1 {
			t.Errorf("%d Reads: notes %q", tt.n, o.notes)
		}
	}
}

// BenchmarkManyReads shows that the time for each Read does not depend on how
// many there are, nor on the order of the responses.
func BenchmarkManyReads(b *testing.B) {
	for _, bb := range []struct {
		name     string
		n        int
		reversed bool
	}{{"1000", 1000, false}, {"16000", 16_000, false}, {"1000 reversed", 1000, true}, {"16000 reversed", 16_000, true}} {
		b.Run(bb.name, func(b *testing.B) {
			file := manyReads(b, bb.n, bb.reversed)
			reads := 0
			for b.Loop() {
				r, err := capture.NewReader(bytes.NewReader(file))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Analyze(b.Context(), r, nil); err != nil {
					b.Fatal(err)
				}
				reads += bb.n
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(reads), "ns/Read")
		})
	}
}
