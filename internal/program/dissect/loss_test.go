package dissect

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"

	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
)

// lossy returns a capture without the packets that drop names by their number.
func lossy(t testing.TB, file []byte, drop func(n int) bool) []byte {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := pcapgo.NewWriter(&out)
	if err := w.WriteFileHeader(1<<18, 1); err != nil {
		t.Fatal(err)
	}
	for {
		p, err := r.Next()
		if err != nil {
			break
		}
		if drop(p.Number) {
			continue
		}
		ci := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(p.Data), Length: p.Length}
		if err := w.WritePacket(ci, p.Data); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// endLossy analyses what was played, without some packets. Packets 1 to 3 are
// the handshake, 4 and 5 the start-up frames.
func (sc *script) endLossy(drop ...int) outcome {
	sc.t.Helper()
	if err := sc.w.Close(); err != nil {
		sc.t.Fatal(err)
	}
	return analyze(sc.t, lossy(sc.t, sc.file.Bytes(), func(n int) bool { return slices.Contains(drop, n) }))
}

func (o outcome) wantNote(t testing.TB, parts ...string) {
	t.Helper()
	all := strings.Join(o.notes, "\n")
	for _, p := range parts {
		if !strings.Contains(all, p) {
			t.Errorf("no note says %q:\n%s", p, all)
		}
	}
}

// The FPDU in which a hole lies is known by its length; the next one follows.
func TestHoleWithinAnFPDU(t *testing.T) {
	for _, markers := range []bool{false, true} {
		sc := newScript(t).start(false, markers) // packets 4, 5
		sc.send(Client, 10)                      // 6
		s := sc.make(Client, rdmap.OpSend, true, make([]byte, 5000))
		ulpdu, _ := s.AppendBinary(nil)
		b := sc.fpdu(Client, ulpdu)
		sc.raw(Client, b[:1000])     // 7
		sc.raw(Client, b[1000:3000]) // 8
		sc.raw(Client, b[3000:])     // 9
		sc.send(Client, 20)          // 10
		sc.send(Server, 30)          // 11
		sc.close()
		o := sc.endLossy(8)
		o.want(t)
		c := o.only(t)
		if c.Messages[rdmap.OpSend] != 3 || c.Undecoded != uint64(len(b)) || c.Payload != 60 {
			t.Errorf("markers=%t: %d Sends, %d bytes not decoded, %d of payload", markers, c.Messages[rdmap.OpSend], c.Undecoded, c.Payload)
		}
		o.wantNote(t, "not captured: 2000 bytes that the client sent")
	}
}

// Two holes in one FPDU, the second one beyond the first part of it.
func TestTwoHolesWithinAnFPDU(t *testing.T) {
	sc := newScript(t).start(false, false)
	s := sc.make(Client, rdmap.OpSend, true, make([]byte, 6000))
	ulpdu, _ := s.AppendBinary(nil)
	b := sc.fpdu(Client, ulpdu)
	for i := 0; i < len(b); i += 1000 { // packets 6 to 12
		sc.raw(Client, b[i:min(i+1000, len(b))])
	}
	sc.send(Client, 20)
	sc.close()
	o := sc.endLossy(7, 10, 11)
	o.want(t)
	if c := o.only(t); c.Messages[rdmap.OpSend] != 1 || c.Undecoded != uint64(len(b)) {
		t.Errorf("%d Sends, %d bytes not decoded of %d", c.Messages[rdmap.OpSend], c.Undecoded, len(b))
	}
}

// Without CRCs and markers there is no sound way to find the next FPDU.
func TestWholeFPDULostWithoutCRC(t *testing.T) {
	sc := newScript(t).start(false, false)
	sc.send(Client, 10)
	sc.read(Client, 1, 1, 5) // packet 7
	sc.send(Client, 20)
	sc.respond(Server, 1, 1, 5)
	sc.send(Server, 30)
	sc.send(Client, 40)
	sc.close()
	o := sc.endLossy(7)
	o.want(t)
	c := o.only(t)
	if c.Messages[rdmap.OpSend] != 2 || c.Messages[rdmap.OpReadResponse] != 1 {
		t.Errorf("messages %v", c.Messages)
	}
	if want := uint64(52 + 44 + 64); c.Undecoded != want {
		t.Errorf("%d bytes not decoded, want %d", c.Undecoded, want)
	}
	o.wantNote(t, "is not decoded: without CRCs and markers")
}

// A CRC confirms where the next FPDU begins; so do markers.
func TestWholeFPDUsLost(t *testing.T) {
	for _, tc := range []struct{ crc, markers bool }{{true, false}, {false, true}, {true, true}} {
		sc := newScript(t).start(tc.crc, tc.markers)
		for n := range 40 { // packets 6 to 45
			sc.send(Client, 100+37*n)
		}
		sc.send(Server, 5)
		sc.close()
		o := sc.endLossy(7, 8, 9, 30, 44)
		o.want(t)
		c := o.only(t)
		// Behind a hole, markers find the FPDU to which the first one points.
		if got := c.Messages[rdmap.OpSend]; got > 36 || got < 33 {
			t.Errorf("crc=%t markers=%t: %d Sends", tc.crc, tc.markers, got)
		}
		if !tc.markers && c.Messages[rdmap.OpSend] != 36 {
			t.Errorf("crc=%t: %d Sends, want all that are there", tc.crc, c.Messages[rdmap.OpSend])
		}
		o.wantNote(t, "FPDUs of the client are decoded again")
	}
}

// A hole at the front of Full Operation.
func TestFirstFPDULost(t *testing.T) {
	for _, markers := range []bool{false, true} {
		sc := newScript(t).start(true, markers)
		for range 20 {
			sc.send(Client, 300)
		}
		sc.send(Server, 300)
		sc.close()
		o := sc.endLossy(6)
		o.want(t)
		if c := o.only(t); c.Messages[rdmap.OpSend] < 18 {
			t.Errorf("markers=%t: %d Sends", markers, c.Messages[rdmap.OpSend])
		}
	}
}

// A peer may end a Read whose response was lost, and start others.
func TestReadsAreMatchedBehindALoss(t *testing.T) {
	sc := newScript(t).start(true, false)
	sc.read(Client, 1, 10, 5)                                                                          // packet 6
	sc.read(Client, 2, 20, 6)                                                                          // 7
	sc.read(Client, 3, 30, 7)                                                                          // 8
	sc.respond(Server, 1, 10, 5)                                                                       // 9, lost
	sc.respond(Server, 2, 20, 6)                                                                       // 10
	sc.segment(Server, rdmap.OpReadResponse, false, make([]byte, 4), at(3, 30))                        // 11, lost
	sc.segment(Server, rdmap.OpReadResponse, true, make([]byte, 3), at(3, 34))                         // 12
	sc.read(Client, 4, 40, 8)                                                                          // 13, lost
	sc.respond(Server, 4, 40, 8)                                                                       // 14
	sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(1, nil))                                   // 15
	sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(2, nil))                                   // 16
	sc.message(Server, rdmap.OpAtomicResponse, atomicResponse(1))                                      // 17, lost
	sc.message(Server, rdmap.OpAtomicResponse, atomicResponse(2))                                      // 18
	sc.message(Client, rdmap.OpTerminate, append([]byte{0x12, 2, 0xC0, 0, 0, 9}, make([]byte, 18)...)) // header unknown
	sc.close()
	o := sc.endLossy(9, 11, 13, 17)
	o.want(t)
	if c := o.only(t); c.Messages[rdmap.OpReadResponse] != 3 || c.Messages[rdmap.OpReadRequest] != 3 {
		t.Errorf("messages %v", c.Messages)
	}
}

