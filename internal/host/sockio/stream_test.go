package sockio

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"

	"urnic/internal/test/simnet"
)

// pieces cuts b into up to n random pieces, some of them empty.
func pieces(rng *rand.Rand, b []byte, n int) [][]byte {
	var out [][]byte
	for len(b) > 0 && len(out) < n-1 {
		k := rng.IntN(min(len(b), 2*len(b)/n+2) + 1)
		out = append(out, b[:k])
		b = b[k:]
	}
	return append(out, b)
}

// writeAll writes b in pieces, waiting only when the stream is full.
func writeAll(s Stream, rng *rand.Rand, b []byte, n int) error {
	wait := false
	for len(b) > 0 {
		k, err := s.Writev(pieces(rng, b, n), wait)
		if err != nil {
			return err
		}
		if wait && k == 0 {
			return errors.New("a waiting write took nothing")
		}
		wait = k == 0
		b = b[k:]
	}
	return nil
}

// readAll reads to the end, waiting only when nothing is there.
func readAll(s Stream, rng *rand.Rand) ([]byte, error) {
	var got []byte
	buf := make([]byte, 64<<10)
	for {
		p := buf[:1+rng.IntN(len(buf))]
		n, err := s.TryRead(p)
		if n == 0 && err == nil {
			n, err = s.ReadInto(func() []byte { return p }, func() {})
		}
		got = append(got, p[:n]...)
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
	}
}

func TestOctetsArriveInOrderWhateverThePieces(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		rng := rand.New(rand.NewPCG(5, 0))
		var want []byte
		var wg sync.WaitGroup
		defer wg.Wait()
		sizes := []struct{ octets, pieces int }{{1, 1}, {100, 7}, {900_000, 1}, {1_000_000, 50}, {300_000, 3000}}
		for _, s := range sizes {
			want = append(want, pattern(len(want), s.octets)...)
		}
		wg.Go(func() {
			rest := want
			for _, s := range sizes {
				if err := writeAll(a, rng, rest[:s.octets], s.pieces); err != nil {
					t.Error(err)
				}
				rest = rest[s.octets:]
			}
			end := a.CloseWrite
			if !k.halfOpen {
				if err := end(); !errors.Is(err, ErrNoHalfClose) {
					t.Errorf("half close: %v; want ErrNoHalfClose", err)
				}
				end = a.Close
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		})
		got, err := readAll(b, rand.New(rand.NewPCG(6, 0)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d octets, %v; want %d", len(got), err, len(want))
		}
		if n, err := b.TryRead(make([]byte, 1)); k.name == "tcp4" && (n != 0 || !errors.Is(err, io.EOF)) {
			t.Errorf("reading on: %d, %v", n, err)
		}
	})
}

// fill writes without waiting until the stream takes nothing more.
func fill(t *testing.T, s Stream) (octets int) {
	t.Helper()
	for {
		n, err := s.Writev([][]byte{pattern(octets, 10_000)}, false)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return octets
		}
		octets += n
	}
}

func TestFullStreamTakesNothingUntilThePeerReads(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, a, b Stream) {
		total := fill(t, a)
		took := make(chan int)
		go func() {
			n, err := a.Writev([][]byte{pattern(total, 5000), pattern(total+5000, 5000)}, true)
			if n == 0 || err != nil {
				t.Errorf("waiting for room: took %d octets, %v", n, err)
			}
			took <- n
		}()
		var got []byte
		p := make([]byte, 100_000)
		read := func(total int) {
			for len(got) < total {
				n, err := b.ReadInto(func() []byte { return p }, func() {})
				if err != nil {
					t.Error(err)
					return
				}
				got = append(got, p[:n]...)
			}
		}
		read(total)
		total += <-took
		read(total)
		if !bytes.Equal(got, pattern(0, total)) {
			t.Errorf("%d octets read, %d written", len(got), total)
		}
	})
}

func TestWritingNothingTakesNothing(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, a, _ Stream) {
		for _, p := range [][][]byte{nil, {nil}, {{}, {}}} {
			for _, wait := range []bool{false, true} {
				if n, err := a.Writev(p, wait); n != 0 || err != nil {
					t.Errorf("%d octets, %v", n, err)
				}
			}
		}
	})
}

func TestNothingToReadIsNoError(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, a, _ Stream) {
		if n, err := a.TryRead(make([]byte, 10)); n != 0 || err != nil {
			t.Errorf("%d octets, %v", n, err)
		}
	})
}

func TestCloseWakesReaderAndWriter(t *testing.T) {
	for name, end := range map[string]func(Stream) error{"close": Stream.Close, "abort": Stream.Abort} {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k kind, a, _ Stream) {
				fill(t, a)
				errs := make(chan error, 2)
				go func() {
					p := make([]byte, 10)
					_, err := a.ReadInto(func() []byte { return p }, func() {})
					errs <- err
				}()
				go func() {
					for {
						if _, err := a.Writev([][]byte{{1}}, true); err != nil {
							errs <- err
							return
						}
					}
				}()
				if err := end(a); err != nil {
					t.Error(err)
				}
				for range 2 {
					if err := <-errs; !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("%v; want net.ErrClosed", err)
					}
				}
				if _, err := a.Writev([][]byte{{1}}, false); !errors.Is(err, net.ErrClosed) {
					t.Errorf("writing on: %v", err)
				}
			})
		})
	}
}

func TestAbortResetsThePeer(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		if !k.halfOpen {
			return // net.Pipe knows no reset
		}
		if err := a.Abort(); err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 10)
		if _, err := b.ReadInto(func() []byte { return p }, func() {}); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the peer reads: %v; want ECONNRESET", err)
		}
		for range 3 { // a goroutine that writes reports its error with the next call
			if _, err := b.Writev([][]byte{p}, true); err != nil {
				if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("the peer writes: %v", err)
				}
				return
			}
			_ = b.CloseWrite()
		}
		t.Error("the peer can still write")
	})
}

func TestReadingGoesOnAfterHalfClose(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		if !k.halfOpen {
			return
		}
		if err := a.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Writev([][]byte{{1}}, false); err == nil {
			t.Error("a half-closed stream takes octets")
		}
		want := pattern(0, 100_000)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := writeAll(b, rand.New(rand.NewPCG(1, 1)), want, 3); err != nil {
				t.Error(err)
			}
			if err := b.CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		if got, err := readAll(a, rand.New(rand.NewPCG(2, 2))); err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d octets, %v", len(got), err)
		}
		wg.Wait()
	})
}

func TestNewTakesAStreamAsItIs(t *testing.T) {
	a, _ := simnet.Pipe(simnet.Options{})
	if New(a) != Stream(a) {
		t.Error("a Stream was wrapped")
	}
	if _, ok := New(simnet.Plain(a)).(*buffered); !ok {
		t.Error("a stream that can only wait did not get a goroutine")
	}
	if _, ok := New(&net.TCPConn{}).(*buffered); !ok {
		t.Error("a TCP connection without a descriptor was taken for one with")
	}
}
