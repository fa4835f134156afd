package sockio

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openTCP returns a stream over a descriptor, and its peer.
func openTCP(t testing.TB) (*tcp, *net.TCPConn) {
	t.Helper()
	a, b := dialTCP(t, "127.0.0.1:0")
	s, ok := New(a).(*tcp)
	if !ok {
		t.Fatalf("a TCP connection became a %T", New(a))
	}
	t.Cleanup(func() {
		_ = s.Close()
		_ = b.Close()
	})
	return s, b
}

func TestTCPReaderHoldsNoBufferWhileItWaits(t *testing.T) {
	s, b := openTCP(t)
	var held atomic.Int32
	looked := make(chan struct{}, 1)
	buf := make([]byte, 10)
	done := make(chan error)
	go func() {
		_, err := s.ReadInto(
			func() []byte { held.Add(1); return buf },
			func() {
				held.Add(-1)
				looked <- struct{}{}
			})
		done <- err
	}()
	<-looked
	if n := held.Load(); n != 0 {
		t.Errorf("%d buffers are held while there is nothing to read", n)
	}
	if _, err := b.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || held.Load() != 1 {
		t.Errorf("%v; %d buffers held after a read", err, held.Load())
	}
}

func TestTCPReaderSeesTheEndAndTheReset(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(b *net.TCPConn) error
		want error
	}{
		{"FIN", (*net.TCPConn).CloseWrite, io.EOF},
		{"RST", func(b *net.TCPConn) error { return abort(b) }, syscall.ECONNRESET},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, b := openTCP(t)
			looked := make(chan struct{}, 1)
			done := make(chan error)
			go func() {
				_, err := s.ReadInto(func() []byte { return make([]byte, 10) }, func() { looked <- struct{}{} })
				done <- err
			}()
			<-looked
			if err := tt.end(b); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, tt.want) {
				t.Errorf("%v; want %v", err, tt.want)
			}
		})
	}
}

func TestTCPResetWakesAWaitingWriter(t *testing.T) {
	s, b := openTCP(t)
	fill(t, s)
	done := make(chan error)
	go func() {
		for {
			if _, err := s.Writev([][]byte{pattern(0, 10_000)}, true); err != nil {
				done <- err
				return
			}
		}
	}()
	if err := abort(b); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%v; want ECONNRESET or EPIPE", err)
	}
}

func TestTCPSegmentSize(t *testing.T) {
	s, _ := openTCP(t)
	if mss := s.MSS(); mss < 500 || mss > 65535 {
		t.Errorf("MSS %d", mss)
	}
	_ = s.Close()
	if mss := s.MSS(); mss != 0 {
		t.Errorf("MSS of a closed connection: %d; want 0", mss)
	}
}

func TestTCPSegmentSizeFollowsTheSocket(t *testing.T) {
	// The limit must stand before the connection does.
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		return errors.Join(raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 1400)
		}), err)
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if mss := New(c).MSS(); mss == 0 || mss > 1400 {
		t.Errorf("MSS %d; want at most 1400", mss)
	}
}

func TestTCPTransferAllocatesNothing(t *testing.T) {
	s, b := openTCP(t)
	peer := New(b)
	out := [][]byte{pattern(0, 100), pattern(100, 2000)}
	in := make([]byte, 4096)
	get, unget := func() []byte { return in }, func() {}
	allocs := testing.AllocsPerRun(100, func() {
		if n, err := s.Writev(out, true); n != 2100 || err != nil {
			t.Fatal(n, err)
		}
		for got := 0; got < 2100; {
			n, err := peer.ReadInto(get, unget)
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
		if _, err := peer.TryRead(in); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a write and a read", allocs)
	}
}

// Both directions of several connections at once, through sockets that are soon
// full.
func TestTCPUnderBackPressureInBothDirections(t *testing.T) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for seed := range uint64(4) {
		a, b := dialTCP(t, "127.0.0.1:0")
		for _, c := range []*net.TCPConn{a, b} {
			_ = c.SetWriteBuffer(4 << 10)
		}
		sa, sb := New(a), New(b)
		want := pattern(0, 400_000)
		var pair sync.WaitGroup
		for i, s := range []Stream{sa, sb} {
			pair.Go(func() {
				if err := writeAll(s, rand.New(rand.NewPCG(seed, uint64(i))), want, 40); err != nil {
					t.Error(err)
				}
				if err := s.CloseWrite(); err != nil {
					t.Error(err)
				}
			})
			pair.Go(func() {
				got, err := readAll(s, rand.New(rand.NewPCG(seed, uint64(10+i))))
				if err != nil || string(got) != string(want) {
					t.Errorf("read %d octets, %v", len(got), err)
				}
			})
		}
		wg.Go(func() {
			pair.Wait()
			_ = sa.Close()
			_ = sb.Close()
		})
	}
}
