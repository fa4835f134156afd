package rnic

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-multierror"

	"urnic/internal/capture"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic/internal/cm"
	"urnic/stag"
)

// A Device is an emulated RNIC. A process can have several. They share nothing.
// All of its methods are safe for concurrent use.
type Device struct {
	cfg     Config
	log     *slog.Logger
	mpa     mpaLayer
	lower   LowerLayer // &mpa, or what the configuration names
	manager *pd.Manager
	memory  stag.Table
	events  mailbox[Event]
	record  *capture.Writer // or nil

	arrivals  cm.Arrivals
	lingering chan struct{} // a token for each connection that is open though rejected
	relief    atomic.Uint64 // how often endStalled was requested since it began; 0 if it does not run
	lastNum   atomic.Uint32 // of objects
	lastLink  atomic.Uint32 // of streams

	ctx    context.Context // ends with the device
	cancel context.CancelCauseFunc
	done   chan struct{} // closed by Close
	wg     sync.WaitGroup

	stats   stats
	objects // to be closed with it; their mu is that of stats.ended too
}

// Open returns a new device. It returns an *OpError if the configuration is
// invalid, or the recording can't be started.
func Open(cfg Config) (*Device, error) {
	if cfg.Name == "" {
		cfg.Name = "urnic0"
	}
	if err := cfg.check(); err != nil {
		return nil, &OpError{Op: "open", Object: "device " + cfg.Name, Err: err}
	}
	d := &Device{
		objects: newObjects(), cfg: cfg, log: cfg.Logger, mpa: mpaLayer{network: cfg.Network, template: cfg.MPA}, lower: cfg.LowerLayer,
		manager: pd.NewManager(cfg.Limits, cfg.DomainLimits),
		done:    make(chan struct{}),
	}
	d.events.limit = eventsKept
	d.events.lost = func(e *Event, n uint64) { e.Lost = n }
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.mpa.network == nil {
		d.mpa.network = tcpNetwork{}
	}
	if d.lower == nil {
		d.lower = &d.mpa
	}
	limits, _ := d.manager.Limits()
	d.arrivals.Limit = int(min(limits[pd.HalfOpen], 1<<20))
	d.lingering = make(chan struct{}, d.arrivals.Limit)
	if cfg.Record != nil {
		w, err := capture.NewWriter(cfg.Record)
		if err != nil {
			return nil, d.fail("record", err)
		}
		d.record, d.mpa.record = w, w
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

// Close ends the device and all of its objects: it resets connections, flushes
// work requests and deregisters regions. When it returns, no goroutine of the
// device is left. It joins the errors of all objects. A second call waits for
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
	errs = multierror.Append(errs, d.closeAll(d.listeners)...)
	// Queue pairs end concurrently, as each waits for its goroutines.
	var wg sync.WaitGroup
	for _, qp := range d.members(d.qps) {
		wg.Go(func() { _ = qp.Close() }) // which fails only for objects that no verb has made
	}
	wg.Wait()
	for _, set := range []registry{d.srqs, d.cqs, d.channels, d.windows, d.regions, d.pds} {
		errs = multierror.Append(errs, d.closeAll(set)...)
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

// stats counts what is not counted stream by stream.
type stats struct {
	connected, accepted, rejected, dropped, failed, lost atomic.Uint64

	ended rdmap.Stats // of queue pairs that are no more; under the device's mu
}
