package rxref

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/rpc/rpctest"
	"urnic/ulp/rx/secure"
)

func TestChecksPassAgainstTheHandler(t *testing.T) {
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if err := check.Run(t.Context(), newClient(rpctest.Serve(newMux()))); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestWhoAmITellsOfTheCaller(t *testing.T) {
	for _, test := range []struct {
		caller secure.Caller
		want   Identity
	}{
		{secure.Caller{}, Identity{Level: -1}},
		{
			secure.Caller{Name: "rxref.admin", Realm: "rx.test", Class: "rxkad", Level: "crypt", Key: 2, Expires: time.Unix(1_700_000_000, 0)},
			Identity{Security: 2, Level: 2, Expires: 1_700_000_000, KeyVersion: 2, Name: "rxref", Instance: "admin", Cell: "rx.test"},
		},
		{secure.Caller{Name: "afs", Class: "rxkad", Level: "clear", Key: 1}, Identity{Security: 2, KeyVersion: 1, Name: "afs"}},
	} {
		got, err := newClient(rpctest.As(newMux(), test.caller)).WhoAmI(t.Context())
		if err != nil || got != test.want {
			t.Errorf("%+v, %v; want %+v", got, err, test.want)
		}
	}
}

// A server of bytes that are not those of the pattern, or of too few.
func TestDamageIsFound(t *testing.T) {
	bad := rpc.NewMux("bad")
	opEcho.Handle(bad, func(_ context.Context, a *echoed) (echoed, error) { return (*a)[1:], nil })
	opPut.HandleStream(bad, func(_ context.Context, h *How, data io.ReadWriter) (Seen, error) {
		_, err := io.Copy(io.Discard, data)
		return Seen{Length: h.Length, Bad: 1}, err
	})
	opGet.HandleStream(bad, func(_ context.Context, h *How, data io.ReadWriter) (Seen, error) {
		b := []byte(strings.Clone(string(bytesAt(0, int(h.Length)))))
		b[len(b)-1]++
		_, err := data.Write(b)
		return Seen{Length: h.Length}, err
	})
	opBoth.HandleStream(bad, func(_ context.Context, h *How, data io.ReadWriter) (Seen, error) {
		if _, err := io.Copy(io.Discard, data); err != nil {
			return Seen{}, err
		}
		_, err := data.Write(bytesAt(0, int(h.Length)))
		return Seen{Length: h.Length - 1}, err
	})
	for _, check := range Checks() {
		if name, length, _ := strings.Cut(check.Name, " "); length == "5000" {
			err := check.Run(t.Context(), newClient(rpctest.Serve(bad)))
			var damage *DamagedError
			if !errors.As(err, &damage) || damage.Length != 5000 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestAStreamThatIsCutShortIsAborted(t *testing.T) {
	client := newClient(rpctest.Serve(newMux()))
	s, err := opPut.Start(t.Context(), &client.rpc, &How{Length: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(bytesAt(0, 999)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Finish(); !errors.Is(err, rpc.ErrServerUnmarshal) {
		t.Error(err)
	}
}

// The server stops sleeping when its client has gone.
func TestSlowEndsWithItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := sleep(ctx, 1_000_000); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestPatternIsTheSameAtAnyPlace(t *testing.T) {
	for _, at := range []uint64{0, 1, 255, 256, period - 1, period, 3*period + 77, 1 << 40} {
		for i, b := range bytesAt(at, 1000) {
			n := at + uint64(i)
			if want := byte(n%period*31 + n%period>>8); b != want {
				t.Fatalf("byte %d is %d, want %d", n, b, want)
			}
		}
	}
	if n := mismatches([]byte{0, 31, 62, 94}, 0); n != 1 {
		t.Errorf("%d mismatches, want 1", n)
	}
}
