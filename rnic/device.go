package rnic

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-multierror"

	"urnic/internal/capture"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/stag"
)

// A Device is an emulated RNIC. Several can live in one process; nothing is
// shared between them. All of its methods are safe for concurrent use.
type Device struct {
	cfg     Config
	log     *slog.Logger
	network Network
	manager *pd.Manager
	memory  stag.Table
	events  mailbox[Event]
	record  *capture.Writer // or nil

	arrivals  arrivals
	lingering chan struct{} // a token for each connection that is open though rejected
	relief    atomic.Uint64 // how often endStalled was asked for since it began; 0 if it does not run
	lastNum   atomic.Uint32 // of objects
	lastLink  atomic.Uint32 // of streams

	ctx    context.Context // ends with the device
	cancel context.CancelCauseFunc
	done   chan struct{} // closed by Close
	wg     sync.WaitGroup

	stats stats

	mu     sync.Mutex
	closed bool
	making sync.WaitGroup // verbs that make something
	// What there is to close, by kind, in the order of closing.
	listeners, channels registry[closer]
	qps                 registry[*QP]
	srqs, cqs           registry[closer]
	windows, regions    registry[closer]
	pds                 registry[closer]
}

// A closer is an object that ends with its device.
type closer interface{ Close() error }

// A registry is a set of objects.
type registry[T comparable] map[T]struct{}

// Open returns a new device. It returns an *OpError if the configuration can't be
// carried out, or the recording can't be begun.
func Open(cfg Config) (*Device, error) {
	if cfg.Name == "" {
		cfg.Name = "urnic0"
	}
	if err := cfg.check(); err != nil {
		return nil, &OpError{Op: "open", Object: "device " + cfg.Name, Err: err}
	}
	d := &Device{
		cfg: cfg, log: cfg.Logger, network: cfg.Network,
		manager:   pd.NewManager(cfg.Limits, cfg.DomainLimits),
		done:      make(chan struct{}),
		listeners: registry[closer]{}, channels: registry[closer]{}, qps: registry[*QP]{}, srqs: registry[closer]{},
		cqs: registry[closer]{}, windows: registry[closer]{}, regions: registry[closer]{}, pds: registry[closer]{},
	}
	d.events.limit = eventsKept
	d.events.lost = func(e *Event, n uint64) { e.Lost = n }
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.network == nil {
		d.network = tcpNetwork{}
	}
	limits, _ := d.manager.Limits()
	d.arrivals.limit = int(min(limits[pd.HalfOpen], 1<<20))
	d.lingering = make(chan struct{}, d.arrivals.limit)
	if cfg.Record != nil {
		w, err := capture.NewWriter(cfg.Record)
		if err != nil {
			return nil, d.fail("record", err)
		}
		d.record = w
	}
	d.ctx, d.cancel = context.WithCancelCause(context.Background())
	return d, nil
}

// made reports whether Open has made the device.
func (d *Device) made() bool { return d != nil && d.manager != nil }

// Name returns the device's name.
func (d *Device) Name() string {
	if !d.made() {
		return ""
	}
	return d.cfg.Name
}

// fail returns an *OpError of the device.
func (d *Device) fail(op string, err error) error {
	return &OpError{Op: op, Object: "device " + d.cfg.Name, Err: err}
}

// begin opens a verb that makes something, which ends with end: Close waits for
// it. It returns ErrClosed if the device is closed.
func (d *Device) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.making.Add(1)
	return nil
}

func (d *Device) end() { d.making.Done() }

// put registers an object, in a verb between begin and end.
func put[T comparable](d *Device, set registry[T], v T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set[v] = struct{}{}
}

// add registers an object of a verb that Close does not wait for, unless the
// device is closed.
func add[T comparable](d *Device, set registry[T], v T) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	put(d, set, v)
	return nil
}

func remove[T comparable](d *Device, set registry[T], v T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(set, v)
}

// Close ends the device and all that belongs to it: connections are reset, work
// requests flushed, regions deregistered. When it returns, no goroutine of the
// device is left. It joins the errors of all it closes. A second call waits for
// the first and returns nil.
func (d *Device) Close() error {
	if !d.made() {
		return notMade("close", "device")
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		<-d.done
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.cancel(d.fail("close", ErrClosed))
	d.making.Wait()
	var errs *multierror.Error
	errs = multierror.Append(errs, closeAll(d, d.listeners)...)
	// Queue pairs end side by side, as each waits for its goroutines.
	var wg sync.WaitGroup
	for _, qp := range d.list() {
		wg.Go(func() { _ = qp.Close() }) // which fails for what no verb has made only
	}
	wg.Wait()
	for _, set := range []registry[closer]{d.srqs, d.cqs, d.channels, d.windows, d.regions, d.pds} {
		errs = multierror.Append(errs, closeAll(d, set)...)
	}
	d.wg.Wait()
	defer close(d.done)
	if d.record != nil {
		if err := d.record.Close(); err != nil {
			errs = multierror.Append(errs, d.fail("record", err))
		}
	}
	if err := d.events.close(); err != nil {
		errs = multierror.Append(errs, d.fail("close event descriptor", err))
	}
	return errs.ErrorOrNil()
}

// list returns the queue pairs there are.
func (d *Device) list() []*QP {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.qps))
}

