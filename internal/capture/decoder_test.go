package capture

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"urnic/internal/test/tshark"
)

// be16 returns numbers in network order.
func be16(n ...uint16) []byte {
	var b []byte
	for _, v := range n {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	return b
}

// ether returns an Ethernet header.
func ether(kind uint16) []byte { return append(make([]byte, 12), be16(kind)...) }

// outer4 puts an IPv4 header in front of b.
func outer4(proto byte, b []byte) []byte {
	h := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(b)))
	binary.BigEndian.PutUint16(h[10:], foldSum(onesSum(0, h)))
	return append(h, b...)
}

// datagram puts a UDP header in front of b.
func datagram(port uint16, b []byte) []byte {
	return append(be16(50000, port, uint16(8+len(b)), 0), b...)
}

// extended puts extension headers between the IPv6 header at the front of ip and TCP.
func extended(ip []byte, kind byte, headers ...byte) []byte {
	b := slices.Concat(ip[:ip6Len], headers, ip[ip6Len:])
	b[6] = kind
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-ip6Len))
	return b
}

// An encapsulation makes a frame of an IP packet.
type encapsulation struct {
	link layers.LinkType
	wrap func(ip []byte, kind uint16) []byte // kind is the EtherType of ip
	v6   bool                                // for IPv6 only
	// tshark needs no more than the frame to see TCP in it.
	tshark bool
}

func over(head ...byte) func([]byte, uint16) []byte {
	return func(ip []byte, kind uint16) []byte { return slices.Concat(head, be16(kind), ip) }
}

