package rpcrdma_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// A lab is a server on a simulated network, whose connections are those of the account that
// it has at the moment. It is for a bubble.
type lab struct {
	t       *testing.T
	network *simnet.Network
	address string
	account atomic.Value
	server  *rpcrdma.Server
	calls   sync.WaitGroup
}

func newLab(t *testing.T, s oncrpc.Service, cfg rpcrdma.Config) *lab {
	t.Helper()
	l := &lab{t: t, network: &simnet.Network{Options: func(int) simnet.Options { return simnet.Options{Buffer: 8192} }}}
	l.account.Store("")
	cfg.Admit = func(_, _ net.Addr) (oncrpc.Admission, error) {
		return oncrpc.Admission{Account: l.account.Load().(string)}, nil
	}
	dev := open(t, "server", func(c *rnic.Config) { c.Network = l.network })
	ln, err := dev.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.address = ln.Addr().String()
	if l.server, err = rpcrdma.NewServer(s, cfg); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- l.server.Serve(context.Background(), ln) }()
	t.Cleanup(func() {
		if err := errors.Join(l.server.Close(), <-over, ln.Close()); err != nil {
			t.Error(err)
		}
		l.calls.Wait()
	})
	return l
}

// dial connects as an account, from an end that takes only so many bytes if that is not 0.
func (l *lab) dial(account string, takes int) *rpcrdma.Conn {
	l.t.Helper()
	l.account.Store(account)
	var n rnic.Network = l.network
	if takes > 0 {
		n = &deafNetwork{l.network, takes, false}
	}
	c, err := rpcrdma.Dial(l.t.Context(), open(l.t, "client", func(c *rnic.Config) { c.Network = n }), l.address, rpcrdma.Config{})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() })
	r, _ := call(procNull) // grants more than one call
	m, err := c.Do(l.t.Context(), r)
	if err != nil {
		l.t.Fatal(err)
	}
	m.Release()
	return c
}

// A lender is a bank that carries procNull out.
type lender struct{ *bank }

func (l lender) Serve(ctx context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
	var c oncrpc.Call
	if err := c.Decode(x.Call.Decoder()); err == nil && c.Procedure == procNull {
		return (&oncrpc.Reply{XID: c.XID}).Encode(reply)
	}
	return l.bank.Serve(ctx, x, reply)
}

// read makes 16 calls whose results have 1 MiB each, and waits for none.
func (l *lab) read(c *rpcrdma.Conn) {
	for range 16 {
		r, _ := call(procRead)
		r.Sinks = [][]byte{make([]byte, mega)}
		l.calls.Go(func() {
			if m, err := c.Do(context.Background(), r); err == nil {
				m.Release()
			}
		})
	}
}

const mega = 1 << 20

// What the replies hold that nobody takes is bounded, of each peer and of all; others are
// served meanwhile, and all of it is given back.
func TestRepliesThatNobodyTakesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{data: filled(mega, 1)}
		l := newLab(t, lender{b}, rpcrdma.Config{MaxReplies: 2 * mega, MaxRepliesAll: 16 * mega})
		for i := range 8 { // two of each account
			c := l.dial("account "+strconv.Itoa(i/2), 20_000)
			l.read(c)
		}
		synctest.Wait()
		if n := b.lent.Load(); n != 16 {
			t.Errorf("8 peers that take nothing have the server hold %d MiB; it may hold 16", n)
		}
		good := l.dial("somebody else", 0)
		r, _ := call(procRead)
		r.Sinks = [][]byte{make([]byte, mega)}
		begin := time.Now()
		m, err := good.Do(t.Context(), r)
		if err != nil || time.Since(begin) > time.Second {
			t.Fatalf("somebody else waits for %v: %v", time.Since(begin), err)
		}
		m.Release()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if n := len(l.server.Peers()); n != 1 {
			t.Errorf("of 8 peers that take nothing, and one that does, %d have a connection", n)
		}
		if n := b.lent.Load(); n != 0 {
			t.Errorf("%d MiB are still held", n)
		}
	})
}

// To connect again gives a peer that takes nothing no more memory, and no more time.
func TestPeersThatTakeNothingGainNothingByConnectingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{data: filled(mega, 1)}
		l := newLab(t, lender{b}, rpcrdma.Config{MaxReplies: 8 * mega, MaxRepliesAll: 64 * mega})
		first := l.dial("mallory", 20_000)
		l.read(first)
		synctest.Wait()
		if n := b.lent.Load(); n != 8 {
			t.Errorf("the first connection holds %d MiB; want 8", n)
		}
		time.Sleep(50 * time.Second) // it does not wait until it is cut off
		_ = first.Close()
		synctest.Wait()
		for range 3 {
			again := l.dial("mallory", 20_000)
			l.read(again)
			synctest.Wait()
			if n := b.lent.Load(); n != 1 {
				t.Errorf("after it has connected again, it holds %d MiB; want 1", n)
			}
			time.Sleep(time.Minute / 4)
			synctest.Wait()
			if n := b.lent.Load(); n != 0 {
				t.Errorf("it has as much time as before")
			}
			_ = again.Close()
		}
		// Who takes a reply is trusted again.
		good := l.dial("mallory", 0)
		r, _ := call(procRead)
		r.Sinks = [][]byte{make([]byte, mega)}
		m, err := good.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		m.Release()
		l.read(l.dial("mallory", 20_000))
		synctest.Wait()
		if n := b.lent.Load(); n != 8 {
			t.Errorf("after it has taken a reply, it holds %d MiB; want 8", n)
		}
	})
}
