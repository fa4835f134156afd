package mpa

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"
)

// wellFormed reads a start-up frame as RFC 5044 §7.1.1 and RFC 6581 §6 draw it.
func wellFormed(b, key []byte) (flags, rev byte, pd, rest []byte, ok bool) {
	if len(b) < 20 || !bytes.Equal(b[:16], key) {
		return 0, 0, nil, nil, false
	}
	n := int(b[18])*256 + int(b[19])
	if n > 512 || len(b) < 20+n {
		return 0, 0, nil, nil, false
	}
	flags, rev = b[16], b[17]
	if rev != 1 && rev != 2 || rev == 2 && flags&0x10 != 0 && n < 4 {
		return 0, 0, nil, nil, false
	}
	return flags, rev, b[20 : 20+n], b[20+n:], true
}

func FuzzStartup(f *testing.F) {
	for _, tt := range siwReplies {
		f.Add(tt.req, uint64(0), false)
		f.Add(tt.rep, uint64(1), false)
	}
	f.Add(join(frame(repKey, 0x40, 1), fpdus(&Framer{CRC: true}, []byte("early"))), uint64(0), false)
	f.Add(join(frame(reqKey, 0x40, 1), []byte("early")), uint64(0), true)
	f.Add(frame(repKey, 0x50, 2, 0x80, 4, 0x80, 4), uint64(5), true)
	f.Add(join(reqKey, []byte{0, 1, 2, 1}), uint64(0), false)
	f.Add([]byte("GET / HTTP/1.1\r\n"), uint64(3), false)
	f.Fuzz(func(t *testing.T, octets []byte, seed uint64, p2p bool) {
		fuzzResponder(t, octets, seed)
		for _, cfg := range []Config{{PeerToPeer: p2p, IRD: 4, ORD: 4, MaxIRD: 8}, {Revision: 1}, {Revision: 2, ULPDepths: true}} {
			fuzzInitiator(t, octets, seed, cfg)
		}
	})
}

