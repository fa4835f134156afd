package sockio

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"urnic/internal/test/simnet"
)

// waitForInput waits until something can be read from a TCP connection, without
// reading it.
func waitForInput(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTryReadLooksWithoutWaiting(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		for name, tt := range map[string]struct {
			do   func(b *net.TCPConn) error
			n    int
			want error
		}{
			"silence":   {nil, 0, nil},
			"an octet":  {func(b *net.TCPConn) error { return second(b.Write([]byte("x"))) }, 1, nil},
			"two":       {func(b *net.TCPConn) error { return second(b.Write([]byte("xy"))) }, 1, nil},
			"FIN":       {(*net.TCPConn).CloseWrite, 0, io.EOF},
			"a reset":   {func(b *net.TCPConn) error { return abort(b) }, 0, syscall.ECONNRESET},
			"our close": {nil, 0, net.ErrClosed},
		} {
			a, b := dialTCP(t, "127.0.0.1:0")
			var c net.Conn = a
			if wrapped {
				c = New(a).(net.Conn)
			}
			if tt.do != nil {
				if err := tt.do(b); err != nil {
					t.Fatal(err)
				}
				waitForInput(t, a)
			}
			if name == "our close" {
				_ = a.Close()
			}
			n, err := TryRead(c, make([]byte, 1))
			if n != tt.n || !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("%s, wrapped %v: %d, %v; want %d, %v", name, wrapped, n, err, tt.n, tt.want)
			}
			_ = a.Close()
			_ = b.Close()
		}
	}
}

func second(_ int, err error) error { return err }

func TestTryReadOfAConnectionThatCannotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		go func() { _, _ = b.Write([]byte("x")) }()
		synctest.Wait()
		if n, err := TryRead(a, make([]byte, 1)); n != 0 || err != nil {
			t.Errorf("a pipe: %d, %v", n, err)
		}
		_ = a.Close()
		_ = b.Close()
	})
	c, d := simnet.Pipe(simnet.Options{})
	if n, err := TryRead(c, make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("a Stream in silence: %d, %v", n, err)
	}
	if err := d.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := TryRead(c, make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("a Stream that has ended: %d, %v", n, err)
	}
	if n, err := TryRead(simnet.Plain(c), make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("without its means: %d, %v", n, err)
	}
}

// A read deadline in the past ends a wait, now or later, and costs nothing: what
// is there is read when it is gone.
func TestPastReadDeadlineLosesNothing(t *testing.T) {
	longAgo := time.Unix(1, 0)
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		c := a.(net.Conn)
		p := make([]byte, 10)
		get, unget := func() []byte { return p }, func() {}
		for _, early := range []bool{true, false} {
			if early {
				_ = c.SetReadDeadline(longAgo)
			} else {
				time.AfterFunc(time.Millisecond, func() { _ = c.SetReadDeadline(longAgo) })
			}
			if n, err := a.ReadInto(get, unget); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a wait: %d, %v", n, err)
			}
			if n, err := a.TryRead(p); n != 0 || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // which need not heed it
				t.Errorf("a look: %d, %v", n, err)
			}
		}
		if _, err := b.Writev([][]byte{[]byte("kept")}, true); err != nil {
			t.Fatal(err)
		}
		if n, err := a.ReadInto(get, unget); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a wait with something there: %d, %v", n, err)
		}
		_ = c.SetReadDeadline(time.Time{})
		if n, err := io.ReadFull(reads{a}, p[:4]); err != nil || string(p[:4]) != "kept" {
			t.Errorf("then: %q, %v", p[:n], err)
		}
		if _, err := a.Writev([][]byte{{1}}, true); err != nil {
			t.Errorf("writing minds: %v", err)
		}
	})
}

// reads is a Stream as an io.Reader.
type reads struct{ s Stream }

func (r reads) Read(p []byte) (int, error) {
	return r.s.ReadInto(func() []byte { return p }, func() {})
}

func TestReadingIntoNothingReadsNothing(t *testing.T) {
	s, b := openTCP(t)
	if n, err := s.TryRead(nil); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	waitForInput(t, s.TCPConn)
	if n, err := s.TryRead(nil); n != 0 || err != nil {
		t.Errorf("with an octet there: %d, %v", n, err)
	}
	if n, err := s.TryRead(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// What one end does before it writes happens before the other end reads that:
// the race detector knows of a write and a read of the same stream. Without it,
// the test shows that the two variants of the system calls carry octets alike.
func TestWriteHappensBeforeTheReadOfIt(t *testing.T) {
	s, b := openTCP(t)
	peer := New(b)
	shared := 0
	done := make(chan struct{})
	const rounds = 100
	go func() {
		defer close(done)
		p := make([]byte, 10)
		for range rounds {
			for {
				n, err := peer.TryRead(p)
				if err == nil && n == 0 {
					n, err = peer.ReadInto(func() []byte { return p }, func() {})
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n > 0 {
					break
				}
			}
			shared++
			if _, err := peer.Writev([][]byte{{1}}, true); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	p := make([]byte, 10)
	for range rounds {
		shared++
		if _, err := s.Writev([][]byte{nil, {1}}, true); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadInto(func() []byte { return p }, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	<-done
	if shared != 2*rounds {
		t.Errorf("%d; want %d", shared, 2*rounds)
	}
}
