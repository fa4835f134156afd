package server

import (
	"bytes"
	"context"

	"urnic/conformance/service"
	"urnic/rnic"
	"urnic/stag"
)

// A region is registered memory, or such that was.
type region struct {
	num   int
	pd    int
	rnic  *rnic.MR
	block *block
	open  bool // it is not deregistered
}

func (r *region) result() *service.Region {
	return &service.Region{MR: r.num, STag: service.STag(r.rnic.STag()), TO: service.Uint64(r.rnic.Base()), Length: r.rnic.Len()}
}

func (c *session) register(_ context.Context, a *service.RegisterArgs) (any, error) {
	domain, err := c.domain(a.PD)
	if err != nil {
		return nil, err
	}
	access, err := union("access", rights, a.Access)
	if err != nil {
		return nil, err
	}
	var of *rnic.QP
	if a.QP != 0 {
		q, err := find(c, c.qps, a.QP, "queue pair")
		if err != nil {
			return nil, err
		}
		of = q.rnic
	}
	c.mu.Lock()
	full := len(c.mrs) >= maxObjects
	c.mu.Unlock()
	if full {
		return nil, &service.Error{Code: service.CodeLimit, Message: "the session has as many regions as may be: release some"}
	}
	r := &region{pd: a.PD, open: true}
	if r.block, err = c.memory.alloc(a.Length, contentOf(a)); err != nil {
		return nil, err
	}
	if a.Fast {
		r.rnic, err = domain.AllocMR(a.Length)
	} else {
		r.rnic, err = domain.RegisterMemory(r.block.memory(a.Length, a.ZeroBased, a.Base), access, of)
	}
	if err != nil {
		r.block.free()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.num = c.number()
	c.mrs[r.num] = r
	result := r.result()
	result.Length = a.Length // of a region that is not valid yet, too
	return result, nil
}

// memory is the block, or the first n bytes of it, for the RNIC.
func (b *block) memory(n uint64, zeroBased bool, base service.Uint64) rnic.Memory {
	return rnic.Memory{Slice: b.mem[:n:n], ZeroBased: zeroBased, Base: uint64(base)}
}

// contentOf returns what a region holds at first: n bytes of it, from byte off on.
func contentOf(a *service.RegisterArgs) func(off, n int) []byte {
	return func(off, n int) []byte {
		if a.Pattern != nil {
			return service.PatternAt(*a.Pattern, off, n)
		}
		return bytes.Repeat([]byte{a.Fill}, n)
	}
}

func (c *session) region(n int) (*region, error) { return find(c, c.mrs, n, "region") }

func (r *region) close() error {
	if !r.open {
		return nil
	}
	if err := r.rnic.Close(); err != nil {
		return err
	}
	r.open = false
	return nil
}

func (c *session) deregister(_ context.Context, a *service.MR) (any, error) {
	r, err := c.region(a.MR)
	if err != nil {
		return nil, err
	}
	return nil, r.close()
}

func (c *session) release(_ context.Context, a *service.MR) (any, error) {
	r, err := c.region(a.MR)
	if err != nil {
		return nil, err
	}
	if err := r.close(); err != nil {
		return nil, err
	}
	r.block.free()
	remove(c, c.mrs, a.MR)
	return nil, nil
}

func (c *session) memoryRead(_ context.Context, a *service.ReadArgs) (any, error) {
	r, err := c.region(a.MR)
	if err != nil {
		return nil, err
	}
	if a.Length > maxData {
		return nil, bad("length %d: say up to %d, and read a region in pieces", a.Length, maxData)
	}
	p, err := r.block.read(a.Offset, a.Length)
	if err != nil {
		return nil, err
	}
	return &service.Data{Data: p}, nil
}

func (c *session) memoryWrite(_ context.Context, a *service.WriteArgs) (any, error) {
	r, err := c.region(a.MR)
	if err != nil {
		return nil, err
	}
	if err := r.block.has(a.Offset, len(a.Data)); err != nil {
		return nil, err
	}
	return nil, r.block.write(a.Data, int(a.Offset))
}

func (c *session) fastRegister(ctx context.Context, a *service.FastRegisterArgs) (any, error) {
	r, err := c.region(a.MR)
	if err != nil {
		return nil, err
	}
	access, err := union("access", rights, a.Access)
	if err != nil {
		return nil, err
	}
	n := a.Length
	if n == 0 {
		n = uint64(r.block.n)
	}
	if err := r.block.has(0, int(min(n, 1<<62))); err != nil {
		return nil, err
	}
	wr := rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{
		MR: r.rnic, Memory: r.block.memory(n, a.ZeroBased, a.Base), Access: access, Key: a.Key,
	}}
	if err := c.postAndWait(ctx, a.QP, wr, a.Timeout); err != nil {
		return nil, err
	}
	return r.result(), nil
}

