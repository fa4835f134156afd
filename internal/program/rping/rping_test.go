package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
	"urnic/rnic"
)

// The ping data of rdma-core's rping -S 64, as a capture of it has them.
func TestPingDataAreThoseOfRdmaCore(t *testing.T) {
	b := make([]byte, 64)
	fill(b, 0)
	if want := "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr\x00"; string(b) != want {
		t.Errorf("round 0: %q", b)
	}
	fill(b, 1)
	if want := "rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrs\x00"; string(b) != want {
		t.Errorf("round 1: %q", b)
	}
	fill(b, 58) // the first letter comes round after 58 of them
	if !bytes.HasPrefix(b, []byte("rdma-ping-58: ABC")) {
		t.Errorf("round 58: %q", b)
	}
	fill(b[:MinSize], 7)
	if want := "rdma-ping-7: HI\x00"; string(b[:MinSize]) != want {
		t.Errorf("smallest: %q", b[:MinSize])
	}
}

func TestAdvertisementIsInNetworkOrder(t *testing.T) {
	a := advert{rnic.Remote{STag: 0x01020304, TO: 0x1112131415161718}, 0x21222324}
	want := []byte{0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 1, 2, 3, 4, 0x21, 0x22, 0x23, 0x24}
	if got := a.append(nil); !bytes.Equal(got, want) {
		t.Errorf("encoded %x", got)
	}
	if back, err := parseAdvert(want); err != nil || back != a {
		t.Errorf("parsed %+v, %v", back, err)
	}
	if _, err := parseAdvert(want[:15]); err == nil || !strings.Contains(err.Error(), "not rping") {
		t.Errorf("15 bytes: %v", err)
	}
}

func newPD(t *testing.T, n rnic.Network) *rnic.PD {
	d, err := rnic.Open(rnic.Config{Network: n})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	pd, err := d.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	return pd
}

// play runs a client against a server and returns what each returned.
func play(t *testing.T, client, server Options) (clientErr, serverErr error) {
	return playUntil(t, func(ctx context.Context) context.Context { return ctx }, client, server)
}

// playUntil does so until the client's context ends, which is made of the test's.
func playUntil(t *testing.T, until func(context.Context) context.Context, client, server Options) (clientErr, serverErr error) {
	synctest.Test(t, func(t *testing.T) {
		n := &simnet.Network{Options: func(int) simnet.Options { return simnet.Options{MSS: 1448} }}
		cpd, spd := newPD(t, n), newPD(t, n)
		l, err := spd.Device().Listen(t.Context(), ":7174")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			r, err := l.Accept(context.Background())
			if err != nil {
				done <- err
				return
			}
			e, err := NewEnd(spd, server)
			if err == nil {
				err = r.Accept(context.Background(), e.QP, rnic.ConnParam{})
			}
			if err == nil {
				err = e.Server(context.Background())
			}
			done <- errors.Join(err, e.Close())
		}()
		e, err := NewEnd(cpd, client)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.QP.Connect(t.Context(), "192.0.2.2:7174", rnic.ConnParam{}); err != nil {
			t.Fatal(err)
		}
		clientErr = e.Client(until(t.Context()))
		if e.QP.State() == rnic.RTS {
			clientErr = errors.Join(clientErr, e.QP.Disconnect(t.Context()))
		}
		serverErr = <-done
		if err := errors.Join(e.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	return clientErr, serverErr
}

func TestRoundsOfAllSizes(t *testing.T) {
	for _, size := range []int{MinSize, DefaultSize, 1448, 5001, MaxSize} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var shown, served []string
			rounds, servedRounds := 0, 0
			count := func(counter *int) func(n, octets int) {
				return func(n, octets int) {
					if n != *counter || octets != size {
						t.Errorf("round %d of %d bytes is told as round %d of %d", *counter, size, n, octets)
					}
					*counter++
				}
			}
			c, s := play(t,
				Options{Size: size, Count: 20, Validate: true, Show: func(l string) { shown = append(shown, l) }, Round: count(&rounds)},
				Options{Size: MaxSize, Show: func(l string) { served = append(served, l) }, Round: count(&servedRounds)})
			if c != nil || s != nil {
				t.Fatalf("client: %v; server: %v", c, s)
			}
			if len(shown) != 20 || len(served) != 20 || rounds != 20 || servedRounds != 20 {
				t.Fatalf("%d rounds shown, %d served, %d and %d counted", len(shown), len(served), rounds, servedRounds)
			}
			want := make([]byte, size)
			fill(want, 3)
			if shown[3] != "ping data: "+text(want) || served[3] != "server ping data: "+text(want) {
				t.Errorf("round 3: %q, %q", shown[3], served[3])
			}
		})
	}
}

