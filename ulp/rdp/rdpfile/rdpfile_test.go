package rdpfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A pair is two endpoints on a network with faults.
type pair struct {
	a, b *rdp.Endpoint
	l    *rdp.Listener
	n    *rdp.Network
}

func newPair(t *testing.T, f rdp.Faults, c machine.Config, p rdp.Params) *pair {
	t.Helper()
	q := &pair{n: rdp.NewNetwork(7, f)}
	for i, e := range []**rdp.Endpoint{&q.a, &q.b} {
		carrier, err := q.n.Carrier(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(1 + i)}), rdp.DefaultPort))
		if err != nil {
			t.Fatal(err)
		}
		if *e, err = rdp.Open(t.Context(), rdp.Config{Carrier: carrier, Protocol: c}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*e).Close() })
	}
	var err error
	if q.l, err = q.b.Listen(rdp.ListenConfig{Port: 7, Params: p}); err != nil {
		t.Fatal(err)
	}
	return q
}

func (q *pair) dial(t *testing.T, version uint8, p rdp.Params) *rdp.Conn {
	t.Helper()
	c, err := q.a.Dial(t.Context(), rdp.DialConfig{Host: q.b.LocalAddr(), Port: 7, Version: version, Params: p})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (q *pair) accept(t *testing.T) *rdp.Conn {
	t.Helper()
	c, err := q.l.Accept(t.Context())
	if err != nil {
		t.Error(err)
	}
	return c
}

// content is a file.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8(sha256.Sum256([]byte("a file")))
	_, _ = r.Read(b) // it has no errors
	return b
}

// Files arrive whole, of all sizes, in both modes and both versions, to writers of both kinds, through all that a network does.
func TestFilesArriveWhole(t *testing.T) {
	bad := rdp.Faults{Delay: 5 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.15, Duplicate: 0.1, Corrupt: 0.02, Reorder: 0.1}
	for name, f := range map[string]rdp.Faults{"good": {Delay: time.Millisecond}, "bad": bad} {
		for _, sequenced := range []bool{true, false} {
			for _, version := range []uint8{1, 2} {
				for _, size := range []int{0, 1, 1416, 1417, 60_000, 1_000_000} {
					if size == 1_000_000 && version == 1 {
						continue
					}
					for _, at := range []bool{false, true} {
						synctest.Test(t, func(t *testing.T) {
							q := newPair(t, f, machine.Config{StrictReset: true}, rdp.Params{Keepalive: 100 * time.Millisecond, AckRead: true})
							want := content(size)
							go func() {
								c := q.dial(t, version, rdp.Params{Sequenced: sequenced})
								n, err := Send(t.Context(), c, iotest.HalfReader(bytes.NewReader(want)))
								if n != int64(size) || err != nil {
									t.Errorf("sent %d of %d bytes, %v", n, size, err)
								}
								Finish(t.Context(), c, Linger)
							}()
							c := q.accept(t)
							if c.Sequenced() != sequenced {
								t.Error("the mode is wrong")
							}
							var got []byte
							var n int64
							var err error
							if at {
								file := filepath.Join(t.TempDir(), "file")
								f, e := os.Create(file)
								if e != nil {
									t.Fatal(e)
								}
								n, err = ReceiveAt(t.Context(), c, f)
								f.Close()
								got, _ = os.ReadFile(file)
							} else {
								var b bytes.Buffer
								n, err = Receive(t.Context(), c, &b)
								got = b.Bytes()
							}
							if err != nil || n != int64(size) || !bytes.Equal(got, want) {
								t.Errorf("%s, version %d, sequenced %v, at %v: received %d of %d bytes, %v", name, version, sequenced, at, n, size, err)
							}
							time.Sleep(time.Second)
						})
					}
				}
			}
		}
	}
}

// What is on the wire is what package documentation says.
func TestMessages(t *testing.T) {
	for _, sequenced := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			q := newPair(t, rdp.Faults{}, machine.Config{}, rdp.Params{})
			from := q.dial(t, 2, rdp.Params{Sequenced: sequenced, MaxSegment: 100, SendLimit: 100})
			to := q.accept(t)
			want := content(150)
			go Send(t.Context(), from, bytes.NewReader(want))
			offset := 0
			for _, n := range map[bool][]int{true: {62, 62, 26}, false: {54, 54, 42}}[sequenced] {
				msg, err := to.Receive(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				data := msg.Data
				if !sequenced {
					if at := binary.BigEndian.Uint64(data); at != uint64(offset) {
						t.Errorf("the offset is %d, and should be %d", at, offset)
					}
					data = data[8:]
				}
				if !bytes.Equal(data, want[offset:offset+n]) {
					t.Errorf("sequenced %v: a message of %d bytes at %d", sequenced, len(data), offset)
				}
				offset += n
			}
			time.Sleep(time.Second)
		})
	}
}