func (c *session) invalidate(ctx context.Context, a *service.InvalidateArgs) (any, error) {
	return nil, c.postAndWait(ctx, a.QP, rnic.SendWR{Op: rnic.OpLocalInvalidate, Invalidate: stag.STag(a.STag)}, a.Timeout)
}

func (c *session) window(_ context.Context, a *service.WindowArgs) (any, error) {
	domain, err := c.domain(a.PD)
	if err != nil {
		return nil, err
	}
	if a.Type != 1 && a.Type != 2 {
		return nil, bad("type %d: say 1 or 2", a.Type)
	}
	w, err := domain.AllocMW(rnic.WindowType(a.Type))
	if err != nil {
		return nil, err
	}
	return &service.NewWindow{MW: add(c, c.mws, w), STag: service.STag(w.STag())}, nil
}

func (c *session) bind(ctx context.Context, a *service.BindArgs) (any, error) {
	w, err := find(c, c.mws, a.MW, "window")
	if err != nil {
		return nil, err
	}
	access, err := union("access", rights, a.Access)
	if err != nil {
		return nil, err
	}
	b := rnic.Bind{MW: w, Length: a.Length, Access: access, Key: a.Key}
	if a.MR != 0 {
		r, err := c.region(a.MR)
		if err != nil {
			return nil, err
		}
		b.MR, b.Addr = r.rnic, r.rnic.Base()+a.Offset
	}
	if err := c.postAndWait(ctx, a.QP, rnic.SendWR{Op: rnic.OpBindWindow, Bind: b}, a.Timeout); err != nil {
		return nil, err
	}
	return &service.Window{STag: service.STag(w.STag()), TO: service.Uint64(b.Addr)}, nil
}

func (c *session) closeWindow(_ context.Context, a *service.MW) (any, error) {
	w, err := find(c, c.mws, a.MW, "window")
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	remove(c, c.mws, a.MW)
	return nil, nil
}

func (c *session) tag(_ context.Context, a *service.TagArgs) (any, error) {
	if a.MW != 0 {
		w, err := find(c, c.mws, a.MW, "window")
		if err != nil {
			return nil, err
		}
		return tagOf(w, &service.Tag{}), nil
	}
	r, err := c.region(a.MR)
	if err != nil {
		return nil, err
	}
	return tagOf(r.rnic, &service.Tag{TO: service.Uint64(r.rnic.Base()), Length: r.rnic.Len()}), nil
}

// tagOf completes what is said of an STag.
func tagOf(o interface {
	STag() stag.STag
	Valid() bool
	Access() rnic.Access
	Stats() stag.Stats
}, t *service.Tag,
) *service.Tag {
	s := o.Stats()
	t.STag, t.Valid, t.Access = service.STag(o.STag()), o.Valid(), members(rights, o.Access())
	t.Accesses, t.OctetsIn, t.OctetsOut = s.Accesses, s.OctetsIn, s.OctetsOut
	return t
}
