package perf

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"urnic/rnic"
)

// A spoiler damages what a client sends, in the middle of large writes.
type spoiler struct {
	net.Conn
	buf []byte
}

func (s *spoiler) Write(b []byte) (int, error) {
	if len(b) < 1000 {
		return s.Conn.Write(b)
	}
	s.buf = append(s.buf[:0], b...)
	s.buf[len(b)/2] ^= 0x40
	return s.Conn.Write(s.buf)
}

type spoiling struct{ Segments }

func (s *spoiling) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := s.Segments.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &spoiler{Conn: c}, nil
}

// What arrives damaged where no CRC protects it makes the run fail, in both
// directions.
func TestDamagedDataAreNoticed(t *testing.T) {
	for _, op := range []Op{OpSend, OpWrite, OpWriteImm} {
		for _, test := range []Test{TestBandwidth, TestLatency} {
			address := serve(t, &Server{})
			_, err := Run(t.Context(), open(t, rnic.Config{Network: &spoiling{}}), nil, address,
				Options{Op: op, Test: test, NoCRC: true, Iterations: 1, Sizes: []int{1200}})
			if err == nil || !strings.Contains(err.Error(), "the data are damaged") {
				t.Errorf("%s %s: %v", op, test, err)
			}
		}
	}
	// The client's own check: it reads from a server whose network spoils.
	s := &Server{}
	s.Device = open(t, rnic.Config{Network: &spoilingListener{}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, err := s.Device.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	_, err = Run(ctx, open(t, rnic.Config{}), nil, l.Addr().String(), Options{Op: OpRead, NoCRC: true, Iterations: 1, Sizes: []int{1200}})
	if mismatch := (*MismatchError)(nil); !errors.As(err, &mismatch) {
		t.Errorf("read: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type spoilingListener struct{ Segments }

func (s *spoilingListener) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := s.Segments.Listen(ctx, address)
	return spoiledAccept{l}, err
}

type spoiledAccept struct{ net.Listener }

func (l spoiledAccept) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &spoiler{Conn: c}, nil
}

func TestPatternShowsWhatIsStaleOrMisplaced(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 1000} {
		a := make([]byte, n)
		fill(a, 5)
		if err := compare(a, 5, 0, 0); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		if n >= 8 {
			if err := compare(a, 6, 0, 0); err == nil {
				t.Errorf("%d bytes of another seed pass", n)
			}
			if err := compare(a[1:], 5, 0, 0); err == nil && n > 8 {
				t.Errorf("%d bytes from one place on pass", n)
			}
		}
		for i := range a {
			a[i] ^= 1
			var m *MismatchError
			if err := compare(a, 5, 0, 3); !errors.As(err, &m) || m.Offset != i || m.QP != 3 || m.Got^m.Want != 1 {
				t.Fatalf("byte %d of %d: %v", i, n, err)
			}
			a[i] ^= 1
		}
	}
	b := make([]byte, 64)
	fill(b, 1)
	if bytes.Equal(b[:8], b[8:16]) {
		t.Error("the pattern repeats")
	}
	if seedOf(1, true, 0) == seedOf(1, false, 0) || seedOf(1, true, 0) == seedOf(1, true, 1) {
		t.Error("two sides or queue pairs send the same")
	}
}
