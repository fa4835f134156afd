package sockio

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
)

// overPlain runs f in a bubble with a buffered stream and its peer.
func overPlain(t *testing.T, o simnet.Options, f func(t *testing.T, a Stream, b *simnet.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, b := simnet.Pipe(o)
		a := New(simnet.Plain(c))
		defer func() {
			_ = a.Close()
			_ = b.Close()
		}()
		f(t, a, b)
	})
}

func TestHalfCloseWaitsUntilAllIsWritten(t *testing.T) {
	overPlain(t, simnet.Options{Buffer: 100}, func(t *testing.T, a Stream, b *simnet.Conn) {
		if n, err := a.Writev([][]byte{pattern(0, 1000)}, false); n != 1000 || err != nil {
			t.Fatal(n, err)
		}
		done := make(chan error)
		go func() { done <- a.CloseWrite() }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the half close did not wait: %v", err)
		default:
		}
		if got, err := io.ReadAll(b); len(got) != 1000 || err != nil {
			t.Errorf("the peer reads %d octets, %v", len(got), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsAWaitingHalfClose(t *testing.T) {
	overPlain(t, simnet.Options{Buffer: 100}, func(t *testing.T, a Stream, _ *simnet.Conn) {
		_, _ = a.Writev([][]byte{pattern(0, 1000)}, false)
		done := make(chan error)
		go func() { done <- a.CloseWrite() }()
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("half close: %v; want net.ErrClosed", err)
		}
	})
}

func TestErrorOfTheWriterIsReported(t *testing.T) {
	overPlain(t, simnet.Options{}, func(t *testing.T, a Stream, b *simnet.Conn) {
		_ = b.Abort()
		if n, err := a.Writev([][]byte{{1}}, true); n != 1 || err != nil {
			t.Errorf("the first write: %d, %v; the goroutine can't have failed yet", n, err)
		}
		synctest.Wait()
		if _, err := a.Writev([][]byte{{1}}, true); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the next write: %v; want ECONNRESET", err)
		}
		if err := a.CloseWrite(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("half close: %v; want ECONNRESET", err)
		}
	})
}

func TestErrorOfTheWriterEndsAWaitForRoom(t *testing.T) {
	overPlain(t, simnet.Options{Buffer: 10}, func(t *testing.T, a Stream, b *simnet.Conn) {
		for {
			n, err := a.Writev([][]byte{pattern(0, 50_000)}, false)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n == 0 {
				break
			}
		}
		done := make(chan error)
		go func() {
			_, err := a.Writev([][]byte{{1}}, true)
			done <- err
		}()
		synctest.Wait()
		_ = b.Abort()
		if err := <-done; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v; want ECONNRESET", err)
		}
	})
}

func TestStreamWithoutHalfCloseOrResetIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := net.Pipe()
		a := New(c)
		if err := a.CloseWrite(); !errors.Is(err, ErrNoHalfClose) {
			t.Errorf("half close: %v", err)
		}
		if err := a.Abort(); err != nil {
			t.Error(err)
		}
		if _, err := d.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the peer reads: %v", err)
		}
		if a.MSS() != 0 {
			t.Error("a pipe has a segment size")
		}
	})
}

// silent is a connection whose Read returns nothing and no error.
type silent struct{ net.Conn }

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestReadThatReturnsNothingIsAnError(t *testing.T) {
	if n, err := New(silent{}).ReadInto(func() []byte { return make([]byte, 1) }, func() {}); n != 0 || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%d, %v; want io.ErrNoProgress", n, err)
	}
}
