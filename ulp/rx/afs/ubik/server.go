package ubik

import (
	"context"
	"math"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// A Config describes a database with one server.
type Config struct {
	Addrs   []afs.Addr     // of the server
	Version func() Version // of the database; version 1 of the time of the start if nil
	Now     func() time.Time
}

// complete sets what is missing.
func (c Config) complete() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Version == nil {
		v := Version{Epoch: afs.TimeOf(c.Now()), Counter: 1}
		c.Version = func() Version { return v }
	}
	return c
}

// NewVoteMux serves service 50 of a database with one server, which is the sync site
// forever, and has no peers.
func NewVoteMux(c Config) *rpc.Mux {
	c = c.complete()
	start := afs.TimeOf(c.Now())
	state := func() State {
		now, v := afs.TimeOf(c.Now()), c.Version()
		s := State{
			Now: now, LastYesHost: math.MaxUint32, // has never voted
			LowestTime: now, SyncTime: now, SyncVersion: v, LocalVersion: v,
			IsSyncSite: 1, SyncSiteUntil: math.MaxInt32, Servers: 1,
			RecoveryState: RecoveryComplete, EpochTime: start, Addrs: c.Addrs,
		}
		if len(c.Addrs) > 0 {
			s.LowestHost, s.SyncHost = c.Addrs[0], c.Addrs[0]
		}
		return s
	}
	m := rpc.NewMux("ubik")
	opDebugOld.Handle(m, func(context.Context, *rpc.Void) (OldState, error) { return OldState{state()}, nil })
	opDebug.Handle(m, func(context.Context, *rpc.Void) (State, error) { return state(), nil })
	opDebugExtended.Handle(m, func(context.Context, *rpc.Void) (ExtendedState, error) { return ExtendedState{State: state()}, nil })
	opPeerOld.Handle(m, func(context.Context, *rpc.Int32) (OldPeer, error) { return OldPeer{}, afs.ErrNoEntry })
	opPeer.Handle(m, func(context.Context, *rpc.Int32) (Peer, error) { return Peer{}, afs.ErrNoEntry })
	opPeerExtended.Handle(m, func(context.Context, *rpc.Int32) (ExtendedPeer, error) { return ExtendedPeer{}, afs.ErrNoEntry })
	return m
}

// NewDiskMux serves service 51 of such a database, as far as others ask for it.
func NewDiskMux(c Config) *rpc.Mux {
	c = c.complete()
	m := rpc.NewMux("ubik")
	opGetVersion.Handle(m, func(context.Context, *rpc.Void) (Version, error) { return c.Version(), nil })
	opProbe.Handle(m, func(context.Context, *rpc.Void) (rpc.Void, error) { return rpc.Void{}, nil })
	return m
}
