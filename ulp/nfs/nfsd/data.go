package nfsd

import (
	"context"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// leastLent is from how many bytes on it is better to have data lent than to copy it.
const leastLent = 32 << 10

// read is READ (RFC 1813 §3.3.6). The data is sent from where a filesystem lends it, or is
// read into memory of the transport, and goes from there.
func (s *Server) read(ctx context.Context, c *call, a *nfs3.ReadArgs, r *nfs3.ReadRes) error {
	o, err := s.object(ctx, c, &a.File)
	if err != nil {
		return err
	}
	ctx = o.as(ctx)
	if err := o.mayRead(); err != nil {
		r.Attr = o.present(&o.attr)
		return err
	}
	if a.Offset >= o.attr.Size { // also where no filesystem can have anything
		if err := o.granted(ctx, vfs.AccessRead|vfs.AccessExec); err != nil {
			r.Attr = o.present(&o.attr)
			return err
		}
		r.Attr, r.EOF = o.present(&o.attr), true
		return nil
	}
	n := min(uint64(a.Count), uint64(s.readMax), o.attr.Size-a.Offset)
	if lender, ok := o.x.FS.(vfs.Lender); ok && n >= leastLent {
		loan, end, err := lender.Lend(ctx, o.h, int(n), a.Offset)
		if err != nil {
			r.Attr = o.present(&o.attr)
			return err
		}
		c.exchange.Borrow(loan)
		r.Pieces, r.EOF = loan.Pieces(), end
	} else if n > 0 {
		p := c.exchange.Bulk(int(n))
		got, end, err := o.x.FS.Read(ctx, o.h, p, a.Offset)
		if err != nil {
			r.Attr = o.present(&o.attr)
			return err
		}
		r.Data, r.EOF = p[:got], end
	}
	r.Attr = o.post(ctx)
	return nil
}

func (o *object) mayRead() error {
	if err := o.regular(); err != nil {
		return err
	}
	if !o.x.features.Callers && !o.cred.mayRead(&o.attr) {
		return nfs3.ErrAcces
	}
	return nil
}

// write is WRITE (§3.3.7). What is more than WriteMax is left for the next one.
func (s *Server) write(ctx context.Context, c *call, a *nfs3.WriteArgs, r *nfs3.WriteRes) error {
	o, err := s.named(c, &a.File)
	if err != nil {
		return err
	}
	change := s.changes.begin(o.h)
	if err := o.load(ctx); err != nil {
		change.end()
		return err
	}
	verifier := s.writeVerifier(o.x)
	n, err := o.write(ctx, a)
	after := o.post(ctx)
	r.Wcc = o.wcc(after, change.end())
	if err != nil {
		return err
	}
	r.Count, r.Verifier = uint32(n), verifier
	if a.Stable != nfs3.Unstable {
		r.Committed = nfs3.FileSync
	}
	return nil
}

// write writes what it may at once, and returns how much that is.
func (o *object) write(ctx context.Context, a *nfs3.WriteArgs) (int, error) {
	if err := o.mayChange(); err != nil {
		return 0, err
	}
	data := a.Data[:min(len(a.Data), int(o.s.writeMax))]
	ctx = o.as(ctx)
	if len(data) == 0 { // changes no time either
		return 0, o.granted(ctx, vfs.AccessWrite)
	}
	if a.Offset > 1<<63-1 {
		return 0, nfs3.ErrFBig
	}
	if err := o.fits(a.Offset + uint64(len(data))); err != nil {
		return 0, err
	}
	if mode := unprivileged(o.attr.Mode); mode != o.attr.Mode && !o.cred.root() && o.x.features.SetMode && !o.x.features.Callers {
		if err := o.setAttrs(ctx, vfs.SetAttr{Mode: &mode}); err != nil {
			return 0, err
		}
	}
	if a.Stable == nfs3.Unstable {
		return len(data), o.noteLoss(o.x.FS.Write(ctx, o.h, data, a.Offset, false))
	}
	return len(data), o.sync(func() error { return o.x.FS.Write(ctx, o.h, data, a.Offset, true) })
}

func (o *object) mayChange() error {
	if err := o.regular(); err != nil {
		return err
	}
	if err := o.changeable(); err != nil {
		return err
	}
	if !o.x.features.Callers && !o.cred.mayWrite(&o.attr) {
		return nfs3.ErrAcces
	}
	return nil
}

// commit is COMMIT (§3.3.21).
func (s *Server) commit(ctx context.Context, c *call, a *nfs3.CommitArgs, r *nfs3.CommitRes) error {
	o, err := s.named(c, &a.File)
	if err != nil {
		return err
	}
	change := s.changes.begin(o.h)
	if err := o.load(ctx); err != nil {
		change.end()
		return err
	}
	if err = o.mayChange(); err == nil {
		err = o.granted(ctx, vfs.AccessWrite) // first, so that a refusal does not look like a loss
	}
	if err == nil {
		err = o.sync(func() error {
			err := o.x.FS.Commit(o.as(ctx), o.h, a.Offset, uint64(a.Count))
			if err != nil { // nobody can say what of the data is there
				s.forget()
			}
			return err
		})
	}
	o.syncsDone()
	after := o.post(ctx)
	r.Wcc = o.wcc(after, change.end())
	r.Verifier = s.writeVerifier(o.x)
	return err
}
