package server

import (
	"context"
	"errors"
	"net"
	"testing"

	"urnic/conformance/service"
	"urnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// patience is for what must happen: nobody waits for its end, unless the machine is
// loaded. It is the longest time that an operation may be given.
const patience = maxTimeout

// serving returns the address of a server that ends with the test.
func serving(t *testing.T, o Options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// dial opens a session that ends with the test.
func dial(t *testing.T, address string) *service.Client {
	t.Helper()
	c, err := service.Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// must is what a call returns that must succeed.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// check fails the test if a call that must succeed has not.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused returns the error of a call that must fail with a code.
func refused(t testing.TB, err error, code service.Code) *service.Error {
	t.Helper()
	e, ok := errors.AsType[*service.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("error %v; want code %q", err, code)
	}
	return e
}

// An end is one side of a connection.
type end struct {
	*service.Client
	qp int
}

// pair connects two sessions: an initiator and a responder.
func pair(t *testing.T, l service.ListenArgs, c service.ConnectArgs) (initiator, responder end) {
	t.Helper()
	address := serving(t, Options{})
	initiator.Client, responder.Client = dial(t, address), dial(t, address)
	joined(t, &initiator, &responder, l, c)
	return initiator, responder
}

// joined connects two sessions.
func joined(t *testing.T, initiator, responder *end, l service.ListenArgs, c service.ConnectArgs) (*service.Accepted, *service.Connected) {
	t.Helper()
	listener := must(responder.Listen(t.Context(), l))(t)
	c.Address = listener.Address
	initiator.qp = must(initiator.Connect(t.Context(), c))(t).QP
	connected := must(initiator.Connected(t.Context(), initiator.qp, patience))(t)
	accepted := must(responder.Accepted(t.Context(), listener.Listener, patience))(t)
	responder.qp = accepted.QP
	return accepted, connected
}

// completes returns the next completion, which must be a success.
func (e end) completes(t *testing.T, queue, op string) *service.Completion {
	t.Helper()
	c := must(e.Completion(t.Context(), e.qp, queue, patience))(t)
	if c.Status != service.StatusSuccess || c.Op != op {
		t.Fatalf("completion %+v (%+v); want %s with success", c, c.Failure, op)
	}
	return c
}

// posts posts a request and waits until it has completed.
func (e end) posts(t *testing.T, p service.Post) *service.Completion {
	t.Helper()
	must(e.Post(t.Context(), e.qp, p))(t)
	return e.completes(t, service.SendQueue, p.Op)
}

// becomes waits until the queue pair has a state.
func (e end) becomes(t *testing.T, state string) *service.State {
	t.Helper()
	return must(e.Becomes(t.Context(), e.qp, state, patience))(t)
}

// holds fails the test unless memory has this content.
func (e end) holds(t *testing.T, r *service.Region, off uint64, want []byte) {
	t.Helper()
	if got := must(e.MemoryRead(t.Context(), r.MR, off, len(want)))(t); string(got) != string(want) {
		t.Fatalf("memory is %x; want %x", got, want)
	}
}
