package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"urnic/ulp/rx/rxrdma/wire"
)

// A program is what is done with one side of a call.
type program struct {
	s        *side
	k        *Call
	write    []byte // what is left to be written
	got      []byte
	want     []byte // what is to be read; nil: it is not known
	read     bool   // to the end
	aborts   bool   // now and then
	aborted  bool
	place    *Place
	p        []byte // that is offered
	stag     uint32
	finished bool
	closed   bool
}

// step does something, if it can.
func (p *program) step(rng *rand.Rand) {
	if p.finished {
		return
	}
	now := *p.s.now
	p.offers(rng, now)
	if p.aborts && rng.IntN(60) == 0 {
		p.k.Abort(now, 99)
	}
	p.writes(rng, now)
	if p.k.Err() != nil {
		p.aborted = true
	}
	done := p.aborted || p.read && p.closed
	if done && p.p == nil && (p.place == nil || p.place.Over) {
		p.k.End(now)
		p.finished = true
	}
}

func (p *program) writes(rng *rand.Rand, now Time) {
	if p.closed || p.place != nil && !p.place.Over || p.k.Err() != nil || !p.s.c.cfg.Client && !p.read {
		return
	}
	p.place = nil
	if len(p.write) == 0 {
		_ = p.k.CloseWrite(now)
		p.closed = true
		return
	}
	piece := p.write[:min(len(p.write), 1+rng.IntN(1<<rng.IntN(13)))]
	if n := p.k.Offered(len(piece)); n > 0 {
		pl := &Place{Len: n, Ref: piece[:n]}
		if p.k.Place(now, pl) {
			p.place = pl
			p.write = p.write[n:]
		}
		return
	}
	n, _ := p.k.Write(now, piece)
	p.write = p.write[n:]
	if rng.IntN(8) == 0 {
		_ = p.k.Flush(now)
	}
}

// offers reads, or offers memory, or looks what has become of it.
func (p *program) offers(rng *rand.Rand, now Time) {
	if p.p != nil {
		o := p.k.Offering()
		if o.State == Offered {
			return
		}
		delete(p.s.memory, p.stag)
		if o.State == Filled {
			p.got = append(p.got, p.p[:o.Filled]...)
		}
		p.k.Taken()
		p.p = nil
	}
	if p.read || rng.IntN(3) == 0 || p.s.c.cfg.Client && !p.closed {
		return
	}
	buf := make([]byte, 1+rng.IntN(1<<rng.IntN(14)))
	n, err := p.k.Read(now, buf)
	p.got = append(p.got, buf[:n]...)
	switch {
	case errors.Is(err, io.EOF):
		p.read = true
	case err != nil || n > 0:
	case p.k.MayOffer(len(buf)) > 0:
		p.s.tag++
		buf = buf[:p.k.MayOffer(len(buf))]
		p.s.memory[p.s.tag] = buf
		if p.k.Offer(now, p.s.tag, 0, len(buf)) {
			p.p, p.stag = buf, p.s.tag
		} else {
			delete(p.s.memory, p.s.tag)
		}
	default:
		p.k.Wait(now, len(buf))
	}
}

