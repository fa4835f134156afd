//go:build linux

package dropin

import (
	"sync"
	"syscall"
)

// A rdmaContext is what a program gets when it opens the device. The objects that it
// makes then are its own.
type rdmaContext struct {
	engine *Engine
	handle Handle
	device uint32 // its index
	cookie uint64
	async  *eventQueue[Async]

	telling sync.Mutex // held while it is decided whether an event is told

	ports portWatch
}

// ContextOpen makes a context of a device, and returns a descriptor that is readable while
// AsyncNext has something.
func (e *Engine) ContextOpen(device uint32, cookie uint64) (h Handle, asyncFD int, _ Errno) {
	if uint64(device) >= uint64(len(e.devices)) {
		return 0, -1, syscall.ENODEV
	}
	q, err := newEventQueue[Async]()
	if err != nil {
		return 0, -1, e.fail(err)
	}
	c := &rdmaContext{engine: e, device: device, cookie: cookie, async: q}
	if c.handle = e.contexts.add(c); c.handle == 0 {
		_ = q.close() // nobody has seen it
		return 0, -1, e.refuse(syscall.ENOMEM, "open device: too many contexts")
	}
	c.watchPorts()
	return c.handle, q.num, ok
}

// AsyncNext tells the oldest asynchronous event that nobody has fetched.
func (e *Engine) AsyncNext(ctx Handle, out *Async) Errno {
	c := e.contexts.get(ctx)
	if c == nil || out == nil {
		return syscall.EINVAL
	}
	event, some := c.async.next()
	if !some {
		return syscall.EAGAIN
	}
	*out = event
	return ok
}

// ContextClose gives a context up, with all that the program has left in it.
func (e *Engine) ContextClose(ctx Handle) Errno {
	c := e.contexts.remove(ctx)
	if c == nil {
		return syscall.EINVAL
	}
	c.ports.close()
	e.qps.each(func(h Handle, q *qp) {
		if q.ctx == c {
			_ = e.QPDestroy(h)
		}
	})
	e.srqs.each(func(h Handle, s *sharedQueue) {
		if s.pd.ctx == c {
			_ = e.SRQDestroy(h)
		}
	})
	e.cqs.each(func(h Handle, q *completionQueue) {
		if q.ctx == c {
			_ = e.CQDestroy(h)
		}
	})
	e.channels.each(func(h Handle, ch *channel) {
		if ch.ctx == c {
			_ = e.ChannelDestroy(h)
		}
	})
	e.windows.each(func(h Handle, w *window) {
		if w.pd.ctx == c {
			_ = e.MWFree(h)
		}
	})
	e.regions.each(func(h Handle, r *region) {
		if r.pd.ctx == c {
			_ = e.MRDereg(h)
		}
	})
	e.ahs.each(func(h Handle, a *addressHandle) {
		if a.pd.ctx == c {
			_ = e.AHDestroy(h)
		}
	})
	e.pds.each(func(h Handle, p *protectionDomain) {
		if p.ctx == c {
			_ = e.PDFree(h)
		}
	})
	return e.fail(c.async.close())
}
