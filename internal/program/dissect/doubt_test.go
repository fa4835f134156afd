package dissect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"

	"urnic/internal/capture"
	"urnic/rdmap"
)

// A frame is a packet of a capture of IPv4 over Ethernet, for tests that edit it.
type frame struct{ capture.Packet }

func (f *frame) tcp() []byte     { return f.Data[14+4*int(f.Data[14]&15):] }
func (f *frame) seq() uint32     { return binary.BigEndian.Uint32(f.tcp()[4:]) }
func (f *frame) flags() byte     { return f.tcp()[13] }
func (f *frame) header() int     { return int(f.tcp()[12]>>4) * 4 }
func (f *frame) payload() []byte { return f.tcp()[f.header():f.length()] }

// length returns that of the TCP segment, without what Ethernet pads.
func (f *frame) length() int {
	return int(binary.BigEndian.Uint16(f.Data[16:])) - 4*int(f.Data[14]&15)
}

// clone returns a copy with other sequence number and flags, and with n bytes of payload.
func (f *frame) clone(seq uint32, flags byte, n int) *frame {
	c := *f
	tcp := 14 + 4*int(f.Data[14]&15)
	c.Data = bytes.Clone(f.Data[:tcp+f.header()+n])
	c.Length = len(c.Data)
	binary.BigEndian.PutUint16(c.Data[16:], uint16(len(c.Data)-14))
	binary.BigEndian.PutUint32(c.Data[tcp+4:], seq)
	c.Data[tcp+13] = flags
	return &c
}

// sum computes the TCP checksum anew.
func (f *frame) sum() *frame {
	tcp := f.tcp()[:f.length()]
	tcp[16], tcp[17] = 0, 0
	sum := uint32(6 + len(tcp))
	for _, b := range [][]byte{f.Data[26:34], tcp} {
		for i, c := range b {
			sum += uint32(c) << (8 * (1 - i&1))
		}
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	binary.BigEndian.PutUint16(tcp[16:], ^uint16(sum))
	return f
}

// frames returns the packets of a golden capture.
func frames(t testing.TB, name string) []*frame {
	t.Helper()
	r := open(t, name)
	var all []*frame
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Data = bytes.Clone(p.Data)
		all = append(all, &frame{p})
	}
}

// edited returns a capture of packets.
func edited(t testing.TB, all []*frame) []byte {
	t.Helper()
	var out bytes.Buffer
	w := pcapgo.NewWriter(&out)
	if err := w.WriteFileHeader(1<<18, 1); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: f.Time, CaptureLength: len(f.Data), Length: f.Length}, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// isTCP reports whether a frame is TCP over IPv4.
func (f *frame) isTCP() bool {
	return len(f.Data) > 54 && f.Data[12] == 8 && f.Data[13] == 0 && f.Data[23] == 6
}

// finding is what an analysis has found, but for the numbers of packets.
func finding(o outcome) []string {
	var all []string
	for _, c := range o.Connections {
		all = append(all, c.MPA.String())
		for op := range c.Segments {
			all = append(all, string(rune('a'+op))+" "+strings.Join([]string{itoa(c.Segments[op]), itoa(c.Messages[op])}, " "))
		}
		all = append(all, itoa(int(c.Payload)), itoa(c.BadCRC), itoa(int(c.Undecoded)))
		for i := range c.Violations {
			v := &c.Violations[i]
			all = append(all, v.ID+" "+v.From.String()+" "+v.Detail)
		}
	}
	return all
}

