package activenet_test

import (
	"fmt"
	"time"

	"urnic/ulp/rdp/activenet"
	"urnic/ulp/rdp/congestion"
)

// A quota lets so many segments of a flow have the queue, and tells the sender to have no more.
type quota struct{ segments int }

func (q quota) Arrive(l *activenet.Link, p *activenet.Packet) activenet.Action {
	if p.Data && p.State.Window > q.segments {
		l.Report(p.Flow, congestion.Report{Window: q.segments})
	}
	return activenet.Pass
}

// A node holds a sender to a window, without dropping anything.
func Example() {
	n := activenet.New(1)
	sender, node, receiver := n.Node("sender"), n.Node("node"), n.Node("receiver")
	n.Both(sender, node, activenet.LinkConfig{Rate: 100e6, Delay: 5 * time.Millisecond})
	narrow, _ := n.Both(node, receiver, activenet.LinkConfig{Rate: 10e6, Delay: 20 * time.Millisecond, Queue: 50})
	narrow.Load(quota{segments: 40})

	reno, err := congestion.ByName("reno")
	if err != nil {
		panic(err)
	}
	f, err := n.Flow(sender, receiver, activenet.FlowConfig{Control: reno, Messages: 5000})
	if err != nil {
		panic(err)
	}
	n.Run(time.Minute)
	fmt.Println(f.Stats.Delivered, "messages delivered,", f.Stats.Dropped, "segments dropped, window at most 41:", f.Window() <= 41)
	// Output: 5000 messages delivered, 0 segments dropped, window at most 41: true
}
