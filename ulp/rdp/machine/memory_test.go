//go:build !race

package machine

import (
	"net/netip"
	"runtime"
	"testing"

	"urnic/ulp/rdp/wire"
)

// An idle connection is small: 10,000 of them take less than 64 MiB, also when they have moved data.
func TestIdleConnectionsAreSmall(t *testing.T) {
	const n = 10_000
	p := newPeer(t, nil)
	p.m.iss = p.m.chooseISS
	p.in("LISTEN", Params{})
	p.m.listeners[service{2, p.local}][0].cfg.Backlog = n
	p.m.cfg.MaxHalfOpen = n
	open := func() {
		for i := range n {
			p.path.Remote = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 10, byte(i >> 8), byte(i)}), 1)
			p.c = nil
			p.says("<SEQ=200><SYN>")
			iss := p.c.iss
			h := wire.Header{Flags: wire.ACK, Seq: 202, Ack: iss}
			p.saysHeader(&h, []byte("b"))
			h.Seq = 201
			p.saysHeader(&h, []byte("a"))
			p.send(3)
			p.sent(false)
			h.Seq, h.Ack = 203, iss+3
			p.saysHeader(&h, nil)
			if p.read() != "b a" || p.c.State() != Open || p.c.Status().Unacknowledged != 0 {
				t.Fatal("it does not work")
			}
			p.seen = nil
		}
	}
	per := float64(inUse(open)) / n
	t.Logf("%.0f bytes for each idle connection", per)
	runtime.KeepAlive(p)
	if per > 64<<20/n/2 { // both ends may be in one process
		t.Errorf("an idle connection takes %.0f bytes", per)
	}
}

// In the steady state nothing is allocated, whatever the mode.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for _, sequenced := range []bool{false, true} {
		l := newLoop(t, Params{Sequenced: sequenced, Window: 32, MaxSegment: 1472})
		data := make([]byte, 1000)
		n := 0
		once := func() {
			for range 16 {
				if err := l.a.c.Send(l.now, data); err != nil {
					t.Fatal(err)
				}
			}
			n++
			l.exchange(n%2 == 0)
		}
		for range 200 {
			once()
		}
		if got := testing.AllocsPerRun(200, once); got > 0 {
			t.Errorf("sequenced %v: %.1f allocations for 16 messages", sequenced, got)
		}
		if s := l.b.c.Status(); s.Stats.Messages < 400*16 {
			t.Errorf("%+v", s)
		}
	}
}
