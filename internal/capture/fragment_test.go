package capture

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// fragments cuts a frame of a Writer into fragments whose payloads have n bytes, n a multiple
// of 8.
func fragments(frame []byte, n int, id uint16) [][]byte {
	ip := frame[ethLen:]
	head := ip4Len
	if ip[0]>>4 == 6 {
		head = ip6Len
	}
	var all [][]byte
	for at := head; at < len(ip); at += n {
		end := min(at+n, len(ip))
		more := end < len(ip)
		f := slices.Clone(frame[:ethLen+head])
		h := f[ethLen:]
		place := uint16(at - head)
		if head == ip4Len {
			place >>= 3
			if more {
				place |= 0x2000
			}
			binary.BigEndian.PutUint16(h[2:], uint16(head+end-at))
			binary.BigEndian.PutUint16(h[4:], id)
			binary.BigEndian.PutUint16(h[6:], place)
		} else {
			if more {
				place |= 1
			}
			binary.BigEndian.PutUint16(h[4:], uint16(8+end-at))
			next := h[6]
			h[6] = 44
			f = append(f, next, 0, byte(place>>8), byte(place), 0, 0, byte(id>>8), byte(id))
		}
		all = append(all, append(f, ip[at:end]...))
	}
	return all
}

// A collector takes what an Assembler hands on.
type collector struct {
	asm   *Assembler
	at    []At
	got   []Datagram
	start time.Time
	n     int
}

func newCollector() *collector {
	c := &collector{asm: NewAssembler(func(*Conn) Consumer { return nil }), start: time.Unix(1_700_000_000, 0)}
	c.asm.UDP = func(at At, d *Datagram) {
		kept := *d
		kept.Data = bytes.Clone(d.Data)
		c.at, c.got = append(c.at, at), append(c.got, kept)
	}
	return c
}

func (c *collector) add(after time.Duration, frames ...[]byte) {
	for _, f := range frames {
		c.n++
		c.asm.Add(&Packet{Number: c.n, Time: c.start.Add(after), Link: layers.LinkTypeEthernet, Length: len(f), Data: f})
	}
}

var families = map[string][2]netip.AddrPort{
	"IPv4": {netip.MustParseAddrPort("192.0.2.1:7001"), netip.MustParseAddrPort("192.0.2.2:7000")},
	"IPv6": {netip.MustParseAddrPort("[2001:db8::1]:7001"), netip.MustParseAddrPort("[2001:db8::2]:7000")},
}

// frameOf returns the frame of a datagram.
func frameOf(t testing.TB, ends [2]netip.AddrPort, data []byte) []byte {
	t.Helper()
	all := packets(t, recording(t, func(w *Writer) { w.Datagram(ends[0], ends[1], data) }))
	if len(all) != 1 {
		t.Fatalf("%d packets", len(all))
	}
	return all[0].Data
}

func TestFragmentsAreJoinedInAnyOrder(t *testing.T) {
	for family, ends := range families {
		rng := rand.New(rand.NewPCG(1, 2))
		for n, size := range []int{1, 8, 1472, 5688, 65000, 65507} {
			data := pattern(size)
			all := fragments(frameOf(t, ends, data), 1480, uint16(n))
			if size == 1 {
				all = fragments(frameOf(t, ends, data), 8, uint16(n)) // one of 8 bytes and one of 1
			}
			for _, order := range []string{"as sent", "reversed", "shuffled", "each twice"} {
				frames := slices.Clone(all)
				switch order {
				case "reversed":
					slices.Reverse(frames)
				case "shuffled":
					rng.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
				case "each twice":
					frames = frames[:0]
					for i, f := range all {
						if frames = append(frames, f); i < len(all)-1 {
							frames = append(frames, f)
						}
					}
				}
				c := newCollector()
				c.add(0, frames...)
				if len(c.got) != 1 || !bytes.Equal(c.got[0].Data, data) || c.got[0].Src != ends[0] || c.got[0].Dst != ends[1] || c.got[0].Missing != 0 {
					t.Errorf("%s, %d bytes, %s: %d datagrams", family, size, order, len(c.got))
					continue
				}
				if c.at[0].BadChecksum || c.at[0].Packet != len(frames) {
					t.Errorf("%s, %d bytes, %s: %+v", family, size, order, c.at[0])
				}
				if s := c.asm.Stats(); s.Fragments != 0 || s.Packets != len(frames) {
					t.Errorf("%s, %d bytes, %s: %+v", family, size, order, s)
				}
			}
		}
	}
}

