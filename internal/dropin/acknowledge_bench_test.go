//go:build linux

package dropin

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// BenchmarkAcknowledgedWrites compares Writes that complete when the peer has acknowledged
// them with Writes that complete when TCP has taken them: by turns, with the same window, as
// ib_write_bw does. "ratio" is the median of the rates' ratios of all rounds.
func BenchmarkAcknowledgedWrites(b *testing.B) {
	for _, size := range []int{8, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var streams [2]*writer
			for i, transport := range []string{"iwarp", "ethernet"} {
				streams[i] = newWriter(newLab(b, "URNIC_TRANSPORT="+transport), size)
			}
			per := max(256, 256<<20/max(size, 64<<10))
			var ratios []float64
			var spent [2]time.Duration
			for b.Loop() {
				first := len(ratios) % 2
				var took [2]time.Duration
				for _, i := range []int{first, 1 - first} {
					began := time.Now()
					streams[i].write(per)
					took[i] = time.Since(began)
					spent[i] += took[i]
				}
				ratios = append(ratios, float64(took[0])/float64(took[1]))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(float64(size*per*len(ratios))/spent[1].Seconds()/1e9, "GB/s")
		})
	}
}

// A writer is a program that keeps a window of Writes under way.
type writer struct {
	a, b *end
	wr   *SendWR
}

func newWriter(l *lab, size int) *writer {
	var w writer
	w.a, w.b = l.pair(func(e *end) {
		e.mem = make([]byte, max(size, 64))
		e.mr = e.register(e.mem, allAccess)
		e.init.MaxSendWR = 128
	})
	w.wr = send(wrWrite, 1, w.a.sge(0, size)).toward(w.b, 0)
	return &w
}

// write carries out n Writes.
func (w *writer) write(n int) {
	l := w.a.lab
	var wcs [16]WC
	for posted, over := 0, 0; over < n; {
		for posted < n && posted-over < 128 {
			if bad := l.QPPostSend(w.a.qp, w.wr, nil); bad != ok {
				l.Fatal(bad)
			}
			posted++
		}
		got := l.CQPoll(w.a.cq, int32(len(wcs)), &wcs[0])
		for i := range got {
			if wcs[i].Status != wcSuccess {
				l.Fatalf("%+v", wcs[i])
			}
		}
		if over += int(got); got == 0 {
			runtime.Gosched()
		}
	}
}
