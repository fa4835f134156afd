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
	maxListed      = 1 << 18 // iWARP connections in a Result; more are only counted
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
	// Connections are in the order of recognition. None is listed if the Config says so.
	Connections []*Connection
	// Unlisted is how many connections are not listed because there are too many.
	Unlisted int
	Total    Totals // over all connections, those that are not listed too
	Stats    capture.Stats
	// MidStream counts the TCP connections whose start-up the capture lacks
	// and that could not be recognised as iWARP by other means.
	MidStream int
	// Start is the time of the first packet of a TCP connection, or of what else was followed.
	Start time.Time
}

// Violations returns how many rules were broken in all connections.
func (r *Result) Violations() int { return r.Total.Violations }

// An analysis is one run of Analyze.
type analysis struct {
	handle      Handler
	ulp         ULP
	unlisted    bool
	stop        context.CancelCauseFunc
	result      *Result
	buffered    int                    // bytes that streams hold
	sending     int                    // bytes that are kept of Sends
	outstanding int                    // Reads and Atomics that wait for their response
	kept        int                    // violations and notes
	loose       map[*follower]struct{} // of RoCEv2, UDP and IP, that have not ended
}

// Analyze reads a capture to its end and calls h with what it finds, in order;
// h may be nil. The Result holds what was found even if there is an error: the
// Reader's, the Handler's or the context's.
func Analyze(ctx context.Context, r *capture.Reader, h Handler) (*Result, error) {
	return AnalyzeULP(ctx, r, nil, h)
}

// AnalyzeULP is Analyze, and follows an upper layer protocol as well; u may be nil.
func AnalyzeULP(ctx context.Context, r *capture.Reader, u ULP, h Handler) (*Result, error) {
	return Config{ULP: u, Handler: h}.Analyze(ctx, r)
}

// A Config says how a capture is to be analysed.
type Config struct {
	ULP     ULP     // the upper layer protocol to follow, or nil
	Handler Handler // is called with what is found; may be nil
	// Unlisted keeps connections out of the Result, which then has their sums only. The
	// memory of an analysis is then bounded by the connections that are open at a time.
	Unlisted bool
}

// Analyze reads a capture to its end. The Result holds what was found even if there is
// an error: the Reader's, the Handler's or the context's.
func (c Config) Analyze(ctx context.Context, r *capture.Reader) (*Result, error) {
	h := c.Handler
	if h == nil {
		h = func(*Event) error { return nil }
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a := &analysis{handle: h, ulp: c.ULP, unlisted: c.Unlisted, stop: stop, result: &Result{}}
	asm := capture.NewAssembler(func(c *capture.Conn) capture.Consumer { return newFollower(a, c) })
	if u, ok := c.ULP.(RoCEULP); ok {
		asm.RoCE = a.packet(u)
	}
	if u, ok := c.ULP.(DatagramULP); ok {
		asm.UDP = a.datagram(u)
	}
	if u, ok := c.ULP.(IPULP); ok {
		asm.RDP = a.ip(u)
	}
	err := asm.ReadAll(ctx, r)
	a.endLoose()
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
	if f.late {
		at = f.of
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
