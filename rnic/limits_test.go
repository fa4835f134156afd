package rnic_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// holdings returns how much of each resource a device holds.
func holdings(d *rnic.Device) (h [pd.NumResources]uint64) {
	for r := range h {
		h[r] = d.Held(pd.Resource(r))
	}
	return h
}

// wantHoldings compares what a device holds with what it should.
func wantHoldings(t testing.TB, when string, d *rnic.Device, want [pd.NumResources]uint64) {
	t.Helper()
	for r, n := range holdings(d) {
		if n != want[r] {
			t.Errorf("%s: %d %v are held; want %d", when, n, pd.Resource(r), want[r])
		}
	}
}

// A taking is a verb that takes so much of a resource.
type taking struct {
	name     string
	resource pd.Resource
	n        uint64
	domain   bool // it is charged to a domain, too
	take     func(l lab, p *rnic.PD) (io.Closer, error)
}

func takings() []taking {
	cqs := func(l lab) rnic.QPAttr {
		cq := l.cq(rnic.CQAttr{Entries: 1})
		return rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 3, MaxRecvWR: 5}
	}
	qp := func(l lab, p *rnic.PD) (io.Closer, error) { return p.CreateQP(cqs(l)) }
	srq := func(_ lab, p *rnic.PD) (io.Closer, error) { return p.CreateSRQ(rnic.SRQAttr{MaxWR: 7}) }
	register := func(_ lab, p *rnic.PD) (io.Closer, error) { return p.Register(make([]byte, 11), rnic.LocalWrite) }
	allocate := func(_ lab, p *rnic.PD) (io.Closer, error) { return p.AllocMR(13) }
	return []taking{
		{"protection domain", pd.Domains, 1, false, func(l lab, _ *rnic.PD) (io.Closer, error) { return l.dev.AllocPD() }},
		{"queue pair", pd.QueuePairs, 1, true, qp},
		{"send queue", pd.SendWRs, 3, true, qp},
		{"receive queue", pd.RecvWRs, 5, true, qp},
		{"completion queue", pd.CompletionQueues, 1, false, func(l lab, _ *rnic.PD) (io.Closer, error) { return l.dev.CreateCQ(rnic.CQAttr{}) }},
		{"its entries", pd.CQEntries, 9, false, func(l lab, _ *rnic.PD) (io.Closer, error) { return l.dev.CreateCQ(rnic.CQAttr{Entries: 9}) }},
		{"reserved completion queue", pd.CompletionQueues, 1, true, func(l lab, p *rnic.PD) (io.Closer, error) { return l.dev.CreateCQ(rnic.CQAttr{PD: p}) }},
		{"entries of one", pd.CQEntries, 9, true, func(l lab, p *rnic.PD) (io.Closer, error) { return l.dev.CreateCQ(rnic.CQAttr{PD: p, Entries: 9}) }},
		{"completion channel", pd.CompletionChannels, 1, false, func(l lab, _ *rnic.PD) (io.Closer, error) { return l.dev.CreateCompletionChannel() }},
		{"shared receive queue", pd.SharedQueues, 1, true, srq},
		{"receives of one", pd.RecvWRs, 7, true, srq},
		{"region", pd.Regions, 1, true, register},
		{"its octets", pd.MemoryOctets, 11, true, register},
		{"allocated region", pd.Regions, 1, true, allocate},
		{"octets of one", pd.MemoryOctets, 13, true, allocate},
		{"window of type 1", pd.Windows, 1, true, func(_ lab, p *rnic.PD) (io.Closer, error) { return p.AllocMW(rnic.Type1) }},
		{"window of type 2", pd.Windows, 1, true, func(_ lab, p *rnic.PD) (io.Closer, error) { return p.AllocMW(rnic.Type2) }},
		{"listener", pd.Listeners, 1, false, func(l lab, _ *rnic.PD) (io.Closer, error) { return l.dev.Listen(l.Context(), "192.0.2.1:0") }},
	}
}