func TestServerRefusesWhatDoesNotFit(t *testing.T) {
	c, s := play(t, Options{Size: 200, Count: 1}, Options{Size: 100})
	if s == nil || !strings.Contains(s.Error(), "larger size") || c == nil {
		t.Errorf("client: %v; server: %v", c, s)
	}
}

func TestClientNoticesChangedData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &simnet.Network{}
		cpd, spd := newPD(t, n), newPD(t, n)
		l, err := spd.Device().Listen(t.Context(), ":7174")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			e, err := NewEnd(spd, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer e.Close()
			if err := r.Accept(context.Background(), e.QP, rnic.ConnParam{}); err != nil {
				t.Error(err)
			}
			// A server that changes an byte before it writes the data back.
			ping, _ := e.recv(context.Background())
			_ = e.do(context.Background(), rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{e.pingMR.SGE(0, int(ping.size))}, Remote: ping.remote})
			e.ping[20] ^= 1
			_ = e.send(context.Background(), e.pingMR, 0)
			sink, _ := e.recv(context.Background())
			_ = e.do(context.Background(), rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{e.pingMR.SGE(0, int(ping.size))}, Remote: sink.remote})
			_ = e.send(context.Background(), e.sinkMR, 0)
			_ = e.Server(context.Background())
		}()
		e, err := NewEnd(cpd, Options{Count: 1, Validate: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.QP.Connect(t.Context(), "192.0.2.2:7174", rnic.ConnParam{}); err != nil {
			t.Fatal(err)
		}
		var m *MismatchError
		if err := e.Client(t.Context()); !errors.As(err, &m) || m.Offset != 20 || m.Round != 0 || m.Error() == "" {
			t.Errorf("client: %v", err)
		}
		_ = e.QP.Disconnect(t.Context())
		_ = e.Close()
		_ = l.Close()
	})
}

func TestContextEndsTheRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &simnet.Network{}
		cpd, spd := newPD(t, n), newPD(t, n)
		l, err := spd.Device().Listen(t.Context(), ":7174")
		if err != nil {
			t.Fatal(err)
		}
		go func() { // accepts, and then does nothing
			if r, err := l.Accept(context.Background()); err == nil {
				e, err := NewEnd(spd, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				_ = r.Accept(context.Background(), e.QP, rnic.ConnParam{})
			}
		}()
		e, err := NewEnd(cpd, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.QP.Connect(t.Context(), "192.0.2.2:7174", rnic.ConnParam{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		if err := e.Client(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("client: %v", err)
		}
		_ = l.Close()
	})
}

func TestOptionsAreChecked(t *testing.T) {
	pd := newPD(t, nil)
	for _, o := range []Options{{Size: MinSize - 1}, {Size: MaxSize + 1}, {Count: -1}} {
		if _, err := NewEnd(pd, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// The server's part of a round is not broken by a client that is interrupted.
func TestInterruptedClientFinishesItsRound(t *testing.T) {
	var stop context.CancelFunc
	shown := 0
	c, s := playUntil(t, func(ctx context.Context) context.Context {
		ctx, stop = context.WithCancel(ctx)
		return ctx
	}, Options{}, Options{Show: func(string) { // it has read the data, and has yet to write them
		if shown++; shown == 3 {
			stop()
		}
	}})
	if !errors.Is(c, context.Canceled) || !strings.Contains(c.Error(), "before round 3") || s != nil || shown != 3 {
		t.Errorf("client: %v; server: %v; %d rounds", c, s, shown)
	}
}
