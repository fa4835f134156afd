package capture

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"strings"
	"testing"
)

// dropped returns the kinds of what was left out.
func (s *seen) dropped() string {
	var names []string
	for _, d := range s.drops {
		names = append(names, DropNames[d.Kind])
	}
	return strings.Join(names, " ")
}

// A TCP ignores a RST whose number is not the one that is due (RFC 5961 §3.2).
func TestResetsThatATCPIgnores(t *testing.T) {
	for name, off := range map[string]int{
		"one byte behind": 2999, "at the beginning": 0, "3000 bytes behind": 100, "one byte ahead": 3101, "far ahead": 60_000,
		"beyond the window": 1 << 29, "half the numbers away": -1 << 31,
	} {
		w := newWire(t)
		w.handshake()
		w.add(Opener, 0, 0, 0, strings.Repeat("x", 3100))
		w.add(Acceptor, 0, 3100, 0, "uno")
		w.add(Opener, off, -1, flagRST, "")
		w.add(Opener, off, -1, flagRST, "") // once more
		w.add(Opener, 3100, 3, 0, "two")
		w.add(Acceptor, 3, 3103, 0, "due")
		w.add(Opener, 3103, 6, flagFIN, "")
		w.add(Acceptor, 6, 3104, flagFIN, "")
		s := w.want("aAaAfF", strings.Repeat("x", 3100)+"two", "unodue")
		if s.dropped() != "rst rst" || w.asm.Stats().Dropped[DropRST] != 2 {
			t.Errorf("%s: %v; %+v", name, s.drops, w.asm.Stats())
		}
		for _, d := range s.drops {
			if want := off - 3100; name == "3000 bytes behind" && (d.Off != want || !strings.Contains(d.String(), "3000 bytes before")) {
				t.Errorf("%s: %v", name, d)
			}
		}
	}
}

func TestResetsThatATCPTakes(t *testing.T) {
	for name, off := range map[string]int{"due": 6, "due at the receiver, which has not seen all": 3} {
		w := newWire(t)
		w.handshake()
		w.add(Opener, 0, 0, 0, "abc")
		w.add(Acceptor, 0, 3, 0, "")
		w.add(Opener, 3, 0, 0, "def")
		w.add(Opener, off, -1, flagRST, "")
		s := w.want("aar", "abcdef", "")
		if len(s.drops) != 0 {
			t.Errorf("%s: %v", name, s.drops)
		}
	}
	// What the capture has out of order is put in order first.
	w := newWire(t)
	w.handshake()
	w.add(Opener, 6, -1, flagRST, "")
	w.add(Opener, 0, 0, 0, "abc")
	w.add(Opener, 3, 0, 0, "def")
	w.want("aar", "abcdef", "")
	// It may lack what precedes the reset, and nothing may follow it.
	w = newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "abc")
	w.add(Opener, 9, -1, flagRST, "")
	w.want("ar", "abc", "")
}

// What was under way when a side reset the connection is there to be read.
func TestOctetsBehindAResetOfTheOtherSide(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "abc")
	w.add(Acceptor, 0, 3, flagRST, "")
	w.add(Opener, 3, 0, 0, "def")
	w.want("aRa", "abcdef", "")
}

func TestResetInAnswerToASYN(t *testing.T) {
	for ack, over := range map[int]bool{0: true, 77: false} {
		w := newWire(t)
		w.add(Opener, 0, -1, flagSYN, "")
		p := w.packet(Acceptor, 0, ack, flagRST, nil)
		binary.BigEndian.PutUint32(p.Data[ethLen+ip4Len+4:], 0)
		fix(p)
		w.asm.Add(p)
		if got := w.asm.ended.Len() == 1; got != over || (w.asm.Stats().Dropped[DropRST] == 0) != over {
			t.Errorf("acknowledging %d: over is %t; %+v", ack, got, w.asm.Stats())
		}
	}
}

// fix computes the TCP checksum of a packet of a wire anew.
func fix(p *Packet) {
	tcp := p.Data[ethLen+ip4Len:]
	binary.BigEndian.PutUint16(tcp[16:], 0)
	sum := onesSum(onesSum(protTCP, p.Data[ethLen+12:ethLen+20])+uint64(len(tcp)), tcp)
	binary.BigEndian.PutUint16(tcp[16:], foldSum(sum))
}

