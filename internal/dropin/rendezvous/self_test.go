package rendezvous

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/rnic"
)

func TestQueuePairThatIsItsOwnPeer(t *testing.T) {
	inSim(t, func(s *sim) {
		a := s.process(hostA).side()
		for _, change := range []func(*Peer){func(*Peer) {}, func(p *Peer) { p.Addr = netip.Addr{} }} {
			a.up(a, change)
			wants(s, a)
			if err := a.qp.PostRecv(rnic.RecvWR{ID: 1}); err != nil {
				s.Fatal(err)
			}
			if err := a.qp.PostSend(rnic.SendWR{ID: 2, Op: rnic.OpSend}); err != nil {
				s.Fatal(err)
			}
			for _, cq := range []*rnic.CQ{a.send, a.recv} {
				var wcs [1]rnic.WC
				if n, err := cq.Wait(s.Context(), wcs[:]); n != 1 || err != nil || wcs[0].Status != rnic.StatusSuccess {
					s.Errorf("completion: %d, %v, %+v", n, err, wcs[0])
				}
			}
			a.reset()
		}
		a.up(a)
		wants(s, a)
		begin := time.Now()
		if err := a.qp.Disconnect(s.Context()); err != nil {
			s.Errorf("disconnect: %v", err)
		}
		synctest.Wait()
		if d := time.Since(begin); d > time.Second {
			s.Errorf("it took %v to disconnect", d)
		}
	})
}

// More than sockets hold goes round, too, in both forms that large messages have.
func TestMuchGoesRound(t *testing.T) {
	const size = 16 << 20
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := New(Config{Device: dev})
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &process{sim: &sim{TB: t}, m: m, dev: dev}
	if p.pd, err = dev.AllocPD(); err != nil {
		t.Fatal(err)
	}
	a := p.side()
	if err := a.ep.Connect(Peer{QPN: a.num, IRD: 4}, func(err error) { a.done <- err }); err != nil {
		t.Fatal(err)
	}
	wants(t, a)
	mem := make([]byte, 4*size)
	for i := 0; i < size; i += 64 {
		mem[i] = byte(rand.Uint32())
	}
	mr, err := p.pd.Register(mem, rnic.LocalWrite|rnic.RemoteRead|rnic.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.qp.PostRecv(rnic.RecvWR{SGL: []rnic.SGE{mr.SGE(size, size)}}); err != nil {
		t.Fatal(err)
	}
	from := rnic.Remote{STag: mr.STag(), TO: mr.Base()}
	err = a.qp.PostSend(
		rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{mr.SGE(2*size, size)}, Remote: from},
		rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{mr.SGE(3*size, size)}, Remote: from},
		rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{mr.SGE(0, size)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, cq := range []*rnic.CQ{a.send, a.send, a.send, a.recv} {
		var wcs [1]rnic.WC
		if n, err := cq.Wait(t.Context(), wcs[:]); n != 1 || err != nil || wcs[0].Status != rnic.StatusSuccess {
			t.Fatalf("completion: %d, %v, %+v", n, err, wcs[0])
		}
	}
	for i := 1; i < 4; i++ {
		if !bytes.Equal(mem[:size], mem[i*size:][:size]) {
			t.Errorf("copy %d differs", i)
		}
	}
}
