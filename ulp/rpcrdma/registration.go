package rpcrdma

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"urnic/rnic"
	"urnic/stag"
)

// A Registration is a strategy to open memory to a responder (RFC 8166 §4.4.3). With each
// of them, exactly the chunks of a call are open, from when it is posted until its
// reply has come or its caller has given up, under an STag that differs each time and that
// only this connection can use (§8.1).
type Registration uint8

const (
	// RegisterFast makes regions of the connection valid for a call, by work requests in
	// front of its Send, and invalid again by one after its reply, unless the responder
	// has done that. It copies nothing and takes no lock of the device but for the STag.
	RegisterFast Registration = iota
	// RegisterEach registers memory anew for each call, and deregisters it. That is the
	// simplest, and takes longest.
	RegisterEach
	// RegisterPool copies bulk data into and out of memory that is registered for as long
	// as the connection lives, and binds a memory window to it for each call. It is for
	// memory that is not to be opened at all, and costs a copy.
	RegisterPool
)

func (r Registration) String() string {
	switch r {
	case RegisterFast:
		return "fast"
	case RegisterEach:
		return "each"
	case RegisterPool:
		return "pool"
	}
	return fmt.Sprintf("registration %d", uint8(r))
}

// A region is memory that is open to the responder for a call.
type region struct {
	tag  stag.STag
	to   uint64 // of its first byte
	mem  []byte
	open bool // the responder can use it

	mr   *rnic.MR // of RegisterFast and RegisterEach
	mw   *rnic.MW // of RegisterPool, with the memory that the window is bound to
	pool *block
	out  bool // the memory takes data of the responder, which is copied from pool
}

// segment names the region in a header.
func (r *region) segment() Segment {
	return Segment{Handle: r.tag, Length: uint32(len(r.mem)), Offset: r.to}
}

// A registry opens memory by one strategy.
type registry struct {
	strategy Registration
	pd       *rnic.PD
	qp       *rnic.QP
	arena    *arena
	most     uint64      // bytes of a region
	remote   rnic.Access // RemoteInvalidate, if it is announced

	mu      sync.Mutex
	regions []*rnic.MR // spare ones of RegisterFast
	windows []*rnic.MW // spare ones of RegisterPool
	made    map[interface{ Close() error }]struct{}
}

// open opens memory for a call, for the responder to read or to write. It appends what
// has to be posted in front of the call.
func (g *registry) open(mem []byte, write bool, wrs []rnic.SendWR) (region, []rnic.SendWR, error) {
	access := rnic.RemoteRead | g.remote
	if write {
		access = rnic.RemoteWrite | rnic.LocalWrite | g.remote
	}
	r := region{mem: mem, out: write}
	var err error
	switch g.strategy {
	case RegisterEach:
		// Addresses of this process are nothing that a peer has to know.
		if r.mr, err = g.pd.RegisterMemory(rnic.Memory{Slice: mem, ZeroBased: true}, access, g.qp); err != nil {
			return r, wrs, err
		}
		r.tag = r.mr.STag()
		g.keep(r.mr)
	case RegisterFast:
		if r.mr, err = g.region(); err != nil {
			return r, wrs, err
		}
		key := nextKey(r.mr.STag())
		r.tag = r.mr.STag().WithKey(key)
		wrs = append(wrs, rnic.SendWR{Op: rnic.OpFastRegister, Flags: rnic.FlagUnsignaled, Register: rnic.FastRegister{
			MR: r.mr, Memory: rnic.Memory{Slice: mem, ZeroBased: true}, Access: access, Key: key,
		}})
	case RegisterPool:
		if r.pool, err = g.arena.get(len(mem)); err != nil {
			return r, wrs, err
		}
		if r.mw, err = g.window(); err != nil {
			g.arena.put(r.pool)
			return r, wrs, err
		}
		if !write {
			copy(r.pool.mem, mem)
		}
		key := nextKey(r.mw.STag())
		r.tag, r.to = r.mw.STag().WithKey(key), r.pool.mr.Base()+uint64(r.pool.off)
		wrs = append(wrs, rnic.SendWR{Op: rnic.OpBindWindow, Flags: rnic.FlagUnsignaled, Bind: rnic.Bind{
			MW: r.mw, MR: r.pool.mr, Addr: r.to, Length: uint64(len(mem)), Access: access &^ rnic.LocalWrite, Key: key,
		}})
	}
	r.open = true
	return r, wrs, nil
}

// nextKey returns a key that differs from that of an STag, and is hard to guess (RFC 8166
// §8.1.2).
func nextKey(s stag.STag) uint8 { return s.Key() + 1 + uint8(rand.N(255)) }

// region returns a region that is not valid.
func (g *registry) region() (*rnic.MR, error) {
	g.mu.Lock()
	if n := len(g.regions); n > 0 {
		mr := g.regions[n-1]
		g.regions = g.regions[:n-1]
		g.mu.Unlock()
		return mr, nil
	}
	g.mu.Unlock()
	mr, err := g.pd.AllocMR(g.most)
	if err == nil {
		g.keep(mr)
	}
	return mr, err
}

// window returns a window that is not bound.
func (g *registry) window() (*rnic.MW, error) {
	g.mu.Lock()
	if n := len(g.windows); n > 0 {
		mw := g.windows[n-1]
		g.windows = g.windows[:n-1]
		g.mu.Unlock()
		return mw, nil
	}
	g.mu.Unlock()
	mw, err := g.pd.AllocMW(rnic.Type2)
	if err == nil {
		g.keep(mw)
	}
	return mw, err
}

// keep notes what is to be closed with the connection.
func (g *registry) keep(c interface{ Close() error }) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made == nil {
		g.made = make(map[interface{ Close() error }]struct{})
	}
	g.made[c] = struct{}{}
}

func (g *registry) forget(c interface{ Close() error }) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.made, c)
}

// invalidation appends the request that closes an open region, if one does.
func (g *registry) invalidation(r *region, wrs []rnic.SendWR) []rnic.SendWR {
	if !r.open || g.strategy == RegisterEach {
		return wrs
	}
	return append(wrs, rnic.SendWR{Op: rnic.OpLocalInvalidate, Flags: rnic.FlagUnsignaled, Invalidate: r.tag})
}

// release gives a region back that the responder can't use any more: it was invalidated,
// or the connection has ended. That of RegisterEach it closes. It waits until nobody
// uses the memory.
func (g *registry) release(r *region, ended bool) error {
	switch {
	case r.mw != nil:
		if ended || r.open {
			g.forget(r.mw)
			if err := r.mw.Close(); err != nil {
				return err
			}
		}
		if r.out {
			copy(r.mem, r.pool.mem)
		}
		g.arena.put(r.pool)
		if !ended && !r.open {
			g.spare(nil, r.mw)
		}
	case r.mr != nil && (ended || r.open || g.strategy == RegisterEach):
		g.forget(r.mr)
		if err := r.mr.Close(); err != nil {
			return err
		}
	case r.mr != nil:
		g.spare(r.mr, nil)
	}
	*r = region{}
	return nil
}

func (g *registry) spare(mr *rnic.MR, mw *rnic.MW) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if mr != nil {
		g.regions = append(g.regions, mr)
	}
	if mw != nil {
		g.windows = append(g.windows, mw)
	}
}

// close closes what there is.
func (g *registry) close() error {
	g.mu.Lock()
	made := g.made
	g.made, g.regions, g.windows = nil, nil, nil
	g.mu.Unlock()
	var errs []error
	for c := range made {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
