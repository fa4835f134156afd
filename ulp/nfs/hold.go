package nfs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"urnic/ulp/nfs/nfs3"
)

// An extent is data that a server may have in memory only.
type extent struct {
	off      uint64
	data     []byte
	verifier nfs3.Verifier // of the server that has it
	safe     bool          // it is on stable storage all the same

	seq    uint64 // grows from one to the next
	lender uint64 // whose memory it is: 0 for a copy
	epoch  uint64 // the client's before it was written
}

// An inode is a file that is open, once for all that have it open: what it holds is what
// was written and not committed.
type inode struct {
	handle nfs3.Handle
	users  int // under the client's mutex

	// writes is held for reading by writer, and for writing by writer again what
	// a server has lost: that must not come after newer data.
	writes sync.RWMutex
	turn   chan struct{} // holds one while nobody commits

	mu      sync.Mutex
	pending []extent // in the order in which they were written
	octets  int64    // of the copies, counted in the client's held
	next    uint64   // seq of the next extent
	sealed  uint64   // no extent below that grows any more
	lenders uint64

	waiting atomic.Bool   // something is pending
	epoch   atomic.Uint64 // of the first of pending
}

// acquire returns the inode of a file.
func (c *Client) acquire(h nfs3.Handle) *inode {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.inodes[h]
	if in == nil {
		in = &inode{handle: h, turn: make(chan struct{}, 1)}
		in.turn <- struct{}{}
		c.inodes[h] = in
	}
	in.users++
	return in
}

// opened returns the inode of a file if it is open.
func (c *Client) opened(h nfs3.Handle) *inode {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.inodes[h]
	if in != nil {
		in.users++
	}
	return in
}

// release gives an inode back, and with the last user what is held of it.
func (c *Client) release(in *inode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in.users--; in.users > 0 {
		return
	}
	delete(c.inodes, in.handle)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drop(c, func(*extent) bool { return true })
}

// drop drops extents. The inode is locked.
func (in *inode) drop(c *Client, which func(*extent) bool) {
	in.pending = slices.DeleteFunc(in.pending, func(x extent) bool {
		if !which(&x) {
			return false
		}
		if x.lender == 0 {
			in.octets -= int64(len(x.data))
			c.held.Add(-int64(len(x.data)))
		}
		return true
	})
	in.waiting.Store(len(in.pending) > 0)
	if len(in.pending) > 0 {
		in.epoch.Store(in.pending[0].epoch)
	}
}

// put writes p into a file.
func (c *Client) put(ctx context.Context, in *inode, p []byte, off uint64, sync bool) (int, error) {
	how := nfs3.Unstable
	if sync || c.cfg.Sync {
		how = nfs3.FileSync
	}
	epoch := c.epoch.Load()
	in.writes.RLock()
	n, unsafe, err := c.writeAt(ctx, in.handle, p, off, how)
	lender := c.hold(in, unsafe, epoch)
	in.writes.RUnlock()
	if lender == 0 {
		return n, err
	}
	// There was no room: p stands for the copy until it is committed.
	if e := c.commit(ctx, in); e != nil {
		in.writes.RLock() // who writes again has it in use
		defer in.writes.RUnlock()
		in.mu.Lock()
		defer in.mu.Unlock()
		in.drop(c, func(x *extent) bool { return x.lender == lender })
		return 0, errors.Join(err, e)
	}
	return n, err
}

// hold makes extents pending. If there is no room for copies it returns who has lent
// them: they are to be committed, or dropped.
func (c *Client) hold(in *inode, extents []extent, epoch uint64) (lender uint64) {
	if len(extents) == 0 {
		return 0
	}
	var n int64
	for _, x := range extents {
		n += int64(len(x.data))
	}
	// A long write costs less to commit than to copy.
	room := c.held.Add(n) <= c.cfg.Hold && n <= c.cfg.Hold/4
	in.mu.Lock()
	defer in.mu.Unlock()
	if room {
		in.octets += n
	} else {
		c.held.Add(-n)
		in.lenders++
		lender = in.lenders
	}
	if len(in.pending) == 0 {
		in.epoch.Store(epoch)
	}
	for _, x := range extents {
		x.epoch, x.lender = epoch, lender
		in.append(x, c.wsize)
	}
	in.waiting.Store(true)
	return lender
}

