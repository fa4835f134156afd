package oncrpc_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// The program of these tests.
const (
	program   = 0x20000099
	version   = 3
	procEcho  = 1 // returns its argument
	procCount = 2 // returns how often it was called, and is to be done once
	procFail  = 3
	procPanic = 4
	procWait  = 5 // waits until hold is closed
	procWho   = 6 // returns the caller's user ID
	procSaved = 7 // waits as procWait does, and is to be done once
)

const most = 1 << 20

// A service is a server with a program, and what the program does.
type service struct {
	*oncrpc.Server
	count   atomic.Uint32
	entered chan struct{} // one for each call of procWait or procSaved
	hold    chan struct{}
}

func newService(t *testing.T, cfg oncrpc.ServerConfig) *service {
	t.Helper()
	s := &service{Server: oncrpc.NewServer(cfg), entered: make(chan struct{}, 1000), hold: make(chan struct{})}
	wait := func(ctx context.Context, _ *oncrpc.Incoming) error {
		s.entered <- struct{}{}
		select {
		case <-s.hold:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	procedures := map[uint32]oncrpc.Procedure{
		procEcho: {Name: "ECHO", Handle: func(_ context.Context, in *oncrpc.Incoming) error {
			p := in.Args.Bulk(most)
			q := in.Exchange.Bulk(len(p))
			copy(q, p)
			in.Results.Bulk(q)
			return nil
		}},
		procCount: {Name: "COUNT", Once: true, Handle: func(_ context.Context, in *oncrpc.Incoming) error {
			in.Args.Bulk(most)
			in.Results.Uint32(s.count.Add(1))
			return nil
		}},
		procFail: {Name: "FAIL", Handle: func(_ context.Context, in *oncrpc.Incoming) error {
			in.Results.Uint32(1)
			return errors.New("no memory")
		}},
		procPanic: {Name: "PANIC", Handle: func(context.Context, *oncrpc.Incoming) error { panic("no such thing") }},
		procWait:  {Name: "WAIT", Handle: wait},
		procWho: {Name: "WHO", Handle: func(_ context.Context, in *oncrpc.Incoming) error {
			if in.Sys == nil {
				return &oncrpc.RejectedError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}
			}
			in.Results.Uint32(in.Sys.UID)
			return nil
		}},
		procSaved: {Name: "SAVED", Once: true, Handle: wait},
	}
	versions := []oncrpc.ProgramVersion{{Number: 2}, {Number: version, Procedures: procedures}}
	if err := s.Register(&oncrpc.Program{Number: program, Name: "test", Versions: versions}); err != nil {
		t.Fatal(err)
	}
	return s
}

// listen serves on loopback until the test is over, and returns where.
func (s *service) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeTCP(t.Context(), l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, oncrpc.ErrClosed) && !errors.Is(err, context.Canceled) {
			t.Errorf("ServeTCP: %v", err)
		}
	})
	return l.Addr().String()
}

// newClient returns a client that is closed when the test is over.
func newClient(t testing.TB, dial oncrpc.Dial, cfg oncrpc.ClientConfig) *oncrpc.Client {
	c := oncrpc.NewClient(dial, cfg)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// call is an invocation of the test's program.
func call(procedure uint32) *oncrpc.Invocation {
	return &oncrpc.Invocation{Program: program, Version: version, Procedure: procedure, ResultsMost: 1 << 10}
}

// echo calls procEcho.
func echo(ctx context.Context, c *oncrpc.Client, data string) (string, error) {
	v := call(procEcho)
	v.Args = func(e *xdr.Encoder) { e.Bulk([]byte(data)) }
	v.ResultsMost = len(data) + 8
	var got string
	v.Results = func(d *xdr.Decoder) error { got = string(d.Bulk(most)); return d.Err() }
	return got, c.Call(ctx, v)
}

func TestCallsAreCarriedOutOverTCP(t *testing.T) {
	c := newClient(t, oncrpc.OverTCP(newService(t, oncrpc.ServerConfig{}).listen(t), oncrpc.TCPConfig{}), oncrpc.ClientConfig{})
	for _, n := range []int{0, 1, 4, 1000, 70_000, most} {
		want := strings.Repeat("x", n)
		if got, err := echo(t.Context(), c, want); err != nil {
			t.Errorf("%d octets: %v", n, err)
		} else if got != want {
			t.Errorf("%d octets: there came %d", n, len(got))
		}
	}
	if err := c.Call(t.Context(), call(0)); err != nil {
		t.Errorf("procedure 0: %v", err)
	}
}
