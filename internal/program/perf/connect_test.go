package perf

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"urnic/mpa"
	"urnic/rnic"
)

// Loops that make connections have one under way each, and make as many as they
// are to make together.
func TestLoopsMakeTheConnectionsOfARoundTogether(t *testing.T) {
	const loops, all = 3, 10
	var under sync.WaitGroup
	under.Add(loops)
	var mu sync.Mutex
	total := 0
	r := round{Iterations: all}
	made, err := r.makeAll(t.Context(), loops, func(_ context.Context, more func() bool) error {
		for n := 0; more(); n++ {
			if n == 0 { // all are here at a time
				under.Done()
				under.Wait()
			}
			mu.Lock()
			total++
			mu.Unlock()
		}
		return nil
	})
	if err != nil || made != all || total != all {
		t.Errorf("%d of %d are told of: %v", made, total, err)
	}
	r = round{Duration: 1}
	if made, err = r.makeAll(t.Context(), loops, func(_ context.Context, more func() bool) error {
		for more() {
		}
		return nil
	}); err != nil || made == 0 {
		t.Errorf("in no time: %d, %v", made, err)
	}
}

func TestFirstErrorEndsTheOtherLoops(t *testing.T) {
	why := errors.New("why")
	err := together(t.Context(), 3, func(ctx context.Context, i int) error {
		if i == 1 {
			return why
		}
		<-ctx.Done()
		return context.Canceled
	})
	if !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// A server in a connection test takes as many connections at a time as the
// client makes: none of these is closed by its peer before the last one is there.
func TestServerAcceptsSoManyConnectionsAtATime(t *testing.T) {
	const at = 3
	address := serve(t, &Server{})
	c, err := dial(t, address)
	if err != nil {
		t.Fatal(err)
	}
	s := small
	s.Test, s.QPs = TestConnect, at
	if _, err := c.ask(t.Context(), &message{Type: msgSetup, Setup: &s, Memory: &memories{}}, msgReady); err != nil {
		t.Fatal(err)
	}
	if _, err := c.hear(t.Context(), msgConnected); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ask(t.Context(), &message{Type: msgRound, Round: &round{Iterations: at}}, msgRunning); err != nil {
		t.Fatal(err)
	}
	p, _ := c.qp.Params()
	hello := dataHello([tokenLen]byte(p.PrivateData), 0)
	var peers []*mpa.Conn // which close only when they are told to
	for range at {
		peer, err := mpa.Dial(t.Context(), func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}, mpa.Config{PrivateData: hello})
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, peer)
	}
	for _, peer := range peers {
		if err := errors.Join(peer.CloseWrite(), peer.Discard(), peer.Close()); err != nil {
			t.Error(err)
		}
	}
	m, err := c.ask(t.Context(), &message{Type: msgStop, Made: at}, msgResult)
	if err != nil || m.Result.Messages != at {
		t.Errorf("%+v, %v", m, err)
	}
	if err := c.qp.Disconnect(t.Context()); err != nil {
		t.Error(err)
	}
}

// A client and a server of one process are interrupted together. If the server's end shows first, the run was
// interrupted all the same.
func TestInterruptedRunIsNotOneThatHasFailed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	lost := &rnic.StateError{}
	if err := new(client).why(ctx, lost); !errors.Is(err, context.Canceled) || !errors.Is(err, lost) {
		t.Errorf("the run ends with %v", err)
	}
}