// A sender that does not come to the end is not taken for one that does, whatever has arrived.
func TestUnfinishedFiles(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, tt := range []struct {
		name string
		send func(ctx context.Context, c *rdp.Conn, q *pair)
		want error
	}{
		{"aborted, with all acknowledged", func(ctx context.Context, c *rdp.Conn, _ *pair) {
			if _, err := Send(ctx, c, io.MultiReader(bytes.NewReader(content(5000)), iotest.ErrReader(broken))); !errors.Is(err, broken) {
				t.Error(err)
			}
			_ = c.Flush(ctx) // what is received tells
			_ = c.Abort()
		}, ErrShort},
		{"aborted before the first message", func(_ context.Context, c *rdp.Conn, _ *pair) { _ = c.Abort() }, ErrShort},
		{"closed with data on the way", func(ctx context.Context, c *rdp.Conn, q *pair) {
			q.n.SetFaults(rdp.Faults{Loss: 1})
			_, _ = c.SendAll(ctx, []byte("12345678data"), []byte("12345678data"))
			q.n.SetFaults(rdp.Faults{})
			c.Close()
		}, ErrShort},
		{"gone without a word", func(_ context.Context, _ *rdp.Conn, q *pair) { q.n.SetFaults(rdp.Faults{Loss: 1}) }, machine.ErrUnreachable},
	} {
		for _, sequenced := range []bool{true, false} {
			for _, strict := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					q := newPair(t, rdp.Faults{}, machine.Config{StrictReset: strict}, rdp.Params{Keepalive: time.Second})
					from := q.dial(t, 2, rdp.Params{Sequenced: sequenced})
					to := q.accept(t)
					go tt.send(t.Context(), from, q)
					if _, err := Receive(t.Context(), to, io.Discard); !errors.Is(err, tt.want) {
						t.Errorf("%s: %v", tt.name, err)
					}
					q.n.SetFaults(rdp.Faults{})
				})
			}
		}
	}
}

// Messages of a peer that sends no file are told from a file.
func TestMessagesThatMakeNoFile(t *testing.T) {
	at := func(offset uint64, data string) []byte {
		return append(binary.BigEndian.AppendUint64(nil, offset), data...)
	}
	for _, tt := range []struct {
		name     string
		messages [][]byte
		want     string // "": whole
		file     string
	}{
		{"no offset", [][]byte{[]byte("short")}, "has no offset", ""},
		{"impossible offset", [][]byte{at(1<<63, "x")}, "does not send a file", ""},
		{"hole at the beginning", [][]byte{at(1, "b")}, ErrHoles.Error(), ""},
		{"hole", [][]byte{at(0, "a"), at(2, "c")}, ErrHoles.Error(), ""},
		{"another order", [][]byte{at(4, "ef"), at(2, "cd"), at(0, "ab")}, "", "abcdef"},
		{"repeated", [][]byte{at(0, "ab"), at(0, "ab"), at(2, "cd")}, "", "abcd"},
		{"overlapping", [][]byte{at(3, "de"), at(1, "bcd"), at(0, "abc"), at(4, "e")}, "", "abcde"},
		{"an offset alone", [][]byte{at(0, "a"), at(1, ""), at(100, "")}, "", "a"},
		{"nothing but an offset", [][]byte{at(0, "")}, "", ""},
	} {
		for _, ordered := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				q := newPair(t, rdp.Faults{}, machine.Config{}, rdp.Params{})
				from := q.dial(t, 2, rdp.Params{})
				to := q.accept(t)
				go func() {
					_, _ = from.SendAll(t.Context(), tt.messages...) // what is received tells
					_ = from.Flush(t.Context())
					from.Close()
				}()
				var file buffer
				var err error
				if ordered {
					_, err = Receive(t.Context(), to, &file)
				} else {
					_, err = ReceiveAt(t.Context(), to, &file)
				}
				switch {
				case tt.want == "" && (err != nil || string(file.b) != tt.file):
					t.Errorf("%s, in order %v: %q, %v", tt.name, ordered, file.b, err)
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("%s, in order %v: %v", tt.name, ordered, err)
				}
				to.Close()
			})
		}
	}
}

// A buffer is a file in memory.
type buffer struct{ b []byte }

func (f *buffer) Write(b []byte) (int, error) { return f.WriteAt(b, int64(len(f.b))) }

func (f *buffer) WriteAt(b []byte, at int64) (int, error) {
	if n := int(at) + len(b); n > len(f.b) {
		f.b = append(f.b, make([]byte, n-len(f.b))...)
	}
	return copy(f.b[at:], b), nil
}

// A peer can't make a receiver hold any amount.
func TestHeldIsBounded(t *testing.T) {
	o := &inOrder{w: io.Discard}
	data := make([]byte, 1<<16)
	var err error
	n := 0
	for ; err == nil && n < 1<<20; n++ {
		err = o.put(data, int64(1+n*len(data)))
	}
	if !errors.Is(err, ErrHoles) || o.n > maxHeld+len(data) {
		t.Errorf("after %d: %v, %d bytes", n, err, o.n)
	}
	o, n, err = &inOrder{w: io.Discard}, 0, nil
	for ; err == nil && n < 1<<20; n++ {
		err = o.put(data[:1], int64(1+n))
	}
	if !errors.Is(err, ErrHoles) || len(o.held) > maxPieces {
		t.Errorf("after %d: %v, %d pieces", n, err, len(o.held))
	}
	a := &anyOrder{w: &nowhere{}}
	for n, err = 0, nil; err == nil && n < 1<<20; n++ {
		err = a.put(data[:1], int64(2*n))
	}
	if !errors.Is(err, ErrHoles) || len(a.r) > maxPieces+1 {
		t.Errorf("after %d: %v, %d spans", n, err, len(a.r))
	}
}

