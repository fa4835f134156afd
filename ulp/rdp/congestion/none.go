package congestion

import (
	"math"
	"time"
)

// none is RDP as RFC 908 and RFC 1151 specify it, without congestion control. It notices no
// loss itself. Only code in the path can lower its window, and that is undone slowly.
type none struct {
	window  int // 0: no limit
	counted int // segments acknowledged since the window was raised
}

// None returns a controller that sets no limit, so that the window that the peer announced is
// the only one. It ignores losses and timeouts.
//
// A report from the path with a window is obeyed: the window then grows by one segment
// for each window of data that is acknowledged, as in congestion avoidance (RFC 5681 §3.1), until it
// exceeds what a peer can announce.
func None() Controller { return &none{} }

// String returns the name.
func (*none) String() string { return NameNone }

func (n *none) Window() int {
	if n.window == 0 {
		return math.MaxInt
	}
	return n.window
}

func (n *none) Acked(_ time.Duration, a Ack) {
	acked := min(max(0, a.Segments), defaultMax)
	if n.window == 0 || a.InFlight+acked < n.window {
		return // nothing limits the sender, or not this window
	}
	if n.counted += acked; n.counted < n.window {
		return
	}
	n.counted = 0
	if n.window++; n.window > defaultMax {
		n.window = 0
	}
}

func (n *none) Reported(_ time.Duration, r Report) {
	if r.Window > 0 && r.Window < n.Window() {
		n.window, n.counted = r.Window, 0
	}
}

func (*none) Sent(time.Duration, int)     {}
func (*none) Lost(time.Duration, int)     {}
func (*none) TimedOut(time.Duration, int) {}
