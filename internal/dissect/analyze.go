package dissect

import (
	"context"
	"fmt"
	"time"

	"urnic/internal/capture"
	"urnic/mpa"
)

// What a capture can make an analysis remember. Real captures stay far below.
const (
	maxConnections = 1 << 17 // iWARP connections; more are not decoded
	maxKept        = 1000    // violations, and notes, kept of a connection; more are counted
	maxKeptTotal   = 1 << 18 // of all connections
	maxBuffered    = 256 << 20
	maxOutstanding = 1 << 20 // Reads and Atomics without a response
	// maxAsked is how many of these one side may have: what MPA can negotiate
	// (RFC 6581 §6), and some beyond it.
	maxAsked = mpa.DepthNotNegotiated + 1<<10
)

// A Result sums up a capture.
type Result struct {
	Connections []*Connection
	Stats       capture.Stats
	// MidStream counts the TCP connections whose start-up the capture lacks
	// and that could not be recognised as iWARP by other means.
	MidStream int
	// NotFollowed counts iWARP connections beyond the limit of an analysis.
	NotFollowed int
	// Start is the time of the first packet of a TCP connection.
	Start time.Time
}

// Violations returns how many rules were broken in all connections.
func (r *Result) Violations() int {
	n := 0
	for _, c := range r.Connections {
		n += len(c.Violations) + c.MoreViolations
	}
	return n
}

// An analysis is one run of Analyze.
type analysis struct {
	handle      Handler
	ulp         ULP
	stop        context.CancelCauseFunc
	result      *Result
	buffered    int // octets that streams hold
	sending     int // octets that are kept of Sends
	outstanding int // Reads and Atomics that wait for their response
	kept        int // violations and notes
}

// Analyze reads a capture to its end and calls h with what it finds, in order;
// h may be nil. The Result holds what was found even if there is an error: the
// Reader's, the Handler's or the context's.
func Analyze(ctx context.Context, r *capture.Reader, h Handler) (*Result, error) {
	return AnalyzeULP(ctx, r, nil, h)
}

// AnalyzeULP is Analyze, and follows an upper layer protocol as well; u may be nil.
func AnalyzeULP(ctx context.Context, r *capture.Reader, u ULP, h Handler) (*Result, error) {
	if h == nil {
		h = func(*Event) error { return nil }
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a := &analysis{handle: h, ulp: u, stop: stop, result: &Result{}}
	asm := capture.NewAssembler(func(c *capture.Conn) capture.Consumer { return newFollower(a, c) })
	err := asm.ReadAll(ctx, r)
	a.result.Stats = asm.Stats()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return a.result, err
}

// emit hands an event on. After the Handler's first error nothing is handed on.
func (a *analysis) emit(e *Event) {
	if a.handle == nil {
		return
	}
	if err := a.handle(e); err != nil {
		a.handle = nil
		a.stop(err)
	}
}

// note emits a note and keeps it with the connection.
func (f *follower) note(from capture.Side, at capture.At, format string, args ...any) {
	if f.con == nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	if len(f.con.Notes) < maxKept && f.a.kept < maxKeptTotal {
		f.a.kept++
		f.con.Notes = append(f.con.Notes, text)
	}
	f.a.emit(&Event{Kind: KindNote, Conn: f.con, At: at, From: f.side(from), Note: text})
}

// violate records that a side broke a rule. While a segment is looked at, the
// event waits until that of the segment is out.
func (f *follower) violate(rule Rule, from capture.Side, at capture.At, format string, args ...any) {
	if f.con == nil {
		return
	}
	v := Violation{Rule: rule, From: f.side(from), At: at, Detail: fmt.Sprintf(format, args...)}
	if len(f.con.Violations) < maxKept && f.a.kept < maxKeptTotal {
		f.a.kept++
		f.con.Violations = append(f.con.Violations, v)
	} else {
		f.con.MoreViolations++
	}
	if f.busy {
		f.queue = append(f.queue, v)
		return
	}
	f.a.emit(&Event{Kind: KindViolation, Conn: f.con, At: at, From: v.From, Violation: &v})
}

// settled emits the violations that waited.
func (f *follower) settled() {
	f.busy = false
	for i := range f.queue {
		v := &f.queue[i]
		f.a.emit(&Event{Kind: KindViolation, Conn: f.con, At: v.At, From: v.From, Violation: v})
	}
	f.queue = f.queue[:0]
}
