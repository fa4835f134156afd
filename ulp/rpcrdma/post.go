package rpcrdma

import (
	"errors"
	"runtime"
	"sync"

	"urnic/rnic"
)

// A poster posts the work requests of all that send on a connection. Those of several
// goroutines that are about to send are posted together, as the LLP then takes their
// messages by one call of the system: that costs more than anything else about a short
// message.
type poster struct {
	postAll func(wrs ...rnic.SendWR) error // QP.PostSendAll

	mu      sync.Mutex
	posting bool // somebody posts, and looks again before stopping
	waiting bool // somebody is about to post, and lets others come before
	next    batch
	last    batch // its memory is used again
}

// A batch is work requests that are posted together, with what they send inline: who has
// asked for that may use its memory again at once.
type batch struct {
	wrs    []rnic.SendWR
	inline []byte
	calls  int // of post
}

func (b *batch) add(wrs []rnic.SendWR) {
	b.calls++
	for i := range wrs {
		wr := wrs[i]
		if wr.Flags&rnic.FlagInline != 0 {
			from := len(b.inline)
			b.inline = append(b.inline, wr.Inline...)
			wr.Inline = b.inline[from:len(b.inline):len(b.inline)]
		}
		b.wrs = append(b.wrs, wr)
	}
}

// post posts work requests in the order in which it is called. Who posts already does so
// for those that come meanwhile. If others have calls outstanding too, as many as it says with
// this one, those of them that can run come first, until there is half of them together:
// with all of them, either side of the connection would wait while the other one works. It
// returns an error of what it has posted itself: the others hear of it when the connection
// ends.
func (p *poster) post(others int, wrs ...rnic.SendWR) error {
	p.mu.Lock()
	p.next.add(wrs)
	if p.posting {
		p.mu.Unlock()
		return nil
	}
	if p.next.calls < others/2 {
		if p.waiting {
			p.mu.Unlock()
			return nil
		}
		p.waiting = true
		p.mu.Unlock()
		runtime.Gosched()
		runtime.Gosched() // those too whom the first have woken
		p.mu.Lock()
		if !p.waiting || p.posting { // somebody else has posted, or does
			p.mu.Unlock()
			return nil
		}
	}
	p.posting = true
	for {
		b := p.next
		p.waiting = false
		p.next, p.last = p.last, batch{}
		p.mu.Unlock()
		err := p.postAll(b.wrs...)
		clear(b.wrs)
		p.mu.Lock()
		p.last = batch{wrs: b.wrs[:0], inline: b.inline[:0]}
		if p.posting = err == nil && len(p.next.wrs) > 0; !p.posting {
			p.mu.Unlock()
			return err
		}
	}
}

// send posts work requests, with those of others who send at the same time. What can't be
// posted ends the connection (RFC 8166 §4.5.4).
func (e *endpoint) send(others int, wrs ...rnic.SendWR) {
	if err := e.out.post(others, wrs...); err != nil {
		if errors.Is(err, rnic.ErrQueueFull) {
			err = ErrFull
		}
		e.fail(err)
	}
}
