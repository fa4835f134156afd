package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	ourAddr  = netip.MustParseAddrPort("192.0.2.1:40000")
	peerAddr = netip.MustParseAddrPort("192.0.2.2:7174")
)

// recording returns what a Writer makes of f.
func recording(t testing.TB, f func(w *Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	f(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packets returns all packets of a capture.
func packets(t testing.TB, file []byte) []Packet {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var all []Packet
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Data = slices.Clone(p.Data)
		all = append(all, p)
	}
}

// segments returns the TCP segments of a capture.
func segments(t testing.TB, file []byte) []segment {
	t.Helper()
	d := newDecoder()
	var all []segment
	for _, p := range packets(t, file) {
		s, verdict := d.decode(&p)
		if verdict != isTCP {
			t.Fatalf("packet %d: verdict %d", p.Number, verdict)
		}
		all = append(all, s)
	}
	return all
}

// pattern returns n bytes that differ from place to place.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

// plainSum is the Internet checksum of the parts joined, word by word.
func plainSum(parts ...[]byte) uint16 {
	b := slices.Concat(parts...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
		sum = sum>>16 + sum&0xFFFF
	}
	return ^uint16(sum)
}

func TestRecordingIsReadBack(t *testing.T) {
	for _, ends := range [][2]string{
		{"192.0.2.1:40000", "192.0.2.2:7174"},
		{"[2001:db8::1]:40000", "[2001:db8::2]:7174"},
		{"192.0.2.1:40000", "[2001:db8::2]:7174"},
		{"[::ffff:192.0.2.1]:40000", "192.0.2.2:7174"},
	} {
		l, r := netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1])
		for _, initiator := range []bool{true, false} {
			big := pattern(200_000)
			file := recording(t, func(w *Writer) {
				s := w.Stream(l, r, initiator)
				s.Sent([]byte("hel"), nil, []byte("lo"))
				s.Received([]byte("world"))
				s.Received()
				s.Sent(big[:70_000], big[70_000:])
				s.Close(true)
				s.Received([]byte("!"))
				s.Close(false)
			})
			log := assemble(t, file)
			if len(log) != 1 {
				t.Fatalf("%v: %d connections", ends, len(log))
			}
			c := log[0]
			us := Opener
			if !initiator {
				us = Acceptor
			}
			if c.conn.Ends[us].Port() != l.Port() {
				t.Errorf("%v initiator=%t: the opener is %v", ends, initiator, c.conn.Ends[Opener])
			}
			if got := c.bytes(us); !bytes.Equal(got, append([]byte("hello"), big...)) {
				t.Errorf("%v: sent %d bytes", ends, len(got))
			}
			if got := string(c.bytes(1 - us)); got != "world!" {
				t.Errorf("%v: received %q", ends, got)
			}
			if c.conn.FromStart != [2]bool{true, true} || c.holes != 0 || c.closes != 2 || c.resets != 0 {
				t.Errorf("%v: %+v", ends, c)
			}
		}
	}
}

func TestRecordedChecksumsAreRight(t *testing.T) {
	for _, ends := range [][2]string{{"10.1.2.3:1", "10.3.2.1:65535"}, {"[fe80::1%eth0]:9", "[::1]:10"}} {
		file := recording(t, func(w *Writer) {
			s := w.Stream(netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1]), true)
			for n := range 70 {
				s.Sent(pattern(n))
			}
			s.Received(bytes.Repeat([]byte{0xFF}, 66_001))
			s.Reset(false)
		})
		for _, p := range packets(t, file) {
			ip := p.Data[ethLen:]
			pseudo := make([]byte, 4)
			pseudo[1] = protTCP
			var tcp []byte
			if ip[0]>>4 == 4 {
				if sum := plainSum(ip[:ip4Len]); sum != 0 {
					t.Fatalf("packet %d: IP checksum is off by %04x", p.Number, sum)
				}
				tcp = ip[ip4Len:]
				pseudo = append(pseudo, ip[12:20]...)
			} else {
				tcp = ip[ip6Len:]
				pseudo = append(pseudo, ip[8:40]...)
			}
			binary.BigEndian.PutUint16(pseudo[2:], uint16(len(tcp)))
			if sum := plainSum(pseudo, tcp); sum != 0 {
				t.Fatalf("packet %d of %d bytes: TCP checksum is off by %04x", p.Number, len(p.Data), sum)
			}
		}
	}
}

func TestOnesSumEqualsTheSumWordByWord(t *testing.T) {
	for n := range 300 {
		b := pattern(n)
		for i := range b {
			b[i] ^= byte(255 - n)
		}
		if got, want := foldSum(onesSum(0, b)), plainSum(b); got != want {
			t.Fatalf("%d bytes: %04x, want %04x", n, got, want)
		}
	}
	all := bytes.Repeat([]byte{0xFF}, 1<<16)
	if got, want := foldSum(onesSum(1<<63, all)), foldSum(onesSum(onesSum(0, all), []byte{0x80, 0, 0, 0, 0, 0, 0, 0})); got != want {
		t.Errorf("carries are lost: %04x, want %04x", got, want)
	}
}

