package rxrelay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"testing"
	"testing/synctest"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rpc/rpctest"
	"urnic/ulp/rx/rxrelay"
)

// serverCall is a call in memory as a handler sees it.
type serverCall struct{ *rpctest.Call }

func (serverCall) Peer() netip.AddrPort { return netip.AddrPort{} }
func (serverCall) Service() uint16      { return 7 }

// through makes a call that a relay passes to a server.
func through(ctx context.Context, serve func(context.Context, io.ReadWriter) error) *rpctest.Call {
	client, front := rpctest.Pair()
	handler := rxrelay.New(func(context.Context, rx.ServerCall) (rx.Call, error) {
		back, server := rpctest.Pair()
		go rpctest.Carry(ctx, serve, server)
		return back, nil
	})
	go rpctest.Carry(ctx, func(ctx context.Context, _ io.ReadWriter) error { return handler.Serve(ctx, serverCall{front}) }, front)
	return client
}

type code int32

func (c code) Error() string    { return "aborted" }
func (c code) AbortCode() int32 { return int32(c) }

func TestStreamsPassBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := bytes.Repeat([]byte("0123456789"), 100000)
		call := through(t.Context(), func(_ context.Context, c io.ReadWriter) error {
			p, err := io.ReadAll(c)
			if err != nil {
				return err
			}
			_, err = c.Write(append(p, '!'))
			return err
		})
		if _, err := call.Write(data); err != nil {
			t.Fatal(err)
		}
		call.CloseWrite()
		got, err := io.ReadAll(call)
		if err != nil || len(got) != len(data)+1 || !bytes.Equal(got[:len(data)], data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

func TestCodeOfTheServerReachesTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []int{0, 100, 100000} { // bytes of the reply
			call := through(t.Context(), func(_ context.Context, c io.ReadWriter) error {
				if _, err := c.Write(make([]byte, after)); err != nil {
					return err
				}
				return code(4711)
			})
			call.CloseWrite()
			if _, err := io.ReadAll(call); rx.AbortCode(err) != 4711 {
				t.Errorf("after %d bytes: %v", after, err)
			}
		}
	})
}

func TestCodeOfTheServerEndsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := through(t.Context(), func(context.Context, io.ReadWriter) error { return code(4712) })
		var err error
		for err == nil {
			_, err = call.Write(make([]byte, 1000))
		}
		if rx.AbortCode(err) != 4712 {
			t.Error(err)
		}
	})
}

func TestCodeOfTheClientReachesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		call := through(t.Context(), func(_ context.Context, c io.ReadWriter) error {
			_, err := io.ReadAll(c)
			got <- err
			return err
		})
		if _, err := call.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := call.Abort(99); err != nil {
			t.Error(err)
		}
		if err := <-got; rx.AbortCode(err) != 99 {
			t.Error(err)
		}
	})
}

func TestServerThatCantBeReachedFailsTheCall(t *testing.T) {
	cause := errors.New("no way")
	handler := rxrelay.New(func(context.Context, rx.ServerCall) (rx.Call, error) { return nil, cause })
	_, front := rpctest.Pair()
	if err := handler.Serve(t.Context(), serverCall{front}); !errors.Is(err, cause) {
		t.Error(err)
	}
}