// "All ULP resource allocation requests for scarce resources MUST also be done
// using a Privileged Resource Manager": RFC 5040 §8.1.2 rules 1, 2 and 6, RFC
// 5041 §8.3.2. Each verb that makes something asks the manager, takes what it
// says and no more, keeps nothing when it fails, and gives all back.
func TestVerbsAllocateThroughTheResourceManager(t *testing.T) {
	for _, v := range takings() {
		t.Run(v.name, func(t *testing.T) {
			base := uint64(0)
			if v.resource == pd.Domains {
				base = 2
			}
			var limit pd.Limits
			limit[v.resource] = base + 2*v.n + v.n - 1
			t.Run("device", func(t *testing.T) { v.run(t, rnic.Config{Limits: limit}, 2) })
			if v.domain {
				t.Run("domain", func(t *testing.T) { v.run(t, rnic.Config{DomainLimits: limit}, 4) })
			}
		})
	}
	t.Run("depths", testDepthsAreReserved)
	t.Run("half-open connections", testStartupsAreBounded)
	t.Run("everything at once", testAllIsGivenBack)
}

// run takes as often as the limit allows, from two domains by turns: so many
// times.
func (v *taking) run(t *testing.T, cfg rnic.Config, times int) {
	cfg.Network = new(simnet.Network)
	l := newLab(t, cfg)
	domains := []*rnic.PD{l.domain(), l.domain()}
	empty := holdings(l.dev)
	var taken []io.Closer
	for i := range times {
		before := l.dev.Held(v.resource)
		o, err := v.take(l, domains[i%2])
		if err != nil {
			t.Fatalf("%d of %d: %v", i+1, times, err)
		}
		taken = append(taken, o)
		if got := l.dev.Held(v.resource) - before; got != v.n {
			t.Errorf("it takes %d %v; want %d", got, v.resource, v.n)
		}
	}
	for _, p := range domains {
		full := holdings(l.dev)
		_, err := v.take(l, p)
		wantLimit(t, "one more", err, v.resource)
		wantRefused(t, "one more", err, nil, "raise the limit")
		var limit *pd.LimitError
		if errors.As(err, &limit) && (limit.Domain != 0) != (cfg.DomainLimits[v.resource] != 0) {
			t.Errorf("whose limit it is: %v", limit)
		}
		// What the object needs stays, and belongs to the test.
		full[pd.CompletionQueues], full[pd.CQEntries] = l.dev.Held(pd.CompletionQueues), l.dev.Held(pd.CQEntries)
		wantHoldings(t, "after a failure", l.dev, full)
	}
	if err := taken[0].Close(); err != nil {
		t.Error(err)
	}
	again, err := v.take(l, domains[0])
	if err != nil {
		t.Fatalf("after one was given back: %v", err)
	}
	for _, o := range append(taken[1:], again) {
		for range 2 { // a second Close gives nothing back again
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, p := range domains {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	empty[pd.Domains] -= 2
	if v.resource != pd.CompletionQueues && v.resource != pd.CQEntries { // those around queue pairs stay
		empty[pd.CompletionQueues], empty[pd.CQEntries] = l.dev.Held(pd.CompletionQueues), l.dev.Held(pd.CQEntries)
	}
	wantHoldings(t, "in the end", l.dev, empty)
}

// The depths of a stream are its own, and counted (RFC 5040 §8.1.2 rule 7).
func testDepthsAreReserved(t *testing.T) {
	for _, r := range []pd.Resource{pd.InboundReads, pd.OutboundReads} {
		for _, poor := range []string{"A", "B"} {
			for _, whose := range []string{"device", "domain"} {
				synctest.Test(t, func(t *testing.T) {
					network := new(simnet.Network)
					labs := map[string]lab{}
					for _, name := range []string{"A", "B"} {
						cfg := rnic.Config{Network: network}
						switch {
						case name != poor:
						case whose == "device":
							cfg.Limits[r] = 7
						default:
							cfg.DomainLimits[r] = 7
						}
						labs[name] = newLab(t, cfg)
					}
					a, b := labs["A"], labs["B"]
					pair := &rnictest.Pair{A: &rnictest.Side{Device: a.dev}, B: &rnictest.Side{Device: b.dev}}
					pa, pb := a.domain(), b.domain()
					param := rnic.ConnParam{IRD: 4, ORD: 4}
					q1, r1 := a.qp(pa, rnic.QPAttr{}), b.qp(pb, rnic.QPAttr{})
					if err := pair.TryLink(q1, r1, param, param); err != nil {
						t.Fatal(err)
					}
					for _, l := range labs {
						if in, out := l.dev.Held(pd.InboundReads), l.dev.Held(pd.OutboundReads); in != 4 || out != 4 {
							t.Errorf("%d and %d entries are held", in, out)
						}
					}
					q2, r2 := a.qp(pa, rnic.QPAttr{}), b.qp(pb, rnic.QPAttr{})
					wantLimit(t, "a second stream", pair.TryLink(q2, r2, param, param), r)
					synctest.Wait()
					for _, l := range labs {
						if in, out := l.dev.Held(pd.InboundReads), l.dev.Held(pd.OutboundReads); in != 4 || out != 4 {
							t.Errorf("after a failure, %d and %d entries are held", in, out)
						}
					}
					if q2.State() != rnic.Idle || r2.State() != rnic.Idle {
						t.Errorf("states after a failure: %v, %v", q2.State(), r2.State())
					}
					if err := q1.Disconnect(context.Background()); err != nil {
						t.Error(err)
					}
					synctest.Wait()
					if err := pair.TryLink(q2, r2, param, param); err != nil {
						t.Errorf("after the first was closed: %v", err)
					}
				})
			}
		}
	}
}

// Connections that have not told what they want are bounded; further ones wait
// in the network.
func testStartupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(simnet.Network)
		l := newLab(t, rnic.Config{Network: network, Limits: pd.Limits{pd.HalfOpen: 3}})
		listener, err := l.dev.Listen(t.Context(), "192.0.2.2:7174")
		if err != nil {
			t.Fatal(err)
		}
		var conns []net.Conn
		for range 10 {
			c, err := network.Dial(t.Context(), "192.0.2.2:7174")
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
		synctest.Wait()
		if n := l.dev.Held(pd.HalfOpen); n != 3 {
			t.Errorf("%d connections are in start-up; want 3", n)
		}
		for _, c := range conns {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if n := l.dev.Held(pd.HalfOpen); n != 0 {
			t.Errorf("%d connections are in start-up after all were closed", n)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		wantHoldings(t, "in the end", l.dev, [pd.NumResources]uint64{})
	})
}

// After a busy life, all is given back: object by object, or by the device.
func testAllIsGivenBack(t *testing.T) {
	var devices []*rnic.Device
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		for _, s := range []*rnictest.Side{p.A, p.B} {
			l := labOf(t, s)
			devices = append(devices, s.Device)
			before := holdings(s.Device)
			var objects []io.Closer
			for _, v := range takings() {
				if v.resource == pd.CompletionQueues || v.resource == pd.CQEntries || v.resource == pd.Domains {
					continue
				}
				p := l.domain()
				o, err := v.take(l, p)
				if err != nil {
					t.Fatal(err)
				}
				objects = append(objects, o, p)
			}
			for _, o := range objects {
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			}
			after := holdings(s.Device)
			after[pd.CompletionQueues], after[pd.CQEntries] = before[pd.CompletionQueues], before[pd.CQEntries]
			if after != before {
				t.Errorf("side %s holds %v; want %v", s.Name, after, before)
			}
			for _, v := range takings() { // these go with the device
				if _, err := v.take(l, s.PD); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.B.Recv(t, receives(0, 10)...)
		p.A.Send(t, empties(0, 5, 0)...)
	})
	for _, d := range devices { // which are closed
		wantHoldings(t, "closed device "+d.Name(), d, [pd.NumResources]uint64{})
	}
}