// append makes an extent pending. A copy becomes a part of the last one if that continues
// there.
func (in *inode) append(x extent, most int) {
	if x.lender == 0 {
		if n := len(in.pending); n > 0 {
			last := &in.pending[n-1]
			if last.seq >= in.sealed && last.lender == 0 && last.verifier == x.verifier &&
				last.off+uint64(len(last.data)) == x.off && len(last.data)+len(x.data) <= most {
				last.data = append(last.data, x.data...)
				return
			}
		}
		x.data = append([]byte(nil), x.data...)
	}
	x.seq = in.next
	in.next++
	in.pending = append(in.pending, x)
}

// seal returns where what is pending ends. It reports whether anything is.
func (in *inode) seal() (end uint64, some bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.sealed = in.next
	return in.next, len(in.pending) > 0
}

// roundsMost is how often a client writes again what a server says it has lost before it
// has that brought to stable storage at once.
const roundsMost = 3

// commit brings to stable storage what was pending when it was called. All of it still is
// if it returns an error.
func (c *Client) commit(ctx context.Context, in *inode) error {
	select {
	case <-in.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { in.turn <- struct{}{} }()
	for round := 1; ; round++ {
		end, some := in.seal()
		if !some {
			return nil
		}
		v, err := c.commitFile(ctx, in.handle)
		if err != nil || in.settle(c, end, v) {
			return err
		}
		how := nfs3.Unstable
		if round >= roundsMost {
			how = nfs3.FileSync
		}
		if err := c.again(ctx, in, how); err != nil {
			return err
		}
	}
}

func (c *Client) commitFile(ctx context.Context, h nfs3.Handle) (nfs3.Verifier, error) {
	var res nfs3.CommitRes
	err := c.call(ctx, nfs3.ProcCommit, &nfs3.CommitArgs{File: h}, &res, &res.Status)
	return res.Verifier, err
}

// settle drops what was pending before end, if the server that has committed had all of
// it.
func (in *inode) settle(c *Client, end uint64, v nfs3.Verifier) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, x := range in.pending {
		if x.seq < end && !x.safe && x.verifier != v {
			return false
		}
	}
	in.drop(c, func(x *extent) bool { return x.seq < end })
	return true
}

// again writes all that is pending again, in order: what the server still has may have
// been overwritten by what it has lost.
func (c *Client) again(ctx context.Context, in *inode, how nfs3.Stable) error {
	in.writes.Lock()
	defer in.writes.Unlock()
	in.mu.Lock()
	list := slices.Clone(in.pending)
	in.mu.Unlock()
	for i := range list {
		if err := c.rewrite(ctx, in.handle, &list[i], how); err != nil {
			return err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	// Nobody writes, nobody else commits, and who drops what was lent waits.
	copy(in.pending, list)
	return nil
}

// rewrite writes an extent again.
func (c *Client) rewrite(ctx context.Context, h nfs3.Handle, x *extent, how nfs3.Stable) error {
	x.safe = true
	for at := 0; at < len(x.data); {
		n, safe, v, err := c.write(ctx, h, x.data[at:min(len(x.data), at+c.wsize)], x.off+uint64(at), how)
		if err != nil {
			return err
		}
		if !safe && x.safe { // the first one counts: it may be lost before the others are
			x.safe, x.verifier = false, v
		}
		at += n
	}
	return nil
}

// refresh commits what is pending of a file if the connection was lost since it was
// written: the server may have restarted, and know nothing of it.
func (c *Client) refresh(ctx context.Context, in *inode) error {
	if !c.outdated(in) {
		return nil
	}
	return c.commit(ctx, in)
}

func (c *Client) outdated(in *inode) bool {
	return in.waiting.Load() && in.epoch.Load() != c.epoch.Load()
}
