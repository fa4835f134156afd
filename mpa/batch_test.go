package mpa

import (
	"bytes"
	"testing"

	"urnic/internal/test/simnet"
)

// The ULP gets its memory back when Flush returns, however much of it the stream
// has taken.
func TestStablePayloadIsReadNoMoreAfterFlush(t *testing.T) {
	for _, room := range []int{20, 3_000, 20_000, 150_000} {
		beside(t, simnet.Options{Buffer: room}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c := initiated(t, conn, p, plainConfig, plainReply)
			mem := make([]byte, 60_000)
			var want []byte
			buf := make([]byte, room)
			read := func() {
				t.Helper()
				n, err := p.conn.TryRead(buf)
				if err != nil || !bytes.Equal(buf[:n], want[:n]) {
					t.Fatalf("with room for %d octets, what the peer gets has changed (%v)", room, err)
				}
				want = want[n:]
			}
			for i := range 200 {
				for j := range mem {
					mem[j] = byte(i + j/100)
				}
				n := 1 + i*2711%len(mem)
				ok, err := c.Post([]byte("header"), [][]byte{mem[:n/3], mem[n/3 : n]}, true)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					want = append(want, fpdus(&Framer{}, append([]byte("header"), mem[:n]...))...)
				}
				done, err := c.Flush(false)
				if err != nil {
					t.Fatal(err)
				}
				clear(mem)
				if done != (c.Accepted() == c.Posted()) {
					t.Fatalf("done %v, %d of %d octets", done, c.Accepted(), c.Posted())
				}
				if !ok || i%7 == 0 { // the peer goes on reading now and then
					read()
				}
			}
			for len(want) > 0 {
				if _, err := c.Flush(false); err != nil {
					t.Fatal(err)
				}
				read()
			}
			if c.out.octets != 0 || c.out.arena != nil || len(c.out.kept)+len(c.out.foreign) != 0 {
				t.Errorf("an empty batch holds memory: %d octets, %d arenas", c.out.octets, len(c.out.kept))
			}
		})
	}
}

// However long a stream is full, it holds no more than a batch.
func TestFullStreamHoldsABoundedCopy(t *testing.T) {
	beside(t, simnet.Options{Buffer: 1000}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c := initiated(t, conn, p, plainConfig, plainReply)
		mem, buf := make([]byte, 60_000), make([]byte, 1000)
		most := 0
		for range 5_000 {
			if _, err := c.Post(nil, [][]byte{mem}, true); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Flush(false); err != nil {
				t.Fatal(err)
			}
			most = max(most, len(c.out.kept))
			if _, err := p.conn.TryRead(buf); err != nil {
				t.Fatal(err)
			}
		}
		if limit := batchLimit/arenaSize + 2; most > limit || most == 0 {
			t.Errorf("%d arenas of copies; want 1 to %d", most, limit)
		}
	})
}
