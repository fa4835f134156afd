package rxperf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"urnic/ulp/rx"
)

// Options say what a run does.
type Options struct {
	Command       Command // Send, Receive or RPC
	Send, Receive int64   // bytes of each call, as the command has them

	Calls    uint64        // in all; 0: until Duration is over
	Duration time.Duration // after which no call begins; 0: until Calls were made

	Conns    int // connections: 1 if it is 0
	Parallel int // calls at a time on each connection, which carries four: 1 if it is 0

	// Chunk is the size of the calls that both sides read and write with, in bytes: 256 KiB if
	// it is 0, 512 KiB at most.
	Chunk int

	// Began is called when the connections are there and the clock starts. It may be nil.
	Began func()
}

// Check finds what is wrong with options.
func (o *Options) Check() error {
	switch {
	case o.Command != Send && o.Command != Receive && o.Command != RPC:
		return fmt.Errorf("rxperf: a run sends, receives or does both: not %v", o.Command)
	case o.Send < 0 || o.Receive < 0 || o.Send > math.MaxInt32 || o.Receive > math.MaxInt32:
		return fmt.Errorf("rxperf: %d and %d bytes of a call: there can be 0 to %d", o.Send, o.Receive, math.MaxInt32)
	case o.Calls == 0 && o.Duration <= 0:
		return errors.New("rxperf: a run has to end: give calls or a duration")
	case o.Conns < 0 || o.Conns > maxTasks || o.Parallel < 0 || o.Parallel > maxTasks || max(o.Conns, 1)*max(o.Parallel, 1) > maxTasks:
		return fmt.Errorf("rxperf: %d connections with %d calls at a time: there can be %d in all", o.Conns, o.Parallel, maxTasks)
	case o.Chunk < 0 || o.Chunk > maxSize:
		return fmt.Errorf("rxperf: calls of %d bytes: there can be up to %d", o.Chunk, maxSize)
	}
	return nil
}

const (
	maxTasks     = 1 << 16
	defaultChunk = 256 << 10
)

func (o Options) withDefaults() Options {
	o.Conns, o.Parallel = max(o.Conns, 1), max(o.Parallel, 1)
	if o.Chunk == 0 {
		o.Chunk = defaultChunk
	}
	if o.Command == Send {
		o.Receive = 0
	}
	if o.Command == Receive {
		o.Send = 0
	}
	return o
}

// Run makes calls to a server. If something fails, or the context ends, the result is that of
// the calls that were made.
func Run(ctx context.Context, e rx.Endpoint, server netip.AddrPort, dial rx.DialConfig, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := &run{o: o.withDefaults()}
	defer r.close()
	if err := r.connect(ctx, e, server, dial); err != nil {
		return nil, err
	}
	if r.o.Began != nil {
		r.o.Began()
	}
	return r.measure(ctx)
}

type run struct {
	o     Options
	conns []rx.Conn
	begun atomic.Uint64 // calls
	stop  atomic.Bool   // a call has failed

	mu      sync.Mutex
	result  Result
	failure error // the first
}

// fail notes why the run ends. The errors behind the first one are mostly its consequences.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = err
	}
	r.stop.Store(true)
}

func (r *run) close() {
	for _, c := range r.conns {
		_ = c.Close() // calls have ended, and their errors are known
	}
}

// connect makes the connections, with a call without data on each: whatever is done once
// for a connection is done before the clock starts.
func (r *run) connect(ctx context.Context, e rx.Endpoint, server netip.AddrPort, dial rx.DialConfig) error {
	for range r.o.Conns {
		c, err := e.Dial(ctx, server, ServiceID, dial)
		if err != nil {
			return err
		}
		r.conns = append(r.conns, c)
	}
	var w sync.WaitGroup
	const atOnce = 64
	for from := range min(atOnce, len(r.conns)) {
		w.Go(func() {
			buf := make([]byte, 64)
			for i := from; i < len(r.conns) && !r.stop.Load(); i += atOnce {
				if err := Do(ctx, r.conns[i], &Request{Command: RPC, ReadSize: 4, WriteSize: 4}, buf); err != nil {
					r.fail(err)
				}
			}
		})
	}
	w.Wait()
	return r.failure
}

// measure runs the tasks and adds up what they have done.
func (r *run) measure(ctx context.Context) (*Result, error) {
	var w sync.WaitGroup
	tasks := len(r.conns) * r.o.Parallel
	all := make([]timing, min(tasks, 64)) // a histogram for each task would take much memory
	for i := range all {
		all[i].latency = hdrhistogram.New(1, int64(longest), 3)
	}
	begin := time.Now()
	for i := range tasks {
		w.Go(func() { r.task(ctx, r.conns[i%len(r.conns)], begin, &all[i%len(all)]) })
	}
	w.Wait()
	r.result.Seconds = time.Since(begin).Seconds()
	for i := range all {
		if i > 0 {
			all[0].latency.Merge(all[i].latency)
		}
	}
	r.result.latency = all[0].latency
	return &r.result, r.failure
}

// A timing says how long the calls of some tasks took.
type timing struct {
	mu      sync.Mutex
	latency *hdrhistogram.Histogram
}

func (t *timing) record(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.latency.RecordValue(int64(min(max(d, 1), longest))) // which it has room for
}

// task makes calls one after the other.
func (r *run) task(ctx context.Context, conn rx.Conn, begin time.Time, times *timing) {
	var (
		request = Request{
			Command: r.o.Command, ReadSize: uint32(r.o.Chunk), WriteSize: uint32(r.o.Chunk), Send: uint32(r.o.Send), Receive: uint32(r.o.Receive),
		}
		need  = max(min(r.o.Send+64, int64(r.o.Chunk)), min(r.o.Receive+4, int64(r.o.Chunk)), 64)
		buf   = make([]byte, need)
		calls uint64
	)
	for !r.stop.Load() && (r.o.Duration <= 0 || time.Since(begin) < r.o.Duration) {
		if n := r.begun.Add(1); r.o.Calls > 0 && n > r.o.Calls {
			break
		}
		from := time.Now()
		if err := Do(ctx, conn, &request, buf); err != nil {
			r.fail(err)
			break
		}
		times.record(time.Since(from))
		calls++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Calls += calls
	r.result.BytesSent += calls * uint64(r.o.Send)
	r.result.BytesReceived += calls * uint64(r.o.Receive)
}