func TestFragmentsOfTCPAreJoined(t *testing.T) {
	for family, ends := range families {
		file := recording(t, func(w *Writer) {
			s := w.Stream(ends[0], ends[1], true)
			s.Sent(pattern(5000))
		})
		w := newWire(t)
		for _, p := range packets(t, file) {
			for _, f := range fragments(p.Data, 1480, uint16(p.Number)) {
				w.asm.Add(&Packet{Number: p.Number, Time: p.Time, Link: p.Link, Length: len(f), Data: f})
			}
		}
		w.asm.End()
		if s := w.asm.Stats(); len(w.all) != 1 || !bytes.Equal(w.all[0].bytes(Opener), pattern(5000)) || s.Fragments != 0 {
			t.Errorf("%s: %d connections, %+v", family, len(w.all), s)
		}
	}
}

// Whatever is wrong with fragments, nothing is made up, and they are counted.
func TestFragmentsThatDoNotFitAreNotJoined(t *testing.T) {
	for family, ends := range families {
		all := fragments(frameOf(t, ends, pattern(4000)), 1000, 7)
		head := len(all[0]) - 1000
		edit := func(i int, f func(b []byte)) []byte {
			b := slices.Clone(all[i])
			f(b)
			return b
		}
		// shift moves a fragment by units of 8 bytes.
		shift := func(i, units int) []byte {
			return edit(i, func(b []byte) {
				if head == ethLen+ip4Len {
					binary.BigEndian.PutUint16(b[ethLen+6:], binary.BigEndian.Uint16(b[ethLen+6:])+uint16(units))
				} else {
					binary.BigEndian.PutUint16(b[head-6:], binary.BigEndian.Uint16(b[head-6:])+uint16(units)<<3)
				}
			})
		}
		last := len(all) - 1
		for name, frames := range map[string][][]byte{
			"one is missing":        {all[0], all[1], all[last]},
			"the first is missing":  all[1:],
			"the last is missing":   all[:last],
			"overlap before":        {all[0], all[2], shift(1, 1), all[last]},
			"overlap behind":        {all[0], shift(1, -1), all[2], all[last]},
			"other bytes again":     {all[0], edit(0, func(b []byte) { b[head+9]++ }), all[1], all[2], all[last]},
			"two last ones":         {all[0], all[last], shift(last, 5), all[1], all[2]},
			"behind the last one":   {all[0], all[last], shift(2, 500), all[1], all[2]},
			"the last one is early": {all[2], shift(last, -300), all[0], all[1]},
			"beyond the largest":    {all[0], all[1], all[2], shift(last, 7800)},
			"another packet's":      append(slices.Clone(all[:last]), fragments(frameOf(t, ends, pattern(4000)), 1000, 8)[last]),
		} {
			c := newCollector()
			c.add(0, frames...)
			if s := c.asm.Stats(); len(c.got) != 0 || s.Fragments != len(frames) {
				t.Errorf("%s, %s: %d datagrams, %+v", family, name, len(c.got), s)
			}
		}
		cut := newCollector()
		cut.asm.Add(&Packet{Number: 1, Link: layers.LinkTypeEthernet, Length: len(all[0]), Data: all[0][:len(all[0])-8]})
		cut.add(0, all[1:]...)
		if s := cut.asm.Stats(); len(cut.got) != 0 || s.Fragments != len(all) {
			t.Errorf("%s, captured in part: %d datagrams, %+v", family, len(cut.got), s)
		}
		late := newCollector()
		late.add(0, all[:last]...)
		late.add(joinFor+time.Second, all[last])
		if s := late.asm.Stats(); len(late.got) != 0 || s.Fragments != len(all) {
			t.Errorf("%s, too late: %d datagrams, %+v", family, len(late.got), s)
		}
	}
}

