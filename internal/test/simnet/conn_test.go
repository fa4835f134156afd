package simnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/host/sockio"
)

var (
	_ net.Conn      = (*Conn)(nil)
	_ sockio.Stream = (*Conn)(nil)
)

// pattern returns n octets that tell their place.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return b
}

// simulate runs f in a bubble, with a pair of streams that it closes at the end.
func simulate(t *testing.T, o Options, f func(t *testing.T, a, b *Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(o)
		defer func() {
			_ = a.Abort()
			_ = b.Abort()
		}()
		f(t, a, b)
	})
}

func TestOctetsArriveInOrder(t *testing.T) {
	for _, o := range []Options{
		{},
		{Buffer: 100},
		{AB: Faults{Seed: 1, ShortReads: true, ShortWrites: true}},
		{AB: Faults{Seed: 2, ShortReads: true, Latency: time.Second, Jitter: time.Second}, Buffer: 1000},
	} {
		simulate(t, o, func(t *testing.T, a, b *Conn) {
			want := pattern(10_000)
			go func() {
				if n, err := a.Write(want); n != len(want) || err != nil {
					t.Errorf("wrote %d octets: %v", n, err)
				}
				if err := a.CloseWrite(); err != nil {
					t.Error(err)
				}
			}()
			got, err := io.ReadAll(b)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%+v: read %d octets, %v; want %d", o, len(got), err, len(want))
			}
		})
	}
}

func TestTheTwoDirectionsAreIndependent(t *testing.T) {
	simulate(t, Options{}, func(t *testing.T, a, b *Conn) {
		if err := a.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read after the peer's end: %v; want io.EOF", err)
		}
		if _, err := a.Write([]byte{1}); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after our end: %v; want EPIPE", err)
		}
		if _, err := b.Write([]byte("back")); err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 10)
		if n, err := a.Read(p); string(p[:n]) != "back" || err != nil {
			t.Errorf("read %q, %v", p[:n], err)
		}
	})
}

func TestWriterWaitsForRoom(t *testing.T) {
	simulate(t, Options{Buffer: 10}, func(t *testing.T, a, b *Conn) {
		if n, err := a.Writev([][]byte{pattern(6), nil, pattern(6)}, false); n != 10 || err != nil {
			t.Fatalf("the stream took %d octets, %v; want 10", n, err)
		}
		if n, err := a.Writev([][]byte{{1}}, false); n != 0 || err != nil {
			t.Fatalf("the full stream took %d octets, %v", n, err)
		}
		done := make(chan int)
		go func() {
			n, err := a.Writev([][]byte{pattern(8)}, true)
			if err != nil {
				t.Error(err)
			}
			done <- n
		}()
		synctest.Wait()
		select {
		case n := <-done:
			t.Fatalf("a write of %d octets into a full stream did not wait", n)
		default:
		}
		if n, err := b.Read(make([]byte, 3)); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		if n := <-done; n != 3 {
			t.Errorf("3 octets of room, %d taken", n)
		}
	})
}

func TestWritingNothingDoesNotWait(t *testing.T) {
	simulate(t, Options{Buffer: 1}, func(t *testing.T, a, _ *Conn) {
		if n, err := a.Writev([][]byte{nil, {}}, true); n != 0 || err != nil {
			t.Errorf("empty stream: took %d octets, %v", n, err)
		}
		if _, err := a.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if n, err := a.Writev(nil, true); n != 0 || err != nil {
			t.Errorf("full stream: took %d octets, %v", n, err)
		}
	})
}

func TestTryReadDoesNotWait(t *testing.T) {
	simulate(t, Options{}, func(t *testing.T, a, b *Conn) {
		p := make([]byte, 10)
		if n, err := b.TryRead(p); n != 0 || err != nil {
			t.Errorf("nothing there: %d, %v", n, err)
		}
		if n, err := b.Read(nil); n != 0 || err != nil {
			t.Errorf("read into nothing: %d, %v", n, err)
		}
		_, _ = a.Write([]byte("abc"))
		if n, err := b.TryRead(p); string(p[:n]) != "abc" || err != nil {
			t.Errorf("read %q, %v", p[:n], err)
		}
		_ = a.CloseWrite()
		if n, err := b.TryRead(p); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %d, %v", n, err)
		}
	})
}

func TestReadIntoAsksForABufferOnlyWhenThereIsSomething(t *testing.T) {
	simulate(t, Options{}, func(t *testing.T, a, b *Conn) {
		held := 0
		buf := make([]byte, 10)
		done := make(chan int)
		go func() {
			n, err := b.ReadInto(func() []byte { held++; return buf }, func() { held-- })
			if err != nil {
				t.Error(err)
			}
			done <- n
		}()
		synctest.Wait()
		if held != 0 {
			t.Error("a buffer is held while there is nothing to read")
		}
		_, _ = a.Write([]byte("abc"))
		if n := <-done; n != 3 || held != 1 {
			t.Errorf("%d octets read, %d buffers held", n, held)
		}
	})
}