func random(rng *rand.Rand) []byte {
	b := make([]byte, rng.IntN(1<<rng.IntN(17)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// simulate runs calls between two sides, with messages that are on their way for any time.
func simulate(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 17))
	aborts := rng.IntN(2) == 0
	limits := func() wire.Private {
		p := wire.Private{Channels: uint8(1 + rng.IntN(4)), Window: uint16(1 + rng.IntN(5)), Receive: uint32(100 + rng.IntN(2000)), Bulk: uint32(rng.IntN(20000))}
		if rng.IntN(4) > 0 {
			p.Features = wire.FeatureOffer | wire.FeaturePlace
		}
		p.Credits = uint16(p.Channels)*p.Window + 2 + uint16(rng.IntN(20))
		return p
	}
	client, server := pair(t, func(c, s *Config) {
		c.Own, s.Own = limits(), limits()
		n := min(c.Own.Channels, s.Own.Channels)
		c.Own.Channels, s.Own.Channels = n, n
		c.Peer, s.Peer = s.Own, c.Own
		c.LeastBulk, s.LeastBulk = 1+rng.IntN(3000), 1+rng.IntN(3000)
		if rng.IntN(4) == 0 {
			overhead := 4 + 4*rng.IntN(2)
			c.ClientSecurity, s.ServerSecurity = &guard{xor: xor{overhead}}, &guardServer{guard{xor: xor{overhead}}}
		}
	})
	type exchange struct {
		request, reply []byte
		c, s           *program
	}
	var all []*exchange
	byCall := map[[2]uint32]*exchange{}
	var programs []*program
	left := 12
	for step := 0; ; step++ {
		if step > 2_000_000 {
			t.Fatalf("seed %d: it does not end", seed)
		}
		for len(server.begun) > 0 {
			k := server.begun[0]
			server.begun = server.begun[1:]
			x := byCall[[2]uint32{uint32(k.Channel()), k.Number()}]
			x.s = &program{s: server, k: k, write: x.reply, want: x.request, aborts: aborts}
			programs = append(programs, x.s)
		}
		switch n := rng.IntN(10); {
		case n == 0 && left > 0:
			k, err := client.c.Begin(0)
			if err != nil {
				break
			}
			left--
			x := &exchange{request: random(rng), reply: random(rng)}
			x.c = &program{s: client, k: k, write: x.request, want: x.reply, aborts: aborts}
			all = append(all, x)
			byCall[[2]uint32{uint32(k.Channel()), k.Number()}] = x
			programs = append(programs, x.c)
		case n < 5 && len(programs) > 0:
			programs[rng.IntN(len(programs))].step(rng)
		case n < 7:
			client.pull()
			server.pull()
		case n < 9 && client.sent.Len() > 0:
			server.deliver()
		case server.sent.Len() > 0:
			client.deliver()
		}
		if client.c.Err() != nil || server.c.Err() != nil {
			t.Fatalf("seed %d: %v, %v", seed, client.c.Err(), server.c.Err())
		}
		if step%64 != 0 || left > 0 || client.c.Active()+server.c.Active() > 0 {
			continue
		}
		ended := true
		for _, p := range programs {
			ended = ended && p.finished
		}
		if ended && len(server.begun) == 0 {
			break
		}
	}
	client.settle()
	for i, x := range all {
		for _, p := range []*program{x.c, x.s} {
			switch {
			case p == nil:
			case !p.aborted && !bytes.Equal(p.got, p.want):
				t.Errorf("seed %d: call %d: %s has read %d bytes of %d", seed, i, p, len(p.got), len(p.want))
			case p.aborted && !aborts:
				t.Errorf("seed %d: call %d: %s was aborted", seed, i, p)
			case len(p.got) > len(p.want) || !bytes.Equal(p.got, p.want[:len(p.got)]):
				t.Errorf("seed %d: call %d: %s has read what was not written", seed, i, p)
			}
		}
	}
	for _, s := range []*side{client, server} {
		s.pull()
		if s.buffers != 0 || s.posted != int(s.c.cfg.Own.Credits) || len(s.memory) != 0 || s.c.out.Len() != 0 {
			t.Errorf("seed %d: %d buffers, %d of %d receives, %d offers are left", seed, s.buffers, s.posted, s.c.cfg.Own.Credits, len(s.memory))
		}
	}
}

func (p *program) String() string {
	if p.s.c.cfg.Client {
		return fmt.Sprintf("the client (call %d)", p.k.Number())
	}
	return fmt.Sprintf("the server (call %d)", p.k.Number())
}

func TestStreamsComeWholeUnderAnySchedule(t *testing.T) {
	seeds := uint64(3000)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		if simulate(t, seed); t.Failed() {
			return
		}
	}
}

// FuzzMachine gives a side any messages of a peer, while programs use its calls.
func FuzzMachine(f *testing.F) {
	f.Add(uint64(1), []byte{})
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		rng := rand.New(rand.NewPCG(seed, 3))
		client, server := pair(t)
		var programs []*program
		for _, s := range []*side{client, server} {
			for i := 0; i < len(script); i += 4 {
				var b [4]byte
				copy(b[:], script[i:])
				m := wire.Message{
					Type: wire.Type(b[0] % 14), Flags: wire.Flags(b[0] >> 4), Channel: b[1] % 6, Call: uint32(b[1] >> 5),
					Seq: uint32(b[2] % 16), Length: uint32(b[3]) * 40, Code: int32(b[3]), Credits: uint16(b[2] >> 6),
				}
				s.c.granted = max(s.c.granted, 1)
				s.inject(m, string(make([]byte, b[3]%9)))
				if s == client && rng.IntN(3) == 0 {
					if k, err := s.c.Begin(0); err == nil {
						programs = append(programs, &program{s: s, k: k, write: random(rng), aborts: true})
					}
				}
				for _, k := range s.begun {
					programs = append(programs, &program{s: s, k: k, write: random(rng), aborts: true})
				}
				s.begun = nil
				for _, p := range programs {
					p.step(rng)
				}
				s.pull()
				*s.now += Time(b[3]) * 1e7
				if at, ok := s.c.Deadline(); ok && at <= *s.now {
					s.c.Advance(*s.now)
				}
			}
			s.c.Lost(*s.now, errors.New("the end"))
			for s.sent.Len() > 0 {
				if p := s.sent.Pop(); p.place != nil {
					s.c.Done(*s.now, p.place)
				}
			}
			for range 3 {
				for _, p := range programs {
					p.step(rng)
				}
			}
			for _, p := range programs {
				if p.s == s && p.k.Err() == nil && !p.finished && !p.k.in.last {
					t.Errorf("a call goes on after the end: %+v", p.k)
				}
				if p.p != nil && p.k.Offering().State == Offered {
					t.Error("an offer stands after the end")
				}
				p.k.End(*s.now)
			}
			s.pull()
			if len(s.slots)+int(limits.Credits) != s.posted || s.buffers != 0 {
				t.Errorf("%d messages, %d receives free, %d buffers", len(s.slots), s.posted, s.buffers)
			}
			programs = nil
		}
	})
}
