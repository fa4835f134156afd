package machine

import (
	"io"

	"urnic/ulp/rx/rxrdma/wire"
	rxwire "urnic/ulp/rx/wire"
)

// A Call is one exchange on a channel: a stream to the server, then a stream back. Client
// and server use the same methods.
type Call struct {
	// Owner is whatever the owner wants to find again.
	Owner any

	c       *Conn
	channel uint8
	number  uint32
	err     *AbortError
	aborted bool // an ABORT was sent
	ended   bool // the program is done with the call
	started Time
	moved   Time
	release Time // when the peer must have given up what it may write to; 0: nothing waits

	in      incoming
	out     outgoing
	placing int // Places that are not over
}

// Conn is the call's connection.
func (k *Call) Conn() *Conn { return k.c }

// Number is the call's number.
func (k *Call) Number() uint32 { return k.number }

// Channel is the call's channel.
func (k *Call) Channel() int { return int(k.channel) }

// Err is why the call has failed, or nil.
func (k *Call) Err() error {
	if k.err == nil {
		return nil
	}
	return k.err
}

// over reports whether both directions have ended.
func (k *Call) over() bool { return k.in.ended && k.out.ended }

// settle frees the channel if the call needs it no more: both directions have ended, and
// what came was read. Else its receives would be held beyond its window.
func (k *Call) settle() {
	if k.over() && k.in.parts.Len() == 0 {
		k.c.vacate(k)
	}
}

// Abort ends the call with a code for the peer, unless it has ended.
func (k *Call) Abort(now Time, code rxwire.Code) {
	k.c.now = now
	k.abort(&AbortError{Code: code})
}

func (k *Call) abort(err *AbortError) {
	if k.err != nil || k.over() || k.c.err != nil {
		return
	}
	k.fail(err)
	k.sendAbort(err.Code)
	if !k.over() {
		k.release = k.c.now + k.c.cfg.DeadTime
		if k.in.offer.State == Offered || k.placing > 0 {
			k.release = k.c.now + min(releaseWait, k.c.cfg.DeadTime)
		}
	}
	k.settle()
}

// sendAbort ends this side's direction. A call that the peer does not know needs no
// message.
func (k *Call) sendAbort(code rxwire.Code) {
	if k.c.cfg.Client && k.out.seq == 0 {
		k.in.ended = true
	} else if !k.aborted {
		k.c.out.Push(Out{Msg: k.abortMessage(code)})
	}
	k.aborted, k.out.ended = true, true
}

func (k *Call) abortMessage(code rxwire.Code) wire.Message {
	return wire.Message{Type: wire.Abort, Channel: k.channel, Call: k.number, Code: int32(code)}
}

// abortedBy takes the peer's abort, which ends its direction.
func (k *Call) abortedBy(code rxwire.Code) {
	k.in.end()
	k.in.ended = true
	k.fail(&AbortError{Code: code, Remote: true})
	k.c.host.Readable(k) // also where the call had failed before, and an offer has ended
	if !k.out.ended {
		k.sendAbort(code) // this direction ends as well
	}
	k.settle()
}

// fail gives up what the call holds.
func (k *Call) fail(err *AbortError) {
	if k.err != nil {
		return
	}
	k.err = err
	k.out.drop(k.c)
	k.drain()
	k.c.host.Failed(k)
	k.c.host.Readable(k)
	k.c.host.Writable(k)
}

// lose fails the call with its connection. One that has all its data stays as it is.
func (k *Call) lose(err *AbortError) {
	whole := k.in.ended && (k.out.ended || k.out.closing) && k.err == nil
	k.out.drop(k.c)
	k.in.end()
	k.in.ended, k.out.ended = true, true
	k.c.calls[k.channel] = nil
	k.c.active--
	if !whole {
		k.fail(err)
		k.c.host.Readable(k) // also where the call had failed before
		k.c.host.Writable(k)
	}
}

// End says that the program is done with the call. A client's whose reply was not read to
// its end is aborted.
func (k *Call) End(now Time) {
	k.c.now = now
	if k.ended {
		return
	}
	k.ended = true
	if k.c.cfg.Client {
		if k.err == nil && (!k.in.ended || k.in.parts.Len() > 0) {
			k.abort(&AbortError{Code: rxwire.UserAbort})
		}
	}
	if k.err == nil {
		k.discard()
		k.closeWrite()
	}
	k.drain()
	k.settle()
}

// drain frees the receives of what was not read.
func (k *Call) drain() {
	for k.in.parts.Len() > 0 {
		p := k.in.parts.Pop()
		if p.slot >= 0 {
			k.c.host.Free(p.slot)
		}
		k.in.read = p.seq
	}
}

// deadline is when advance is to be called.
func (k *Call) deadline() Time {
	at := never
	if k.release != 0 {
		at = k.release
	}
	if k.err == nil {
		if d := k.c.cfg.IdleDead; d > 0 {
			at = min(at, k.moved+d)
		}
		if d := k.c.cfg.HardDead; d > 0 {
			at = min(at, k.started+d)
		}
	}
	return at
}

// advance does what is due.
func (k *Call) advance() {
	now, cfg := k.c.now, &k.c.cfg
	switch {
	case k.release != 0 && now >= k.release:
		k.c.violated(RuleOffer, errHeld)
	case k.err != nil:
	case cfg.HardDead > 0 && now >= k.started+cfg.HardDead:
		k.abort(&AbortError{Code: rxwire.CallTimeout, Cause: errHard})
	case cfg.IdleDead > 0 && now >= k.moved+cfg.IdleDead:
		k.abort(&AbortError{Code: rxwire.CallTimeout, Cause: errIdle})
	}
}

// Read reads what has come of the peer's stream. It returns 0 and no error if nothing has.
func (k *Call) Read(now Time, p []byte) (int, error) {
	k.c.now = now
	switch {
	case k.err != nil:
		return 0, k.err
	case k.ended || k.in.discard:
		return 0, ErrEnded
	case k.c.cfg.Client && !k.out.closing:
		return 0, ErrOrder
	}
	n := 0
	for n < len(p) && k.in.parts.Len() > 0 {
		s := k.in.parts.At(0)
		c := copy(p[n:], s.data)
		n += c
		if s.data = s.data[c:]; len(s.data) == 0 {
			k.consume()
		}
	}
	if n > 0 {
		k.moved = now
		k.demand(len(p))
		k.settle()
		return n, nil
	}
	if k.in.last && k.in.parts.Len() == 0 {
		return 0, io.EOF
	}
	return 0, nil
}