var encapsulations = map[string]encapsulation{
	"802.1Q":      {wrap: over(append(ether(0x8100), 0, 7)...), tshark: true},
	"QinQ 0x88a8": {wrap: over(slices.Concat(ether(0x88A8), be16(7, 0x8100, 9))...), tshark: true},
	"QinQ 0x9100": {wrap: over(slices.Concat(ether(0x9100), be16(7, 0x8100, 9))...), tshark: true},
	"QinQ 0x9200": {wrap: over(slices.Concat(ether(0x9200), be16(7, 0x9200, 8, 0x8100, 9))...)},
	"MPLS":        {wrap: func(ip []byte, _ uint16) []byte { return slices.Concat(ether(0x8847), []byte{0, 1, 0x01, 64}, ip) }, tshark: true},
	"MPLS, 3 labels": {wrap: func(ip []byte, _ uint16) []byte {
		return slices.Concat(ether(0x8848), []byte{0, 1, 0, 64, 0, 2, 0, 64, 0, 3, 1, 64}, ip)
	}, tshark: true},
	"MPLS, Ethernet": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x8847), []byte{0, 1, 0x01, 64}, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}, be16(k), ip)
	}},
	"MPLS, control word": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x8847), []byte{0, 1, 0x01, 64, 0, 0, 0, 5}, ether(k), ip)
	}},
	"PPPoE": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x8864), []byte{0x11, 0}, be16(3, uint16(len(ip)+2), pppType(k)), ip, []byte{0, 0, 0})
	}, tshark: true},
	"VLAN, PPPoE, compressed PPP": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x8100), be16(3, 0x8864), []byte{0x11, 0}, be16(3, uint16(len(ip)+1)), []byte{byte(pppType(k))}, ip)
	}},
	"VXLAN": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(17, datagram(4789, slices.Concat([]byte{8, 0, 0, 0, 0, 0, 5, 0}, ether(k), ip))))
	}, tshark: true},
	"VXLAN on Linux's port": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(17, datagram(8472, slices.Concat([]byte{8, 0, 0, 0, 0, 0, 5, 0}, ether(k), ip))))
	}},
	"Geneve": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(17, datagram(6081, slices.Concat([]byte{1, 0, 0x65, 0x58, 0, 0, 5, 0, 1, 2, 0x80, 0}, ether(k), ip))))
	}, tshark: true},
	"GTP-U": {wrap: func(ip []byte, _ uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(17, datagram(2152, slices.Concat([]byte{0x30, 255}, be16(uint16(len(ip)), 0, 5), ip))))
	}, tshark: true},
	"GRE": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(47, slices.Concat(be16(0, k), ip)))
	}, tshark: true},
	"GRE, key": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(47, slices.Concat(be16(0x2000, k, 1, 2), ip)))
	}, tshark: true},
	"GRE, bridged": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(47, slices.Concat(be16(0, 0x6558), ether(k), ip)))
	}, tshark: true},
	"GRE, PPTP": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(47, slices.Concat(be16(0x3001, 0x880B, uint16(len(ip)+4), 2, 0, 9, 0xFF03, pppType(k)), ip)))
	}},
	"ERSPAN": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(47, slices.Concat(be16(0x1000, 0x88BE, 0, 1, 0x1001, 1, 0, 1), ether(k), ip)))
	}, tshark: true},
	"IP in IP": {wrap: func(ip []byte, k uint16) []byte { return slices.Concat(ether(0x0800), outer4(ipProto(k), ip)) }, tshark: true},
	"EtherIP": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(0x0800), outer4(97, slices.Concat([]byte{0x30, 0}, ether(k), ip)))
	}, tshark: true},
	"AH": {wrap: func(ip []byte, _ uint16) []byte {
		return slices.Concat(ether(0x86DD), extended(ip, 51, 6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))
	}, v6: true, tshark: true},
	"802.3 with SNAP": {wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat(ether(uint16(8+len(ip))), []byte{0xAA, 0xAA, 3, 0, 0, 0}, be16(k), ip)
	}, tshark: true},
	"PPP":         {link: layers.LinkTypePPP, wrap: func(ip []byte, k uint16) []byte { return slices.Concat(be16(0xFF03, pppType(k)), ip) }, tshark: true},
	"PPP in HDLC": {link: layers.LinkTypePPP_HDLC, wrap: func(ip []byte, k uint16) []byte { return slices.Concat(be16(0xFF03, pppType(k)), ip) }, tshark: true},
	"Cisco HDLC":  {link: layers.LinkTypeC_HDLC, wrap: func(ip []byte, k uint16) []byte { return slices.Concat(be16(0x0F00, k), ip) }, tshark: true},
	"PPPoE link": {link: layers.LinkTypePPPEthernet, wrap: func(ip []byte, k uint16) []byte {
		return slices.Concat([]byte{0x11, 0}, be16(3, uint16(len(ip)+2), pppType(k)), ip)
	}},
	"MPLS link": {link: linkMPLS, wrap: func(ip []byte, _ uint16) []byte { return slices.Concat([]byte{0, 1, 0x01, 64}, ip) }},
	"hop-by-hop": {wrap: func(ip []byte, _ uint16) []byte {
		return slices.Concat(ether(0x86DD), extended(ip, 0, 6, 0, 1, 4, 0, 0, 0, 0))
	}, v6: true, tshark: true},
	"router alert": {wrap: func(ip []byte, _ uint16) []byte {
		return slices.Concat(ether(0x86DD), extended(ip, 0, 6, 0, 5, 2, 0, 0, 1, 0))
	}, v6: true, tshark: true},
	"destination": {wrap: func(ip []byte, _ uint16) []byte {
		return slices.Concat(ether(0x86DD), extended(ip, 60, 6, 0, 1, 4, 0, 0, 0, 0))
	}, v6: true, tshark: true},
	"three extensions": {wrap: func(ip []byte, _ uint16) []byte {
		return slices.Concat(ether(0x86DD), extended(ip, 0, 60, 0, 1, 4, 0, 0, 0, 0, 43, 0, 1, 4, 0, 0, 0, 0, 6, 0, 253, 0, 0, 0, 0, 0))
	}, v6: true, tshark: true},
	"atomic fragment": {wrap: func(ip []byte, _ uint16) []byte {
		return slices.Concat(ether(0x86DD), extended(ip, 44, 6, 0, 0, 0, 0, 0, 0, 9))
	}, v6: true, tshark: true},
	"length left to the card": {wrap: func(ip []byte, k uint16) []byte {
		ip = slices.Clone(ip)
		if k == 0x0800 {
			copy(ip[2:4], []byte{0, 0})
		} else {
			copy(ip[4:6], []byte{0, 0})
		}
		return slices.Concat(ether(k), ip)
	}},
}

func pppType(kind uint16) uint16 {
	if kind == 0x0800 {
		return 0x21
	}
	return 0x57
}

func ipProto(kind uint16) byte {
	if kind == 0x0800 {
		return 4
	}
	return 41
}

// encapsulate returns p with what enc puts around it.
func encapsulate(p *Packet, enc encapsulation) *Packet {
	q := *p
	if q.Link = enc.link; q.Link == 0 {
		q.Link = layers.LinkTypeEthernet
	}
	q.Data = enc.wrap(p.Data[ethLen:], binary.BigEndian.Uint16(p.Data[12:]))
	q.Length = len(q.Data)
	return &q
}

