package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
)

// polled connects two ends, which can be polled.
func polled(t *testing.T, cfg Config) (ini, res *Conn) {
	t.Helper()
	a, b := simnet.Pipe(simnet.Options{MSS: 1448, Polls: true})
	return connect(t, a, b, cfg, cfg)
}

func TestULPDUIsKeptUntilPlaceTakesIt(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, try := range []bool{false, true} {
			t.Run(fmt.Sprintf("markers %v, polled %v", markers, try), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ini, res := polled(t, Config{Markers: markers, Revision: 1})
					want := [][]byte{{}, []byte("second"), bytes.Repeat([]byte("third"), 1000), []byte("last")}
					go send(t, ini, want...)
					synctest.Wait()
					var got [][]byte
					open, asked := false, 0
					take := func(u []byte, order uint64) error {
						asked++
						if i := len(got); order != uint64(i) || !bytes.Equal(u, want[i]) {
							t.Errorf("ULPDU %d has order %d, and %d octets", i, order, len(u))
						}
						if !open {
							return errNotNow
						}
						got = append(got, bytes.Clone(u))
						open = false // one at a time
						return nil
					}
					for i := range want {
						for range 3 {
							asked = 0
							if some, err := res.TryReceive(take); some || err != errNotNow { //nolint:errorlint // as it is
								t.Fatalf("a poll of ULPDU %d, which is not taken: %v, %v", i, some, err)
							}
							if err := res.Receive(take); err != errNotNow { //nolint:errorlint // as it is
								t.Fatalf("waiting for ULPDU %d, which is not taken: %v", i, err)
							}
							if err := res.Await(); err != nil {
								t.Fatalf("waiting until ULPDU %d comes, which is there: %v", i, err)
							}
							if asked != 2 || len(got) != i {
								t.Fatalf("place was called %d times, and took %d ULPDUs", asked, len(got))
							}
						}
						open = true
						some, err := true, error(nil)
						if try {
							some, err = res.TryReceive(take)
						} else {
							err = res.Receive(take)
						}
						if last := i == len(want)-1; !some || last && err != nil || !last && err != errNotNow { //nolint:errorlint // as it is
							t.Fatalf("ULPDU %d: %v, %v", i, some, err)
						}
						if len(got) != i+1 {
							t.Fatalf("%d ULPDUs have been taken; want %d", len(got), i+1)
						}
					}
				})
			})
		}
	}
}

// The error is that of one ULPDU, not of the connection.
func TestConnectionGoesOnAfterAnErrorOfPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := polled(t, Config{})
		send(t, ini, []byte("one"), []byte("two"))
		if err := res.Receive(refuse); !errors.Is(err, errNotNow) {
			t.Fatal(err)
		}
		if got := receive(t, res, 2); string(bytes.Join(got, nil)) != "onetwo" {
			t.Errorf("received %q", got)
		}
		_ = ini.CloseWrite()
		if err := res.Receive(refuse); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
	})
}

func TestWhatIsKeptIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ini, res := polled(t, Config{})
		send(t, ini, []byte("first"), []byte("second"))
		synctest.Wait()
		if err := res.Receive(refuse); !errors.Is(err, errNotNow) {
			t.Fatal(err)
		}
		if err := ini.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := res.Discard(); err != nil {
			t.Error(err)
		}
		if err := res.Receive(refuse); err == nil || errors.Is(err, errNotNow) || errors.Is(err, io.EOF) {
			t.Errorf("after Discard: %v", err)
		}
		if res.in.buf != nil || res.in.kept != nil {
			t.Error("the receiver still holds a buffer")
		}
	})
}
