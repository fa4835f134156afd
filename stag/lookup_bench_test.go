package stag

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"urnic/pd"
)

// lookups is a table with many regions of 4096 bytes, and their STags in a
// random order.
type lookups struct {
	Table
	domain *pd.Domain
	tags   []STag
}

func newLookups(b *testing.B, regions int) *lookups {
	b.Helper()
	d, err := pd.NewManager(pd.Limits{}, pd.Limits{}).NewDomain()
	if err != nil {
		b.Fatal(err)
	}
	l := &lookups{domain: d}
	mem := make([]byte, 4096)
	for range regions {
		e, err := l.Register(d, Memory{Mem: mem, Access: LocalWrite | RemoteRead | RemoteWrite})
		if err != nil {
			b.Fatal(err)
		}
		l.tags = append(l.tags, e.STag())
	}
	rng := rand.New(rand.NewPCG(5041, 8))
	rng.Shuffle(regions, func(i, j int) { l.tags[i], l.tags[j] = l.tags[j], l.tags[i] })
	return l
}

// BenchmarkLookup looks a segment's STag up, with all checks, each time another
// one.
func BenchmarkLookup(b *testing.B) {
	for _, regions := range []int{1, 1000, 100_000} {
		l := newLookups(b, regions)
		by := Scope{Domain: l.domain}
		b.Run(fmt.Sprintf("Acquire/regions=%d", regions), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				pin, err := l.Acquire(l.tags[i], by, RemoteWrite, 1024, 1408)
				if err != nil {
					b.Fatal(err)
				}
				pin.Release()
				if i++; i == regions {
					i = 0
				}
			}
		})
		b.Run(fmt.Sprintf("Check/regions=%d", regions), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := l.Check(l.tags[i], by, RemoteWrite, 1024, 1408); err != nil {
					b.Fatal(err)
				}
				if i++; i == regions {
					i = 0
				}
			}
		})
	}
}

// BenchmarkLookupInParallel has all processors look the same STag up, as many
// streams do that write to one region.
func BenchmarkLookupInParallel(b *testing.B) {
	l := newLookups(b, 1)
	by := Scope{Domain: l.domain}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			pin, err := l.Acquire(l.tags[0], by, RemoteWrite, 1024, 1408)
			if err != nil {
				b.Error(err)
				return
			}
			pin.Release()
		}
	})
}

// BenchmarkRefused looks up what must not be opened: each one makes an error.
func BenchmarkRefused(b *testing.B) {
	l := newLookups(b, 1000)
	by, tag := Scope{Domain: l.domain}, l.tags[0]
	for _, tt := range []struct {
		name  string
		tag   STag
		need  Access
		to, n uint64
	}{
		{"nobody's STag", Make(0xFFFFFE, 1), RemoteWrite, 0, 8},
		{"wrong key", tag.WithKey(tag.Key() + 1), RemoteWrite, 0, 8},
		{"no right", tag, RemoteAtomic, 0, 8},
		{"out of bounds", tag, RemoteWrite, 4090, 8},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if pin, err := l.Acquire(tt.tag, by, tt.need, tt.to, tt.n); err == nil {
					pin.Release()
					b.Fatal("it was opened")
				}
			}
		})
	}
}

// BenchmarkRegister makes a region and gives it up, in a table of a thousand.
func BenchmarkRegister(b *testing.B) {
	l := newLookups(b, 1000)
	m := Memory{Mem: make([]byte, 4096), Access: LocalWrite | RemoteRead | RemoteWrite}
	b.ReportAllocs()
	for b.Loop() {
		e, err := l.Register(l.domain, m)
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Deregister(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFastRegister opens a region with a new key, and invalidates it.
func BenchmarkFastRegister(b *testing.B) {
	l := newLookups(b, 1000)
	m := Memory{Mem: make([]byte, 4096), Access: LocalWrite | RemoteRead | RemoteWrite}
	e, err := l.Allocate(l.domain, 4096)
	if err != nil {
		b.Fatal(err)
	}
	by := Scope{Domain: l.domain}
	b.ReportAllocs()
	for b.Loop() {
		if err := e.FastRegister(m, e.STag().Key()+1); err != nil {
			b.Fatal(err)
		}
		if err := l.Invalidate(e.STag(), by); err != nil {
			b.Fatal(err)
		}
	}
}