func itoa(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

// A RST or SYN that a TCP ignores changes nothing, wherever it comes.
func TestSegmentsThatATCPIgnoresChangeNothing(t *testing.T) {
	for name := range goldens(t) {
		name = strings.TrimSuffix(name, ".pcap.gz")
		all := frames(t, name)
		want := finding(analyze(t, edited(t, all)))
		for kind, bogus := range map[string]func(f *frame) *frame{
			"RST 3000 bytes behind": func(f *frame) *frame { return f.clone(f.seq()-3000, 4, 0) },
			"RST far ahead":         func(f *frame) *frame { return f.clone(f.seq()+1<<30-1, 4, 0) },
			"SYN":                   func(f *frame) *frame { return f.clone(f.seq()+123_456_789, 2, 0) },
		} {
			var spoiled []*frame
			n := 0
			for _, f := range all {
				spoiled = append(spoiled, f)
				// Something of the same side must follow, or the RST may be true.
				if f.isTCP() && f.flags()&7 == 0 && len(f.payload()) > 0 {
					if n++; n%3 == 1 {
						spoiled = append(spoiled, bogus(f).sum())
					}
				}
			}
			o := analyze(t, edited(t, spoiled))
			if got := finding(o); !slices.Equal(got, want) {
				t.Errorf("%s, %s: found\n%q, without it\n%q\n%q", name, kind, got, want, o.notes)
			}
			left := 0
			for _, n := range o.notes {
				if strings.Contains(n, "ignored") {
					left++
				}
			}
			if n > 2 && left == 0 {
				t.Errorf("%s, %s: nothing is reported: %q", name, kind, o.notes)
			}
		}
	}
}

// A segment that was damaged under way, and that is there once more as it was sent. TCP's
// checksum tells, or, where that was left to the network card, the CRC.
func TestDamagedSegmentsThatWereSentAgainAreNobodysFault(t *testing.T) {
	seen := map[string]int{}
	for name := range goldens(t) {
		name = strings.TrimSuffix(name, ".pcap.gz")
		all := frames(t, name)
		whole := analyze(t, edited(t, all))
		want := finding(whole)
		for _, sums := range []string{"right", "none"} {
			if sums == "none" && slices.ContainsFunc(whole.Connections, func(c *Connection) bool { return !c.MPA.CRC }) {
				continue
			}
			for _, offset := range []int{0, 1, 2, 3, 10, 17, -1} {
				o := analyze(t, edited(t, damaged(all, sums, offset)))
				if got := finding(o); !slices.Equal(got, want) {
					t.Errorf("%s, byte %d, checksums %s: found\n%q, without damage\n%q", name, offset, sums, got, want)
				}
				for _, c := range o.Connections {
					seen[sums+" dropped"] += c.Dropped[capture.DropChecksum]
					seen[sums+" differing"] += int(c.Differing)
				}
			}
		}
	}
	if seen["right dropped"] < 1000 || seen["right differing"] != 0 || seen["none dropped"] != 0 || seen["none differing"] < 100 {
		t.Errorf("reported: %v", seen)
	}
}

// damaged returns packets among which each fourth that carries something comes damaged
// first. sums says what the TCP checksums are: right, or none as if they had been left to
// the network card.
func damaged(all []*frame, sums string, offset int) []*frame {
	var out []*frame
	n := 0
	for _, f := range all {
		if !f.isTCP() {
			out = append(out, f)
			continue
		}
		f = f.clone(f.seq(), f.flags(), len(f.payload())).sum()
		if sums == "none" {
			copy(f.tcp()[16:], []byte{0, 0})
		}
		if startup := bytes.HasPrefix(f.payload(), []byte("MPA ID")); len(f.payload()) > 20 && (!startup || sums == "right") {
			if n++; n%4 == 1 {
				bad := f.clone(f.seq(), f.flags(), len(f.payload()))
				p := bad.payload()
				p[(offset+len(p))%len(p)] ^= 0x24
				out = append(out, bad)
			}
		}
		out = append(out, f)
	}
	return out
}

// A sender of wrong CRCs is blamed, though it is sent again as it was.
func TestWrongCRCsThatAreSentAgainAreTheSendersFault(t *testing.T) {
	sc := newScript(t).start(true, false)
	sc.send(Client, 10)
	s := sc.make(Client, rdmap.OpSend, true, make([]byte, 500))
	ulpdu, _ := s.AppendBinary(nil)
	b := sc.fpdu(Client, ulpdu)
	b[100] ^= 1
	sc.raw(Client, b)
	sc.send(Client, 20)
	sc.send(Server, 30)
	sc.close()
	if err := sc.w.Close(); err != nil {
		t.Fatal(err)
	}
	var all []*frame
	r, err := capture.NewReader(&sc.file)
	if err != nil {
		t.Fatal(err)
	}
	packet := 0
	for {
		p, err := r.Next()
		if err != nil {
			break
		}
		p.Data = bytes.Clone(p.Data)
		f := &frame{p}
		all = append(all, f)
		if len(f.payload()) == len(b) {
			packet = len(all)
			all = append(all, f)
		}
	}
	o := analyze(t, edited(t, all))
	o.want(t, "crc RFC 5044 §8 by client")
	c := o.only(t)
	if c.BadCRC != 1 || c.Messages[rdmap.OpSend] != 3 || c.Violations[0].At.Packet != packet {
		t.Errorf("%d bad CRCs, %d messages, packet %d, want %d", c.BadCRC, c.Messages[rdmap.OpSend], c.Violations[0].At.Packet, packet)
	}
}

// The packet that carries an FPDU is the same whether one before it was in doubt or not.
func TestPacketNumbersBehindAnFPDUInDoubt(t *testing.T) {
	sc := newScript(t).start(true, false)
	var want []int
	for i := range 30 {
		s := sc.make(Client, rdmap.OpSend, true, make([]byte, 100))
		ulpdu, _ := s.AppendBinary(nil)
		b := sc.fpdu(Client, ulpdu)
		if i%10 == 3 {
			b[50] ^= 1
		}
		sc.raw(Client, b)
		want = append(want, 6+i)
	}
	sc.send(Server, 1)
	sc.close()
	if err := sc.w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := capture.NewReader(&sc.file)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	result, err := Analyze(t.Context(), r, func(e *Event) error {
		if e.Kind == KindSegment && e.From == Client {
			got = append(got, e.At.Packet)
		}
		return nil
	})
	if err != nil || !slices.Equal(got, want) || result.Violations() != 3 {
		t.Errorf("packets %v, want %v; %d violations, %v", got, want, result.Violations(), err)
	}
}

// Where TCP's checksum and the CRC are both wrong, and nothing better was captured, it is
// the capture that is damaged.
func TestWrongCRCInASegmentWithAWrongChecksumIsNobodysFault(t *testing.T) {
	all := frames(t, "rping-crc")
	var spoiled []*frame
	for i, f := range all {
		f = f.clone(f.seq(), f.flags(), len(f.payload())).sum()
		if i == 12 {
			f.payload()[20] ^= 1
		}
		spoiled = append(spoiled, f)
	}
	if len(all[12].payload()) < 30 {
		t.Fatal("packet 13 carries no FPDU")
	}
	o := analyze(t, edited(t, spoiled))
	o.want(t)
	o.wantNote(t, "the capture doesn't hold what the")
	if c := o.only(t); c.BadCRC != 1 || c.Undecoded == 0 {
		t.Errorf("%d bad CRCs, %d bytes not decoded", c.BadCRC, c.Undecoded)
	}
}

// What waits behind an FPDU in doubt is bounded.
func TestWhatWaitsBehindADoubtIsBounded(t *testing.T) {
	a := &analysis{result: &Result{}, handle: func(*Event) error { return nil }}
	f := newFollower(a, &capture.Conn{FromStart: [2]bool{true, true}})
	req, rep := plainFrame(false, ""), plainFrame(true, "")
	req.CRC = true
	b, _ := req.AppendBinary(nil)
	f.Data(capture.Opener, capture.At{}, b)
	b, _ = rep.AppendBinary(nil)
	f.Data(capture.Acceptor, capture.At{}, b)
	sc := newScript(t)
	sc.framers[Client].CRC = true
	for i := range 3000 {
		s := sc.make(Client, rdmap.OpSend, true, make([]byte, 1000))
		ulpdu, _ := s.AppendBinary(nil)
		fpdu := sc.fpdu(Client, ulpdu)
		if i == 5 {
			fpdu[30] ^= 1
		}
		f.Data(capture.Opener, capture.At{Packet: i + 3}, fpdu)
		if a.buffered > maxDoubt+2000 {
			t.Fatalf("%d bytes wait", a.buffered)
		}
	}
	if f.con.Messages[rdmap.OpSend] != 2999 || f.con.BadCRC != 1 {
		t.Errorf("%d messages, %d bad CRCs", f.con.Messages[rdmap.OpSend], f.con.BadCRC)
	}
	f.End()
	if a.buffered != 0 {
		t.Errorf("%d bytes are still counted", a.buffered)
	}
}