// The rest of a message whose beginning was lost.
func TestMessageWithoutItsBeginning(t *testing.T) {
	sc := newScript(t).start(true, false)
	sc.segment(Client, rdmap.OpSend, false, make([]byte, 10)) // packet 6, lost
	sc.segment(Client, rdmap.OpSend, true, make([]byte, 10), msn(1), mo(10))
	sc.segment(Client, rdmap.OpImmediate, true, make([]byte, 3), msn(2), mo(5)) // no beginning was lost here
	sc.close()
	o := sc.endLossy(6)
	o.want(t, "mo RFC 5041 §5.2 by client", "immediate-length RFC 7306 §6.3 by client")
}

func TestStartupFrameLost(t *testing.T) {
	for drop, seen := range map[int][2]bool{4: {false, true}, 5: {true, false}} {
		for _, crc := range []bool{true, false} {
			sc := newScript(t).start(crc, false)
			for range 5 {
				sc.send(Client, 50)
				sc.send(Server, 60)
			}
			sc.close()
			o := sc.endLossy(drop)
			o.want(t)
			c := o.only(t)
			sends := 0
			if crc {
				sends = 10
			}
			if c.MPA.Seen != seen || c.Messages[rdmap.OpSend] != sends || c.MPA.CRC != crc {
				t.Errorf("without packet %d, crc=%t: %+v, %d Sends", drop, crc, c.MPA, c.Messages[rdmap.OpSend])
			}
			if c.Addr != [2]string{"192.0.2.1:40000", "192.0.2.2:7174"} {
				t.Errorf("without packet %d: %v", drop, c.Addr)
			}
		}
	}
}