func TestEncapsulations(t *testing.T) {
	for name, enc := range encapsulations {
		for _, v6 := range []bool{false, true} {
			if enc.v6 && !v6 {
				continue
			}
			w := newWire(t)
			if v6 {
				w.version6()
			}
			all := []*Packet{
				w.packet(Opener, 0, -1, flagSYN, nil), w.packet(Acceptor, 0, 0, flagSYN, nil),
				w.packet(Opener, 0, 0, 0, []byte("abc")), w.packet(Acceptor, 0, 3, 0, []byte("xyz")),
			}
			for _, p := range all {
				w.asm.Add(encapsulate(p, enc))
			}
			if st := w.asm.Stats(); st.TCP != 4 || len(st.Unread) != 0 || len(w.all) != 1 {
				t.Errorf("%s v6=%t: %+v, %d connections", name, v6, st, len(w.all))
				continue
			}
			w.want("aA", "abc", "xyz")
		}
	}
}

// version6 has the wire use IPv6.
func (w *wire) version6() {
	a, b := netip.MustParseAddrPort("[2001:db8::1]:40000"), netip.MustParseAddrPort("[2001:db8::2]:7")
	w.ends[0].init(a, b, isnA)
	w.ends[1].init(b, a, isnB)
}

// tshark sees TCP in the same frames. It gets those of a link type in one file, as its
// start takes longer than its work.
func TestTsharkSeesTCPInTheEncapsulations(t *testing.T) {
	frames, names := map[layers.LinkType][][]byte{}, map[layers.LinkType][]string{}
	w := newWire(t)
	w.version6()
	for name, enc := range encapsulations {
		if enc.tshark {
			p := encapsulate(w.packet(Opener, 0, -1, 0, []byte("abc")), enc)
			frames[p.Link], names[p.Link] = append(frames[p.Link], p.Data), append(names[p.Link], name)
		}
	}
	for link, all := range frames {
		file := filepath.Join(t.TempDir(), "all.pcap")
		if err := os.WriteFile(file, classicFile(binary.LittleEndian, magicMicros, link, all...), 0o600); err != nil {
			t.Fatal(err)
		}
		lines := tshark.Lines(t, file, "-T", "fields", "-e", "tcp.len", "-e", "ipv6.src")
		if len(lines) != len(all) {
			t.Fatalf("%d lines for %d frames", len(lines), len(all))
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, "3\t") || !strings.Contains(line, "2001:db8::1") {
				t.Errorf("%s: tshark shows %q", names[link][i], line)
			}
		}
	}
}

// A packet under way has the address of the next hop in its IPv6 header. TCP sees that of
// its destination, as the packets of the other direction have it.
func TestRoutingHeadersNameTheDestination(t *testing.T) {
	final := netip.MustParseAddr("2001:db8::2").AsSlice()
	hop := netip.MustParseAddr("2001:db8::99").AsSlice()
	for name, header := range map[string][]byte{
		"type 0":                    slices.Concat([]byte{6, 4, 0, 1, 0, 0, 0, 0}, hop, final),
		"mobile IPv6":               slices.Concat([]byte{6, 2, 2, 1, 0, 0, 0, 0}, final),
		"segment routing":           slices.Concat([]byte{6, 4, 4, 1, 1, 0, 0, 0}, final, hop),
		"segment routing, arrived":  slices.Concat([]byte{6, 4, 4, 0, 1, 0, 0, 0}, final, hop),
		"unknown type, no segments": {6, 0, 200, 0, 0, 0, 0, 0},
	} {
		w := newWire(t)
		w.version6()
		for i, part := range []string{"", "abc"} {
			p := w.packet(Opener, 0, -1, flagSYN*byte(1-i), []byte(part))
			p.Data = slices.Concat(p.Data[:ethLen], extended(p.Data[ethLen:], 43, header...))
			if header[3] > 0 {
				copy(p.Data[ethLen+24:], hop)
			}
			p.Length = len(p.Data)
			if s, v := w.asm.dec.decode(p); v != isTCP || s.sum != sumGood {
				t.Errorf("%s: verdict %d, checksum %d", name, v, s.sum)
			}
			w.asm.Add(p)
		}
		w.add(Acceptor, 0, 3, 0, "xyz")
		w.want("aA", "abc", "xyz")
	}
}

