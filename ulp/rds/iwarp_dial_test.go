package rds

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/ulp/rds/wire"
)

// privateOf returns the private data of a request or an answer to the node of a sandbox.
func privateOf(t *testing.T, source netip.Addr) []byte {
	t.Helper()
	v := wire.Private{Source: source, Dest: simNode, Major: wire.Major, Minor: wire.Minor, MinorMask: wire.MinorMask}
	private, err := v.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// duelTransport lets the node dial once. The other end of the stream is left in peer.
func duelTransport(peer *net.Conn) func(s *sandbox) Transport {
	return func(s *sandbox) Transport {
		iwarp := s.iwarp().(*IWARP)
		iwarp.Dial = func(context.Context, netip.Addr) (net.Conn, error) {
			if *peer != nil {
				return nil, errNoRoute
			}
			ours, theirs := simnet.Pipe(simnet.Options{})
			*peer = theirs
			return ours, nil
		}
		return iwarp
	}
}

// duel has the node dial a peer that does not answer, and the peer, whose address is lower, connect instead.
func (s *sandbox) duel(peer *net.Conn) hostileConn {
	s.t.Helper()
	if err := s.socket.SendTo(s.t.Context(), []byte("x"), Addr{Host: simHostile, Port: 1}); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	private := privateOf(s.t, simHostile)
	if _, err := io.ReadFull(*peer, make([]byte, len(mpaRequest(private)))); err != nil {
		s.t.Fatal(err)
	}
	return s.verbs(private)
}

// The stream on which the node has asked for a connection is not ended before the peer has answered there, though
// the peer has connected meanwhile: siw would end its listener.
func TestDialIsPatientWithAPeerThatConnects(t *testing.T) {
	answer := mpaRequest(privateOf(t, simHostile))
	copy(answer, "MPA ID Rep Frame")
	for name, test := range map[string]struct {
		says []byte // after a second
		ends time.Duration
	}{
		"no answer": {nil, 10 * time.Second},
		"an answer": {answer, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var peer net.Conn
			good := func(s *sandbox) hostileConn { return s.verbs(privateOf(t, simGood)) }
			inSandbox(t, duelTransport(&peer), good, func(s *sandbox) {
				begun := time.Now()
				defer s.duel(&peer).close()
				time.Sleep(time.Second)
				if _, err := peer.Write(test.says); err != nil {
					s.t.Error(err)
				}
				_, _ = io.Copy(io.Discard, peer) // to its end, in order or not
				if ended := time.Since(begun); ended != test.ends {
					s.t.Errorf("the stream ends after %v; want %v", ended, test.ends)
				}
			})
		})
	}
}

// A stream that opens while the peer connects is not ended either: the peer may have seen it before the node.
func TestDialIsPatientWithAStreamThatOpensLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := make(chan net.Conn)
		dials := 0
		s := newSandbox(t, func(s *sandbox) Transport {
			iwarp := s.iwarp().(*IWARP)
			iwarp.Dial = func(ctx context.Context, _ netip.Addr) (net.Conn, error) {
				if dials++; dials > 1 {
					return nil, errNoRoute
				}
				select {
				case conn := <-opens:
					return conn, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return iwarp
		})
		if err := s.socket.SendTo(t.Context(), []byte("x"), Addr{Host: simHostile, Port: 1}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it dials
		private := privateOf(t, simHostile)
		defer s.verbs(private).close()
		ours, theirs := simnet.Pipe(simnet.Options{})
		select {
		case opens <- ours:
		case <-time.After(time.Second):
			t.Error("the node does not wait for the stream that it opens")
			s.close()
			return
		}
		begun := time.Now()
		if _, err := io.ReadFull(theirs, make([]byte, len(mpaRequest(private)))); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, theirs) // to its end, in order or not
		if left := time.Since(begun); left < time.Second {
			t.Errorf("the node leaves the stream after %v", left)
		}
		s.close()
	})
}

// A node that is closed does not wait for the answer.
func TestClosedNodeIsNotPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peer net.Conn
		s := newSandbox(t, duelTransport(&peer))
		defer s.duel(&peer).close()
		begun := time.Now()
		s.close()
		_, _ = io.Copy(io.Discard, peer) // to its end, in order or not
		if took := time.Since(begun); took > 0 {
			t.Errorf("it takes %v until the node is closed", took)
		}
	})
}

// Peers that do not answer can't make the node keep more than a number of streams.
func TestStreamsThatAreNotWantedAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peer net.Conn
		s := newSandbox(t, duelTransport(&peer))
		iwarp := s.node.cfg.Transports[0].(*IWARP)
		iwarp.unwanted.Store(mostUnwanted)
		defer s.duel(&peer).close()
		begun := time.Now()
		_, _ = io.Copy(io.Discard, peer) // to its end, in order or not
		if took := time.Since(begun); took > 0 {
			t.Errorf("the stream is there for %v more", took)
		}
		synctest.Wait()
		if n := iwarp.unwanted.Load(); n != mostUnwanted {
			t.Errorf("%d streams are counted; want %d", n, mostUnwanted)
		}
		s.close()
	})
}
