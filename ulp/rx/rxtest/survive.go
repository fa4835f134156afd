package rxtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxkad"
)

// Outcomes are how the calls of Survive have ended.
type Outcomes struct {
	Whole  int // with their bytes
	Failed int // with an error that has a code
}

// Survive makes calls of all kinds while what carries them may fail at any moment: each
// call ends with its bytes, or with an error that has a code. It dials by its own, with
// dead times of 3 s.
func Survive(t testing.TB, client, server rx.Endpoint, k *Keys) (o Outcomes) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var mu sync.Mutex
	note := func(what string, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch _, coded := Code(err); {
		case err == nil:
			o.Whole++
		case coded:
			o.Failed++
		default:
			t.Errorf("%s: the error has no code: %v", what, err)
		}
	}
	open := func(service uint16, cfg rx.DialConfig) (rx.Conn, bool) {
		cfg.DeadTime = 3 * time.Second
		conn, err := client.Dial(ctx, server.Addr(), service, cfg)
		if err != nil {
			note("dial", err)
		}
		return conn, err == nil
	}
	if conn, ok := open(Echo, rx.DialConfig{}); ok {
		for _, n := range []int{0, 100, 5000} {
			note("echo", same(ctx, conn, n))
		}
		_ = conn.Close()
	}
	if conn, ok := open(Sink, rx.DialConfig{}); ok {
		note("put", put(ctx, conn, 90_000, 40_000))
		note("abort", abort(ctx, conn, 30_000))
		note("put", put(ctx, conn, 70_000, 70_000))
		_ = conn.Close()
	}
	if conn, ok := open(Source, rx.DialConfig{}); ok {
		note("get", get(ctx, conn, 150_000, 50_000, 50_000))
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { note("get", get(ctx, conn, 9000*i, 3000, 5000)) })
		}
		wg.Wait()
		note("close", amid(ctx, conn))
		_ = conn.Close()
	}
	if conn, ok := open(Fail, rx.DialConfig{}); ok {
		_, err := exchange(ctx, conn, []byte{0, 0, 0, 77})
		if code, _ := Code(err); err == nil {
			t.Error("a handler that fails has replied")
		} else if code == 77 {
			err = nil // as it should
		}
		note("fail", err)
		_ = conn.Close()
	}
	if conn, ok := open(Echo, rx.DialConfig{Security: class(t, k.ring, rxkad.Crypt, time.Now())}); ok {
		note("sealed echo", same(ctx, conn, 3000))
		_ = conn.Close()
	}
	return o
}

// Keys are a server's keys for Survive.
type Keys struct{ ring *rxkad.Keyring }

// NewKeys returns keys, and the services for Survive that know them.
func NewKeys(t testing.TB) (*Keys, []rx.Service) {
	t.Helper()
	k := keys(t)
	return &Keys{k}, secured(t, k, rxkad.Clear)
}

// same has n bytes sent back.
func same(ctx context.Context, conn rx.Conn, n int) error {
	got, err := exchange(ctx, conn, pattern(n))
	if err == nil && !bytes.Equal(got, pattern(n)) {
		return fmt.Errorf("%d bytes of %d came back", len(got), n)
	}
	return err
}

// abort ends a call amid its request.
func abort(ctx context.Context, conn rx.Conn, n int) error {
	k, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(send(k, n, n), k.Abort(5)); err != nil {
		_ = k.Close()
		return err
	}
	return k.Close()
}

// amid closes a call amid its reply.
func amid(ctx context.Context, conn rx.Conn) error {
	k, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	request := binary.BigEndian.AppendUint64(nil, 1<<20)
	_, err = k.Write(binary.BigEndian.AppendUint64(request, 20_000))
	if err = errors.Join(err, k.CloseWrite()); err == nil {
		_, err = io.ReadFull(k, make([]byte, 30_000))
	}
	return errors.Join(err, k.Close())
}
