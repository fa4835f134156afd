package cutnet

import (
	"bytes"
	"io"
	"testing"

	"urnic/internal/host/sockio"
	"urnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func TestOctetsArriveInOrderHoweverCallsAreCut(t *testing.T) {
	for seed := range uint64(5) {
		n := &Network{Seed: seed}
		l, err := n.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		a, err := n.Dial(t.Context(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if a, ok := a.(sockio.Stream); !ok || sockio.New(a.(*Conn)) != a {
			t.Fatal("a connection is no Stream")
		}
		want := make([]byte, 1<<20)
		for i := range want {
			want[i] = byte(i ^ i>>8 ^ i>>16)
		}
		done := make(chan error)
		go func() {
			rest, idle := want, 0
			for len(rest) > 0 {
				at := min(len(rest), 1000)
				k, err := a.(sockio.Stream).Writev([][]byte{rest[:at], nil, rest[at:]}, idle > 0)
				if err != nil || idle > 0 && k == 0 {
					t.Errorf("a waiting write took %d octets: %v", k, err)
					break
				}
				if rest = rest[k:]; k == 0 {
					idle++
				} else {
					idle = 0
				}
			}
			done <- a.(sockio.Stream).CloseWrite()
		}()
		var got []byte
		buf := make([]byte, 100_000)
		for err = nil; err == nil; {
			var k int
			if k, err = b.(sockio.Stream).TryRead(buf); k == 0 && err == nil {
				k, err = b.(sockio.Stream).ReadInto(func() []byte { return buf }, func() {})
			}
			got = append(got, buf[:k]...)
		}
		if err != io.EOF || !bytes.Equal(got, want) { //nolint:errorlint // a Stream returns io.EOF itself
			t.Errorf("seed %d: %d octets of %d, %v", seed, len(got), len(want), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if r, w := n.Cut(); r < 10 || w < 10 {
			t.Errorf("seed %d: %d reads and %d writes were cut", seed, r, w)
		}
		_ = a.Close()
		_ = b.Close()
	}
}
