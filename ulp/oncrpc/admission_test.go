package oncrpc_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// encoder has encoded p.
func encoder(p []byte) *xdr.Encoder {
	var e xdr.Encoder
	e.Fixed(p)
	return &e
}

// portOf is the port of an address: what tells connections of simnet apart.
func portOf(a net.Addr) int { return a.(*net.TCPAddr).Port }

// A peer that Admit refuses has its connection closed, and takes no place, however often it
// tries.
func TestRefusedPeersTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := true
		admit := func(local, remote net.Addr) (oncrpc.Admission, error) {
			if portOf(local) != 2049 {
				t.Errorf("asked about a connection to %v", local)
			}
			if refuse {
				return oncrpc.Admission{}, errors.New("not you")
			}
			return oncrpc.Admission{}, nil
		}
		s := newSite(t, oncrpc.ServerConfig{TCP: oncrpc.ServeTCPConfig{Connections: 2, Admit: admit}}, 0)
		for range 5 {
			s.dial(t).ended(t)
		}
		refuse = false
		for xid := range uint32(2) {
			c := s.dial(t)
			c.call(t, xid, 0, nil)
			c.reply(t)
		}
	})
}

// One host, or one account, has not all the places of a server, and gets those back that
// it leaves.
func TestOneHostHasNotAllPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := "mallory"
		admit := func(_, _ net.Addr) (oncrpc.Admission, error) { return oncrpc.Admission{Account: account}, nil }
		s := newSite(t, oncrpc.ServerConfig{TCP: oncrpc.ServeTCPConfig{Connections: 5, PerHost: 3, Admit: admit}}, 0)
		var theirs []*caller
		for range 3 {
			theirs = append(theirs, s.dial(t))
		}
		synctest.Wait()
		for range 4 {
			s.dial(t).ended(t)
		}
		account = "alice"
		for xid := range uint32(2) {
			c := s.dial(t)
			c.call(t, xid, 0, nil)
			c.reply(t)
		}
		s.dial(t).ended(t) // all are taken
		_ = theirs[0].Close()
		synctest.Wait()
		account = "mallory"
		c := s.dial(t)
		c.call(t, 9, 0, nil)
		c.reply(t)
	})
}

func TestWhoIsOneHost(t *testing.T) {
	at := func(s string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1:700", "192.0.2.1:701", true},
		{"192.0.2.1:700", "[::ffff:192.0.2.1]:701", true},
		{"192.0.2.1:700", "192.0.2.2:700", false},
		{"127.0.0.1:700", "127.9.8.7:700", true}, // all of them are anybody's on this host
		{"127.0.0.1:700", "[::1]:700", true},
		{"[2001:db8::1]:700", "[2001:db8::ffff:1]:700", true}, // a host has as many as it likes
		{"[2001:db8::1]:700", "[2001:db8:0:1::1]:700", false},
		{"127.0.0.1:700", "192.0.2.1:700", false},
	} {
		p := oncrpc.NewPlaces(2, 1)
		if _, err := p.Take(nil, nil, at(tc.a)); err != nil {
			t.Fatal(err)
		}
		_, err := p.Take(nil, nil, at(tc.b))
		full, is := errors.AsType[*oncrpc.FullError](err)
		if is != tc.same || is && (full.Account == "" || full.Most != 1) {
			t.Errorf("%s and %s: %v", tc.a, tc.b, err)
		}
	}
	p := oncrpc.NewPlaces(1, 1)
	a, err := p.Take(nil, nil, at("192.0.2.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Take(nil, nil, at("192.0.2.2:1")); err == nil {
		t.Error("there are two connections in one place")
	}
	p.Give(a)
	if _, err := p.Take(nil, nil, at("192.0.2.2:1")); err != nil {
		t.Error(err)
	}
}

// Handlers learn what was found out of the peer, once for each connection.
func TestHandlersLearnWhoThePeerIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		admit := func(_, remote net.Addr) (oncrpc.Admission, error) {
			asked++
			return oncrpc.Admission{Peer: portOf(remote), Account: "somebody"}, nil
		}
		s := newSite(t, oncrpc.ServerConfig{TCP: oncrpc.ServeTCPConfig{Admit: admit}}, 0)
		var peers []any
		who := oncrpc.Procedure{Name: "PEER", Handle: func(_ context.Context, in *oncrpc.Incoming) error {
			if in.Exchange.Account != "somebody" {
				t.Errorf("account %q", in.Exchange.Account)
			}
			peers = append(peers, in.Exchange.Peer)
			return nil
		}}
		versions := []oncrpc.ProgramVersion{{Number: version, Procedures: map[uint32]oncrpc.Procedure{1: who}}}
		if err := s.Register(&oncrpc.Program{Number: program + 1, Versions: versions}); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			c := s.dial(t)
			for xid := range uint32(2) {
				call := head(xid, 1)
				call.Program = program + 1
				var b bytes.Buffer
				if err := oncrpc.WriteRecord(&b, encoder(stream(t, call, nil))); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Write(b.Bytes()); err != nil {
					t.Fatal(err)
				}
				c.reply(t)
			}
			if want := portOf(c.LocalAddr()); len(peers) != 2*i+2 || peers[2*i] != want || peers[2*i+1] != want {
				t.Errorf("peers %v; want %d at last", peers, want)
			}
		}
		if asked != 2 {
			t.Errorf("asked %d times about 2 connections", asked)
		}
	})
}

// Users of one host are not told each other's replies.
func TestDuplicatesAreThoseOfOneAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := "alice"
		admit := func(_, _ net.Addr) (oncrpc.Admission, error) { return oncrpc.Admission{Account: account}, nil }
		s := newSite(t, oncrpc.ServerConfig{TCP: oncrpc.ServeTCPConfig{Admit: admit}}, 0)
		for _, account = range []string{"alice", "alice", "mallory"} {
			c := s.dial(t)
			c.call(t, 7, procCount, func(e *xdr.Encoder) { e.Bulk(nil) })
			c.reply(t)
		}
		if n := s.count.Load(); n != 2 {
			t.Errorf("the call was carried out %d times; want once for each of two users", n)
		}
	})
}

// A call that is as long as its program says is taken.
func TestCallsAreAsLongAsTheirProgramSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{}, 0)
		const long = 3 << 20
		if err := s.Register(&oncrpc.Program{Number: program + 1, Versions: []oncrpc.ProgramVersion{{Number: version}}, CallMost: long}); err != nil {
			t.Fatal(err)
		}
		for n, ok := range map[int]bool{long: true, long + 4: false} {
			c := s.dial(t)
			call := head(1, 0)
			call.Program = program + 1
			p := stream(t, call, nil)
			p = append(p, make([]byte, n-len(p))...)
			var b bytes.Buffer
			if err := oncrpc.WriteRecord(&b, encoder(p)); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = c.Write(b.Bytes()) }() // the connection may end meanwhile
			if ok {
				if _, err := c.r.Next(nil); err != nil {
					t.Errorf("%d bytes: %v", n, err)
				}
			} else {
				c.ended(t)
			}
			synctest.Wait()
		}
	})
}
