package rxudp_test

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"sync"
	"testing"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxudp"
)

// A handler that waits for another call to come does not keep it from being received, though
// calls before it were carried out by whoever receives.
func TestHandlerThatBlocksKeepsNoCallFromComing(t *testing.T) {
	var mu sync.Mutex
	second := make(chan struct{})
	c := dial(t, serve(t, func(ctx context.Context, call rx.ServerCall) error {
		b, err := io.ReadAll(call)
		if err != nil {
			return err
		}
		mu.Lock()
		met := second
		mu.Unlock()
		switch string(b) {
		case "wait":
			select {
			case <-met:
			case <-ctx.Done():
			}
		case "meet":
			close(met)
		}
		_, err = call.Write(b)
		return err
	}))
	for range 50 {
		mu.Lock()
		second = make(chan struct{})
		mu.Unlock()
		for range 20 {
			if got, err := exchange(t.Context(), c, []byte("brief")); err != nil || string(got) != "brief" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		waits := make(chan error)
		go func() {
			_, err := exchange(t.Context(), c, []byte("wait"))
			waits <- err
		}()
		if _, err := exchange(t.Context(), c, []byte("meet")); err != nil {
			t.Fatal(err)
		}
		if err := <-waits; err != nil {
			t.Fatal(err)
		}
	}
}

// A handler that ends its goroutine ends nothing else.
func TestHandlerThatEndsItsGoroutineStopsNoOtherCall(t *testing.T) {
	c := dial(t, serve(t, func(_ context.Context, call rx.ServerCall) error {
		b, err := io.ReadAll(call)
		if err != nil {
			return err
		}
		if string(b) == "end" {
			runtime.Goexit()
		}
		_, err = call.Write(b)
		return err
	}))
	for range 20 { // more than the service has workers
		if got, err := exchange(t.Context(), c, []byte("end")); err != nil || len(got) > 0 {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := exchange(t.Context(), c, []byte("echo")); err != nil || string(got) != "echo" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// Calls of all shapes and numbers at a time pass, though whoever waits for one may have to
// receive for the others.
func TestCallersReceiveForEachOther(t *testing.T) {
	server := serve(t, echo)
	client := open(t, rxudp.Config{Addr: loopback})
	var w sync.WaitGroup
	for i := range 3 {
		c, err := client.Dial(t.Context(), server.Addr(), 7, rx.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for j := range 5 { // more than the connection has channels
			w.Go(func() {
				for k := range 60 {
					want := []byte{byte(i), byte(j), byte(k)}
					if k%20 == j {
						want = bytes.Repeat(want, 100_000)
					}
					got, err := exchange(t.Context(), c, want)
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("%d bytes came back of %d: %v", len(got), len(want), err)
						return
					}
				}
			})
		}
	}
	w.Wait()
}

// What comes while no call waits is received, though the last caller has received itself.
func TestEndpointReceivesAfterItsCallers(t *testing.T) {
	let := make(chan struct{})
	server := serve(t, func(_ context.Context, call rx.ServerCall) error {
		b, err := io.ReadAll(call)
		if err != nil {
			return err
		}
		if string(b) == "request" {
			<-let
		}
		_, err = call.Write(b)
		return err
	})
	client := open(t, rxudp.Config{Addr: loopback})
	c, err := client.Dial(t.Context(), server.Addr(), 7, rx.DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := exchange(t.Context(), c, []byte("brief")); err != nil {
			t.Fatal(err)
		}
	}
	k := begin(t.Context(), t, c)
	before := client.Stats().Data
	close(let)
	for client.Stats().Data == before {
		runtime.Gosched()
	}
	if got, err := io.ReadAll(k); err != nil || string(got) != "request" {
		t.Errorf("%q, %v", got, err)
	}
}
