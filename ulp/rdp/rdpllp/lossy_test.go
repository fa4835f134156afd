package rdpllp

import (
	"flag"
	"slices"
	"testing"
	"time"

	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/congestion"
)

var writes = flag.Int("writes", 30, "how many Writes of 1 MiB TestWritesThroughLosses measures of each kind")

// lossyKinds are the controls that TestWritesThroughLosses compares. The window is above what the controls come to.
var lossyKinds = []struct {
	name    string
	control func() congestion.Controller
}{
	{"none", nil},
	{"reno", func() congestion.Controller { return congestion.NewReno(congestion.Config{}) }},
	{"cubic", func() congestion.Controller { return congestion.NewCUBIC(congestion.Config{}) }},
}

const (
	lossyWindow  = 64
	lossySegment = 1492 // what a packet of 1500 bytes has room for over UDP, counted with 20 bytes for IP
)

// Writes of 1 MiB, 16 of them in flight, with 1 % loss and 20 ms of delay in each direction, on a fake clock: the time from posting
// one to its completion at the receiver. Beside it stands the same with segments placed in order, the nearest to TCP that runs on a
// fake clock: retransmission and congestion control are the same. Completion is in order either way, so placement out of order
// gains nothing here; it must not cost anything.
func TestWritesThroughLosses(t *testing.T) {
	faults := rdp.Faults{Loss: 0.01, Delay: 20 * time.Millisecond}
	for _, k := range lossyKinds {
		t.Run(k.name, func(t *testing.T) {
			var placed, ordered []time.Duration
			for _, of := range []struct {
				took    *[]time.Duration
				ordered bool
			}{{&placed, false}, {&ordered, true}} {
				layer := on(rdp.NewNetwork(1, faults), Config{Window: lossyWindow, MaxSegment: lossySegment, Congestion: k.control})
				layer.ordered = of.ordered
				rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) { *of.took = timeWrites(t, p) }, rnictest.Options{LowerLayer: layer})
			}
			show(t, "placed as they come", placed)
			show(t, "placed in order", ordered)
			// Which segments are lost is a matter of the scheduler, so that figures vary by a quarter.
			if a, b := at(placed, 0.99), at(ordered, 0.99); a > b*8/5 {
				t.Errorf("99 %% of the Writes take %v at most if they are placed as they come, and %v in order", a, b)
			}
		})
	}
}

// timeWrites returns how long Writes take, in order of time. Those that find the path empty do not count.
func timeWrites(t *testing.T, p *rnictest.Pair) []time.Duration {
	t.Helper()
	const size, depth = 1 << 20, 16
	source := p.A.Register(t, make([]byte, size), rnic.LocalWrite)
	target := p.B.Register(t, make([]byte, depth*size), rnic.LocalWrite|rnic.RemoteWrite)
	var posted [depth]time.Time
	post := func(i int) {
		p.B.Recv(t, rnic.RecvWR{})
		posted[i] = time.Now()
		p.A.Send(t, rnic.SendWR{
			Op: rnic.OpWriteImmediate, SGL: []rnic.SGE{source.SGE(0, size)}, Remote: target.Remote(i * size), Immediate: [8]byte{byte(i)},
		})
	}
	for i := range depth {
		post(i)
	}
	var took []time.Duration
	for n := range depth + *writes {
		wc := rnictest.Next(t, p.B.RecvCQ)
		if err := wc.Err(); err != nil {
			t.Fatal(err, p.A.QP.Err(), p.B.QP.Err())
		}
		i := int(wc.Immediate[0])
		if n >= depth {
			took = append(took, time.Since(posted[i]))
		}
		var sent [depth]rnic.WC
		p.A.SendCQ.Poll(sent[:])
		post(i)
	}
	slices.Sort(took)
	return took
}

func at(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))].Round(time.Millisecond)
}

func show(t *testing.T, name string, took []time.Duration) {
	t.Helper()
	t.Logf("%-19s %d Writes: p50 %v, p99 %v, most %v", name, len(took), at(took, 0.5), at(took, 0.99), at(took, 1))
}
