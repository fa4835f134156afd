package capture

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// What urnic needs of gopacket, and what github.com/google/gopacket v1.1.19 does not have.
// CONTRIBUTING.md gives these as the reasons for its successor.

// "tcpdump -i any" writes Linux cooked captures of version 2. Their link type takes more
// than 8 bits, and their layer must be there.
func TestCapturesOfAllInterfacesAreRead(t *testing.T) {
	const linkSLL2 = 276
	w := newWire(t)
	var all [][]byte
	for _, p := range []*Packet{
		w.packet(Opener, 0, -1, flagSYN, nil), w.packet(Acceptor, 0, 0, flagSYN, nil), w.packet(Opener, 0, 0, 0, []byte("abc")),
	} {
		head := slices.Concat(be16(0x0800, 0, 0, 3, 1), []byte{0, 6}, make([]byte, 8))
		all = append(all, slices.Concat(head, p.Data[ethLen:]))
	}
	file := classicFile(binary.LittleEndian, magicMicros, layers.LinkTypeLinuxSLL2, all...)
	if link := binary.LittleEndian.Uint32(file[20:]); link != linkSLL2 {
		t.Fatalf("the link type is %d in the file", link)
	}
	log := assemble(t, file)
	if len(log) != 1 || string(log[0].bytes(Opener)) != "abc" {
		t.Errorf("%d connections", len(log))
	}
}

// A packet may end anywhere, within each of its headers and their optional fields. None
// of the decoders may panic.
func TestHeadersThatAreCutShortAreNoPanic(t *testing.T) {
	w := newWire(t)
	decode := func(name string, p *Packet) {
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%s cut at %d: %v", name, len(p.Data), r)
			}
		}()
		_, v := w.asm.dec.decode(p)
		if v == isTCP && len(p.Data) < tcpLen {
			t.Errorf("%s cut at %d is TCP", name, len(p.Data))
		}
	}
	for name, enc := range encapsulations {
		w.version6()
		p := encapsulate(w.packet(Opener, 0, -1, 0, []byte("abc")), enc)
		for n := range len(p.Data) {
			cut := *p
			cut.Data = bytes.Clone(p.Data[:n])
			decode(name, &cut)
		}
	}
	for flags := range 256 { // those of GRE say which fields there are
		gre := slices.Concat([]byte{byte(flags), 0}, be16(0x0800), make([]byte, 20))
		for n := range len(gre) {
			data := slices.Concat(ether(0x0800), outer4(47, gre[:n]))
			decode("GRE", &Packet{Number: 1, Link: layers.LinkTypeEthernet, Length: len(data), Data: data})
		}
	}
}

// gopacket's decoder of GTP-U counts its extension headers in 16 bits, and panics where
// they end beyond that.
func TestPanicOfALayerIsADamagedHeader(t *testing.T) {
	b := append([]byte{0x34, 255}, be16(60_000, 0, 5, 0)...)
	b = append(b, 0, 1)
	for len(b) < 65_400 {
		header := make([]byte, 255*4)
		header[0], header[len(header)-1] = 255, 1
		b = append(b, header...)
	}
	b = b[:65_480]
	data := slices.Concat(ether(0x0800), outer4(17, datagram(2152, b)))
	p := &Packet{Number: 1, Link: layers.LinkTypeEthernet, Length: len(data), Data: data}
	if _, v := newDecoder().decode(p); v != isOther { // it is not GTP then, but some other UDP
		t.Errorf("verdict %d", v)
	}
}