func TestClose(t *testing.T) {
	simulate(t, Options{}, func(t *testing.T, a, b *Conn) {
		if _, err := a.Write([]byte("last")); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 10)
		for _, err := range []error{
			a.Close(), a.Abort(), a.CloseWrite(),
			second(a.Read(p)), second(a.Write(p)), second(a.TryRead(p)), second(a.Writev([][]byte{p}, false)),
		} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("use of a closed stream: %v", err)
			}
		}
		if n, err := b.Read(p); string(p[:n]) != "last" || err != nil {
			t.Errorf("the peer reads %q, %v", p[:n], err)
		}
		if _, err := b.Read(p); !errors.Is(err, io.EOF) {
			t.Errorf("then: %v", err)
		}
		if _, err := b.Write(p); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the peer writes: %v; want EPIPE", err)
		}
	})
}

func second(_ int, err error) error { return err }

func TestCloseWithUnreadOctetsResets(t *testing.T) {
	simulate(t, Options{}, func(t *testing.T, a, b *Conn) {
		_, _ = a.Write([]byte("on its way"))
		_, _ = b.Write([]byte("unread"))
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Read(make([]byte, 10)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the peer reads: %v; want ECONNRESET", err)
		}
	})
}

func TestAbortResets(t *testing.T) {
	simulate(t, Options{}, func(t *testing.T, a, b *Conn) {
		_, _ = a.Write([]byte("lost"))
		if err := a.Abort(); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{second(b.Read(make([]byte, 10))), second(b.Write([]byte{1}))} {
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the peer: %v; want ECONNRESET", err)
			}
		}
		if err := b.CloseWrite(); !errors.Is(err, syscall.ENOTCONN) {
			t.Errorf("the peer half closes: %v; want ENOTCONN", err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("the peer closes: %v", err)
		}
	})
}

func TestCloseWakesThoseWhoWait(t *testing.T) {
	for name, end := range map[string]func(*Conn) error{"close": (*Conn).Close, "abort": (*Conn).Abort} {
		t.Run(name, func(t *testing.T) {
			simulate(t, Options{Buffer: 1}, func(t *testing.T, a, _ *Conn) {
				_, _ = a.Write([]byte{1})
				errs := make(chan error, 2)
				go func() { errs <- second(a.Read(make([]byte, 1))) }()
				go func() { errs <- second(a.Write(make([]byte, 1))) }()
				synctest.Wait()
				if err := end(a); err != nil {
					t.Error(err)
				}
				for range 2 {
					if err := <-errs; !errors.Is(err, net.ErrClosed) {
						t.Errorf("%v; want net.ErrClosed", err)
					}
				}
			})
		})
	}
}

func TestPassedDeadlineFailsAtOnce(t *testing.T) {
	simulate(t, Options{}, func(t *testing.T, a, b *Conn) {
		_, _ = b.Write([]byte("there"))
		_ = a.SetDeadline(time.Unix(1, 0))
		p := make([]byte, 10)
		for _, err := range []error{second(a.Read(p)), second(a.TryRead(p)), second(a.Write(p)), second(a.Writev([][]byte{p}, false))} {
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("%v; want a timeout", err)
			}
		}
		_ = a.SetDeadline(time.Time{})
		if n, err := a.Read(p); string(p[:n]) != "there" || err != nil {
			t.Errorf("without deadline: %q, %v", p[:n], err)
		}
	})
}

func TestAddressesAndSegmentSize(t *testing.T) {
	a, b := Pipe(Options{MSS: 1448})
	if a.LocalAddr().String() != b.RemoteAddr().String() || a.RemoteAddr().String() != b.LocalAddr().String() ||
		a.LocalAddr().String() == a.RemoteAddr().String() {
		t.Errorf("A: %v to %v; B: %v to %v", a.LocalAddr(), a.RemoteAddr(), b.LocalAddr(), b.RemoteAddr())
	}
	if a.MSS() != 1448 || b.MSS() != 1448 {
		t.Errorf("MSS %d, %d", a.MSS(), b.MSS())
	}
}

func TestPlainHidesWhatIsNoNetConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := Pipe(Options{})
		a := Plain(c)
		if _, ok := a.(sockio.Stream); ok {
			t.Error("a plain stream can be used without waiting")
		}
		if a.LocalAddr() != c.LocalAddr() || a.RemoteAddr() != c.RemoteAddr() {
			t.Error("other addresses")
		}
		_, _ = a.Write([]byte("to"))
		_, _ = b.Write([]byte("fro"))
		p := make([]byte, 10)
		if n, err := b.Read(p); string(p[:n]) != "to" || err != nil {
			t.Errorf("read %q, %v", p[:n], err)
		}
		if n, err := a.Read(p); string(p[:n]) != "fro" || err != nil {
			t.Errorf("read %q, %v", p[:n], err)
		}
		_ = a.SetReadDeadline(time.Unix(1, 0))
		_ = a.SetWriteDeadline(time.Unix(1, 0))
		for _, err := range []error{second(a.Read(p)), second(a.Write(p))} {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
		}
		_ = a.SetDeadline(time.Time{})
		if h, ok := a.(interface{ CloseWrite() error }); !ok || h.CloseWrite() != nil {
			t.Error("a plain stream can't be half closed")
		}
		if _, err := b.Read(p); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
}