// What may hold TCP and can't be decoded is counted by its reason; what holds none is not.
func TestPacketsThatCannotBeDecodedAreCounted(t *testing.T) {
	w := newWire(t)
	p := w.packet(Opener, 0, 0, 0, []byte("abc"))
	ip := p.Data[ethLen:]
	for want, frame := range map[string][]byte{
		"":                                slices.Concat(ether(0x0806), make([]byte, 28)),
		"EtherType 0x88e5":                slices.Concat(ether(0x88E5), ip),
		"IP protocol 50 (IPSecESP)":       slices.Concat(ether(0x0800), outer4(50, ip)),
		"IP protocol 250":                 slices.Concat(ether(0x0800), outer4(250, ip)),
		"PPP protocol 0x00fd":             slices.Concat(ether(0x8864), []byte{0x11, 0}, be16(1, 6, 0x00FD), ip),
		"MPLS with something":             slices.Concat(ether(0x8847), []byte{0, 1, 1, 64}, make([]byte, 40)),
		"GRE version 2":                   slices.Concat(ether(0x0800), outer4(47, slices.Concat(be16(2, 0x0800), ip))),
		"damaged IPv4 header":             slices.Concat(ether(0x0800), []byte{0x41}, ip[1:]),
		"damaged IPv6 header":             slices.Concat(ether(0x86DD), ip),
		"damaged IPv6 options":            slices.Concat(ether(0x86DD), append([]byte{0x60, 0, 0, 0, 0, 8, 60}, append(make([]byte, 33), 6, 9, 0, 0, 0, 0, 0, 0)...)),
		"damaged TCP header":              slices.Concat(ether(0x0800), outer4(6, make([]byte, 40))),
		"damaged Ethernet":                make([]byte, 10),
		"damaged PPPoE":                   slices.Concat(ether(0x8864), []byte{0x22, 0, 0, 1, 0, 6}, ip),
		"more than 32 headers":            slices.Concat(ether(0x8100), slices.Concat(slices.Repeat([][]byte{be16(1, 0x8100)}, 40)...)),
		"cut short within the TCP header": p.Data[:40],
	} {
		w := newWire(t)
		q := *p
		q.Data, q.Length = frame, len(frame)
		if strings.HasPrefix(want, "cut") {
			q.Length = len(p.Data)
		}
		w.asm.Add(&q)
		st := w.asm.Stats()
		if want == "" {
			if len(st.Unread) != 0 {
				t.Errorf("ARP is reported: %+v", st)
			}
			continue
		}
		if len(st.Unread) != 1 || st.Unread[0].Packets != 1 || !strings.HasPrefix(st.Unread[0].String(), want) {
			t.Errorf("%s: %v", want, st.Unread)
		}
	}
}

// What uses the port of an encapsulation and is something else is no loss.
func TestOtherUDPOnThePortsOfEncapsulations(t *testing.T) {
	w := newWire(t)
	for _, port := range []uint16{53, 2152, 4789, 6081, 8472} {
		for _, b := range [][]byte{nil, {1}, []byte(strings.Repeat("a query or an answer", 4)), make([]byte, 60)} {
			data := slices.Concat(ether(0x0800), outer4(17, datagram(port, b)))
			w.asm.Add(&Packet{Number: 1, Link: layers.LinkTypeEthernet, Length: len(data), Data: data})
		}
	}
	if st := w.asm.Stats(); len(st.Unread) != 0 || st.TCP != 0 {
		t.Errorf("%+v", st)
	}
}

// What UDP carries on the port of RoCEv2 is handed on, if all of it is there and somebody wants it.
func TestRoCEIsHandedOn(t *testing.T) {
	whole := outer4(17, datagram(4791, []byte("a packet of RDMA")))
	for name, tc := range map[string]struct {
		ip   []byte
		want string
	}{
		"whole":        {whole, "10.0.0.1 10.0.0.2 a packet of RDMA"},
		"cut short":    {whole[:len(whole)-1], ""},
		"another port": {outer4(17, datagram(4790, []byte("a packet"))), ""},
	} {
		got := ""
		a := NewAssembler(func(*Conn) Consumer { return nil })
		p := Packet{Number: 1, Link: layers.LinkTypeEthernet, Data: append(ether(0x0800), tc.ip...)}
		p.Length = len(p.Data)
		a.Add(&p) // which nobody wants
		a.RoCE = func(_ At, src, dst netip.Addr, b []byte) { got += src.String() + " " + dst.String() + " " + string(b) }
		a.Add(&p)
		if s := a.Stats(); got != tc.want || s.TCP != 0 || len(s.Unread) != 0 {
			t.Errorf("%s: %q, %+v", name, got, s)
		}
	}
}