// A TCP answers a SYN within a connection by a challenge, and goes on (RFC 5961 §4.2).
func TestSYNsThatATCPIgnores(t *testing.T) {
	for name, syn := range map[string]func(w *wire){
		"SYN behind":         func(w *wire) { w.add(Opener, -5000, -1, flagSYN, "") },
		"SYN in the window":  func(w *wire) { w.add(Opener, 10, -1, flagSYN, "") },
		"SYN that is due":    func(w *wire) { w.add(Opener, 3, -1, flagSYN, "") },
		"SYN with data":      func(w *wire) { w.add(Opener, 1000, -1, flagSYN, "GET") },
		"SYN/ACK":            func(w *wire) { w.add(Acceptor, 77_000, 3, flagSYN, "") },
		"SYN of the other":   func(w *wire) { w.add(Acceptor, 77_000, -1, flagSYN, "") },
		"SYN/ACK of the one": func(w *wire) { w.add(Opener, 77_000, 1234, flagSYN, "") },
	} {
		w := newWire(t)
		w.handshake()
		w.add(Opener, 0, 0, 0, "abc")
		w.add(Acceptor, 0, 3, 0, "xyz")
		syn(w)
		w.add(Opener, 3, 3, 0, "def")
		w.add(Acceptor, 3, 6, 0, "uvw")
		w.asm.End()
		if len(w.all) != 1 {
			t.Errorf("%s: %d connections", name, len(w.all))
			continue
		}
		if s := w.all[0]; s.order.String() != "aAaA" || s.dropped() != "syn" {
			t.Errorf("%s: %s, left out %q", name, s.order.String(), s.dropped())
		}
	}
}

// A SYN that is answered, or that what follows belongs to, opens a connection: a host has
// restarted, or the end of the one before was not captured.
func TestSYNsThatOpenAConnectionInsteadOfAnOpenOne(t *testing.T) {
	for name, open := range map[string]func(w *wire){
		"answered": func(w *wire) {
			w.add(Opener, 1<<20, -1, flagSYN, "")
			w.add(Opener, 3, 3, 0, "") // something late of the old one
			w.add(Acceptor, 1<<21, 1<<20, flagSYN, "")
			w.add(Opener, 1<<20, 1<<21, 0, "new")
		},
		"the answer is lost": func(w *wire) {
			w.add(Opener, 1<<20, -1, flagSYN, "")
			w.add(Opener, 1<<20, 1<<21, 0, "new")
		},
		"only acknowledged": func(w *wire) {
			w.add(Opener, 1<<20, -1, flagSYN, "")
			w.add(Acceptor, 1<<21, 1<<20, 0, "")
			w.add(Opener, 1<<20, 1<<21, 0, "new")
		},
	} {
		w := newWire(t)
		w.handshake()
		w.add(Opener, 0, 0, 0, "abc")
		w.add(Acceptor, 0, 3, 0, "xyz")
		open(w)
		w.asm.End()
		if len(w.all) != 2 {
			t.Errorf("%s: %d connections", name, len(w.all))
			continue
		}
		if a, b := string(w.all[0].bytes(Opener)), string(w.all[1].bytes(Opener)); a != "abc" || b != "new" || w.all[1].conn.FromStart != [2]bool{true, name != "the answer is lost" || w.all[1].conn.FromStart[1]} {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
}

func TestFINsThatATCPIgnores(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "abcdef")
	w.add(Acceptor, 0, 6, 0, "xyz")
	w.add(Opener, 2, 3, flagFIN, "") // behind
	w.add(Opener, 8, 3, flagFIN, "") // ahead, and the stream goes on
	w.add(Opener, 6, 3, 0, "ghijkl")
	w.add(Opener, 12, 3, flagFIN, "")
	w.add(Opener, 12, 3, flagFIN, "") // again
	s := w.want("aAaf", "abcdefghijkl", "xyz")
	if s.dropped() != "fin fin" {
		t.Errorf("left out %v", s.drops)
	}
}

func TestOctetsBehindAFINAreReported(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, flagFIN, "abc")
	w.add(Opener, 0, 0, flagFIN, "abc") // sent again
	w.add(Opener, 4, 0, 0, "defg")
	s := w.want("af", "abc", "")
	if s.dropped() != "data" || s.drops[0].Bytes != 4 {
		t.Errorf("left out %v", s.drops)
	}
}

// Who acknowledges what can't have been sent is not believed: it is no sign of a loss.
func TestAcknowledgementBeyondTheWindow(t *testing.T) {
	w := newWire(t)
	for _, h := range []int{0, 1} { // small windows, so that their end is known
		binary.BigEndian.PutUint16(w.ends[h].header[ethLen+ip4Len+14:], 1000)
	}
	w.handshake()
	w.add(Opener, 0, 0, 0, "abc")
	w.add(Acceptor, 0, 500_000, 0, "")
	w.add(Acceptor, 0, 500_000, 0, "one")
	w.add(Opener, 3, 3, 0, "def")
	w.add(Acceptor, 3, 6, 0, "two")
	s := w.want("aAaA", "abcdef", "onetwo")
	if s.dropped() != "ack ack" {
		t.Errorf("left out %v", s.drops)
	}
}

