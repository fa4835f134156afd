package cb

import (
	"context"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// translates is the capability of a client that knows AFS's own numbers for errors.
const translates uint32 = 1

// A Config says what a program that uses file servers tells them.
type Config struct {
	Identity Identity
	Cell     Cell // the program's own

	// Changed is notified of files that have changed. It may be nil.
	Changed func(ctx context.Context, files []afs.FID)

	// Init is notified that a server has no promises any more: the one with a UUID, or the one
	// that calls if that is zero. It may be nil.
	Init func(ctx context.Context, server afs.UUID)

	// XStats returns a collection of statistics. If it is nil, nothing is counted: the
	// collections have the lengths of OpenAFS's, and zeros.
	XStats func(collection int32) ([]int32, error)

	// Now is the clock: time.Now if it is nil.
	Now func() time.Time
}

// NewMux serves file servers that call back.
func NewMux(c Config) *rpc.Mux {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.XStats == nil {
		c.XStats = uncounted
	}
	initialize := func(ctx context.Context, u afs.UUID) {
		if c.Init != nil {
			c.Init(ctx, u)
		}
	}
	m := rpc.NewMux("cb")
	opProbe.Handle(m, func(context.Context, *rpc.Void) (rpc.Void, error) { return rpc.Void{}, nil })
	opProbeUUID.Handle(m, func(_ context.Context, u *afs.UUID) (rpc.Void, error) {
		if *u != c.Identity.UUID {
			return rpc.Void{}, ErrNotThisClient
		}
		return rpc.Void{}, nil
	})
	opCallBack.Handle(m, func(ctx context.Context, a *afs.Callbacks) (rpc.Void, error) {
		if c.Changed != nil {
			c.Changed(ctx, a.FIDs)
		}
		return rpc.Void{}, nil
	})
	opInit.Handle(m, func(ctx context.Context, _ *rpc.Void) (rpc.Void, error) {
		initialize(ctx, afs.UUID{})
		return rpc.Void{}, nil
	})
	opInit2.Handle(m, func(ctx context.Context, _ *rpc.Void) (Identity, error) {
		initialize(ctx, afs.UUID{})
		return c.Identity, nil
	})
	opInit3.Handle(m, func(ctx context.Context, u *afs.UUID) (rpc.Void, error) {
		initialize(ctx, *u)
		return rpc.Void{}, nil
	})
	opWho.Handle(m, func(context.Context, *rpc.Void) (Identity, error) { return c.Identity, nil })
	opAbout.Handle(m, func(context.Context, *rpc.Void) (About, error) {
		return About{c.Identity, afs.Capabilities{Words: []uint32{translates}}}, nil
	})
	c.handleQueries(m)
	return m
}

// handleQueries adds the operations that tools ask.
func (c *Config) handleQueries(m *rpc.Mux) {
	cell := func(i rpc.Int32) Cell {
		if i != 0 {
			return Cell{} // an empty name is the end
		}
		return c.Cell
	}
	opCell.Handle(m, func(_ context.Context, i *rpc.Int32) (Cell, error) { return cell(*i), nil })
	opLocalCell.Handle(m, func(context.Context, *rpc.Void) (String, error) { return String(c.Cell.Name), nil })
	opCellByNumber.Handle(m, func(_ context.Context, i *rpc.Int32) (Cell, error) { return cell(*i - 1), nil })
	opPreference.Handle(m, func(_ context.Context, i *rpc.Int32) (Preference, error) {
		if *i < 0 || int(*i) >= len(c.Cell.Hosts) {
			return Preference{Server: 0xffffffff, Rank: -1}, nil // the end
		}
		return Preference{c.Cell.Hosts[*i], 0}, nil
	})
	opCacheConfig.Handle(m, func(context.Context, *rpc.Uint32) (CacheConfig, error) { return CacheConfig{Version: 1}, nil })
	opXVersion.Handle(m, func(context.Context, *rpc.Void) (rpc.Int32, error) { return xstatsVersion, nil })
	opXStats.Handle(m, func(_ context.Context, a *afs.XStatsArgs) (afs.XStats, error) {
		words, err := c.XStats(a.Collection)
		return afs.XStats{Version: xstatsVersion, Time: afs.TimeOf(c.Now()), Words: words}, err
	})
}

// Collections of statistics.
const (
	Calls           int32 = iota // of the client's functions
	Performance                  // empty since OpenAFS 1.4
	FullPerformance              // times of calls and transfers
)

const fullWords = 775 // what xstat_cm_test of OpenAFS 1.8 expects

// uncounted is a collection of a program that counts nothing.
func uncounted(collection int32) ([]int32, error) {
	switch collection {
	case Calls, Performance:
		return nil, nil
	case FullPerformance:
		return make([]int32, fullWords), nil
	}
	return nil, afs.ErrInvalid
}
