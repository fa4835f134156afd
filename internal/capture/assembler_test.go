package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// A wire makes packets of one connection by hand, with chosen sequence numbers,
// and gives them to an Assembler.
type wire struct {
	t    testing.TB
	asm  *Assembler
	all  []*seen
	ends [2]half
	n    int
	snap int // bytes of each packet to keep; 0: all
}

const isnA, isnB = 1<<32 - 5000, 7777

func newWire(t testing.TB) *wire {
	w := &wire{t: t}
	w.asm = NewAssembler(func(c *Conn) Consumer {
		s := &seen{conn: c}
		w.all = append(w.all, s)
		return s
	})
	w.ends[0].init(ourAddr, peerAddr, isnA)
	w.ends[1].init(peerAddr, ourAddr, isnB)
	return w
}

// packet makes a packet. off is the offset in the stream of the sender of its
// first byte, ack that in the other's of the one expected next; -1: no ACK.
func (w *wire) packet(from Side, off, ack int, flags byte, data []byte) *Packet {
	h := &w.ends[from]
	isn, peer := uint32(isnA), uint32(isnB)
	if from == Acceptor {
		isn, peer = peer, isn
	}
	seq := isn + 1 + uint32(off)
	if flags&flagSYN != 0 {
		seq--
	}
	a := uint32(0)
	if ack >= 0 {
		flags |= flagACK
		a = peer + 1 + uint32(ack)
	}
	b := append(h.appendHeaders(nil), data...)
	h.finish(b, 0, seq, a, flags)
	w.n++
	p := &Packet{Number: w.n, Time: time.Unix(int64(w.n), 0), Link: layers.LinkTypeEthernet, Length: len(b), Data: b}
	if w.snap > 0 {
		p.Data = b[:min(len(b), w.snap)]
	}
	return p
}

func (w *wire) add(from Side, off, ack int, flags byte, data string) {
	w.asm.Add(w.packet(from, off, ack, flags, []byte(data)))
}

func (w *wire) handshake() {
	w.add(Opener, 0, -1, flagSYN, "")
	w.add(Acceptor, 0, 0, flagSYN, "")
	w.add(Opener, 0, 0, 0, "")
}

// end ends the capture and returns the only connection.
func (w *wire) end() *seen {
	w.t.Helper()
	w.asm.End()
	if len(w.all) != 1 {
		w.t.Fatalf("%d connections", len(w.all))
	}
	if w.asm.ahead != 0 || w.asm.sent != 0 {
		w.t.Errorf("%d and %d bytes are still counted as held", w.asm.ahead, w.asm.sent)
	}
	if w.all[0].ended != 1 {
		w.t.Errorf("End was called %d times", w.all[0].ended)
	}
	return w.all[0]
}

func (w *wire) want(order, opener, acceptor string) *seen {
	w.t.Helper()
	s := w.end()
	if got := s.order.String(); got != order {
		w.t.Errorf("events %q, want %q", got, order)
	}
	if got := string(s.bytes(Opener)); got != opener {
		w.t.Errorf("the opener sent %q, want %q", got, opener)
	}
	if got := string(s.bytes(Acceptor)); got != acceptor {
		w.t.Errorf("the acceptor sent %q, want %q", got, acceptor)
	}
	return s
}

func TestSegmentsInOrder(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "one ")
	w.add(Acceptor, 0, 4, 0, "uno")
	w.add(Opener, 4, 3, 0, "two")
	w.add(Opener, 7, 3, flagFIN, "")
	w.add(Acceptor, 3, 8, flagFIN, "!")
	w.add(Opener, 8, 5, 0, "")
	s := w.want("aAafAF", "one two", "uno!")
	if s.conn.FromStart != [2]bool{true, true} {
		t.Error("the beginning is not known")
	}
}

func TestRepeatedAndOverlappingSegmentsCountOnce(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, -1, flagSYN, "") // again
	w.add(Opener, 0, 0, 0, "abcdef")
	w.add(Opener, 0, 0, 0, "abc")
	w.add(Opener, 4, 0, 0, "efgh")
	w.add(Opener, 10, 0, 0, "kl")
	w.add(Opener, 9, 0, 0, "jklm")
	w.add(Opener, 8, 0, 0, "ijklmno")
	w.add(Opener, 14, 0, 0, "") // keep-alive
	w.add(Opener, 15, 0, flagFIN, "")
	w.add(Opener, 15, 0, flagFIN, "")
	w.want("aaaf", "abcdefghijklmno", "")
}

func TestReorderedSegmentsAreSorted(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 6, 0, flagFIN, "gh")
	w.add(Opener, 3, 0, 0, "def")
	w.add(Opener, 0, 0, 0, "abc")
	w.want("aaaf", "abcdefgh", "")
}