// spoil damages the last byte of a packet.
func spoil(p *Packet) *Packet {
	p.Data[len(p.Data)-1] ^= 0x55
	return p
}

// A TCP refuses a segment with a wrong checksum: what is sent again counts.
func TestSegmentThatTheChecksumRefuses(t *testing.T) {
	for name, again := range map[string]func(w *wire){
		"at once":     func(w *wire) { w.add(Opener, 3, 0, 0, "def") },
		"in pieces":   func(w *wire) { w.add(Opener, 3, 0, 0, "d"); w.add(Opener, 4, 0, 0, "ef") },
		"with others": func(w *wire) { w.add(Opener, 0, 0, 0, "abcdef") },
		"behind others": func(w *wire) {
			w.add(Opener, 6, 0, 0, "ghi")
			w.add(Acceptor, 0, 3, 0, "")
			w.add(Opener, 3, 0, 0, "def")
		},
	} {
		w := newWire(t)
		w.handshake()
		w.add(Opener, 0, 0, 0, "abc")
		w.asm.Add(spoil(w.packet(Opener, 3, 0, 0, []byte("def"))))
		again(w)
		w.add(Acceptor, 0, 6, 0, "xyz")
		s := w.end()
		if got := string(s.bytes(Opener)); !strings.HasPrefix(got, "abcdef") || s.dropped() != "checksum" || s.holes != 0 || s.differs != 0 {
			t.Errorf("%s: %q, left out %v, %d holes", name, got, s.drops, s.holes)
		}
	}
}

// Network cards compute checksums after the capture: what is acknowledged was right.
func TestSegmentsWithAWrongChecksumThatAreAcknowledgedCount(t *testing.T) {
	w := newWire(t)
	w.handshake()
	for i, part := range []string{"abc", "def", "ghi"} {
		w.asm.Add(spoil(w.packet(Opener, 3*i, i, 0, []byte(part))))
		w.add(Acceptor, i, 3*i+3, 0, "x")
	}
	w.asm.Add(spoil(w.packet(Opener, 9, 3, flagFIN, []byte("jkl"))))
	s := w.want("aAaAaAaf", "ab6de3gh<jk9", "xxx")
	if len(s.drops) != 0 || !s.at[Opener][0].BadChecksum {
		t.Errorf("left out %v", s.drops)
	}
	// And if not one of them is right, none tells anything.
	w = newWire(t)
	w.asm.Add(spoil(w.packet(Opener, 0, -1, 0, []byte("abc"))))
	w.asm.Add(spoil(w.packet(Opener, 3, -1, 0, []byte("def"))))
	w.want("aa", "ab6de3", "")
	// At the end, they are better than nothing.
	w = newWire(t)
	w.handshake()
	w.asm.Add(spoil(w.packet(Opener, 0, 0, 0, []byte("abc"))))
	w.add(Opener, 3, 0, 0, "def")
	w.want("aa", "ab6def", "")
}

func TestControlSegmentsWithAWrongChecksumAreLeftOut(t *testing.T) {
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "abc")
	for _, flags := range []byte{flagRST, flagSYN, 0} {
		p := w.packet(Opener, 3, 0, flags, nil)
		p.Data[ethLen+ip4Len+15] ^= 1 // the window
		w.asm.Add(p)
	}
	w.add(Opener, 3, 0, 0, "def")
	s := w.want("aa", "abcdef", "")
	if w.asm.Stats().Dropped[DropChecksum]+w.asm.Stats().Dropped[DropSYN] != 3 {
		t.Errorf("left out %v", s.drops)
	}
}

// Two versions of the same bytes: the first is delivered, the other is reported.
func TestOverlapsThatDifferAreReported(t *testing.T) {
	for name, send := range map[string]func(w *wire){
		"delivered": func(w *wire) { w.add(Opener, 0, 0, 0, "abcdef"); w.add(Opener, 2, 0, 0, "cXYf") },
		"pending": func(w *wire) {
			w.add(Opener, 1, 0, 0, "bcdef")
			w.add(Opener, 2, 0, 0, "cXYf")
			w.add(Opener, 0, 0, 0, "a")
		},
		"in parts": func(w *wire) {
			w.add(Opener, 0, 0, 0, "abc")
			w.add(Opener, 3, 0, 0, "def")
			w.add(Opener, 0, 0, 0, "abcXYf")
		},
	} {
		w := newWire(t)
		w.handshake()
		send(w)
		s := w.end()
		want := "abcXYf"
		if got := string(s.bytes(Opener)); got != want || s.differs != 1 {
			t.Errorf("%s: %q, %d times", name, got, s.differs)
		}
	}
	// What is acknowledged was taken as it was first.
	w := newWire(t)
	w.handshake()
	w.add(Opener, 0, 0, 0, "abcdef")
	w.add(Acceptor, 0, 6, 0, "")
	w.add(Opener, 0, 0, 0, "ABCDEF")
	w.add(Opener, 0, 0, 0, "abcdef")
	if s := w.want("a", "abcdef", ""); s.differs != 0 || s.left[Opener] != 0 {
		t.Errorf("%d times, %d bytes not acknowledged", s.differs, s.left[Opener])
	}
}

