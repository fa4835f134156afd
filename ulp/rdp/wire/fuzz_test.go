package wire

import (
	"bytes"
	"net/netip"
	"testing"
)

// What decodes encodes to the same header again, and to the same bytes unless it has something
// that is ignored. What does not decode has a rule that it breaks.
func FuzzParse(f *testing.F) {
	versions(func(_ vector, _ Header, encoded string) { f.Add(unhex(f, encoded), false, false) })
	f.Add((&Header{Version: 2, Flags: ACK | EACK, Source: 1, Dest: 2, EACKs: make([]uint32, MaxEACKs)}).AppendTo(nil, nil, nil), false, false)
	f.Add(unhex(f, "420a006400320000000003e90000138800000102"), true, true)
	f.Fuzz(func(t *testing.T, b []byte, mend, pseudo bool) {
		var p *Pseudo
		if pseudo {
			p = &Pseudo{netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd00::2")}
		}
		if mend { // otherwise, few get further than the checksum
			b = seal(bytes.Clone(b))
			p = nil
		}
		whole := bytes.Clone(b)
		var h Header
		data, err := h.Parse(b, p)
		if !bytes.Equal(b, whole) {
			t.Fatal("Parse changes what it parses")
		}
		if err != nil {
			if rule := fault(err).Rule(); rule < "H1" || rule > "H6" || data != nil || err.Error() == "" {
				t.Fatalf("%v breaks rule %q", err, rule)
			}
			return
		}
		again := h.AppendTo(nil, data, p)
		var back Header
		rest, err := back.Parse(again, p)
		if err != nil || !equal(&back, &h) || !bytes.Equal(rest, data) {
			t.Fatalf("%v, %d bytes: encoded and decoded again: %v, %d bytes, %v", &h, len(data), &back, len(rest), err)
		}
		if err := h.Check(len(data)); err != nil {
			t.Errorf("%v is accepted, and Check says: %v", &h, err)
		}
		if exact(b, &h) && !bytes.Equal(again, b) {
			t.Errorf("%x\nencodes as\n%x", b, again)
		}
		_ = h.String()
	})
}

// exact reports whether a segment that decodes as h has nothing that is ignored.
func exact(b []byte, h *Header) bool {
	return 2*int(b[1]) == h.Len() && (h.Flags&SYN == 0 || b[22]&0x7f == 0 && b[23] == 0) &&
		(h.Version == 1 || b[16] != 0xff || b[17] != 0xff)
}

// What Check allows encodes, and decodes as the same; what it does not is refused in the same way.
func FuzzAppendTo(f *testing.F) {
	f.Add(uint8(1), uint8(0xC0), uint16(7), uint16(70), uint32(1), uint32(2), uint32(3), uint16(0), 0)
	f.Add(uint8(2), uint8(0x60), uint16(1200), uint16(40000), uint32(1), uint32(2), uint32(3), uint16(123), 9)
	f.Fuzz(func(t *testing.T, version, flags uint8, source, dest uint16, seq, ack, limits uint32, eacks uint16, n int) {
		h := Header{Version: version, Flags: Flags(flags), Source: source, Dest: dest, Seq: seq, Ack: ack}
		if h.Flags&SYN != 0 {
			h.MaxOutstanding, h.MaxSegment, h.Sequenced = uint16(limits>>16), uint16(limits), limits&1 != 0
		} else if h.Flags&EACK != 0 {
			h.EACKs = make([]uint32, eacks%200)
			for i := range h.EACKs {
				h.EACKs[i] = limits + uint32(i)
			}
		}
		data := make([]byte, max(0, n)%(MaxData+3))
		allowed := h.Check(len(data))
		b := h.AppendTo(nil, data, nil)
		if h.fits(len(data)) != nil {
			if len(b) != 0 || allowed == nil {
				t.Fatalf("%v has no place, and encodes as %d bytes: %v", &h, len(b), allowed)
			}
			return
		}
		h.Flags &^= versionMask
		var back Header
		rest, err := back.Parse(b, nil)
		if fault(err) != fault(allowed) {
			t.Fatalf("%v: Check says %v, and Parse %v", &h, allowed, err)
		}
		if err == nil && (!equal(&back, &h) || !bytes.Equal(rest, data)) {
			t.Fatalf("%v, %d bytes: decoded as %v, %d bytes", &h, len(data), &back, len(rest))
		}
	})
}
