//go:build linux

package dropin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"urnic/internal/capture"
	"urnic/internal/door"
	"urnic/internal/host/memfault"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictimeline"
)

// An Engine is the RNIC of a process. Its methods are the functions of
// cmd/liburnic/engine.h. All of them are safe for concurrent use.
type Engine struct {
	settings settings
	times    times      // of the settings; a test may change them before they count
	mpa      mpa.Config // of all connections
	log      *logger
	device   *rnic.Device // of all contexts, so that a connection may come before one knows whose it is
	record   *os.File     // or nil

	contexts table[rdmaContext]
	pds      table[protectionDomain]
	regions  table[region]
	windows  table[window]
	channels table[channel]
	cqs      table[completionQueue]
	srqs     table[sharedQueue]
	qps      table[qp]
	evchs    table[eventChannel]
	ids      table[cmID]
	ahs      table[addressHandle]

	numbers qpNumbers
	granted sync.Map // STag of a region (uint32): its enum ibv_access_flags
	keys    sync.Map // STag of a region (uint32): *region
	meeting meeting
	usesCM  atomic.Bool // the program has made an id of rdma_cm
	ofCQ    sync.Map    // *rnic.CQ: *completionQueue
	ofSRQ   sync.Map    // *rnic.SRQ: *sharedQueue

	gids    gidTable
	devices []deviceSetting

	datagrams datagramPort
	counting  counting
	null      nullMemory
	reporter  reporter
	timeline  *rnictimeline.Recorder // or nil

	ctx    context.Context // ends with the engine
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Open returns the engine of a process. environment holds "NAME=value" strings,
// of which it looks at those that docs/drop-in.md lists; log gets human-readable lines.
func Open(environment []string, log io.Writer) (*Engine, error) {
	s, err := parseSettings(environment)
	if err != nil {
		return nil, err
	}
	memfault.Guard() // the program's memory is not Go's
	e := &Engine{settings: s, log: &logger{level: s.log, w: log}, times: s.times}
	if e.devices, err = s.devices(e.gids.list()); err != nil {
		return nil, err
	}
	e.mpa.Settle, e.mpa.CRC = s.settle, s.crc
	e.mpa.RequestTimeout, e.mpa.ReplyTimeout = max(s.times.request, 1), max(s.times.reply, 1) // 0 would stand for the default
	cfg := rnic.Config{
		Name: s.device, Limits: limits(), MPA: e.mpa, Logger: e.log.slog(),
	}
	door.SetPolicy(&cfg, policyOf(&s))
	if s.pcap != "" {
		f, err := capture.Create(s.pcap)
		if err != nil {
			return nil, fmt.Errorf("URNIC_PCAP: %w", err)
		}
		cfg.Record, e.record = f, f
	}
	if s.timeline != "" {
		if e.timeline, err = rnictimeline.Start(s.timeline, &cfg); err != nil {
			return nil, fmt.Errorf("URNIC_TIMELINE: %w", err)
		}
	}
	if e.device, err = rnic.Open(cfg); err != nil {
		return nil, errors.Join(err, e.timeline.Close())
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.wg.Go(e.dispatchEvents)
	if s.top != "" {
		e.serveReports(s.top)
	}
	return e, nil
}

// limits returns what the device may hold: whatever the process can, as it would
// harm only itself, but for what an identifier bounds.
func limits() pd.Limits {
	l := pd.DefaultLimits()
	l[pd.QueuePairs] = maxQPs
	l[pd.MemoryOctets] = 1 << 62
	l[pd.CompletionChannels] = 1 << 16
	l[pd.Domains] = 1 << 16
	l[pd.CQEntries], l[pd.SendWRs], l[pd.RecvWRs] = 1<<40, 1<<40, 1<<40
	return l
}

// Close ends the engine and all that it has: processes don't, as it ends with
// them.
func (e *Engine) Close() error {
	e.tellCounters()
	err := e.reporter.close()
	e.closeIDs()
	e.cancel()
	// Who takes the slot next opens the UDP port that belongs to it: that must be closed before.
	err = errors.Join(err, e.datagrams.close(), e.meeting.close())
	err = errors.Join(err, e.device.Close(), e.timeline.Close())
	e.null.close()
	e.wg.Wait()
	e.contexts.each(func(_ Handle, c *rdmaContext) {
		c.ports.close()
		err = errors.Join(err, c.async.close())
	})
	if e.record != nil {
		err = errors.Join(err, e.record.Close())
	}
	return err
}

// Log writes a message of the C half.
func (e *Engine) Log(level uint32, message string) {
	if level == logError { // such as a request that is not supported
		e.log.once(level, message, message)
		return
	}
	e.log.print(level, message)
}
