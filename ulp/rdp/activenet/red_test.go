package activenet

import "testing"

// see has a RED program see packets with a queue of a length, and returns how many it marks.
func see(r *RED, b *bottleneck, queue, packets int) (marked int) {
	for range packets {
		b.fill(queue)
		if a := r.Arrive(b.l, &Packet{Bytes: 1000}); a.Mark {
			marked++
		}
	}
	return marked
}

// RED marks nothing below the low threshold, all above the high one, and the more the longer
// the queue is in between. It goes by the average.
func TestREDMarksByTheAverage(t *testing.T) {
	for _, c := range []struct {
		queue int
		share float64
	}{{1, 0}, {2, 0}, {4, 0.02}, {6, 0.05}, {8, 0.07}, {10, 1}} {
		r := &RED{Low: 2.4, High: 9.9, Most: 0.0937}
		r.average = float64(c.queue)
		b := newBottleneck(t, r)
		got := float64(see(r, b, c.queue, 20_000)) / 20_000
		// From one mark to the next there are from 1 to 1/p packets, each as likely as the others.
		if want := 2 / (1 + 1/max(c.share, 1e-9)); got < 0.85*want-1e-6 || got > 1.15*want+1e-6 {
			t.Errorf("at a queue of %d, %v of the packets are marked, not %v", c.queue, got, want)
		}
	}
	r := &RED{}
	b := newBottleneck(t, r)
	if got := see(r, b, 10, 50); got != 0 {
		t.Errorf("a burst of 50 packets is marked %d times", got)
	}
	if r.average < 0.9 || r.average > 1 { // 10·(1-0.998^50)
		t.Errorf("the average is %v", r.average)
	}
}

func TestREDDrops(t *testing.T) {
	r := &RED{Drop: true}
	r.average = 10
	b := newBottleneck(t, r)
	b.fill(10)
	if a := r.Arrive(b.l, &Packet{}); !a.Drop || a.Mark {
		t.Errorf("%+v", a)
	}
}

// In an idle time the average falls as if packets had found the queue empty.
func TestREDIdles(t *testing.T) {
	r := &RED{Weight: 0.01}
	b := newBottleneck(t, r)
	r.average = 8
	see(r, b, 0, 1)
	before := r.average
	b.Run(50 * ms) // 100 packets of 500 bytes
	see(r, b, 0, 1)
	if got, want := r.average/before, 0.99*0.366; got < want-0.01 || got > want+0.01 { // 0.99^101
		t.Errorf("the average falls to %v of what it was", got)
	}
	b.Run(1000 * 1000 * ms)
	see(r, b, 0, 1)
	if r.average > redNone {
		t.Errorf("the average is %v after a quarter of an hour", r.average)
	}
}

func TestREDDefaults(t *testing.T) {
	b := newBottleneck(t, &RED{})
	low, high, most, weight := (&RED{}).settings(b.l)
	if low != 10.0/6 || high != 5 || most != 0.1 || weight != 0.002 {
		t.Errorf("%v, %v, %v, %v", low, high, most, weight)
	}
	low, high, most, weight = (&RED{Low: 4, High: 3, Most: 0.5, Weight: 1}).settings(b.l)
	if low != 4 || high != 6 || most != 0.5 || weight != 1 {
		t.Errorf("%v, %v, %v, %v", low, high, most, weight)
	}
}