// The tap saw the response before the request. The request must come first.
func TestOctetsAreSeenBeforeWhatTheyCaused(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Acceptor, 0, 7, 0, "answer")
	w.add(Acceptor, 6, 7, 0, " more")
	w.add(Opener, 7, 11, 0, "")
	w.add(Opener, 0, 0, 0, "request")
	w.want("aAA", "request", "answer more")
}

// The tap lost the request. The hole must come before the response.
func TestHoleIsSeenBeforeWhatItCaused(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Acceptor, 0, 7, 0, "answer")
	for i := range maxHeld + 1 {
		w.add(Acceptor, 6+i, 7, 0, ".")
	}
	if got := w.all[0].order.String(); !strings.HasPrefix(got, "hA") {
		t.Errorf("events %q: the hole is not found before the capture ends", got)
	}
	w.add(Opener, 7, 6, 0, "next")
	s := w.end()
	if s.lost[Opener] != 7 || !strings.HasSuffix(string(s.bytes(Opener)), "???????next") {
		t.Errorf("lost %d, got %q", s.lost[Opener], s.bytes(Opener))
	}
}

func TestHolesAreReportedAtTheEnd(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "abc")
	w.add(Opener, 5, 0, 0, "fg")
	w.add(Opener, 10, 0, flagFIN, "")
	w.want("ahahf", "abc??fg???", "")
}

func TestHoleBeforeAReset(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 2, 0, 0, "cd")
	w.add(Acceptor, 0, 0, flagRST, "")
	w.add(Acceptor, 0, 0, flagRST, "")
	w.want("haR", "??cd", "")
}

// A connection that was under way when the capture began starts with what is
// seen first.
func TestConnectionInMidStream(t *testing.T) {
	w := newWire(t)
	w.add(Opener, 1000, 500, 0, "abc")
	w.add(Acceptor, 500, 1003, 0, "xyz")
	s := w.want("aA", "abc", "xyz")
	if s.conn.FromStart != [2]bool{} {
		t.Error("the beginning is said to be known")
	}
}

// The lower port is the listener's if nothing else tells.
func TestListenerIsGuessedByItsPort(t *testing.T) {
	w := newWire(t)
	w.add(Acceptor, 500, 1003, 0, "xyz")
	if s := w.end(); s.conn.Ends != [2]netip.AddrPort{ourAddr, peerAddr} {
		t.Errorf("opener %v, acceptor %v", s.conn.Ends[0], s.conn.Ends[1])
	}
}

func TestBeginningIsKnownWithHalfAHandshake(t *testing.T) {
	for name, steps := range map[string]func(w *wire){
		"SYN/ACK lost": func(w *wire) {
			w.add(Opener, 0, -1, flagSYN, "")
			w.add(Opener, 0, 0, 0, "")
		},
		"SYN lost": func(w *wire) {
			w.add(Acceptor, 0, 0, flagSYN, "")
			w.add(Opener, 0, 0, 0, "")
		},
		"ACK lost": func(w *wire) {
			w.add(Opener, 0, -1, flagSYN, "")
			w.add(Acceptor, 0, 0, flagSYN, "")
		},
	} {
		w := newWire(t)
		steps(w)
		w.add(Opener, 0, 0, 0, "abc")
		w.add(Acceptor, 0, 3, 0, "xyz")
		if s := w.want("aA", "abc", "xyz"); s.conn.FromStart != [2]bool{true, true} {
			t.Errorf("%s: FromStart is %v", name, s.conn.FromStart)
		}
	}
}

func TestPortsUsedAgainMakeANewConnection(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "old")
	w.add(Opener, 1<<20, -1, flagSYN, "") // another initial sequence number
	w.add(Opener, 1<<20, -1, 0, "new")
	w.asm.End()
	if len(w.all) != 2 || string(w.all[0].bytes(Opener)) != "old" || string(w.all[1].bytes(Opener)) != "new" {
		t.Errorf("%d connections", len(w.all))
	}
	if w.asm.Stats().Connections != 2 {
		t.Errorf("counted %d", w.asm.Stats().Connections)
	}
}

func TestFINThatWasLostIsNoHole(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "abc")
	w.add(Acceptor, 0, 4, flagFIN, "")
	w.want("aF", "abc", "")
}

// A single byte that was lost looks like a FIN until something follows it.
func TestSingleOctetThatWasLostIsAHole(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "abc")
	w.add(Acceptor, 0, 4, 0, "x")
	w.add(Opener, 4, 1, 0, "e")
	w.want("aAha", "abc?e", "x")
}

func TestDataBeyondTheFINAreIgnored(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 10, 0, 0, "beyond")
	w.add(Opener, 3, 0, flagFIN, "")
	w.want("hf", "???", "")
}

