//go:build linux

package dropin

import (
	"sync/atomic"
	"syscall"

	"urnic/rnic"
)

// A channel is a struct ibv_comp_channel's.
type channel struct {
	ctx   *rdmaContext
	verbs *rnic.CompletionChannel
	users atomic.Int32 // completion queues
}

// ChannelCreate makes a completion channel, and returns a descriptor that is readable
// while ChannelNext has something.
func (e *Engine) ChannelCreate(ctx Handle) (h Handle, fd int, _ Errno) {
	c := e.contexts.get(ctx)
	if c == nil {
		return 0, -1, syscall.EINVAL
	}
	verbs, err := e.device.CreateCompletionChannel()
	if err != nil {
		return 0, -1, e.fail(err)
	}
	if fd, err = verbs.FD(); err == nil {
		err = syscall.SetNonblock(fd, false) // that is for the program to set
	}
	if err == nil {
		if h = e.channels.add(&channel{ctx: c, verbs: verbs}); h != 0 {
			return h, fd, ok
		}
		err = syscall.ENOMEM
	}
	_ = verbs.Close() // err says why
	return 0, -1, e.fail(err)
}

// ChannelNext tells the cookie of a completion queue that has fired.
func (e *Engine) ChannelNext(ch Handle, cookie *uint64) Errno {
	c := e.channels.get(ch)
	if c == nil || cookie == nil {
		return syscall.EINVAL
	}
	for {
		fired := c.verbs.Poll()
		if fired == nil {
			return syscall.EAGAIN
		}
		if q, known := e.ofCQ.Load(fired); known { // else it has just been destroyed
			*cookie = q.(*completionQueue).cookie
			return ok
		}
	}
}

// ChannelDestroy gives a completion channel up, unless a queue uses it.
func (e *Engine) ChannelDestroy(ch Handle) Errno {
	c := e.channels.get(ch)
	if c == nil {
		return syscall.EINVAL
	}
	if c.users.Load() > 0 {
		return syscall.EBUSY
	}
	if e.channels.remove(ch) == nil {
		return syscall.EINVAL
	}
	return e.fail(c.verbs.Close())
}