func TestReasonsAreBounded(t *testing.T) {
	w := newWire(t)
	for n := range 1000 {
		data := slices.Concat(ether(uint16(0xA000+n)), make([]byte, 50))
		w.asm.Add(&Packet{Number: 1 + n, Link: layers.LinkTypeEthernet, Length: len(data), Data: data})
	}
	st := w.asm.Stats()
	total := 0
	for _, u := range st.Unread {
		total += u.Packets
	}
	if len(st.Unread) != maxUnread+1 || total != 1000 || st.Unread[0].String() != "other reasons" {
		t.Errorf("%d reasons, %d packets, %v first", len(st.Unread), total, st.Unread[0])
	}
}

// A short snap length leaves no payload: what is missing is counted.
func TestSnapLengthIsSeen(t *testing.T) {
	w := newWire(t)
	w.snap = ethLen + ip4Len + tcpLen
	w.handshake()
	w.add(Opener, 0, 0, 0, "abcdefg")
	w.add(Acceptor, 0, 7, 0, "xyz")
	if st := w.asm.Stats(); st.Short != 2 || st.ShortBytes != 10 {
		t.Errorf("%+v", st)
	}
	w.want("hH", "???????", "???")
}

func TestChecksumsAreJudged(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		w := newWire(t)
		if v6 {
			w.version6()
		}
		p := w.packet(Opener, 0, 0, 0, []byte("abcde"))
		tcp := p.Data[ethLen+w.ends[0].ipLen:]
		judge := func(what string, want checksum) {
			t.Helper()
			if s, v := w.asm.dec.decode(p); v != isTCP || s.sum != want {
				t.Errorf("v6=%t, %s: checksum %d, want %d", v6, what, s.sum, want)
			}
		}
		judge("as it is", sumGood)
		good := binary.BigEndian.Uint16(tcp[16:])
		tcp[len(tcp)-1] ^= 1
		judge("damaged", sumBad)
		partial := ^foldSum(w.ends[0].sum + uint64(len(tcp)))
		binary.BigEndian.PutUint16(tcp[16:], partial)
		judge("left to the card", sumUnknown)
		binary.BigEndian.PutUint16(tcp[16:], ^foldSum(w.ends[0].sum))
		judge("left to the card, by segmentation offload", sumUnknown)
		binary.BigEndian.PutUint16(tcp[16:], 0)
		judge("zero", sumUnknown)
		tcp[len(tcp)-1] ^= 1
		binary.BigEndian.PutUint16(tcp[16:], good)
		p.Data = p.Data[:len(p.Data)-1]
		judge("cut short", sumUnknown)
	}
}

// FuzzDecoder: whatever a packet holds, decoding it ends, and finds no more bytes than
// there are.
func FuzzDecoder(f *testing.F) {
	w := newWire(f)
	w.version6()
	for _, enc := range encapsulations {
		p := encapsulate(w.packet(Opener, 0, -1, flagSYN, []byte("abc")), enc)
		f.Add(uint16(p.Link), uint16(0), p.Data)
	}
	f.Fuzz(func(t *testing.T, link, cut uint16, data []byte) {
		d := newDecoder()
		p := Packet{Number: 1, Link: layers.LinkType(link), Length: len(data) + int(cut), Data: data}
		s, v := d.decode(&p)
		switch v {
		case isTCP:
			if len(s.data) > len(data) || !s.src.IsValid() && s.src.Addr().IsValid() {
				t.Fatalf("%+v of %d bytes", s, len(data))
			}
		case isUDP, isRoCE:
			if len(s.data) > len(data) {
				t.Fatalf("%+v of %d bytes", s, len(data))
			}
		case isUnread:
			if d.unread.String() == "" {
				t.Fatal("no reason")
			}
		case isFragment, isOther, isUnknown:
		}
		if again, w := d.decode(&p); w != v || again.seq != s.seq || len(again.data) != len(s.data) {
			t.Fatalf("decoded twice: %v %+v, then %v %+v", v, s, w, again)
		}
	})
}
