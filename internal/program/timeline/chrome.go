package timeline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// mostTraced is how many requests a Chrome trace has.
const mostTraced = 200_000

// A traceEvent is an event of the Chrome trace format.
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Cat   string         `json:"cat,omitempty"`
	ID    string         `json:"id,omitempty"`
	PID   int            `json:"pid"`
	TID   uint64         `json:"tid"`
	TS    float64        `json:"ts"` // microseconds
	Args  map[string]any `json:"args,omitempty"`
}

// A phase is what a request does from one point to a later one.
type phase struct {
	name     string
	from, to Point
}

// phases are what both views show of a request; its first and last known points bound it.
var phases = []phase{
	{"waiting to leave", Posted, FirstOut},
	{"leaving", FirstOut, LastOut},
	{"waiting for the peer", LastOut, FirstIn},
	{"arriving", FirstIn, Placed},
	{"completing", Placed, Completed},
	{"waiting to be polled", Completed, Polled},
}

// spanOf returns from when to when a phase of a request is, or false if it has none. A receive waits for the peer
// from its post on. What a Send or Write placed at its peer is no phase of it: that may be before or after its completion.
func (r *Request) spanOf(x phase) (from, to time.Duration, is bool) {
	if r.Recv && x.from == LastOut {
		x.from = Posted
	}
	if !r.known(FirstIn) && x.from == Placed {
		x.from = LastOut
	}
	if !r.known(x.from) || !r.known(x.to) || r.Times[x.to] < r.Times[x.from] {
		return 0, 0, false
	}
	return r.Times[x.from], r.Times[x.to], true
}

// WriteChrome writes a Chrome trace. Each queue pair has two tracks, one for each queue; each request is a span on one, with its
// phases below it. Its error is that of w.
func (t *Timeline) WriteChrome(w io.Writer) error {
	out := &chromeWriter{w: bufio.NewWriter(w)}
	out.text(`{"displayTimeUnit":"ns","otherData":{"start":"` + t.Start.UTC().Format(time.RFC3339Nano) + `"},"traceEvents":[`)
	for i, p := range t.Processes {
		out.event(traceEvent{Name: "process_name", Phase: "M", PID: i + 1, Args: map[string]any{"name": fmt.Sprintf("process %s", p.Name)}})
	}
	tracks := map[[2]uint64]bool{}
	for i := range t.Requests {
		if i == mostTraced {
			break
		}
		r := &t.Requests[i]
		pid, tid := r.Process+1, uint64(r.QPN)*2
		queue := "send queue"
		if r.Recv {
			tid, queue = tid+1, "receive queue"
		}
		if track := [2]uint64{uint64(pid), tid}; !tracks[track] {
			tracks[track] = true
			out.event(traceEvent{Name: "thread_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": fmt.Sprintf("QP 0x%06x, %s", r.QPN, queue)}})
		}
		out.request(r, pid, tid, fmt.Sprintf("%d", i))
	}
	out.text("\n]}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// A chromeWriter writes events.
type chromeWriter struct {
	w    *bufio.Writer
	some bool
	err  error
}

func (c *chromeWriter) text(s string) {
	if c.err == nil {
		_, c.err = c.w.WriteString(s)
	}
}

func (c *chromeWriter) event(e traceEvent) {
	b, err := json.Marshal(e)
	if err != nil {
		c.err = err
		return
	}
	if c.some {
		c.text(",")
	}
	c.some = true
	c.text("\n" + string(b))
}

// request writes the spans of a request.
func (c *chromeWriter) request(r *Request, pid int, tid uint64, id string) {
	first, last := r.span()
	if first == None {
		return
	}
	args := map[string]any{"wr_id": fmt.Sprintf("0x%x", r.ID), "bytes": r.Length, "failed": r.Failed, "qp": fmt.Sprintf("0x%06x", r.QPN)}
	for p := range Point(NumPoints) {
		if r.known(p) {
			args[p.String()] = micros(r.Times[p])
		}
	}
	name := r.name()
	span := func(name string, from, to time.Duration, args map[string]any) {
		c.event(traceEvent{Name: name, Phase: "b", Cat: "wr", ID: id, PID: pid, TID: tid, TS: micros(from), Args: args})
		c.event(traceEvent{Name: name, Phase: "e", Cat: "wr", ID: id, PID: pid, TID: tid, TS: micros(to)})
	}
	c.event(traceEvent{Name: name, Phase: "b", Cat: "wr", ID: id, PID: pid, TID: tid, TS: micros(first), Args: args})
	for _, x := range phases {
		if from, to, is := r.spanOf(x); is {
			span(x.name, from, to, nil)
		}
	}
	c.event(traceEvent{Name: name, Phase: "e", Cat: "wr", ID: id, PID: pid, TID: tid, TS: micros(last)})
}

// name says what a request is.
func (r *Request) name() string {
	if r.Failed {
		return r.Op.String() + ", failed"
	}
	return r.Op.String()
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
