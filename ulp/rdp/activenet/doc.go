// Package activenet simulates an active network: nodes whose programs see the RDP segments that
// pass, and may act on them. It is for experiments with congestion control, as Faber's "An
// Implementation of the Reliable Data Protocol for Active Networking" has in mind.
//
// A [Network] has nodes, links with a rate, a delay, a queue and loss, flows and cross traffic.
// It has no I/O, no goroutine and no clock of its own: [Network.Run] takes one event after the
// other, and the time is that of the event. The same network with the same seed does the same.
//
//	n := activenet.New(1)
//	a, r, b := n.Node("a"), n.Node("r"), n.Node("b")
//	n.Both(a, r, activenet.LinkConfig{Rate: 100e6, Delay: 5 * time.Millisecond})
//	narrow, _ := n.Both(r, b, activenet.LinkConfig{Rate: 10e6, Delay: 20 * time.Millisecond, Queue: 50})
//	narrow.Load(&activenet.ACC{})
//	f, err := n.Flow(a, b, activenet.FlowConfig{Control: reno})
//	n.Run(time.Minute)
//
// A [Flow] is an RDP connection between two endpoints of package machine, over which as many
// messages go as the windows allow. [Cross] is traffic that heeds nothing.
//
// # Programs
//
// A [Program] is loaded into the node at the beginning of a link, and sees each packet before it
// is queued for that link. It may pass, drop, mark or delay it; it may send a [congestion.Report] to
// the sender of the flow ([Link.Report]), or a segment in the name of the other end ([Link.Answer]).
//
//   - [DropTail]: nothing. The queue drops what it has no room for, and senders notice the gap.
//   - [RED]: marks at random, the more the longer the queue. The receiver reports marks to the
//     sender.
//   - [ACC]: cuts the flow itself, and reports to the sender what it has done.
//
// What a program has to know of a sender, packets carry along ([State]): the header of RDP says
// nothing of windows of congestion.
package activenet
