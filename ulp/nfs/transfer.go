package nfs

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// pieces cuts n bytes into pieces of size, and has do move them, with Depth of them
// outstanding. It returns how many bytes were moved from the first on without a gap, and
// what was wrong with the piece behind them. A piece that is short without an error ends
// the transfer, too.
func (c *Client) pieces(n, size int, do func(from, to int) (int, error)) (int, error) {
	count := (n + size - 1) / size
	if count <= 1 {
		return do(0, n)
	}
	type result struct {
		n   int
		err error
	}
	results := make([]result, count)
	var next atomic.Int64
	var ended atomic.Bool
	var workers sync.WaitGroup
	work := func() {
		for !ended.Load() {
			i := int(next.Add(1)) - 1
			if i >= count {
				return
			}
			from, to := i*size, min((i+1)*size, n)
			r := &results[i]
			if r.n, r.err = do(from, to); r.err != nil || r.n < to-from {
				ended.Store(true)
			}
		}
	}
	for range min(c.cfg.Depth, count) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	done := 0
	for i, r := range results {
		done += r.n
		if r.err != nil || r.n < min((i+1)*size, n)-i*size {
			return done, r.err
		}
	}
	return done, nil
}

// A reading is a READ outstanding.
type reading struct {
	args nfs3.ReadArgs
	res  nfs3.ReadRes
	into [1][]byte
	call oncrpc.Invocation
}

var readings = sync.Pool{New: func() any {
	r := &reading{}
	r.call = oncrpc.Invocation{
		Program: nfs3.Program, Version: nfs3.Version, Procedure: uint32(nfs3.ProcRead),
		Args:        r.args.Encode,
		Results:     func(d *xdr.Decoder) error { return r.res.DecodeInto(d, r.into[0]) },
		ResultsMost: nfs3.ProcRead.MaxReply(&r.args),
	}
	r.call.Sinks = r.into[:]
	return r
}}

func (r *reading) release() {
	r.into[0], r.res, r.call.Cred = nil, nfs3.ReadRes{}, oncrpc.Auth{}
	readings.Put(r)
}

// read reads up to len(p) bytes by one READ.
func (c *Client) read(ctx context.Context, h nfs3.Handle, p []byte, off uint64) (n int, end bool, err error) {
	r := readings.Get().(*reading)
	defer r.release()
	r.args = nfs3.ReadArgs{File: h, Offset: off, Count: uint32(len(p))}
	r.into[0], r.call.Cred = p, c.cred
	if err := c.invoke(ctx, &r.call, &r.res.Status); err != nil {
		return 0, false, err
	}
	return len(r.res.Data), r.res.EOF, nil
}

// readAt fills p from off on. It returns io.EOF if the file has no more.
func (c *Client) readAt(ctx context.Context, h nfs3.Handle, p []byte, off uint64) (int, error) {
	n, err := c.pieces(len(p), c.rsize, func(from, to int) (int, error) {
		for at := from; ; {
			n, end, err := c.read(ctx, h, p[at:to], off+uint64(at))
			at += n
			switch {
			case err != nil || at == to:
				return at - from, err
			case end:
				return at - from, io.EOF
			case n == 0: // a server may return less, but not nothing (RFC 1813 §3.3.6)
				return at - from, ErrServer
			}
		}
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// A writing is a WRITE outstanding.
type writing struct {
	args nfs3.WriteArgs
	res  nfs3.WriteRes
	call oncrpc.Invocation
}

var writings = sync.Pool{New: func() any {
	w := &writing{}
	w.call = oncrpc.Invocation{
		Program: nfs3.Program, Version: nfs3.Version, Procedure: uint32(nfs3.ProcWrite),
		Args:        w.args.Encode,
		Results:     w.res.Decode,
		ResultsMost: nfs3.ProcWrite.MaxReply(&w.args),
	}
	return w
}}

func (w *writing) release() {
	w.args.Data, w.call.Cred = nil, oncrpc.Auth{}
	writings.Put(w)
}

// write writes up to len(p) bytes by one WRITE. safe reports whether they are on stable
// storage.
func (c *Client) write(ctx context.Context, h nfs3.Handle, p []byte, off uint64, how nfs3.Stable) (n int, safe bool, v nfs3.Verifier, err error) {
	w := writings.Get().(*writing)
	defer w.release()
	w.args = nfs3.WriteArgs{File: h, Offset: off, Stable: how, Data: p}
	w.call.Cred = c.cred
	if err := c.invoke(ctx, &w.call, &w.res.Status); err != nil {
		return 0, false, v, err
	}
	// What is less stable than was asked for, or more than was sent, can't be.
	if w.res.Count == 0 || uint64(w.res.Count) > uint64(len(p)) || w.res.Committed < how {
		return 0, false, v, ErrServer
	}
	return int(w.res.Count), w.res.Committed != nfs3.Unstable, w.res.Verifier, nil
}

// writeAt writes p at off. It returns what of it the server has not on stable storage; that
// lies in p.
func (c *Client) writeAt(ctx context.Context, h nfs3.Handle, p []byte, off uint64, how nfs3.Stable) (int, []extent, error) {
	var mu sync.Mutex
	var unsafe []extent
	n, err := c.pieces(len(p), c.wsize, func(from, to int) (int, error) {
		at := from
		for at < to {
			n, safe, v, err := c.write(ctx, h, p[at:to], off+uint64(at), how)
			if err != nil {
				return at - from, err
			}
			if !safe {
				mu.Lock()
				unsafe = append(unsafe, extent{off: off + uint64(at), data: p[at : at+n], verifier: v})
				mu.Unlock()
			}
			at += n
		}
		return at - from, nil
	})
	return n, unsafe, err
}