// A capture that keeps only the front of each packet.
func TestPacketsCutShortByTheCaptureAreHoles(t *testing.T) {
	for _, addrs := range [][2]string{{"192.0.2.1:40000", "192.0.2.2:7"}, {"[2001:db8::1]:40000", "[2001:db8::2]:7"}} {
		w := newWire(t)
		a, b := netip.MustParseAddrPort(addrs[0]), netip.MustParseAddrPort(addrs[1])
		w.ends[0].init(a, b, isnA)
		w.ends[1].init(b, a, isnB)
		w.handshake()
		w.snap = ethLen + w.ends[0].ipLen + tcpLen + 3
		w.add(Opener, 0, 0, 0, "abcdefg")
		w.add(Opener, 7, 0, 0, "hij")
		w.add(Opener, 10, 0, flagFIN, "klmno")
		w.want("ahaahf", "abc????hijklm??", "")
	}
}

func TestStraySegmentsAreIgnored(t *testing.T) {
	w := newWire(t)
	w.add(Acceptor, 5, 7, 0, "") // no connection, no data
	w.handshake()
	w.add(Opener, 0, 0, 0, "abc")
	w.add(Opener, maxJump+10, 0, 0, "far away")
	w.add(Opener, -maxJump-10, 0, flagRST, "")
	w.want("a", "abc", "")
}

func TestIgnoredConnectionIsForgotten(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 5, 0, 0, "ahead")
	w.add(Acceptor, 0, 5, 0, "held")
	w.all[0].conn.Ignore()
	w.add(Opener, 0, 0, 0, "abcde")
	if w.asm.ahead != 0 {
		t.Errorf("%d bytes are held for it", w.asm.ahead)
	}
	w.asm.End()
	if s := w.all[0]; s.order.Len() != 0 || s.ended != 0 {
		t.Errorf("events %q, End %d", s.order.String(), s.ended)
	}
}

func TestUnwantedConnectionIsIgnored(t *testing.T) {
	w := newWire(t)
	w.asm = NewAssembler(func(*Conn) Consumer { return nil })
	w.handshake()
	w.add(Opener, 5, 0, 0, "ahead")
	w.asm.End()
	if st := w.asm.Stats(); st.Connections != 1 || st.TCP != 4 || w.asm.ahead != 0 {
		t.Errorf("%+v", st)
	}
}

func TestWhatIsHeldBeyondAHoleIsBounded(t *testing.T) {
	t.Run("bytes", func(t *testing.T) {
		w := newWire(t)
		w.asm.maxAhead = 10_000
		w.handshake()
		for i := range 100 {
			w.add(Opener, 1000+i*1000, 0, 0, strings.Repeat("x", 1000))
			if w.asm.ahead > 11_000 {
				t.Fatalf("%d bytes are held", w.asm.ahead)
			}
		}
		if s := w.end(); s.holes != 1 || s.lost[Opener] != 1000 || len(s.at[Opener]) != 100 {
			t.Errorf("%d holes of %d bytes", s.holes, s.lost[Opener])
		}
	})
	t.Run("all connections", func(t *testing.T) {
		w := newWire(t)
		w.asm.maxAheadTotal = 10_000
		for i := range 100 {
			w.ends[0].init(netip.AddrPortFrom(ourAddr.Addr(), uint16(1000+i)), peerAddr, 0)
			w.add(Opener, 0, -1, flagSYN, "")
			w.add(Opener, 1, 0, 0, strings.Repeat("x", 1000))
			w.add(Opener, 2000, 0, 0, strings.Repeat("x", 1000))
			if w.asm.ahead > 11_000 {
				t.Fatalf("%d bytes are held", w.asm.ahead)
			}
		}
		w.asm.End()
		if w.asm.ahead != 0 {
			t.Errorf("%d bytes are still counted", w.asm.ahead)
		}
	})
	t.Run("pieces", func(t *testing.T) {
		w := newWire(t)
		w.handshake()
		for i := range maxPieces + 100 {
			w.add(Opener, 1+2*i, 0, 0, "x")
		}
		if n := len(w.asm.conns[newTuple(ourAddr, peerAddr)].dirs[Opener].pending); n > maxPieces {
			t.Errorf("%d pieces are held", n)
		}
	})
	t.Run("packets behind an acknowledgement", func(t *testing.T) {
		w := newWire(t)
		w.asm.maxAheadTotal = 5000
		w.handshake()
		for i := range 50 {
			w.add(Acceptor, i*1000, 7+i, 0, strings.Repeat("x", 1000))
			if w.asm.ahead > 6000 {
				t.Fatalf("%d bytes are held", w.asm.ahead)
			}
		}
		if s := w.end(); len(s.bytes(Acceptor)) != 50_000 {
			t.Errorf("%d bytes came through", len(s.bytes(Acceptor)))
		}
	})
}

