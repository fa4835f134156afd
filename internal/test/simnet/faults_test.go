package simnet

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestCutResetsAtTheOctet(t *testing.T) {
	for _, whole := range []bool{false, true} {
		simulate(t, Options{AB: Faults{CutAt: 50}}, func(t *testing.T, a, b *Conn) {
			if whole {
				if n, err := a.Write(pattern(100)); n != 100 || err != nil {
					t.Errorf("wrote %d octets, %v", n, err)
				}
			} else {
				_, _ = a.Write(pattern(49))
				if n, err := b.Read(make([]byte, 100)); n != 49 || err != nil {
					t.Errorf("before the cut: %d octets, %v", n, err)
				}
				_, _ = a.Write([]byte{50})
			}
			for _, err := range []error{second(b.Read(make([]byte, 1))), second(a.Read(make([]byte, 1))), second(a.Write([]byte{1}))} {
				if !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("after the cut: %v", err)
				}
			}
		})
	}
}

func TestStallLetsNothingMoreArrive(t *testing.T) {
	simulate(t, Options{AB: Faults{StallAt: 50}}, func(t *testing.T, a, b *Conn) {
		_, _ = a.Write(pattern(100))
		_, _ = a.Write(pattern(100))
		_ = a.CloseWrite()
		_ = b.SetReadDeadline(time.Now().Add(time.Hour))
		got, err := io.ReadAll(b)
		if !bytes.Equal(got, pattern(49)) || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read %d octets, %v; want 49 and then nothing", len(got), err)
		}
	})
}

func TestCutAfterStallIsACut(t *testing.T) {
	for _, size := range []int{10, 100} {
		simulate(t, Options{AB: Faults{StallAt: 5, CutAt: 95}}, func(t *testing.T, a, b *Conn) {
			for range 100 / size {
				_, _ = a.Write(pattern(size))
			}
			if _, err := b.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("in pieces of %d: %v", size, err)
			}
		})
	}
}

func TestCorruptionFlipsOneBit(t *testing.T) {
	for _, size := range []int{1, 10, 100} {
		simulate(t, Options{AB: Faults{Seed: uint64(size), CorruptAt: 42}}, func(t *testing.T, a, b *Conn) {
			want := pattern(100)
			for piece := range slices.Chunk(want, size) {
				_, _ = a.Write(piece)
			}
			_ = a.CloseWrite()
			got, err := io.ReadAll(b)
			if err != nil || len(got) != len(want) {
				t.Fatalf("read %d octets, %v", len(got), err)
			}
			for i := range got {
				flipped := bits.OnesCount8(got[i] ^ want[i])
				if i == 41 && flipped != 1 || i != 41 && flipped != 0 {
					t.Errorf("octet %d has %d bits flipped", i+1, flipped)
				}
			}
		})
	}
}

func TestLatencyDelaysAndJitterKeepsTheOrder(t *testing.T) {
	simulate(t, Options{AB: Faults{Seed: 7, Latency: time.Second, Jitter: time.Second}}, func(t *testing.T, a, b *Conn) {
		start := time.Now()
		for i := range 100 {
			_, _ = a.Write([]byte{byte(i)})
		}
		synctest.Wait()
		if n, _ := b.TryRead(make([]byte, 1)); n != 0 {
			t.Error("an octet arrived at once")
		}
		var last time.Duration
		for i := range 100 {
			var p [1]byte
			if _, err := b.Read(p[:]); err != nil || p[0] != byte(i) {
				t.Fatalf("octet %d: %d, %v", i, p[0], err)
			}
			last = time.Since(start)
			if last < time.Second || last >= 2*time.Second {
				t.Errorf("octet %d arrived after %v", i, last)
			}
		}
		if last == time.Second {
			t.Error("no jitter")
		}
	})
}

func TestSeedDecidesHowReadsAndWritesAreSplit(t *testing.T) {
	split := func(seed uint64) (writes, reads []int) {
		simulate(t, Options{AB: Faults{Seed: seed, ShortReads: true, ShortWrites: true}}, func(t *testing.T, a, b *Conn) {
			for left := 1000; left > 0; {
				n, err := a.Writev([][]byte{pattern(left)}, true)
				if err != nil {
					t.Fatal(err)
				}
				writes = append(writes, n)
				left -= n
			}
			for left := 1000; left > 0; {
				n, err := b.Read(make([]byte, 64<<10))
				if err != nil {
					t.Fatal(err)
				}
				reads = append(reads, n)
				left -= n
			}
		})
		return writes, reads
	}
	w1, r1 := split(1)
	w1again, r1again := split(1)
	if !slices.Equal(w1, w1again) || !slices.Equal(r1, r1again) {
		t.Error("the same seed splits in another way")
	}
	w2, r2 := split(2)
	if slices.Equal(w1, w2) || slices.Equal(r1, r2) {
		t.Error("another seed splits in the same way")
	}
	if len(w1) < 2 || len(r1) < 2 {
		t.Errorf("not split: writes %v, reads %v", w1, r1)
	}
}