func fuzzResponder(t *testing.T, octets []byte, seed uint64) {
	s := newScript(octets, seed)
	flags, rev, pd, rest, ok := wellFormed(octets, reqKey)
	req, err := ReceiveRequest(context.Background(), s, Config{})
	if err != nil {
		if ok && len(rest) == 0 {
			t.Fatalf("a good Request was refused: %v", err)
		}
		if s.ended == 0 || s.wrote.Len() != 0 {
			t.Fatalf("%v, and the stream is open or has got %x", err, s.wrote.Bytes())
		}
		return
	}
	if !ok {
		t.Fatalf("%x was taken for a Request", octets)
	}
	enhanced := rev == 2 && flags&0x10 != 0
	if enhanced {
		pd = pd[4:]
	}
	if !bytes.Equal(req.PrivateData(), pd) {
		t.Fatalf("private data %x; want %x", req.PrivateData(), pd)
	}
	c, err := req.Accept(context.Background(), Config{IRD: 4, ORD: 4, PrivateData: []byte("pd")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rflags, rrev, rpd, rrest, ok := wellFormed(s.wrote.Bytes(), repKey)
	if !ok || rrev != rev || (rflags&0x10 != 0) != enhanced || rflags&0x20 != 0 || len(rrest) != 0 || !bytes.HasSuffix(rpd, []byte("pd")) {
		t.Fatalf("%x was answered with %x", octets, s.wrote.Bytes())
	}
	if p := c.Params(); !p.CRC || p.SendMarkers != (flags&0x80 != 0) || p.ORD > 4 || p.Enhanced != enhanced ||
		enhanced && p.PeerIRD != DepthNotNegotiated && p.ORD > p.PeerIRD {
		t.Fatalf("%x gave %+v", octets, p)
	}
}

func fuzzInitiator(t *testing.T, octets []byte, seed uint64, cfg Config) {
	s := newScript(octets, seed)
	flags, rev, pd, rest, ok := wellFormed(octets, repKey)
	want, err := cfg.request()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Initiate(context.Background(), s, cfg)
	if sent, _ := want.AppendBinary(nil); !bytes.Equal(s.wrote.Bytes(), sent) {
		t.Fatalf("sent %x", s.wrote.Bytes())
	}
	enhanced := ok && rev == 2 && flags&0x10 != 0
	var rejected *RejectedError
	switch {
	case errors.As(err, &rejected):
		if octets[16]&0x20 == 0 || s.ended != 0 { // a rejection without R, or the stream is closed
			t.Fatalf("%x: %v", octets, err)
		}
		behind := octets[20+int(octets[18])*256+int(octets[19]):] // also if the enhanced data are wrong
		if left, _ := io.ReadAll(s); !bytes.Equal(left, behind) {
			t.Fatalf("%x leaves %x to the ULP; want %x", octets, left, behind)
		}
		return
	case c == nil:
		if err == nil || s.ended == 0 {
			t.Fatalf("%x: %v, stream closed %d times", octets, err, s.ended)
		}
		if ok && rev == want.Revision && enhanced == want.Enhanced && (!enhanced || pd[0]&0x80 != 0 == cfg.PeerToPeer) {
			t.Fatalf("a good Reply %x was refused: %v", octets, err)
		}
		return
	}
	defer c.Close()
	if !ok || rev != want.Revision || enhanced != want.Enhanced || flags&0x20 != 0 {
		t.Fatalf("%x was taken for a Reply that accepts: %+v, %v", octets, c.Params(), err)
	}
	if enhanced {
		pd = pd[4:]
	}
	p := c.Params()
	if !bytes.Equal(p.PrivateData, pd) || p.SendMarkers != (flags&0x80 != 0) || p.ORD > 4 || p.IRD > 8 {
		t.Fatalf("%x gave %+v", octets, p)
	}
	if err != nil {
		wantOneOf(t, err, CodeInsufficientIRD, CodeNoMatchingRTR)
		return
	}
	if enhanced && p.PeerIRD != DepthNotNegotiated && p.ORD > p.PeerIRD || enhanced && p.PeerORD != DepthNotNegotiated && p.IRD < p.PeerORD {
		t.Fatalf("%x gave %+v", octets, p)
	}
	sameAsReference(t, c, rest, true, false)
}

func wantOneOf(t *testing.T, err error, codes ...Code) {
	t.Helper()
	if e, ok := errors.AsType[*Error](err); ok {
		if slices.Contains(codes, e.Code) {
			return
		}
	}
	t.Fatalf("%v; want one of the codes %v", err, codes)
}

// reference finds the ULPDUs in a stream byte by byte, and why there are no
// more of them: 0 at the end of the stream, where it may be inside an FPDU.
func reference(stream []byte, crc, markers bool) (ulpdus [][]byte, code Code, inside bool) {
	at := 0
	for {
		begin := at
		header := -1 // where ULPDU_Length is
		var octets, covered []byte
		agree := true
		short := false
		marker := func() {
			for markers && at%512 == 0 && !short {
				if at+4 > len(stream) {
					short = true
					return
				}
				m := stream[at : at+4]
				distance := 0
				if header >= 0 {
					distance = at - header
				}
				if int(binary.BigEndian.Uint16(m[2:]))/4*4 != distance%65536 {
					agree = false
				}
				covered = append(covered, m...)
				at += 4
			}
		}
		take := func(n int) []byte {
			from := len(octets)
			for range n {
				if marker(); short || at >= len(stream) {
					short = true
					return nil
				}
				if header < 0 {
					header = at
				}
				octets = append(octets, stream[at])
				covered = append(covered, stream[at])
				at++
			}
			return octets[from:]
		}
		length := take(2)
		if short {
			return ulpdus, 0, begin < len(stream)
		}
		n := int(binary.BigEndian.Uint16(length))
		ulpdu := take(n)
		for !short && len(octets)%4 != 0 {
			take(1)
		}
		marker()
		if short || at+4 > len(stream) {
			return ulpdus, 0, true
		}
		sum := crc32.Checksum(covered, crc32.MakeTable(crc32.Castagnoli))
		if crc && sum != binary.LittleEndian.Uint32(stream[at:]) {
			return ulpdus, CodeCRC, false
		}
		at += 4
		if !agree {
			return ulpdus, CodeMarker, false
		}
		ulpdus = append(ulpdus, ulpdu)
	}
}

// sameAsReference receives all that c gets, and compares.
func sameAsReference(t *testing.T, c *Conn, stream []byte, crc, markers bool) {
	t.Helper()
	want, code, inside := reference(bytes.Clone(stream), crc, markers)
	n := 0
	var err error
	for err == nil {
		before := n
		err = c.Receive(each(func(u []byte, order uint64) {
			if n >= len(want) || !bytes.Equal(u, want[n]) || order != uint64(n) {
				t.Fatalf("ULPDU %d, order %d, is %x; want one of %x", n, order, u, want)
			}
			n++
			clear(u) // it is ours, and nobody else's
		}))
		if err == nil && n == before {
			t.Fatal("Receive returned without a ULPDU")
		}
	}
	if n != len(want) {
		t.Fatalf("%d ULPDUs, then %v; want %d", n, err, len(want))
	}
	switch {
	case code != 0:
		wantOneOf(t, err, code)
	case inside != errors.Is(err, io.ErrUnexpectedEOF) || inside == errors.Is(err, io.EOF):
		t.Fatalf("end inside an FPDU: %v; got %v", inside, err)
	}
	if again := c.Receive(each(func([]byte, uint64) { t.Fatal("a ULPDU after the error") })); !errors.Is(again, err) {
		t.Fatalf("first %v, then %v", err, again)
	}
	if c.in.buf != nil {
		t.Fatal("the receiver still holds a buffer")
	}
}

func FuzzConnReceive(f *testing.F) {
	for _, crc := range []bool{false, true} {
		for _, markers := range []bool{false, true} {
			_, stream := fpduStream(5, crc, markers, 5, 900)
			f.Add(stream, uint64(0), crc, markers)
			f.Add(stream, uint64(1), crc, markers)
			f.Add(stream[:len(stream)-3], uint64(2), crc, markers)
			bad := bytes.Clone(stream)
			bad[len(bad)/2] ^= 1
			f.Add(bad, uint64(3), crc, markers)
		}
	}
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0}, uint64(4), false, false) // empty ULPDUs
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64, crc, markers bool) {
		p := Params{Role: Initiator, Revision: 1, CRC: crc, RecvMarkers: markers}
		c := newConn(newScript(stream, seed), &Config{}, p)
		defer c.Close()
		sameAsReference(t, c, stream, crc, markers)
	})
}

// The reference itself, on streams of which the ULPDUs are known.
func TestReferenceDeframerFindsWhatAFramerMade(t *testing.T) {
	for seed := range uint64(4) {
		crc, markers := seed%2 == 0, seed > 1
		ulpdus, stream := fpduStream(seed, crc, markers, 30, 3000)
		got, code, inside := reference(stream, crc, markers)
		if code != 0 || inside || len(got) != len(ulpdus) {
			t.Fatalf("%d ULPDUs, code %d, inside %v; want %d", len(got), code, inside, len(ulpdus))
		}
		for i := range got {
			if !bytes.Equal(got[i], ulpdus[i]) {
				t.Errorf("ULPDU %d differs", i)
			}
		}
	}
}