// What was delivered is kept no longer than needed.
func TestWhatIsKeptOfDeliveredOctetsIsBounded(t *testing.T) {
	w := newWire(t)
	w.handshake()
	for i := range 100 {
		w.add(Opener, i*60_000, 0, 0, strings.Repeat("x", 60_000))
		d := &w.asm.conns[newTuple(ourAddr, peerAddr)].dirs[Opener]
		if len(d.sent) > maxSent || cap(d.sent) > 2*maxSent {
			t.Fatalf("%d bytes are kept, of %d", len(d.sent), cap(d.sent))
		}
	}
	w.add(Acceptor, 0, 6_000_000, 0, "")
	if d := &w.asm.conns[newTuple(ourAddr, peerAddr)].dirs[Opener]; cap(d.sent) > 64<<10 {
		t.Errorf("%d bytes are kept though all is acknowledged", cap(d.sent))
	}
}

// However many connections there are, what is kept of what they delivered is bounded, and
// so are other versions of what is pending.
func TestWhatIsKeptOfAllConnectionsIsBounded(t *testing.T) {
	w := newWire(t)
	w.asm = NewAssembler(func(*Conn) Consumer { return nullConsumer{} })
	block := strings.Repeat("x", 60_000)
	for i := range 1300 {
		w.ends[0].init(netip.AddrPortFrom(ourAddr.Addr(), uint16(1000+i)), peerAddr, isnA)
		w.add(Opener, 0, -1, flagSYN, "")
		w.add(Opener, 0, -1, 0, block)
		w.add(Opener, 70_000, -1, 0, block)
		w.add(Opener, 70_000, -1, 0, "y"+block[1:])
		if w.asm.sent > maxSentTotal || w.asm.ahead > maxAheadTotal+200_000 {
			t.Fatalf("%d bytes delivered, %d pending", w.asm.sent, w.asm.ahead)
		}
	}
	w.asm.End()
	if w.asm.sent != 0 || w.asm.ahead != 0 {
		t.Errorf("%d and %d bytes are still counted", w.asm.sent, w.asm.ahead)
	}
}

// Connections that have ended are forgotten, however many there are: one after the other,
// they take no more memory than a few.
func TestConnectionsOneAfterTheOther(t *testing.T) {
	heap := func() uint64 {
		for range 3 { // what pools and finalizers hold is free after the second
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, tc := range map[string]struct{ ignored, reset bool }{
		"closed": {}, "reset": {reset: true}, "ignored, closed": {ignored: true}, "ignored, reset": {ignored: true, reset: true},
	} {
		w := newWire(t)
		w.asm = NewAssembler(func(c *Conn) Consumer {
			if tc.ignored {
				return nil
			}
			return nullConsumer{}
		})
		const total = 12_000
		var early uint64
		for i := range total {
			a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 16), 1}), uint16(i))
			w.ends[0].init(a, peerAddr, isnA)
			w.ends[1].init(peerAddr, a, isnB)
			w.handshake()
			w.add(Opener, 0, 0, 0, "abc")
			if tc.reset {
				w.add(Acceptor, 0, 3, flagRST, "")
			} else {
				w.add(Opener, 3, 0, flagFIN, "")
				w.add(Acceptor, 0, 4, flagFIN, "")
				w.add(Opener, 4, 1, 0, "")
			}
			w.add(Opener, 0, 0, 0, "abc") // late
			if n := len(w.asm.conns); n > maxEnded+1 {
				t.Fatalf("%s: %d connections are kept after %d", name, n, i+1)
			}
			if i == maxEnded+1000 {
				early = heap()
			}
		}
		if late := heap(); late > early+1<<20 {
			t.Errorf("%s: %d bytes in use early on, %d at the end", name, early, late)
		}
		w.asm.End()
		if st := w.asm.Stats(); st.Connections != total || st.GivenUp != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}
