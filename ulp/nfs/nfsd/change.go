package nfsd

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// Weak cache consistency (RFC 1813 §2.6, wcc_data): a client whose cache agrees with what
// a file was before a call keeps it, and takes what the file is after the call. That is
// right only if nobody else has changed the file in between. What a directory or a file's
// attributes are is changed by one call at a time; files are written by many, so that the
// attributes from before are left out if calls overlap.

// changes knows what is being changed. Files share a stripe by chance, which costs an
// attribute or a wait, nothing else.
type changes struct {
	seed    maphash.Seed
	stripes [256]stripe
}

type stripe struct {
	mu    sync.Mutex
	state atomic.Uint64 // how many changes there are, and how many times startedOne there were
	syncs sync.RWMutex  // see object.sync
	_     [24]byte      // the rest of a cache line
}

const (
	startedOne = 1 << 20
	activeMask = startedOne - 1
)

func (c *changes) index(h vfs.Handle) int {
	return int(maphash.String(c.seed, string(h)) % uint64(len(c.stripes)))
}

func (c *changes) stripe(h vfs.Handle) *stripe { return &c.stripes[c.index(h)] }

// begin begins a change of a file that others may change meanwhile.
func (c *changes) begin(h vfs.Handle) change {
	s := c.stripe(h)
	return change{s, s.state.Add(startedOne + 1)}
}

// A change is a call that changes a file.
type change struct {
	stripe *stripe
	began  uint64 // its state
}

// end ends the change, and reports whether there was no other one meanwhile.
func (c *change) end() bool {
	alone := c.began&activeMask == 1 && c.stripe.state.Load() == c.began
	c.stripe.state.Add(^uint64(0))
	return alone
}

// wcc returns what a client learns of a change of a file, which was alone or not.
func (o *object) wcc(after nfs3.PostOpAttr, alone bool) nfs3.WccData {
	w := nfs3.WccData{After: after}
	if alone {
		w.Before = nfs3.PreOpAttr{Present: true, Size: o.attr.Size, Mtime: nfs3.TimeOf(o.attr.Mtime), Ctime: nfs3.TimeOf(o.attr.Ctime)}
	}
	return w
}

// A changing is one file or two that a call changes, while no other changing has them.
type changing struct {
	files [2]object
	n     int // how many they are
	held  [2]change
	locks int // how many are held: two files may share one
}

// changing returns the files that handles name, which must be of one export, or else it
// says ErrXDev. They are the caller's until done.
func (s *Server) changing(ctx context.Context, c *call, handles ...*nfs3.Handle) (*changing, error) {
	g := &changing{}
	var indexes [2]int
	for i, h := range handles {
		o, err := s.named(c, h)
		if err != nil {
			return nil, err
		}
		if i > 0 && o.x != g.files[0].x {
			return nil, nfs3.ErrXDev
		}
		g.files[i], indexes[i] = o, s.changes.index(o.h)
		g.n++
	}
	if g.n == 2 && indexes[0] > indexes[1] { // one order for all, so that nobody waits in a circle
		indexes[0], indexes[1] = indexes[1], indexes[0]
	}
	for i := range g.n {
		if i > 0 && indexes[i] == indexes[i-1] {
			break
		}
		st := &s.changes.stripes[indexes[i]]
		st.mu.Lock()
		g.held[i] = change{st, st.state.Add(startedOne + 1)}
		g.locks++
	}
	for i := range g.n {
		if err := g.files[i].load(ctx); err != nil {
			g.release()
			return nil, err
		}
	}
	return g, nil
}

func (g *changing) release() (alone bool) {
	alone = true
	for i := range g.locks {
		alone = g.held[i].end() && alone
		g.held[i].stripe.mu.Unlock()
	}
	return alone
}

// done lets others have the files, and returns what the client learns of each.
func (g *changing) done(ctx context.Context) (w [2]nfs3.WccData) {
	var after [2]nfs3.PostOpAttr
	for i := range g.n {
		after[i] = g.files[i].post(ctx)
	}
	alone := g.release()
	for i := range g.n {
		w[i] = g.files[i].wcc(after[i], alone)
	}
	return w
}
