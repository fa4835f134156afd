package rdsstress

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/loopback"
	"urnic/rnic"
	"urnic/ulp/rds"
)

// To have it for a minute: go test ./ulp/rds/rdsstress -run Cuts -v -cuts 1m
var (
	cutsFor  = flag.Duration("cuts", 0, "how long connections are cut by TestRDMAAcrossCuts; 0: until it has seen enough of them")
	cutsSeed = flag.Uint64("seed", 1, "seed of the cuts of TestRDMAAcrossCuts")
)

// A proxy forwards TCP connections, and resets each after a random number of bytes.
type proxy struct {
	l  net.Listener
	to string

	mu   sync.Mutex
	rng  *rand.Rand
	cuts int

	workers sync.WaitGroup
}

func newProxy(t *testing.T, at, to string, seed uint64) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: to, rng: rand.New(rand.NewPCG(seed, 0))}
	ctx, cancel := context.WithCancel(context.Background())
	p.workers.Go(func() { p.accept(ctx) })
	t.Cleanup(func() {
		cancel()
		l.Close()
		p.workers.Wait()
	})
	return p
}

// count returns how many connections were cut.
func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

func (p *proxy) accept(ctx context.Context) {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.workers.Go(func() { p.forward(ctx, c.(*net.TCPConn)) })
	}
}

// forward forwards a connection until one side ends it, or as many bytes have passed as
// chance allows. Nodes are known by their addresses, so that the new one has the source of the old one.
func (p *proxy) forward(ctx context.Context, a *net.TCPConn) {
	defer a.Close()
	host := a.RemoteAddr().(*net.TCPAddr).IP
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: host}}
	c, err := d.DialContext(ctx, "tcp", p.to)
	if err != nil {
		_ = a.SetLinger(0)
		return
	}
	b := c.(*net.TCPConn)
	defer b.Close()
	p.mu.Lock()
	// One connection in four ends in its handshake, or before much is done. An RDMA operation that
	// is issued on many connections in vain is given up.
	left := int64(p.rng.IntN(1 << 20))
	if p.rng.IntN(4) == 0 {
		left = int64(p.rng.IntN(1 << (8 + p.rng.IntN(10))))
	}
	towards := p.rng.IntN(2)
	p.mu.Unlock()
	var once sync.Once
	end := func(cut bool) {
		once.Do(func() {
			if cut {
				p.mu.Lock()
				p.cuts++
				p.mu.Unlock()
			}
			for _, c := range []*net.TCPConn{a, b} {
				_ = c.SetLinger(0)
				c.Close()
			}
		})
	}
	defer context.AfterFunc(ctx, func() { end(false) })()
	var w sync.WaitGroup
	for i, way := range [][2]*net.TCPConn{{a, b}, {b, a}} {
		w.Go(func() {
			from := io.Reader(way[0])
			if i == towards {
				from = io.LimitReader(from, left)
			}
			n, err := io.Copy(way[1], struct{ io.Reader }{from})
			if cut := i == towards && n == left && err == nil; cut || err != nil {
				end(cut)
				return
			}
			_ = way[1].CloseWrite() // the other way may have ended it
		})
	}
	w.Wait()
}

// proxied returns a transport that listens at an address, and reaches its peer by a proxy.
func proxied(t *testing.T, own, peer string) *rds.IWARP {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rds.IWARP{Device: dev, Address: own, PeerAddress: func(netip.Addr) string { return peer }}
}

// Connections are cut at random, in the middle of messages, of RDMA operations and of handshakes. All
// requests are answered once and in order, and what was read and written by RDMA is what it has to be.
func TestRDMAAcrossCuts(t *testing.T) {
	leakcheck.Check(t)
	at := func(i byte) string { return netip.AddrPortFrom(loopback.Process().Addr(i), 26397).String() }
	serverAt, toServer := at(1), at(3)
	clientAt, toClient := at(2), at(4)
	seed := *cutsSeed
	proxies := []*proxy{newProxy(t, toServer, serverAt, seed), newProxy(t, toClient, clientAt, seed+1)}
	cuts := func() int { return proxies[0].count() + proxies[1].count() }
	server, client := open(t, serverAddr, proxied(t, serverAt, toClient)), open(t, clientAddr, proxied(t, clientAt, toServer))

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute+*cutsFor)
	defer cancel()
	l := listener(t, "4000")
	done := make(chan outcome, 1)
	go func() {
		c, err := Accept(ctx, l)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		result, err := c.Run(ctx, server, Options{})
		done <- outcome{result, err}
	}()
	p := rdmaParams(10_000, ReadWrite)
	p.RequestSize, p.AckSize = 6000, 300
	p.Seconds = uint32(cutsFor.Seconds())
	c, err := Dial(ctx, clientAddr, serverAddr, p)
	if err != nil {
		t.Fatal(err)
	}
	enough, stop := context.WithCancel(ctx)
	defer stop()
	result, err := c.Run(enough, client, Options{Every: time.Millisecond, Interval: func(Sample) {
		if *cutsFor == 0 && cuts() >= 40 {
			stop()
		}
	}})
	if err != nil { // what both nodes have says where it hangs
		for _, n := range []*rds.Node{client, server} {
			info, _ := json.Marshal(n.Info(20))
			t.Logf("%s", info)
		}
	}
	active, passive := outcome{result, err}, <-done
	if err := errors.Join(active.err, passive.err); err != nil {
		t.Fatal(err)
	}
	a, b := active.All, passive.All
	t.Logf("%d cuts, %d messages, %d bytes by RDMA in %.1f s", cuts(), a.RequestsSent+a.AcksSent+b.RequestsSent+b.AcksSent, a.RDMAIn+a.RDMAOut, active.Seconds)
	if active.Unanswered != 0 || passive.Unanswered != 0 || a.RequestsSent != b.RequestsReceived || a.RequestsSent != a.AcksReceived ||
		b.RequestsSent != a.RequestsReceived || b.RequestsSent != b.AcksReceived {
		t.Errorf("active: %+v, passive: %+v", active.Result, passive.Result)
	}
	if active.Reconnects+passive.Reconnects == 0 || active.Retransmitted+passive.Retransmitted == 0 {
		t.Errorf("active: %+v, passive: %+v", active.Result, passive.Result)
	}
	if cuts() < 40 || a.RDMAIn == 0 || a.RDMAOut == 0 || b.RequestsSent == 0 {
		t.Errorf("%d cuts; active: %+v, passive: %+v", cuts(), a, b)
	}
}