// A connection under way when the capture began is known by its CRCs.
func TestConnectionPickedUpInMidStream(t *testing.T) {
	sc := newScript(t).start(true, false)
	for range 10 {
		sc.send(Client, 50)
		sc.read(Server, 1, 1, 50)
		sc.respond(Client, 1, 1, 50)
	}
	sc.message(Server, rdmap.OpWrite, make([]byte, 70))
	sc.close()
	if err := sc.w.Close(); err != nil {
		t.Fatal(err)
	}
	for first := 4; first <= 20; first++ {
		o := analyze(t, lossy(t, sc.file.Bytes(), func(n int) bool { return n < first }))
		o.want(t)
		c := o.only(t)
		if !c.MPA.CRC || c.Segments.Total() < min(31, 36-first) || c.Undecoded != 0 {
			t.Errorf("from packet %d: %+v, %d segments, %d bytes not decoded", first, c.MPA, c.Segments.Total(), c.Undecoded)
		}
		if first > 5 {
			o.wantNote(t, "picked up in mid-stream")
		}
	}
}

func TestConnectionInMidStreamWithoutCRCIsNotRecognised(t *testing.T) {
	sc := newScript(t).start(false, false)
	for range 10 {
		sc.send(Client, 50)
		sc.send(Server, 50)
	}
	sc.close()
	if o := sc.endLossy(1, 2, 3, 4, 5, 6); len(o.Connections) != 0 || o.MidStream != 1 {
		t.Errorf("%d connections, %d in mid-stream", len(o.Connections), o.MidStream)
	}
}

// The beginning of the capture lies within an FPDU.
func TestMidStreamBeginsWithinAnFPDU(t *testing.T) {
	sc := newScript(t).start(true, false)
	s := sc.make(Client, rdmap.OpSend, true, bytes.Repeat([]byte{0x41, 0x43, 0, 0}, 700))
	ulpdu, _ := s.AppendBinary(nil)
	b := sc.fpdu(Client, ulpdu)
	sc.raw(Client, b[:999]) // packet 6
	sc.raw(Client, b[999:])
	for range 5 {
		sc.send(Client, 333)
	}
	sc.close()
	o := sc.endLossy(1, 2, 3, 4, 5, 6)
	o.want(t)
	if c := o.only(t); c.Messages[rdmap.OpSend] != 5 {
		t.Errorf("%d Sends", c.Messages[rdmap.OpSend])
	}
}

func TestBadCRC(t *testing.T) {
	for _, markers := range []bool{false, true} {
		sc := newScript(t).start(true, markers)
		sc.send(Client, 10)
		s := sc.make(Client, rdmap.OpSend, true, make([]byte, 500))
		ulpdu, _ := s.AppendBinary(nil)
		b := sc.fpdu(Client, ulpdu)
		b[100] ^= 1
		sc.raw(Client, b)
		sc.send(Client, 20)
		sc.close()
		o := sc.end()
		o.want(t, "crc RFC 5044 §8 by client")
		c := o.only(t)
		if c.BadCRC != 1 || c.Segments[rdmap.OpSend] != 3 || c.Messages[rdmap.OpSend] != 2 || c.Payload != 30 {
			t.Errorf("markers=%t: %d bad, %d segments, %d messages, %d bytes", markers, c.BadCRC, c.Segments[rdmap.OpSend], c.Messages[rdmap.OpSend], c.Payload)
		}
	}
}

