package rxudp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	ports "urnic/internal/test/loopback"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxudp"
)

func wantCode(t *testing.T, err error, want int32) {
	t.Helper()
	var a rx.Aborter
	if !errors.As(err, &a) || a.AbortCode() != want {
		t.Errorf("the error is %v; want one with code %d", err, want)
	}
}

// begin begins a call that has sent its request.
func begin(ctx context.Context, t *testing.T, c rx.Conn) rx.Call {
	t.Helper()
	k, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	if _, err := k.Write([]byte("request")); err != nil {
		t.Fatal(err)
	}
	if err := k.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	return k
}

func TestIPv6AndBothFamiliesAtOneSocket(t *testing.T) {
	if l, err := net.ListenPacket("udp6", "[::1]:0"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no IPv6 here: %v", err)
		}
		t.Skipf("no IPv6 here: %v", err)
	} else {
		l.Close()
	}
	services := []rx.Service{{ID: 7, Handler: rx.HandlerFunc(echo)}}
	both := open(t, rxudp.Config{Services: services})
	six := open(t, rxudp.Config{Addr: netip.MustParseAddrPort("[::1]:0"), Services: services})
	four := open(t, rxudp.Config{Addr: netip.MustParseAddrPort("0.0.0.0:0"), Services: services})
	at := func(host string, e *rxudp.Endpoint) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr(host), e.Addr().Port())
	}
	client := open(t, rxudp.Config{})
	for _, addr := range []netip.AddrPort{
		at("127.0.0.1", both), at("::1", both), at("::ffff:127.0.0.1", both), at("::1", six), at("127.0.0.1", four),
	} {
		c, err := client.Dial(t.Context(), addr, 7, rx.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := exchange(t.Context(), c, []byte("hello")); err != nil || string(got) != "hello" {
			t.Errorf("%v: %q, %v", addr, got, err)
		}
	}
	if _, err := four.Dial(t.Context(), at("::1", six), 7, rx.DialConfig{}); err == nil {
		t.Error("a socket of IPv4 has dialled IPv6")
	}
	if _, err := six.Dial(t.Context(), at("127.0.0.1", four), 7, rx.DialConfig{}); err == nil {
		t.Error("a socket at an address of IPv6 has dialled IPv4")
	}
}

func TestContextEndsACallAtBothSides(t *testing.T) {
	entered, left := make(chan struct{}), make(chan error, 1)
	c := dial(t, serve(t, func(ctx context.Context, _ rx.ServerCall) error {
		close(entered)
		<-ctx.Done()
		left <- ctx.Err()
		return nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	k := begin(ctx, t, c)
	<-entered
	cancel()
	_, err := io.ReadAll(k)
	wantCode(t, err, rx.UserAbort)
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler's context ended with %v", err)
	}
}

func TestFifthCallWaitsForAChannel(t *testing.T) {
	let := make(chan struct{})
	c := dial(t, serve(t, func(ctx context.Context, call rx.ServerCall) error {
		select {
		case <-let:
		case <-ctx.Done():
		}
		return echo(ctx, call)
	}))
	for range 4 {
		begin(t.Context(), t, c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan error)
	go func() {
		_, err := c.Begin(ctx)
		refused <- err
	}()
	cancel()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	fifth := make(chan error)
	go func() {
		_, err := exchange(t.Context(), c, []byte("fifth"))
		fifth <- err
	}()
	close(let) // the handlers return, but their calls have to be closed
	select {
	case err := <-fifth:
		t.Errorf("the fifth call did not wait: %v", err)
	default:
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-fifth; err == nil {
		t.Error("a call on a closed connection has succeeded")
	}
}

func TestHandlerNeedNotReadTheRequest(t *testing.T) {
	c := dial(t, serve(t, func(_ context.Context, call rx.ServerCall) error {
		var b [4]byte
		if _, err := io.ReadFull(call, b[:]); err != nil {
			return err
		}
		if string(b[:]) == "none" {
			return nil
		}
		_, err := call.Write([]byte("reply"))
		return err
	}))
	for kind, want := range map[string]string{"none": "", "some": "reply"} {
		got, err := exchange(t.Context(), c, append([]byte(kind), make([]byte, 3<<20)...))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
}

func TestNobodyAtThePortIsToldAtOnce(t *testing.T) {
	addr := netip.AddrPortFrom(loopback.Addr(), ports.Port(t))
	for _, at := range []netip.AddrPort{loopback, {}} {
		c, err := open(t, rxudp.Config{Addr: at}).Dial(t.Context(), addr, 7, rx.DialConfig{DeadTime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(begin(t.Context(), t, c))
		wantCode(t, err, -1)
	}
}

func TestCloseEndsCallsAndWaitsForHandlers(t *testing.T) {
	entered := make(chan struct{})
	returned := false
	e := serve(t, func(_ context.Context, call rx.ServerCall) error {
		close(entered)
		_, err := io.ReadAll(call)
		_, werr := call.Write(make([]byte, 100<<20)) // more than anybody takes
		returned = true
		return errors.Join(err, werr)
	})
	k := begin(t.Context(), t, dial(t, e))
	<-entered
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if !returned {
		t.Error("Close did not wait for the handler")
	}
	_, err := io.ReadAll(k)
	wantCode(t, err, -100)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Dial(t.Context(), loopback, 7, rx.DialConfig{}); err == nil {
		t.Error("a closed endpoint has dialled")
	}
}

func TestShutdownLetsCallsEndAndTakesNoMore(t *testing.T) {
	entered, let := make(chan struct{}), make(chan struct{})
	e := serve(t, func(ctx context.Context, call rx.ServerCall) error {
		close(entered)
		<-let
		return echo(ctx, call)
	})
	c := dial(t, e)
	k := begin(t.Context(), t, c)
	<-entered
	down := make(chan error)
	go func() { down <- e.Shutdown(t.Context()) }()
	for { // until it has begun
		_, err := exchange(t.Context(), c, []byte("late"))
		if err != nil {
			wantCode(t, err, -100)
			break
		}
	}
	close(let)
	if got, err := io.ReadAll(k); err != nil || string(got) != "request" {
		t.Errorf("the call that was served came back with %q, %v", got, err)
	}
	k.Close()
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	entered := make(chan struct{})
	e := serve(t, func(ctx context.Context, _ rx.ServerCall) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	})
	k := begin(t.Context(), t, dial(t, e))
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	down := make(chan error)
	go func() { down <- e.Shutdown(ctx) }()
	cancel()
	if err := <-down; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returned %v", err)
	}
	if _, err := io.ReadAll(k); err == nil {
		t.Error("the call has succeeded")
	}
}

func TestBadServicesAreRefused(t *testing.T) {
	h := rx.HandlerFunc(echo)
	for name, services := range map[string][]rx.Service{
		"no ID":                {{Handler: h}},
		"no handler":           {{ID: 1}},
		"two of one ID":        {{ID: 1, Handler: h}, {ID: 1, Handler: h}},
		"upgrade to nothing":   {{ID: 1, Handler: h, Upgrade: 2}},
		"less than no workers": {{ID: 1, Handler: h, Workers: -1}},
	} {
		e, err := rxudp.Open(t.Context(), rxudp.Config{Addr: loopback, Services: services})
		if err == nil {
			e.Close()
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := rxudp.Open(t.Context(), rxudp.Config{Addr: netip.MustParseAddrPort("192.0.2.1:1")}); err == nil {
		t.Error("an address of somebody else is taken")
	}
}
