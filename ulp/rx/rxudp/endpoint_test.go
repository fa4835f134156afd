package rxudp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxudp"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// open opens an endpoint that is closed at the end of the test.
func open(tb testing.TB, c rxudp.Config) *rxudp.Endpoint {
	tb.Helper()
	e, err := rxudp.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// serve opens an endpoint with one service.
func serve(tb testing.TB, h rx.HandlerFunc) *rxudp.Endpoint {
	tb.Helper()
	return open(tb, rxudp.Config{Addr: loopback, Services: []rx.Service{{ID: 7, Handler: h}}})
}

// dial makes a connection from an endpoint of its own.
func dial(tb testing.TB, to rx.Endpoint) rx.Conn {
	tb.Helper()
	c, err := open(tb, rxudp.Config{Addr: loopback}).Dial(tb.Context(), to.Addr(), 7, rx.DialConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func echo(_ context.Context, c rx.ServerCall) error {
	b, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	_, err = c.Write(b)
	return err
}

// exchange makes a call.
func exchange(ctx context.Context, c rx.Conn, request []byte) ([]byte, error) {
	k, err := c.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	if _, err := k.Write(request); err != nil {
		return nil, err
	}
	if err := k.CloseWrite(); err != nil {
		return nil, err
	}
	return io.ReadAll(k)
}

func TestCallsOfAllSizesComeBack(t *testing.T) {
	c := dial(t, serve(t, echo))
	for _, n := range []int{0, 1, 1416, 1417, 100_000, 5 << 20} {
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(i * i >> 3)
		}
		got, err := exchange(t.Context(), c, want)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes came back as %d: %v", n, len(got), err)
		}
	}
}

func TestManyCallersShareAConnection(t *testing.T) {
	c := dial(t, serve(t, echo))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 20 {
				want := fmt.Appendf(nil, "%d %d", i, j)
				if got, err := exchange(t.Context(), c, want); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%q became %q: %v", want, got, err)
				}
			}
		})
	}
	all.Wait()
}

func TestAbortCodesArrive(t *testing.T) {
	c := dial(t, serve(t, func(context.Context, rx.ServerCall) error { return code(4711) }))
	_, err := exchange(t.Context(), c, []byte("x"))
	var a rx.Aborter
	if !errors.As(err, &a) || a.AbortCode() != 4711 {
		t.Errorf("the call failed with %v", err)
	}
}

type code int32

func (c code) Error() string    { return fmt.Sprint(int32(c)) }
func (c code) AbortCode() int32 { return int32(c) }