// If the length is what is wrong, the next FPDU must be searched.
func TestBadCRCOfALength(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, length := range []byte{20, 250} {
			sc := newScript(t).start(true, markers)
			sc.send(Client, 10)
			s := sc.make(Client, rdmap.OpSend, true, make([]byte, 100))
			ulpdu, _ := s.AppendBinary(nil)
			b := sc.fpdu(Client, ulpdu)
			b[1] = length
			sc.raw(Client, b)
			for range 30 {
				sc.send(Client, 200)
			}
			sc.close()
			o := sc.end()
			c := o.only(t)
			if c.BadCRC != 1 || c.Messages[rdmap.OpSend] < 28 {
				t.Errorf("markers=%t length=%d: %d bad, %d messages", markers, length, c.BadCRC, c.Messages[rdmap.OpSend])
			}
			o.want(t, "crc RFC 5044 §8 by client")
		}
	}
}

// A peer that computes no CRCs although they are on.
func TestEveryCRCIsBad(t *testing.T) {
	sc := newScript(t).start(true, false)
	sc.framers[Client].CRC = false
	for range 10 {
		sc.send(Client, 200)
	}
	sc.send(Server, 1)
	sc.close()
	o := sc.end()
	if c := o.only(t); c.BadCRC != 10 || c.Segments[rdmap.OpSend] != 11 {
		t.Errorf("%d bad CRCs, %d segments", c.BadCRC, c.Segments[rdmap.OpSend])
	}
	o.want(t, slices.Repeat([]string{"crc RFC 5044 §8 by client"}, 10)...)
}

func TestMarkerThatPointsElsewhere(t *testing.T) {
	for _, crc := range []bool{false, true} {
		sc := newScript(t).start(crc, true)
		sc.send(Client, 10)
		s := sc.make(Client, rdmap.OpSend, true, make([]byte, 1000))
		ulpdu, _ := s.AppendBinary(nil)
		b := sc.fpdu(Client, ulpdu)
		at := mpa.MarkerInterval - 40 // the first FPDU took 40 bytes with its marker
		b[at+3] ^= 8
		if crc {
			end := len(b) - mpa.CRCLen
			sum := mpa.UpdateCRC(0, b[:end])
			b = append(b[:end], byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
		}
		sc.raw(Client, b)
		rest := sc.framers[Client].FPDULen(18 + 20)
		sc.send(Client, 20)
		sc.close()
		o := sc.end()
		o.want(t, "marker RFC 5044 §8 by client")
		o.wantNote(t, "disagree on where FPDUs begin")
		if c := o.only(t); c.Messages[rdmap.OpSend] != 1 || c.Undecoded != uint64(len(b)+rest) {
			t.Errorf("crc=%t: %d Sends, %d bytes not decoded", crc, c.Messages[rdmap.OpSend], c.Undecoded)
		}
	}
}

// A faithful connection: both sides keep the rules.
type faithful struct {
	sc   *script
	r    *rand.Rand
	open [2][]func() // answers that each side owes, by asker
	to   uint64
}

func (f *faithful) step() {
	sc, r := f.sc, f.r
	from := Side(r.IntN(2))
	size := r.IntN(3000)
	switch r.IntN(7) {
	case 0, 1:
		f.message(from, rdmap.OpSend, size, 0)
	case 2:
		f.message(from, rdmap.OpWrite, size, f.offset())
	case 3:
		sc.message(from, rdmap.OpImmediate, make([]byte, 8))
	case 4:
		if len(f.open[from]) < 4 {
			to := f.offset()
			sc.read(from, 1, to, uint32(size))
			f.open[from] = append(f.open[from], func() { f.message(1-from, rdmap.OpReadResponse, size, to) })
		}
	case 5:
		if len(f.open[from]) < 4 {
			id := uint32(f.offset())
			sc.message(from, rdmap.OpAtomicRequest, atomicRequest(id, nil))
			f.open[from] = append(f.open[from], func() { sc.message(1-from, rdmap.OpAtomicResponse, atomicResponse(id)) })
		}
	case 6:
		if q := f.open[from]; len(q) > 0 {
			q[0]()
			f.open[from] = q[1:]
		}
	}
}

func (f *faithful) offset() uint64 {
	f.to += 10_000
	return f.to
}

// message plays a message in one or several segments.
func (f *faithful) message(from Side, op rdmap.Opcode, size int, to uint64) {
	for off := 0; ; {
		n := min(size-off, 1+f.r.IntN(1400))
		s := f.sc.make(from, op, off+n == size, make([]byte, n), at(1, to+uint64(off)), mo(uint32(off)))
		if off > 0 && !op.Tagged() { // make counts messages, not segments
			f.sc.msn[from][op.Queue()]--
			s.Untagged.MSN--
		}
		b, _ := s.AppendBinary(nil)
		fpdu := f.sc.fpdu(from, b)
		for len(fpdu) > 0 { // segments of TCP fall anywhere
			k := min(len(fpdu), 1+f.r.IntN(1448))
			f.sc.raw(from, fpdu[:k])
			fpdu = fpdu[k:]
		}
		if off += n; off >= size {
			return
		}
	}
}

// Whatever a capture lacks, two sides that keep the rules are never blamed.
func TestLossIsNoViolation(t *testing.T) {
	for seed := range uint64(40) {
		crc, markers := seed&1 != 0, seed&2 != 0
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 77))
			sc := newScript(t).start(crc, markers)
			f := &faithful{sc: sc, r: r}
			f.message(Client, rdmap.OpSend, 10, 0)
			for range 150 {
				f.step()
			}
			sc.close()
			if err := sc.w.Close(); err != nil {
				t.Fatal(err)
			}
			whole := analyze(t, sc.file.Bytes())
			whole.want(t)
			if c := whole.only(t); c.Undecoded != 0 || len(whole.notes) != len(unfinishedNotes(whole.notes)) {
				t.Errorf("nothing is lost, but %d bytes are not decoded: %q", c.Undecoded, whole.notes)
			}
			for _, loss := range []float64{0.005, 0.05, 0.3} {
				first := r.IntN(10)
				o := analyze(t, lossy(t, sc.file.Bytes(), func(n int) bool { return n < first || n > 5 && r.Float64() < loss }))
				o.want(t)
				for _, c := range o.Connections {
					if c.Segments.Total() > whole.only(t).Segments.Total() {
						t.Errorf("%d segments, more than were sent", c.Segments.Total())
					}
				}
			}
		})
	}
}

