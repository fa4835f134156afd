package rpcrdma_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// A peer that Admit refuses is rejected and takes no place; handlers learn who others are.
func TestPeersAreAdmitted(t *testing.T) {
	var refuse atomic.Bool
	refuse.Store(true)
	var address string
	admit := func(local, remote net.Addr) (oncrpc.Admission, error) {
		if local.String() != address || remote == nil {
			t.Errorf("asked about %v from %v; want %s", local, remote, address)
		}
		if refuse.Load() {
			return oncrpc.Admission{}, errors.New("not you")
		}
		return oncrpc.Admission{Peer: remote.String(), Account: "somebody"}, nil
	}
	s := &asking{service: newService(t)}
	_, at := serve(t, s, rpcrdma.Config{MaxConnections: 1, Admit: admit})
	address = at
	for range 3 {
		if c, err := rpcrdma.Dial(t.Context(), open(t, "refused"), address, rpcrdma.Config{}); err == nil {
			t.Error("a peer that is refused has a connection")
			_ = c.Close()
		}
	}
	refuse.Store(false)
	c := dial(t, address, rpcrdma.Config{})
	roundTrip(t, c, nil, 1)
	if s.peer != c.LocalAddr().String() || s.account != "somebody" {
		t.Errorf("the peer is %v of %q", s.peer, s.account)
	}
}

// asking notes what its calls say of the peer.
type asking struct {
	*service
	peer    any
	account string
}

func (s *asking) Serve(ctx context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
	s.peer, s.account = x.Peer, x.Account
	return s.service.Serve(ctx, x, reply)
}

func TestOneHostHasNotAllPlaces(t *testing.T) {
	var account atomic.Value
	account.Store("mallory")
	admit := func(_, _ net.Addr) (oncrpc.Admission, error) {
		return oncrpc.Admission{Account: account.Load().(string)}, nil
	}
	srv, address := serve(t, newService(t), rpcrdma.Config{MaxConnections: 3, PerHost: 2, Admit: admit})
	theirs := dial(t, address, rpcrdma.Config{})
	roundTrip(t, theirs, nil, 1)
	roundTrip(t, dial(t, address, rpcrdma.Config{}), nil, 1)
	if c, err := rpcrdma.Dial(t.Context(), open(t, "third"), address, rpcrdma.Config{}); err == nil {
		t.Error("one host has more connections than one may")
		_ = c.Close()
	}
	account.Store("alice")
	roundTrip(t, dial(t, address, rpcrdma.Config{}), nil, 1)
	_ = theirs.Close()
	waitFor(t, func() bool { return len(srv.Peers()) == 2 })
	account.Store("mallory")
	roundTrip(t, dial(t, address, rpcrdma.Config{}), nil, 1)
}

// A connection that is not used is ended, and one that is used is not.
func TestConnectionsThatAreNotUsedEnd(t *testing.T) {
	for name, idle := range map[string]time.Duration{"default": 0, "a minute": time.Minute, "never": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t)
				conn, end := over(t, &simnet.Network{}, s, rpcrdma.Config{Idle: idle}, rpcrdma.Config{})
				defer end()
				limit := idle
				if idle == 0 {
					limit = 6 * time.Minute
				}
				if idle < 0 {
					time.Sleep(time.Hour)
					synctest.Wait()
					if err := conn.Err(); err != nil {
						t.Errorf("it has ended: %v", err)
					}
					return
				}
				for range 5 {
					time.Sleep(limit - time.Second)
					if err := bulksOnce(t.Context(), conn, 1); err != nil {
						t.Fatal(err)
					}
				}
				// A call that takes long is use as well.
				r, _ := call(procBlock)
				over := make(chan error, 1)
				go func() {
					m, err := conn.Do(t.Context(), r)
					if err == nil {
						m.Release()
					}
					over <- err
				}()
				time.Sleep(5 * limit)
				s.release <- struct{}{}
				if err := <-over; err != nil {
					t.Fatalf("a call that takes long: %v", err)
				}
				begin := time.Now()
				<-conn.Done()
				if took := time.Since(begin); took < limit || took > 2*limit+time.Second {
					t.Errorf("it has ended after %v; want %v to twice that", took, limit)
				}
			})
		})
	}
}