type nowhere struct{}

func (nowhere) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }

// The errors of writers and readers are returned as they are, and so is the end of a context, which does not wait for the peer.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newPair(t, rdp.Faults{}, machine.Config{}, rdp.Params{})
		from := q.dial(t, 2, rdp.Params{Sequenced: true})
		to := q.accept(t)
		full := errors.New("the disk is full")
		go Send(t.Context(), from, bytes.NewReader(content(10)))
		if _, err := Receive(t.Context(), to, failing{full}); !errors.Is(err, full) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Receive(ctx, to, io.Discard); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := Send(ctx, from, neverEnding{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		to.Close()
		if _, err := Send(t.Context(), from, bytes.NewReader(content(10))); !errors.Is(err, ErrEarly) || !errors.Is(err, machine.ErrReset) {
			t.Error(err)
		}
		// A receiver that closes when it has accepted all has not got an end.
		from = q.dial(t, 2, rdp.Params{Sequenced: true})
		to = q.accept(t)
		go func() {
			_, _ = to.Receive(t.Context()) // what the sender returns tells
			time.Sleep(time.Second)
			to.Close()
		}()
		r, w := io.Pipe()
		go func() {
			_, _ = w.Write([]byte("x")) // the same
			time.Sleep(2 * time.Second)
			w.Close()
		}()
		if n, err := Send(t.Context(), from, r); n != 1 || !errors.Is(err, ErrEarly) {
			t.Errorf("%d, %v", n, err)
		}
		// Segments that have no room behind the offset.
		from = q.dial(t, 2, rdp.Params{MaxSegment: 46, SendLimit: 46})
		if n, err := Send(t.Context(), from, bytes.NewReader(content(10))); n != 0 || err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("%d, %v", n, err)
		}
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

type neverEnding struct{}

func (neverEnding) Read(b []byte) (int, error) { return len(b), nil }

// Finish sends the RST five times within its time, and the receiver needs one of them; a receiver that asks is answered.
func TestFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newPair(t, rdp.Faults{}, machine.Config{}, rdp.Params{Keepalive: -1})
		from := q.dial(t, 2, rdp.Params{Sequenced: true, Keepalive: -1})
		to := q.accept(t)
		time.Sleep(time.Second)
		q.n.SetFaults(rdp.Faults{Loss: 1})
		before, begun := q.n.Sent(), time.Now()
		var over atomic.Bool
		go func() {
			Receive(t.Context(), to, io.Discard)
			over.Store(true)
		}()
		Finish(t.Context(), from, 1500*time.Millisecond)
		if n, took := q.n.Sent()-before, time.Since(begun); n != 5 || took != 1500*time.Millisecond {
			t.Errorf("%d RSTs in %v", n, took)
		}
		if synctest.Wait(); over.Load() {
			t.Fatal("the segments are not lost")
		}
		q.n.SetFaults(rdp.Faults{})
		if _, err := to.Probe(t.Context()); !errors.Is(err, machine.ErrReset) {
			t.Error(err)
		}
		if synctest.Wait(); !over.Load() {
			t.Error("it is not the end")
		}
		from = q.dial(t, 2, rdp.Params{Sequenced: true})
		begun = time.Now()
		if Finish(t.Context(), from, 0); time.Since(begun) != 0 {
			t.Error("it waits")
		}
		from = q.dial(t, 2, rdp.Params{Sequenced: true})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		begun = time.Now()
		if Finish(ctx, from, time.Hour); time.Since(begun) != 10*time.Millisecond {
			t.Error("it waits for longer than the context")
		}
	})
}

func TestRanges(t *testing.T) {
	for range 300 {
		var r ranges
		var bits [64]bool
		for range rand.IntN(20) {
			from := rand.IntN(64)
			to := from + rand.IntN(65-from)
			r.add(int64(from), int64(to))
			for i := from; i < to; i++ {
				bits[i] = true
			}
		}
		var want ranges
		for i, set := range bits {
			switch n := len(want); {
			case !set:
			case n > 0 && want[n-1].to == int64(i):
				want[n-1].to++
			default:
				want = append(want, span{int64(i), int64(i + 1)})
			}
		}
		if len(r) != len(want) {
			t.Fatalf("%v, and should be %v", r, want)
		}
		for i := range r {
			if r[i] != want[i] {
				t.Fatalf("%v, and should be %v", r, want)
			}
		}
		if whole := len(want) == 0 || len(want) == 1 && want[0].from == 0; r.whole() != whole {
			t.Errorf("%v: whole %v", r, r.whole())
		}
	}
}