func unfinishedNotes(notes []string) []string {
	return slices.DeleteFunc(slices.Clone(notes), func(n string) bool { return !strings.Contains(n, "not there to its end") })
}

// A tap may see packets twice and out of order. Everything is there, so
// everything is decoded, and no response comes before its request.
func TestReorderedCaptureIsDecodedWhole(t *testing.T) {
	for seed := range uint64(32) {
		r := rand.New(rand.NewPCG(seed, 78))
		sc := newScript(t).start(seed&1 != 0, seed&2 != 0)
		f := &faithful{sc: sc, r: r}
		f.message(Client, rdmap.OpSend, 10, 0)
		for range 150 {
			f.step()
		}
		sc.close()
		if err := sc.w.Close(); err != nil {
			t.Fatal(err)
		}
		whole := analyze(t, sc.file.Bytes()).only(t)
		o := analyze(t, shuffled(t, sc.file.Bytes(), r))
		o.want(t)
		c := o.only(t)
		if c.Segments != whole.Segments || c.Messages != whole.Messages || c.Payload != whole.Payload || c.Undecoded != 0 {
			t.Errorf("seed %d: %+v, want %+v; %q", seed, c, whole, o.notes)
		}
	}
}

// shuffled returns a capture with packets behind the handshake repeated, and
// moved by a few places.
func shuffled(t testing.TB, file []byte, r *rand.Rand) []byte {
	t.Helper()
	in, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	type place struct {
		key float64
		p   capture.Packet
	}
	var all []place
	for {
		p, err := in.Next()
		if err != nil {
			break
		}
		p.Data = bytes.Clone(p.Data)
		key := float64(p.Number)
		if p.Number > 3 {
			key += r.Float64() * 6
			if r.IntN(10) == 0 {
				all = append(all, place{key + r.Float64()*20, p})
			}
		}
		all = append(all, place{key, p})
	}
	slices.SortStableFunc(all, func(a, b place) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return 0
	})
	var out bytes.Buffer
	w := pcapgo.NewWriter(&out)
	if err := w.WriteFileHeader(1<<18, 1); err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		ci := gopacket.CaptureInfo{Timestamp: a.p.Time, CaptureLength: len(a.p.Data), Length: a.p.Length}
		if err := w.WritePacket(ci, a.p.Data); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}
