package machine

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"urnic/ulp/rx/wire"
)

// noise is what streams are cut from.
var noise = func() []byte {
	r := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}()

// A simCall is a call, its client's program, and what is known of how it is served.
type simCall struct {
	*Call
	s    *sim
	from *simNode
	life int
	id   int

	request, reply int // bytes
	written, read  int
	closed, ended  bool
	abortAt        int // bytes written after which the client aborts; -1: never
	serverAborts   int // bytes read after which the server aborts; -1: never
	lazy           bool
	asleep         bool

	served    *Call
	mixed     bool // two lives of the server have served it
	servedIn  int  // life of the server that has served it last
	restarted bool
	heard     [2]Time // when something of it last came to the server, and to the client
}

// A simServed is the program of a server's call.
type simServed struct {
	*Call
	call          *simCall
	n             *simNode
	life          int
	read, written int
	asleep, done  bool
}

// stream returns bytes of a call's request or reply.
func (k *simCall) stream(reply bool, from, to int) []byte {
	at := k.id * 131 % 4099
	if reply {
		at += 50_000
	}
	return noise[at+from : at+to]
}

// size draws how long a stream is: mostly short, and some fill packets exactly.
func (s *sim) size() int {
	switch s.rng.IntN(8) {
	case 0:
		return 0
	case 1:
		return 1412 * s.rng.IntN(4)
	case 2:
		return 1416 * s.rng.IntN(4)
	case 3, 4:
		if s.plan.large {
			return s.rng.IntN(200_000)
		}
		return s.rng.IntN(20_000)
	}
	return s.rng.IntN(2000)
}

// program begins the client's program: some calls, on one connection or two.
func (n *simNode) program() {
	s := n.s
	for range 1 + s.rng.IntN(2) {
		cfg := DialConfig{HardDead: s.plan.hard, IdleDead: s.plan.idle}
		if s.plan.secure && s.chance(0.8) {
			cfg.Security = fakeClient{}
		}
		c, err := n.Dial(s.now, s.nodes[0].addr, testService, cfg)
		if err != nil {
			s.fail("Dial: %v", err)
		}
		c.Owner = n
		n.conns = append(n.conns, c)
	}
	for range 1 + s.rng.IntN(5) {
		k := &simCall{
			s: s, from: n, life: n.life, id: s.rng.IntN(1 << 20), request: s.size(), reply: s.size(), abortAt: -1, serverAborts: -1,
			lazy: s.chance(0.2), asleep: true,
		}
		if s.plan.aborts && s.chance(0.3) {
			k.abortAt = s.rng.IntN(k.request + k.reply + 1)
		}
		if s.plan.aborts && s.chance(0.3) {
			k.serverAborts = s.rng.IntN(k.request + 1)
		}
		s.open++
		life := n.life
		c := n.conns[s.rng.IntN(len(n.conns))]
		s.later(s.upTo(500*time.Millisecond), func() {
			if n.life == life {
				k.begin(c)
				n.flush()
			} else {
				s.open--
			}
		})
	}
}

func (k *simCall) begin(c *Conn) {
	s := k.s
	call, err := c.Begin(s.now)
	switch {
	case errors.Is(err, ErrNoChannel):
		k.from.waiting = append(k.from.waiting, k)
		k.Call = &Call{c: c}
		return
	case err != nil:
		s.fail("Begin: %v", err)
	}
	k.Call, call.Owner, k.asleep = call, k, false
	s.calls[simKey{c.key.epoch, c.key.id | uint32(call.channel), call.number}] = k
	s.say("node %d begins call %d.%d.%d: %d bytes, %d back", k.from.index, c.key.id, call.channel, call.number, k.request, k.reply)
	k.step()
}

func (n *simNode) effect(e *Effect) {
	s := n.s
	switch e.Kind {
	case Incoming:
		c := e.Call
		k := s.calls[simKey{c.c.key.epoch, c.c.key.id | uint32(c.channel), c.number}]
		if k == nil {
			s.fail("a call is served that nobody makes")
		}
		if k.servedIn == n.life {
			s.fail("a call is served twice")
		}
		// A server that has restarted may serve a call again. The client can't tell the
		// packets of one reply from those of the other.
		k.mixed = k.servedIn != 0
		if s.plan.secure && c.c.index == fakeIndex && !c.Caller().Verified {
			s.fail("a call is served of a caller who is not known")
		}
		k.served, k.servedIn = c, n.life
		p := &simServed{Call: c, call: k, n: n, life: n.life}
		c.Owner = p
		s.say("call %d.%d.%d is served", c.c.key.id, c.channel, c.number)
		p.step()
	case Changed:
		switch p := e.Call.Owner.(type) {
		case *simCall:
			p.step()
		case *simServed:
			p.step()
		}
	case Freed:
		waiting := n.waiting
		n.waiting = nil
		for _, k := range waiting {
			if k.c == e.Conn {
				k.begin(k.c)
			} else {
				n.waiting = append(n.waiting, k)
			}
		}
	}
}

// pause has a program sleep. It reports whether it does.
func (s *sim) pause(n *simNode, life int, asleep *bool, most time.Duration, wake func()) bool {
	if !s.chance(0.1) {
		return false
	}
	*asleep = true
	s.later(s.upTo(most), func() {
		if n.life == life {
			*asleep = false
			wake()
			n.flush()
		}
	})
	return true
}

