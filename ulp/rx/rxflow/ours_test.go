package rxflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxudp"
	"urnic/ulp/rx/secure"
)

// A recorded endpoint records what it sends and receives.
type recorded struct {
	*rxudp.Endpoint
	file   bytes.Buffer
	writer *capture.Writer
}

func openRecorded(t *testing.T, services ...rx.Service) *recorded {
	t.Helper()
	e := &recorded{}
	var err error
	if e.writer, err = capture.NewWriter(&e.file); err != nil {
		t.Fatal(err)
	}
	e.Endpoint, err = rxudp.Open(t.Context(), rxudp.Config{Addr: netip.MustParseAddrPort("127.0.0.1:0"), Services: services, Recorder: e.writer})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *recorded) close(t *testing.T) {
	t.Helper()
	if err := errors.Join(e.Close(), e.writer.Close()); err != nil {
		t.Error(err)
	}
}

// errRefused is what the service refuses with.
var errRefused = &rxkad.Error{Code: 4711}

// echo sends back what it gets, or aborts in the middle.
func echo(_ context.Context, c io.ReadWriter) error {
	b, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	if len(b) > 4 && b[4] == 'x' {
		return errRefused
	}
	_, err = c.Write(b)
	return err
}

// exchange makes a call.
func exchange(ctx context.Context, conn rx.Conn, request []byte) ([]byte, error) {
	call, err := conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = call.Close() }() // what was read counts
	if _, err := call.Write(request); err != nil {
		return nil, err
	}
	if err := call.CloseWrite(); err != nil {
		return nil, err
	}
	return io.ReadAll(call)
}

// What endpoints of ours do to each other breaks no rule, whichever side looks: calls side by
// side, large and small, whole and aborted, at each level of security.
func TestOurEndpointsBreakNoRule(t *testing.T) {
	for _, level := range []string{"none", "clear", "auth", "crypt"} {
		t.Run(level, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			service := rx.Service{ID: 2077, Handler: rx.Stream(echo)}
			var dial rx.DialConfig
			if level != "none" {
				keys := testKeys(t)
				serverSide, err := rxkad.NewServer(rxkad.ServerConfig{Keys: keys})
				if err != nil {
					t.Fatal(err)
				}
				service.Security = []secure.Server{serverSide}
				l, err := rxkad.ParseLevel(level)
				if err != nil {
					t.Fatal(err)
				}
				ticket, err := keys.Forge(rxkad.Contents{Name: "alice", Realm: "rx.test"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if dial.Security, err = rxkad.NewClient(rxkad.ClientConfig{Ticket: ticket, Level: l}); err != nil {
					t.Fatal(err)
				}
			}
			ends := [2]*recorded{openRecorded(t), openRecorded(t, service)}
			conn, err := ends[0].Dial(ctx, ends[1].Addr(), 2077, dial)
			if err != nil {
				t.Fatal(err)
			}
			var calls sync.WaitGroup
			for worker := range 3 {
				calls.Go(func() {
					for n := range 8 {
						request := append([]byte{0, 0, 0, 9, '-'}, bytes.Repeat([]byte{byte(worker)}, 1<<(2*n)+n)...)
						if n == 5 {
							request[4] = 'x'
						}
						reply, err := exchange(ctx, conn, request)
						if n == 5 {
							if rx.AbortCode(err) != 4711 {
								t.Errorf("aborted call: %v", err)
							}
						} else if err != nil || !bytes.Equal(reply, request) {
							t.Errorf("%d bytes of %d: %v", len(reply), len(request), err)
						}
					}
				})
			}
			calls.Wait()
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			for _, e := range ends {
				e.close(t)
			}
			for side, e := range ends {
				a := analyzer(t)
				a.Ports = []uint16{ends[1].Addr().Port()}
				f := analyzeWith(t, e.file.Bytes(), a)
				f.want(t)
				whole, aborted := 0, 0
				for i := range f.calls {
					k := &f.calls[i]
					if k.Code != nil {
						aborted++
					} else if k.Whole && k.HasOp && k.Opcode == 9 && k.Request.Bytes == k.Reply.Bytes {
						whole++
					} else {
						t.Errorf("side %d: %v", side, k)
					}
				}
				if whole != 3*7 || aborted != 3 || len(f.Connections) == 0 || f.Connections[0].Transport != dissect.UDP {
					t.Errorf("side %d: %d whole calls, %d aborted, %d connections", side, whole, aborted, len(f.Connections))
				}
				want := ""
				if level != "none" {
					want = fmt.Sprintf("alice@rx.test, level %s, key version 1", level)
				}
				if got := f.Connections[0].Upper.(*Summary).Caller; got != want {
					t.Errorf("side %d: caller %q, want %q", side, got, want)
				}
			}
		})
	}
}