func TestLongestSilentConnectionIsGivenUp(t *testing.T) {
	w := newWire(t)
	w.asm.maxConns = 3
	use := func(i int, data string) {
		w.ends[0].init(netip.AddrPortFrom(ourAddr.Addr(), uint16(1000+i)), peerAddr, 0)
		w.add(Opener, 0, 0, 0, data)
	}
	for i := range 3 {
		use(i, "x")
	}
	use(0, "x")
	use(3, "y")
	if st := w.asm.Stats(); st.GivenUp != 0 || w.all[1].ended != 1 || w.all[0].ended != 0 {
		t.Errorf("nothing is missing yet: %+v", st)
	}
	use(1, "z") // it goes on
	if st := w.asm.Stats(); st.GivenUp != 1 || st.Connections != 5 {
		t.Errorf("%+v", st)
	}
	w.asm.End()
	if len(w.asm.conns) != 0 || w.asm.lru.Len() != 0 || w.asm.ended.Len() != 0 {
		t.Error("connections are left")
	}
}

// Any cut of a stream into segments, in any order, some of them twice, gives
// the same bytes.
func TestAnyArrivalGivesTheSameStream(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var sides [2][]byte
		type arrival struct {
			from Side
			off  int
			data []byte
			fin  bool
		}
		var all []arrival
		for side := range sides {
			sides[side] = pattern(1 + r.IntN(3000))
			s := sides[side]
			for off := 0; off < len(s); {
				n := min(1+r.IntN(200), len(s)-off)
				for range 1 + r.IntN(2) {
					lo, hi := max(0, off-r.IntN(30)), min(len(s), off+n+r.IntN(30))
					all = append(all, arrival{Side(side), lo, s[lo:hi], hi == len(s)})
				}
				off += n
			}
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		w := newWire(t)
		w.handshake()
		for _, a := range all {
			flags := byte(0)
			if a.fin {
				flags = flagFIN
			}
			w.asm.Add(w.packet(a.from, a.off, 0, flags, a.data))
		}
		s := w.end()
		for side := range sides {
			if !bytes.Equal(s.bytes(Side(side)), sides[side]) {
				t.Fatalf("seed %d: side %d differs", seed, side)
			}
		}
		if s.holes != 0 || s.closes != 2 {
			t.Fatalf("seed %d: %d holes, %d closes", seed, s.holes, s.closes)
		}
	}
}

// With packets lost, what arrives is right, and all that is missing is counted.
func TestLostPacketsAreCounted(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		stream := pattern(20_000)
		w := newWire(t)
		w.handshake()
		for off := 0; off < len(stream); {
			n := min(1+r.IntN(1448), len(stream)-off)
			if r.IntN(5) > 0 {
				w.asm.Add(w.packet(Opener, off, 0, 0, stream[off:off+n]))
			}
			off += n
			if r.IntN(2) == 0 {
				w.add(Acceptor, 0, off, 0, "")
			}
		}
		w.add(Opener, len(stream), 0, flagFIN, "")
		s := w.end()
		missing := 0
		for i, c := range s.bytes(Opener) {
			if c == '?' {
				missing++
			} else if c != stream[i] {
				t.Fatalf("seed %d: byte %d is wrong", seed, i)
			}
		}
		if len(s.bytes(Opener)) != len(stream) || missing < s.lost[Opener] || s.lost[Opener] == 0 || s.closes != 1 {
			t.Errorf("seed %d: %d bytes, %d of them missing, %d counted", seed, len(s.bytes(Opener)), missing, s.lost[Opener])
		}
	}
}

func BenchmarkAssembler(b *testing.B) {
	for _, size := range []int{100, 1448} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w := newWire(b)
			w.asm = NewAssembler(func(c *Conn) Consumer { return nullConsumer{} })
			w.handshake()
			data := pattern(size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			p := w.packet(Opener, 0, 0, 0, data)
			seq := p.Data[ethLen+ip4Len+4:]
			for b.Loop() {
				w.asm.Add(p)
				binary.BigEndian.PutUint32(seq, binary.BigEndian.Uint32(seq)+uint32(size))
			}
		})
	}
}

type nullConsumer struct{}

func (nullConsumer) Data(Side, At, []byte)         {}
func (nullConsumer) Hole(Side, At, int)            {}
func (nullConsumer) Close(Side, At, bool)          {}
func (nullConsumer) End()                          {}
func (nullConsumer) Drop(Side, At, Drop)           {}
func (nullConsumer) Differs(Side, At, int, []byte) {}
func (nullConsumer) Acked(Side, At, int)           {}
