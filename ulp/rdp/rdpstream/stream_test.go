package rdpstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// inMemory returns two endpoints on a network with faults.
func inMemory(t testing.TB, f rdp.Faults) (*rdp.Endpoint, *rdp.Endpoint, *rdp.Network) {
	t.Helper()
	n := rdp.NewNetwork(1, f)
	var es [2]*rdp.Endpoint
	for i := range es {
		c, err := n.Carrier(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(1 + i)}), rdp.DefaultPort))
		if err != nil {
			t.Fatal(err)
		}
		if es[i], err = rdp.Open(t.Context(), rdp.Config{Carrier: c}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := es[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return es[0], es[1], n
}

// pair returns a stream, which the test's end closes.
func pair(t testing.TB, a, b *rdp.Endpoint) (*Conn, *Conn) {
	t.Helper()
	c := Config{Port: 80}
	l, err := Listen(b, c)
	if err != nil {
		t.Fatal(err)
	}
	from, err := Dial(t.Context(), a, b.LocalAddr(), c)
	if err != nil {
		t.Fatal(err)
	}
	to, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return from, to.(*Conn)
}

// What every net.Conn has to do.
func TestStreamIsANetConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		n := rdp.NewNetwork(1, rdp.Faults{})
		var es [2]*rdp.Endpoint
		for i := range es {
			c, err := n.Carrier(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(1 + i)}), 1))
			if err != nil {
				return nil, nil, nil, err
			}
			if es[i], err = rdp.Open(t.Context(), rdp.Config{Carrier: c}); err != nil {
				return nil, nil, nil, err
			}
		}
		a, b := pair(t, es[0], es[1])
		return a, b, func() {
			a.SetLinger(0)
			b.SetLinger(0)
			a.Close() // the test may have closed it
			b.Close() // the same
			if err := errors.Join(es[0].Close(), es[1].Close()); err != nil {
				t.Error(err)
			}
		}, nil
	})
}

// Nothing that was written before Close is lost, whatever the network loses.
func TestCloseLosesNothing(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			a, b, _ := inMemory(t, rdp.Faults{Delay: 5 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.1})
			from, to := pair(t, a, b)
			want := make([]byte, 1+rand.New(rand.NewPCG(seed, 0)).IntN(300_000))
			for i := range want {
				want[i] = byte(i * i)
			}
			closed := make(chan error, 1)
			go func() {
				_, err := from.Write(want)
				closed <- errors.Join(err, from.Close(), a.Shutdown(t.Context()))
			}()
			got, err := io.ReadAll(to)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("seed %d: %d of %d bytes, %v", seed, len(got), len(want), err)
			}
			if err := errors.Join(<-closed, to.Close()); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
}

// Half of a stream can be closed: the other half continues.
func TestHalfIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := inMemory(t, rdp.Faults{})
		from, to := pair(t, a, b)
		if _, err := from.Write([]byte("question")); err != nil {
			t.Fatal(err)
		}
		if err := from.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := from.Write([]byte("more")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write after CloseWrite: %v", err)
		}
		if got, err := io.ReadAll(to); string(got) != "question" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		go func() {
			_, err := to.Write([]byte("answer"))
			if err := errors.Join(err, to.Close()); err != nil {
				t.Error(err)
			}
		}()
		if got, err := io.ReadAll(from); string(got) != "answer" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The end of a connection is not taken for the end of a stream.
func TestResetIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := inMemory(t, rdp.Faults{})
		from, to := pair(t, a, b)
		if _, err := from.Write([]byte("half of it")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(to)
		if string(got) != "half of it" || !errors.Is(err, machine.ErrReset) {
			t.Errorf("%q, %v", got, err)
		}
		if err := to.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Close says so if the peer has not accepted all in time.
func TestLingerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, n := inMemory(t, rdp.Faults{})
		from, to := pair(t, a, b)
		n.SetFaults(rdp.Faults{Loss: 1})
		if _, err := from.Write([]byte("lost")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begun := time.Now()
		if err := from.CloseContext(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		to.SetLinger(0)
		if err := to.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A peer that does not speak rdpstream is told apart.
func TestForeignMessagesAreErrors(t *testing.T) {
	for _, msg := range []string{"\x00", "\x01x", "\x02x"} {
		synctest.Test(t, func(t *testing.T) {
			a, b, _ := inMemory(t, rdp.Faults{})
			l, err := Listen(b, Config{Port: 80})
			if err != nil {
				t.Fatal(err)
			}
			from, err := a.Dial(t.Context(), rdp.DialConfig{Host: b.LocalAddr(), Port: 80})
			if err != nil {
				t.Fatal(err)
			}
			to, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if err := from.Send(t.Context(), []byte(msg)); err != nil {
				t.Fatal(err)
			}
			if n, err := to.Read(make([]byte, 10)); n != 0 || err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%q: %d bytes, %v", msg, n, err)
			}
		})
	}
}

// Deadlines end waits, and can be moved while something waits.
func TestDeadlinesAreMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := inMemory(t, rdp.Faults{})
		from, to := pair(t, a, b)
		begun := time.Now()
		if err := to.SetReadDeadline(begun.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := to.Read(make([]byte, 1))
			done <- err
		}()
		synctest.Wait()
		if err := to.SetReadDeadline(begun.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if err := errors.Join(from.Close(), to.Close()); err != nil {
			t.Error(err)
		}
	})
}

// An HTTP server and client run over streams: 100 MiB arrive intact though the network loses 5 % of the segments.
func TestHTTPMovesThroughLoss(t *testing.T) {
	size := 100 << 20
	if testing.Short() || raceEnabled {
		size = 10 << 20
	}
	synctest.Test(t, func(t *testing.T) {
		a, b, n := inMemory(t, rdp.Faults{Delay: time.Millisecond, Loss: 0.05})
		params := rdp.Params{MaxSegment: 1 << 14, Window: 256}
		l, err := Listen(b, Config{Port: 80, Params: params})
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sum := sha256.New()
			if _, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(rand.NewChaCha8([32]byte{}), int64(size))); err != nil {
				t.Error(err)
			}
		})}
		served := make(chan error)
		go func() { served <- server.Serve(l) }()
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return Dial(ctx, a, b.LocalAddr(), Config{Port: 80, Params: params})
		}}
		client := &http.Client{Transport: transport}
		resp, err := client.Get("http://rdp/")
		if err != nil {
			t.Fatal(err)
		}
		got, want := sha256.New(), sha256.New()
		k, err := io.Copy(got, resp.Body)
		if _, err := io.CopyN(want, rand.NewChaCha8([32]byte{}), int64(size)); err != nil {
			t.Fatal(err)
		}
		if err != nil || int(k) != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Errorf("%d of %d bytes, %v", k, size, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		t.Logf("%d segments", n.Sent())
	})
}