func TestSequenceNumbersFollowTheStream(t *testing.T) {
	file := recording(t, func(w *Writer) {
		s := w.Stream(ourAddr, peerAddr, true)
		s.ends[local].seq = 1<<32 - 100 // soon to wrap
		s.ends[remote].acked = s.ends[local].seq
		s.Sent(pattern(150))
		s.Received(pattern(7))
		s.Sent(pattern(70_000))
	})
	all := segments(t, file)[3:]
	next := map[netip.AddrPort]uint32{ourAddr: 1<<32 - 100, peerAddr: all[0].ack}
	for i, s := range all {
		if s.seq != next[s.src] {
			t.Errorf("segment %d: seq %d, want %d", i, s.seq, next[s.src])
		}
		next[s.src] += s.size()
		if s.ack != next[s.dst] {
			t.Errorf("segment %d acknowledges %d, want %d", i, s.ack, next[s.dst])
		}
	}
	if len(all) != 4 {
		t.Errorf("%d segments; 70000 bytes take two", len(all))
	}
}

// One side alone may send without end: the other must seem to acknowledge, or
// its window would be exceeded.
func TestReceiverAcknowledgesNowAndThen(t *testing.T) {
	file := recording(t, func(w *Writer) {
		s := w.Stream(ourAddr, peerAddr, true)
		for range 100 {
			s.Sent(pattern(60_000))
		}
	})
	unacked, worst := uint32(0), uint32(0)
	for _, s := range segments(t, file)[3:] {
		if s.src == ourAddr {
			unacked += s.size()
		} else {
			unacked = 0
		}
		worst = max(worst, unacked)
	}
	if worst > ackEvery+60_000 {
		t.Errorf("%d bytes are sent without an acknowledgement", worst)
	}
}

func TestNothingIsRecordedBehindTheEnd(t *testing.T) {
	var sizes []int
	file := recording(t, func(w *Writer) {
		s := w.Stream(ourAddr, peerAddr, true)
		s.Close(true)
		s.Close(true)
		s.Sent([]byte("late"))
		s.Reset(true)
		s.Received([]byte("late"))
		s.Reset(true)
		s.Close(false)
	})
	for _, s := range segments(t, file) {
		sizes = append(sizes, int(s.size()))
	}
	if want := []int{0, 0, 0, 0, 0, 0}; !slices.Equal(sizes, want) { // handshake, FIN, ACK, RST
		t.Errorf("segments of %v bytes, want %v", sizes, want)
	}
}

func TestEndpointsOfAConnectionThatHasEndedAreUsedAgain(t *testing.T) {
	for name, end := range map[string]func(s *Stream){
		"reset":                     func(s *Stream) { s.Reset(false) },
		"closed by both":            func(s *Stream) { s.Close(false); s.Close(true) },
		"half closed, and no more":  func(s *Stream) { s.Close(true); s.End() },
		"nothing seen, and no more": func(s *Stream) { s.End(); s.Sent([]byte("x")); s.Close(true); s.Reset(true); s.End() },
	} {
		var held int
		file := recording(t, func(w *Writer) {
			end(w.Stream(ourAddr, peerAddr, true))
			w.Stream(ourAddr, peerAddr, true).Sent([]byte("again"))
			held = len(w.inUse)
		})
		all := segments(t, file)
		if last := all[len(all)-1]; last.src != ourAddr || held != 1 {
			t.Errorf("%s: the next connection is shown from %v; the Writer keeps %d connections", name, last.src, held)
		}
		for _, s := range all[:len(all)-1] {
			if s.size() > 0 {
				t.Errorf("%s: something is recorded behind the end", name)
			}
		}
	}
}

func TestRecordingCostsNoAllocation(t *testing.T) {
	w, err := NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s := w.Stream(ourAddr, peerAddr, true)
	head, payload := pattern(18), pattern(64_000)
	s.Sent(payload, payload)
	if n := testing.AllocsPerRun(100, func() {
		s.Sent(head, payload)
		s.Received(head)
	}); n != 0 {
		t.Errorf("%v allocations for two FPDUs", n)
	}
}

func TestRecordingFromManyGoroutines(t *testing.T) {
	const each = 200
	file := recording(t, func(w *Writer) {
		var wg sync.WaitGroup
		for i := range 4 {
			s := w.Stream(netip.AddrPortFrom(ourAddr.Addr(), uint16(1000+i)), peerAddr, true)
			wg.Go(func() {
				for range each {
					s.Sent([]byte("0123456789"))
				}
			})
			wg.Go(func() {
				for range each {
					s.Received([]byte("abc"))
				}
			})
		}
		wg.Wait()
	})
	log := assemble(t, file)
	if len(log) != 4 {
		t.Fatalf("%d connections", len(log))
	}
	for _, c := range log {
		if c.holes != 0 || len(c.bytes(Opener)) != 10*each || len(c.bytes(Acceptor)) != 3*each {
			t.Errorf("%v: %d and %d bytes, %d holes", c.conn.Ends, len(c.bytes(Opener)), len(c.bytes(Acceptor)), c.holes)
		}
	}
}

func TestPacketsCarryTheTimeOfTheirCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want []time.Time
		file := recording(t, func(w *Writer) {
			s := w.Stream(ourAddr, peerAddr, true)
			for range 3 {
				want = append(want, time.Now())
			}
			for range 5 {
				time.Sleep(1234567 * time.Nanosecond)
				s.Sent([]byte("x"))
				want = append(want, time.Now())
			}
		})
		for i, p := range packets(t, file) {
			if !p.Time.Equal(want[i]) {
				t.Errorf("packet %d has time %v, want %v", i, p.Time, want[i])
			}
		}
	})
}

// Two connections between the same endpoints at a time, as with net.Pipe, must
// not be mixed up; nor must one that follows another.
func TestConnectionsAreToldApart(t *testing.T) {
	pipe := AddrPort(pipeAddr{})
	file := recording(t, func(w *Writer) {
		a := w.Stream(pipe, pipe, true)
		b := w.Stream(pipe, pipe, true)
		a.Sent([]byte("a"))
		b.Sent([]byte("b"))
		a.Reset(true)
		c := w.Stream(pipe, pipe, true)
		c.Sent([]byte("c"))
		w.Stream(netip.AddrPort{}, netip.AddrPort{}, false).Sent([]byte("d"))
	})
	var got []string
	for _, c := range assemble(t, file) {
		got = append(got, string(c.bytes(Opener))+string(c.bytes(Acceptor)))
		if c.conn.Ends[0] == c.conn.Ends[1] {
			t.Errorf("both ends are %v", c.conn.Ends[0])
		}
	}
	slices.Sort(got)
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

type namedAddr string

func (namedAddr) Network() string  { return "sim" }
func (a namedAddr) String() string { return string(a) }

func TestAddressesOfOtherNetworksAreStable(t *testing.T) {
	for _, tc := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 80}, "192.0.2.7:80"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 80, Zone: "eth0"}, "[fe80::1]:80"},
		{namedAddr("[::ffff:10.0.0.1]:5"), "10.0.0.1:5"},
		{nil, "invalid AddrPort"},
	} {
		if got := AddrPort(tc.addr).String(); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.addr, got, tc.want)
		}
	}
	seen := map[netip.AddrPort]string{}
	for i := range 200 {
		name := fmt.Sprintf("node %d", i)
		a, b := AddrPort(namedAddr(name)), AddrPort(namedAddr(strings.Clone(name)))
		if a != b || !netip.MustParsePrefix("198.18.0.0/15").Contains(a.Addr()) || a.Port() < 1024 {
			t.Errorf("%s: %v and %v", name, a, b)
		}
		if other, ok := seen[a]; ok {
			t.Errorf("%s and %s share %v", name, other, a)
		}
		seen[a] = name
	}
}

func BenchmarkRecord(b *testing.B) {
	for _, size := range []int{64, 1448, 64_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w, err := NewWriter(io.Discard)
			if err != nil {
				b.Fatal(err)
			}
			s := w.Stream(ourAddr, peerAddr, true)
			p := pattern(size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				s.Sent(p)
			}
		})
	}
}

// seen is what an Assembler told of a connection.
type seen struct {
	conn    *Conn
	data    [2][]byte
	at      [2][]At
	holes   int
	lost    [2]int
	closes  int
	resets  int
	drops   []Drop
	differs int
	left    [2]int
	ended   int
	order   strings.Builder // one letter an event
}

func (s *seen) Data(from Side, at At, b []byte) {
	s.data[from] = append(s.data[from], b...)
	s.at[from] = append(s.at[from], at)
	s.order.WriteString(string("aA"[from]))
}

func (s *seen) Hole(from Side, _ At, n int) {
	s.holes++
	s.lost[from] += n
	s.order.WriteString(string("hH"[from]))
	s.data[from] = append(s.data[from], bytes.Repeat([]byte{'?'}, min(n, 1<<16))...)
}

func (s *seen) Close(from Side, _ At, reset bool) {
	if reset {
		s.resets++
		s.order.WriteString(string("rR"[from]))
	} else {
		s.closes++
		s.order.WriteString(string("fF"[from]))
	}
}

func (s *seen) End() { s.ended++ }

func (s *seen) bytes(from Side) []byte { return s.data[from] }

// assemble returns the connections of a capture.
func assemble(t testing.TB, file []byte) []*seen {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	all, err := assembleReader(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func assembleReader(r *Reader) ([]*seen, error) {
	var all []*seen
	a := NewAssembler(func(c *Conn) Consumer {
		s := &seen{conn: c}
		all = append(all, s)
		return s
	})
	err := a.ReadAll(context.Background(), r)
	return all, err
}

func (s *seen) Drop(_ Side, _ At, d Drop) { s.drops = append(s.drops, d) }

func (s *seen) Differs(from Side, _ At, back int, b []byte) {
	s.differs++
	copy(s.data[from][len(s.data[from])-back:], b) // the last version
}

func (s *seen) Acked(from Side, _ At, left int) { s.left[from] = left }