func closeAll(d *Device, set registry[closer]) []error {
	d.mu.Lock()
	objects := make([]closer, 0, len(set))
	for c := range set {
		objects = append(objects, c)
	}
	d.mu.Unlock()
	var errs []error
	for _, c := range objects {
		if err := c.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Attr describes a device: what it can do, and what it may hold.
type Attr struct {
	Name         string    `json:"name"`
	Limits       pd.Limits `json:"-"` // of the device
	DomainLimits pd.Limits `json:"-"` // of each protection domain

	MaxSGE      int    `json:"max_sge"`
	MaxReadSGE  int    `json:"max_read_sge"`
	MaxInline   int    `json:"max_inline"`
	MaxWR       int    `json:"max_wr"`
	MaxCQE      int    `json:"max_cqe"`
	MaxIRD      int    `json:"max_ird"`
	MaxORD      int    `json:"max_ord"`
	MaxMessage  uint64 `json:"max_message"`
	PrivateData int    `json:"max_private_data"`
	Events      int    `json:"max_events"`
	// StreamBuffers is how many octets of buffers one stream keeps at most while it
	// waits for its peer; Limits[pd.StreamOctets] is about all of them.
	StreamBuffers int `json:"max_stream_buffers"`

	Atomics      bool `json:"atomics"`
	Immediate    bool `json:"immediate_data"`
	Windows      bool `json:"memory_windows"`
	FastRegister bool `json:"fast_registration"`
	ZeroBased    bool `json:"zero_based"`
	SRQ          bool `json:"shared_receive_queues"`
}

// Attr returns the device's attributes.
func (d *Device) Attr() Attr {
	if !d.made() {
		return Attr{}
	}
	device, domain := d.manager.Limits()
	return Attr{
		Name: d.cfg.Name, Limits: device, DomainLimits: domain,
		MaxSGE: d.cfg.MaxSGE, MaxReadSGE: MaxReadSGE, MaxInline: d.cfg.MaxInline, MaxWR: d.cfg.MaxWR, MaxCQE: d.cfg.MaxCQE,
		MaxIRD: d.cfg.MaxIRD, MaxORD: d.cfg.MaxORD, MaxMessage: MaxMessage, PrivateData: 508, Events: eventsKept, StreamBuffers: StreamBuffers,
		Atomics: true, Immediate: true, Windows: true, FastRegister: true, ZeroBased: true, SRQ: true,
	}
}

// Held returns how much of a resource the device holds at this moment.
func (d *Device) Held(r pd.Resource) uint64 {
	if !d.made() {
		return 0
	}
	return d.manager.Held(r)
}

// stats counts what is not counted stream by stream.
type stats struct {
	connected, accepted, rejected, dropped, failed, lost atomic.Uint64

	ended rdmap.Stats // of queue pairs that are no more; under the device's mu
}

// Counters counts what a device has done.
type Counters struct {
	Connected uint64 // connections that this side has initiated
	Accepted  uint64 // connections that it has accepted
	Rejected  uint64 // requests that it has rejected
	Dropped   uint64 // requests that were not answered: in time, before the peer went, or as too many were waiting
	Failed    uint64 // start-ups that came to nothing
	Lost      uint64 // streams that ended without a graceful close

	Messages rdmap.Stats // by opcode, Terminates among them
}

// Counters returns what the device has counted so far.
func (d *Device) Counters() Counters {
	if !d.made() {
		return Counters{}
	}
	s := &d.stats
	c := Counters{
		Connected: s.connected.Load(), Accepted: s.accepted.Load(), Rejected: s.rejected.Load(),
		Dropped: s.dropped.Load(), Failed: s.failed.Load(), Lost: s.lost.Load(),
	}
	d.mu.Lock() // each queue pair is counted once: here or in the list
	c.Messages = s.ended
	qps := slices.Collect(maps.Keys(d.qps))
	d.mu.Unlock()
	for _, q := range qps {
		c.Messages.Add(q.Counters())
	}
	return c
}

// retire takes a queue pair that has ended out of the registry, and keeps what it
// has counted.
func (d *Device) retire(q *QP) {
	counted := q.Counters()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.ended.Add(counted)
	delete(d.qps, q)
}