// check fails unless what a joiner holds is what it has counted, and no more than it should.
func (j *joiner) check(t testing.TB) {
	t.Helper()
	held := 0
	for e := j.order.Front(); e != nil; e = e.Next() {
		p := e.Value.(*joining)
		n := 0
		for i, piece := range p.pieces {
			n += len(piece.data)
			held += fragmentCost + len(piece.data)
			if i > 0 && p.pieces[i-1].end() > piece.offset {
				t.Fatalf("%v overlap", p.packetID)
			}
		}
		if n != p.bytes || len(p.pieces) > maxFragments || j.packets[p.packetID] != e {
			t.Fatalf("%v: %d bytes, %d were counted, in %d pieces", p.packetID, n, p.bytes, len(p.pieces))
		}
	}
	if held != j.held || held > maxJoiningBytes || j.order.Len() > maxJoining || j.order.Len() != len(j.packets) {
		t.Fatalf("%d bytes of %d packets are held, %d and %d were counted", held, j.order.Len(), j.held, len(j.packets))
	}
}

func TestFragmentsThatWaitAreBounded(t *testing.T) {
	for name, size := range map[string]int{"small": 8, "large": 65000} {
		j := &joiner{}
		for id := range uint32(3 * maxJoining) {
			f := fragment{packetID: packetID{id: id}, more: true, data: make([]byte, size)}
			j.add(&f, time.Time{})
		}
		j.check(t)
		if j.order.Len() == 0 {
			t.Errorf("%s: nothing is held", name)
		}
	}
	j := &joiner{}
	for i := range 2 * maxFragments {
		j.add(&fragment{offset: 16 * i, more: true, data: make([]byte, 8)}, time.Time{})
		j.check(t)
	}
}

// FuzzJoiner: whatever fragments come, what they make is what was sent, and what waits is
// bounded. The bytes of a packet depend on where they are; those of a fragment may be spoilt.
func FuzzJoiner(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 0, 1, 1, 0})
	f.Add([]byte{0, 1, 1, 0, 0, 0, 1, 1})
	f.Add([]byte{0, 0, 2, 1, 0, 1, 2, 1, 0, 3, 1, 0})
	f.Add([]byte{0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 4, 1, 1, 1, 0, 0, 1, 1, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		j := &joiner{}
		now := time.Unix(0, 0)
		script = script[:min(len(script), 4<<8)]
		for ; len(script) >= 4; script = script[4:] {
			id, offset, size, how := uint32(script[0]&3), int(script[1])*8, int(script[2])*8, script[3]
			data := make([]byte, size)
			for i := range data {
				data[i] = byte(offset + i)
			}
			if how&2 != 0 && size > 0 { // of a length that only the last one may have
				data = data[:size-3]
			}
			if how&4 != 0 && len(data) > 0 {
				data[0] ^= 0x80
			}
			now = now.Add(time.Duration(how>>3) * time.Second)
			fr := fragment{packetID: packetID{id: id}, offset: offset, more: how&1 != 0, next: protUDP, data: data}
			whole, next, count := j.add(&fr, now)
			j.check(t)
			if whole == nil {
				continue
			}
			if next != protUDP || count < 1 || how&6 == 0 && offset+size > len(whole) {
				t.Fatalf("%d bytes of protocol %d in %d fragments", len(whole), next, count)
			}
			for i, b := range whole {
				if b&^0x80 != byte(i)&^0x80 {
					t.Fatalf("byte %d is %d", i, b)
				}
			}
		}
	})
}
