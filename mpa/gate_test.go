package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"urnic/internal/simnet"
)

// gated connects two ends of which the second asks open before it passes a ULPDU on.
func gated(t *testing.T, cfg Config, open *bool) (ini, res *Conn) {
	t.Helper()
	a, b := simnet.Pipe(simnet.Options{MSS: 1448, Polls: true})
	ini, res = connect(t, a, b, cfg, cfg)
	res.SetGate(func([]byte) bool { return *open })
	return ini, res
}

func TestULPDUIsHeldBackUntilItsGateOpens(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, try := range []bool{false, true} {
			t.Run(fmt.Sprintf("markers %v, polled %v", markers, try), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					open := false
					ini, res := gated(t, Config{Markers: markers, Revision: 1}, &open)
					want := [][]byte{{}, []byte("second"), bytes.Repeat([]byte("third"), 1000), []byte("last")}
					go send(t, ini, want...)
					synctest.Wait()
					var got [][]byte
					take := func(u []byte, order uint64) {
						if order != uint64(len(got)) {
							t.Errorf("ULPDU %d has order %d", len(got), order)
						}
						got = append(got, bytes.Clone(u))
						open = false // one at a time
					}
					for i := range want {
						for range 3 {
							switch some, err := res.TryReceive(take); {
							case some || err != nil || len(got) != i:
								t.Fatalf("a poll of ULPDU %d, which is held back: %v, %v", i, some, err)
							}
							if err := res.Receive(take); !errors.Is(err, ErrHeld) {
								t.Fatalf("waiting for ULPDU %d, which is held back: %v", i, err)
							}
							if err := res.Await(); !errors.Is(err, ErrHeld) {
								t.Fatalf("waiting until ULPDU %d comes, which is held back: %v", i, err)
							}
						}
						open = true
						if try {
							_, _ = res.TryReceive(take)
						} else if err := res.Receive(take); err != nil {
							t.Fatal(err)
						}
						if len(got) != i+1 || !bytes.Equal(got[i], want[i]) {
							t.Fatalf("%d ULPDUs have been passed on; want %d, whole", len(got), i+1)
						}
					}
				})
			})
		}
	}
}

func TestWhatIsHeldBackIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := false
		ini, res := gated(t, Config{}, &open)
		send(t, ini, []byte("first"), []byte("second"))
		synctest.Wait()
		never := func([]byte, uint64) { t.Error("a ULPDU was passed on") }
		if err := res.Receive(never); !errors.Is(err, ErrHeld) {
			t.Fatal(err)
		}
		if err := ini.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := res.Discard(); err != nil {
			t.Error(err)
		}
		if err := res.Receive(never); err == nil || errors.Is(err, ErrHeld) || errors.Is(err, io.EOF) {
			t.Errorf("after Discard: %v", err)
		}
		if res.in.buf != nil || res.in.held != nil {
			t.Error("the receiver still holds a buffer")
		}
	})
}
