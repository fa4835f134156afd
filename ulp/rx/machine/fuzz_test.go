package machine

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A script is what a fuzzer has written.
type script []byte

func (s *script) next() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

func (s *script) take(n int) []byte {
	n = min(n, len(*s))
	b := (*s)[:n]
	*s = (*s)[n:]
	return b
}

// A fuzzed is a machine to which a script does what it likes.
type fuzzed struct {
	*Machine
	s     script
	now   Time
	conns []*Conn
	calls []*Call
	buf   []byte
}

// header makes up a header that is likely to be of something that there is.
func (f *fuzzed) header() wire.Header {
	s := &f.s
	h := wire.Header{
		Epoch: testEpoch, CID: testCID | uint32(s.next()&7), Call: uint32(s.next() & 3), Seq: uint32(s.next() & 31), Serial: uint32(s.next()),
		Type: wire.Type(s.next() & 15), Flags: wire.Flags(s.next()), Service: testService + uint16(s.next()&1),
	}
	what := s.next()
	if what&1 != 0 && len(f.conns) > 0 {
		c := f.conns[int(what>>1)%len(f.conns)]
		h.Epoch, h.CID, h.Security, h.Service = c.key.epoch, c.key.id|h.CID&3, c.index, c.service
		h.Flags &^= wire.FlagClient
	}
	if what&0x40 != 0 {
		h.Security = fakeIndex
	}
	if what&0x80 != 0 {
		h.Epoch &^= wire.HighBit
	}
	return h
}

func (f *fuzzed) step() {
	s := &f.s
	op := s.next()
	var k *Call
	if len(f.calls) > 0 {
		k = f.calls[int(op>>4)%len(f.calls)]
	}
	switch op & 15 {
	case 0, 1, 2, 3, 4:
		h := f.header()
		n := int(s.next())
		if n > 250 {
			n *= 12 // jumbograms
		}
		body := s.take(n)
		if n > 250 {
			body = append(body, make([]byte, n-len(body))...)
		}
		from := netip.AddrPortFrom(there.Addr(), there.Port()+uint16(op>>6))
		f.Receive(f.now, from, append(h.Append(nil), body...))
	case 5:
		f.Receive(f.now, there, s.take(int(s.next())))
	case 6:
		f.now += time.Duration(s.next()) * time.Millisecond * 50
		f.Advance(f.now)
	case 7:
		cfg := DialConfig{Upgrade: op&0x20 != 0, HardDead: time.Duration(s.next()) * time.Second}
		if op&0x10 != 0 {
			cfg.Security = fakeClient{}
		}
		if c, err := f.Dial(f.now, there, testService, cfg); err == nil && len(f.conns) < 8 {
			f.conns = append(f.conns, c)
		}
	case 8:
		if len(f.conns) > 0 {
			if k, err := f.conns[int(op>>4)%len(f.conns)].Begin(f.now); err == nil {
				f.calls = append(f.calls, k)
			}
		}
	case 9:
		if len(f.conns) > 0 && s.next() < 40 {
			f.conns[int(op>>4)%len(f.conns)].Close(f.now)
		}
	default:
		if k != nil {
			f.call(k, op&15)
		}
	}
}

func (f *fuzzed) call(k *Call, op byte) {
	switch op {
	case 10:
		k.Write(f.now, pattern(int(f.s.next())*40)) //nolint:errcheck // whatever it says
	case 11:
		k.Flush(f.now) //nolint:errcheck // whatever it says
	case 12:
		k.CloseWrite(f.now)
	case 13:
		k.Read(f.now, make([]byte, int(f.s.next())*10)) //nolint:errcheck // whatever it says
	case 14:
		k.Abort(f.now, wire.Code(f.s.next()))
	case 15:
		k.End(f.now)
	}
}

// drain takes what the machine has to say.
func (f *fuzzed) drain(t *testing.T) {
	for range 10_000 {
		for _, e := range f.Effects() {
			if e.Kind == Incoming {
				f.calls = append(f.calls, e.Call)
			}
		}
		n, _, ok := f.Pull(f.now, f.buf)
		if !ok {
			return
		}
		if _, err := wire.ParseHeader(f.buf[:n]); err != nil {
			t.Fatalf("it sends %d bytes", n)
		}
	}
	t.Fatal("it sends without end")
}

// Whatever datagrams come and programs do, in any order, the machine does not fail, holds no
// more than it may, and has nothing left when all is over.
func FuzzMachine(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		b := make([]byte, 2000)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := New(Config{
			Rand: rand.New(rand.NewPCG(1, 2)), MaxConns: 6, Memory: 20_000, Unverified: 5000, Window: 20, Epoch: testEpoch + 1,
			Link: func(a netip.AddrPort) int { return 1000 + int(a.Port()-there.Port())*4000 },
		})
		for i, s := range []Service{{Security: []secure.Server{fakeServer{}}}, {Reach: true, IdleDead: 20 * time.Second}} {
			if s.ID = testService + uint16(i); m.Serve(s) != nil {
				t.Fatal("Serve fails")
			}
		}
		z := &fuzzed{Machine: m, s: b, buf: make([]byte, MaxDatagram), now: 1}
		for len(z.s) > 0 {
			z.step()
			if z.now&1 == 0 || len(z.s)%3 == 0 {
				z.drain(t)
			}
			// What is next in turn is taken beyond the limit, once for each call that is served.
			if m.memory > 20_000+4*(6+8)*2*(maxPacket+512) || m.suspect > 5000 || len(m.conns) > 6+256 || m.raw.Len() > 256 {
				t.Fatalf("%d bytes, %d suspect, %d connections", m.memory, m.suspect, len(m.conns))
			}
		}
		z.drain(t)
		for _, k := range z.calls {
			k.End(z.now)
		}
		for _, c := range append([]*Conn(nil), m.list...) {
			c.Close(z.now)
		}
		z.drain(t)
		for range 2000 {
			at, ok := m.Deadline()
			if !ok {
				break
			}
			z.now = max(z.now, at)
			m.Advance(z.now)
			z.drain(t)
		}
		if m.memory != 0 || m.suspect != 0 || m.pool.out != 0 || len(m.conns)+len(m.list)+len(m.peers)+len(m.timers) != 0 || m.stats.LiveCalls != 0 {
			t.Fatalf("left: %d bytes, %d pieces, %d connections, %d peers, %d timers, %d calls",
				m.memory, m.pool.out, len(m.conns), len(m.peers), len(m.timers), m.stats.LiveCalls)
		}
	})
}
