package timeline

import (
	"time"

	"urnic/rnic"
)

// A Point is a moment in the life of a work request.
type Point int

// The points, in the order in which most requests pass them.
const (
	Posted    Point = iota // the program called the verb
	FirstOut               // TCP took the first byte that the request sends, of a Read that of its Read Request
	LastOut                // TCP took the last byte of that
	FirstIn                // the first byte that is for this request came from TCP: of a response, or of a message for a receive
	Placed                 // the last byte of that came, and is in place; of a Send or Write, at a peer that is recorded as well
	Completed              // it was complete for the device
	Polled                 // the program polled the completion

	NumPoints = int(iota)
)

var pointNames = [NumPoints]string{"posted", "first byte out", "last byte out", "first byte in", "placed", "completed", "polled"}

// String names the point.
func (p Point) String() string { return pointNames[p] }

// None stands for a time that is not known.
const None = time.Duration(-1 << 62)

// A Request is a work request.
type Request struct {
	Process int // index in Timeline.Processes
	QPN     uint32
	Recv    bool // of a receive queue
	Op      rnic.Opcode
	ID      uint64
	Length  uint64 // bytes: of a receive those that were received
	Failed  bool   // the completion's status was not success
	Times   [NumPoints]time.Duration
}

// known reports whether a time is known.
func (r *Request) known(p Point) bool { return r.Times[p] != None }

// span returns the first and the last time that is known.
func (r *Request) span() (first, last time.Duration) {
	first, last = None, None
	for _, t := range r.Times {
		if t == None {
			continue
		}
		if first == None || t < first {
			first = t
		}
		last = max(last, t)
	}
	return first, last
}

// A Process is one that was recorded.
type Process struct {
	Number      int    // from 1
	Name        string // the names of its files, which begin with its process ID
	PID         int
	Requests    int
	Connections int
	Unmatched   int // requests that have no messages on the wire, although they should
	Note        string
}

// A Timeline is what a directory tells.
type Timeline struct {
	Start     time.Time // of the first event
	Processes []Process
	Requests  []Request // by the time of the first known point
}