// step continues with the client's program.
func (k *simCall) step() {
	s := k.s
	most := 100 * time.Millisecond
	if k.lazy {
		most = 15 * time.Second
	}
	for !k.ended && !k.asleep {
		if k.abortAt >= 0 && k.written+k.read >= k.abortAt && k.Err() == nil {
			s.say("call %d.%d.%d: its client aborts", k.c.key.id, k.channel, k.number)
			k.Abort(s.now, 4711)
			k.finish(nil)
			return
		}
		if s.pause(k.from, k.life, &k.asleep, most, k.step) {
			return
		}
		n, err := 0, error(nil)
		switch {
		case k.written < k.request:
			n, err = k.Write(s.now, k.stream(false, k.written, min(k.request, k.written+1+s.rng.IntN(3000))))
			k.written += n
			if n > 0 && s.chance(0.2) {
				err = k.Flush(s.now)
			}
		case !k.closed:
			err = k.CloseWrite(s.now)
			k.closed, n = true, 1
		default:
			b := make([]byte, 1+s.rng.IntN(3000))
			n, err = k.Read(s.now, b)
			k.got(b[:n])
		}
		if err != nil {
			k.finish(err)
			return
		}
		if n == 0 {
			return
		}
	}
}

// got takes a part of the reply.
func (k *simCall) got(b []byte) {
	if k.mixed {
		return
	}
	if k.read+len(b) > k.reply || !bytes.Equal(b, k.stream(true, k.read, k.read+len(b))) {
		k.s.fail("call %d.%d.%d: a reply is wrong at %d", k.c.key.id, k.channel, k.number, k.read)
	}
	k.read += len(b)
}

// finish ends a call, and judges how it has ended.
func (k *simCall) finish(err error) {
	s := k.s
	k.ended = true
	s.open--
	k.End(s.now)
	s.say("call %d.%d.%d ends: %v", k.c.key.id, k.channel, k.number, err)
	switch {
	case err == nil: // it was aborted here
	case errors.Is(err, io.EOF):
		if k.read != k.reply && !k.mixed {
			s.fail("a reply ends at %d, and not at %d", k.read, k.reply)
		}
		if k.serverAborts >= 0 {
			s.fail("a call whose server aborts succeeds")
		}
	default:
		k.judge(err)
	}
}

// judge judges an error.
func (k *simCall) judge(err error) {
	s := k.s
	var e *AbortError
	if !errors.As(err, &e) {
		s.fail("a client is given %v", err)
	}
	switch {
	case e.Remote && k.serverAborts >= 0 && e.Code == wire.Code(9000+k.serverAborts):
	case e.Remote && s.net.spoils && e.Code == wire.CallDead: // it seemed dead to the server
	case e.Code == wire.CallTimeout && s.plan.hard != 0:
		if !e.Remote && s.now < k.began+s.plan.hard {
			s.fail("the time of a call is over early")
		}
	case e.Code == wire.CallTimeout && (k.restarted || k.lazy || s.net.spoils) && s.plan.idle != 0:
	case k.restarted && e.Code == wire.CallDead:
	case errors.Is(e.Cause, errSilent) && s.net.spoils && s.now-k.heard[1] >= k.c.limits.dead:
	default:
		s.fail("a call fails with %v", err)
	}
}

// step continues with the server's program.
func (p *simServed) step() {
	s, k := p.n.s, p.call
	for !p.done && !p.asleep {
		if k.serverAborts >= 0 && p.read >= k.serverAborts {
			p.Abort(s.now, wire.Code(9000+k.serverAborts))
			p.done = true
			p.End(s.now)
			return
		}
		if s.pause(p.n, p.life, &p.asleep, 2*time.Second, p.step) {
			return
		}
		n, err := 0, error(nil)
		switch {
		case p.read <= k.request: // one more than there is: the end
			b := make([]byte, 1+s.rng.IntN(3000))
			n, err = p.Read(s.now, b)
			p.got(b[:n])
			if errors.Is(err, io.EOF) {
				if p.read != k.request {
					s.fail("a request ends at %d, and not at %d", p.read, k.request)
				}
				p.read, n, err = k.request+1, 1, nil
			}
		case p.written < k.reply:
			n, err = p.Write(s.now, k.stream(true, p.written, min(k.reply, p.written+1+s.rng.IntN(5000))))
			p.written += n
		default:
			err = p.CloseWrite(s.now)
			p.done = true
		}
		if err != nil {
			p.done = true
			p.judge(err)
		}
		if p.done {
			p.End(s.now)
		}
		if n == 0 {
			return
		}
	}
}

// got takes a part of the request.
func (p *simServed) got(b []byte) {
	k := p.call
	if p.read+len(b) > k.request || !bytes.Equal(b, k.stream(false, p.read, p.read+len(b))) {
		p.n.s.fail("call %d.%d.%d: a request is wrong at %d", k.c.key.id, k.channel, k.number, p.read)
	}
	p.read += len(b)
}

// judge judges an error that the server's program is given.
func (p *simServed) judge(err error) {
	s, k := p.n.s, p.call
	var e *AbortError
	switch {
	case !errors.As(err, &e):
		s.fail("a server is given %v", err)
	case e.Remote && (e.Code == 4711 || e.Code == wire.UserAbort) && k.abortAt >= 0:
	case e.Remote && s.net.spoils && e.Code == wire.CallDead: // it seemed dead to the client
	case e.Code == wire.CallTimeout && (s.plan.hard != 0 || (k.restarted || k.lazy || s.net.spoils) && s.plan.idle != 0):
	case k.restarted && e.Code == wire.CallDead:
	case errors.Is(e.Cause, errReplaced) && (k.ended || k.abortAt >= 0):
	case errors.Is(e.Cause, errSilent) && s.now-k.heard[0] >= p.c.limits.dead:
	default:
		s.fail("a server's call fails with %v", err)
	}
}
