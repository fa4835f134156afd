package rnic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// A peer is the other end of a connection of a device under test, played by
// hand: bytes, frames and segments, right or wrong.
type peer struct {
	testing.TB
	conn     net.Conn
	framer   mpa.Framer
	deframer mpa.Deframer
	theirs   mpa.Frame     // the side's Request or Reply
	in       []byte        // received, and not yet taken
	msn      [5]uint32     // of the last message sent, by queue
	last     []byte        // the segment that was sent last
	pause    time.Duration // how long what it sends is on its way
}

// peerOf connects a peer to a side, as Initiator of an MPA connection.
func (w *world) peerOf(s *rnictest.Side, p rnic.ConnParam, change ...func(*mpa.Frame)) *peer {
	w.Helper()
	l, accepted := w.accept(s, p)
	defer l.Close()
	h := w.dial(l.Addr().String())
	f := plainRequest
	for _, c := range change {
		c(&f)
	}
	h.frame(&f)
	h.readFrame()
	if err := <-accepted; err != nil {
		w.Fatal(err)
	}
	h.full(&f, &h.theirs)
	return h
}

// enhanced makes a frame of revision 2 with an enhanced block.
func enhanced(e mpa.Enhanced) func(*mpa.Frame) {
	return func(f *mpa.Frame) {
		f.Revision, f.Enhanced = mpa.Revision2, true
		block, _ := e.AppendBinary(nil)
		f.PrivateData = append(block, f.PrivateData...)
	}
}

// dial returns a peer with nothing but a byte stream to a listener.
func (w *world) dial(address string) *peer {
	w.Helper()
	c, err := w.Dial(context.Background(), address)
	if err != nil {
		w.Fatal(err)
	}
	return newPeer(w, c)
}

func newPeer(t testing.TB, c net.Conn) *peer {
	t.Cleanup(func() { _ = c.Close() })
	return &peer{TB: t, conn: c}
}

// responder connects a side to a peer that answers its Request with a Reply. It
// returns once the side has the Reply, with the channel that tells how its
// Connect ends.
func (w *world) responder(s *rnictest.Side, p rnic.ConnParam, change ...func(*mpa.Frame)) (*peer, <-chan error) {
	w.Helper()
	h, req, connected := w.asked(s, p)
	f := plainReply(&req)
	for _, c := range change {
		c(&f)
	}
	h.full(&f, &req)
	h.frame(&f)
	synctest.Wait()
	return h, connected
}

// asked connects a side to a peer that has read its Request, and not answered.
// What Connect returns comes from the channel.
func (w *world) asked(s *rnictest.Side, p rnic.ConnParam) (h *peer, req mpa.Frame, result <-chan error) {
	w.Helper()
	l, err := w.Listen(context.Background(), ":0")
	if err != nil {
		w.Fatal(err)
	}
	defer l.Close()
	connected := make(chan error, 1)
	go func() { connected <- s.QP.Connect(context.Background(), l.Addr().String(), p) }()
	c, err := l.Accept()
	if err != nil {
		w.Fatal(err)
	}
	h = newPeer(w, c)
	return h, h.readFrame(), connected
}

// full enters full operation after these frames.
func (h *peer) full(mine, theirs *mpa.Frame) {
	crc := mine.CRC || theirs.CRC
	h.framer = mpa.Framer{CRC: crc, Markers: theirs.Markers}
	h.deframer = mpa.Deframer{CRC: crc, Markers: mine.Markers}
}

// frame sends a Request or Reply Frame.
func (h *peer) frame(f *mpa.Frame) {
	h.Helper()
	b, err := f.AppendBinary(nil)
	if err != nil {
		h.Fatal(err)
	}
	h.write(b)
}

// readFrame reads the side's Request or Reply Frame.
func (h *peer) readFrame() mpa.Frame {
	h.Helper()
	for {
		f, n, err := mpa.ParseFrame(h.in)
		if err == nil {
			f.PrivateData = slices.Clone(f.PrivateData)
			h.theirs, h.in = f, h.in[n:]
			return f
		}
		if !errors.Is(err, mpa.ErrIncomplete) {
			h.Fatal(err)
		}
		if err := h.more(); err != nil {
			h.Fatalf("waiting for a frame: %v", err)
		}
	}
}

// write sends bytes.
func (h *peer) write(b []byte) {
	h.Helper()
	if _, err := h.conn.Write(b); err != nil {
		h.Fatalf("the peer's write: %v", err)
	}
}

// more waits for bytes, far beyond any time limit of the side.
func (h *peer) more() error {
	_ = h.conn.SetReadDeadline(time.Now().Add(24 * time.Hour))
	var buf [4096]byte
	n, err := h.conn.Read(buf[:])
	h.in = append(h.in, buf[:n]...)
	if n > 0 {
		return nil
	}
	return err
}

// A change makes something of a segment other than it should be.
type change func(*ddp.Segment)

// fpdu returns a segment with its MSN, and with some fields changed, as an FPDU.
func (h *peer) fpdu(seg ddp.Segment, changes ...change) []byte {
	h.Helper()
	qn := seg.Untagged.QN
	if !seg.Control.Tagged() {
		seg.Untagged.MSN = h.msn[qn] + 1
	}
	for _, c := range changes {
		c(&seg)
	}
	seg.Tagged.Control, seg.Untagged.Control = seg.Control, seg.Control
	if !seg.Control.Tagged() && seg.Control.Last() {
		h.msn[qn] = seg.Untagged.MSN
	}
	h.last, _ = seg.AppendBinary(nil)
	b, err := h.framer.AppendFPDU(nil, h.last)
	if err != nil {
		h.Fatal(err)
	}
	return b
}

// send sends a segment, with some fields changed, and lets the side react.
func (h *peer) send(seg ddp.Segment, changes ...change) {
	h.Helper()
	h.write(h.fpdu(seg, changes...))
	h.settle()
}

// settle lets the side react.
func (h *peer) settle() {
	if h.pause > 0 {
		time.Sleep(h.pause)
	}
	synctest.Wait()
}

// next returns the side's next segment. The error says how the stream has ended:
// io.EOF or a reset.
func (h *peer) next() (ddp.Segment, error) {
	h.Helper()
	for {
		ulpdu, n, err := h.deframer.Next(h.in)
		if err != nil {
			h.Fatalf("the side sent a bad FPDU: %v", err)
		}
		if n > 0 {
			seg, err := ddp.ParseSegment(slices.Clone(ulpdu))
			h.in = slices.Clone(h.in[n:])
			if err != nil {
				h.Fatalf("the side sent a bad segment: %v", err)
			}
			return seg, nil
		}
		if err := h.more(); err != nil {
			if len(h.in) > 0 && errors.Is(err, io.EOF) {
				h.Fatalf("the side ended inside an FPDU: %x", h.in)
			}
			return ddp.Segment{}, err
		}
	}
}

func opcodeOf(seg ddp.Segment) rdmap.Opcode {
	if seg.Control.Tagged() {
		return rdmap.Control(seg.Tagged.RsvdULP).Opcode()
	}
	return rdmap.Control(seg.Untagged.RsvdULP[0]).Opcode()
}

// want returns the side's next segment, which must be of that message.
func (h *peer) want(op rdmap.Opcode) ddp.Segment {
	h.Helper()
	seg, err := h.next()
	if err != nil || opcodeOf(seg) != op {
		h.Fatalf("the side sent %v %v, %v; want %v", opcodeOf(seg), seg, err, op)
	}
	return seg
}

// wantTerminate returns the side's Terminate, which must be the next message,
// have that code, and be the last: the side ends its half after it. Read
// Responses before it are passed over.
func (h *peer) wantTerminate(code rdmap.TermCode) rdmap.Terminate {
	h.Helper()
	for {
		seg, err := h.next()
		if err != nil {
			h.Fatalf("the stream ended without a Terminate: %v; want %v", err, code)
		}
		if op := opcodeOf(seg); op == rdmap.OpReadResponse {
			continue
		} else if op != rdmap.OpTerminate {
			h.Fatalf("the side sent %v %v; want a Terminate with %v", op, seg, code)
		}
		u := seg.Untagged
		if u.QN != rdmap.QueueTerminate || u.MSN != 1 || u.MO != 0 || !seg.Control.Last() {
			h.Errorf("the Terminate has %v; want queue 2, MSN 1, MO 0, L", u)
		}
		t, err := rdmap.ParseTerminate(seg.Payload)
		if err != nil {
			h.Fatal(err)
		}
		if t.Code != code {
			h.Errorf("Terminate %v; want %v", &t, code)
		}
		h.wantEnd(io.EOF)
		return t
	}
}

// wantBare wants a Terminate without any header.
func (h *peer) wantBare(code rdmap.TermCode) {
	h.Helper()
	if t := h.wantTerminate(code); t.HdrCt != 0 || len(t.Rest) != 0 {
		h.Errorf("Terminate %v has HdrCt %#02x and %d octets more; want no header", &t, t.HdrCt, len(t.Rest))
	}
}

// wantCapture wants a Terminate that captures a segment, and the header of a
// Read Request if that is what the segment is and rdma is set.
func (h *peer) wantCapture(code rdmap.TermCode, segment []byte, rdma bool) {
	h.Helper()
	hdrct, n := uint8(0xC0), ddp.UntaggedHeaderLen
	if ddp.Control(segment[0]).Tagged() {
		n = ddp.TaggedHeaderLen
	}
	var header []byte
	if rdma {
		hdrct, header = 0xE0, segment[n:]
	}
	t := h.wantTerminate(code)
	if t.HdrCt != hdrct || int(t.SegmentLen) != len(segment) || !bytes.Equal(t.DDPHeader, segment[:n]) || !bytes.Equal(t.RDMAHeader, header) {
		h.Errorf("Terminate %v: HdrCt %#02x, segment of %d octets, headers %x and %x; want %#02x, %d, %x and %x",
			&t, t.HdrCt, t.SegmentLen, t.DDPHeader, t.RDMAHeader, hdrct, len(segment), segment[:n], header)
	}
}

// wantEnd wants the stream to end like that, with nothing more from the side.
func (h *peer) wantEnd(end error) {
	h.Helper()
	seg, err := h.next()
	switch {
	case err == nil:
		h.Fatalf("the side sent %v %v; want %v", opcodeOf(seg), seg, end)
	case !errors.Is(err, end):
		h.Errorf("the stream ended with %v; want %v", err, end)
	}
}

// quiet fails the test if the side has sent anything, or ended its half.
func (h *peer) quiet() {
	h.Helper()
	synctest.Wait()
	_ = h.conn.SetReadDeadline(time.Now().Add(time.Nanosecond))
	var b [1]byte
	if n, err := h.conn.Read(b[:]); n > 0 || len(h.in) > 0 || !isTimeout(err) {
		h.Errorf("the side sent %x%x, or ended: %v; want nothing", h.in, b[:n], err)
	}
	_ = h.conn.SetReadDeadline(time.Time{})
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func (h *peer) close() {
	if b, ok := h.conn.(*bridge); ok && b.CloseWrite() == nil {
		h.settle() // RDP's close ends both halves: the other side is to end its own before
	}
	_ = h.conn.Close()
	h.settle()
}

func (h *peer) closeWrite() {
	h.Helper()
	if err := h.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		h.Fatal(err)
	}
	h.settle()
}

func (h *peer) reset() {
	_ = h.conn.(interface{ Abort() error }).Abort()
	h.settle()
}

// The segments of a good peer, each a whole message.

func taggedSeg(op rdmap.Opcode, tag stag.STag, to uint64, data []byte) ddp.Segment {
	return ddp.Segment{Control: ddp.NewControl(true, true), Tagged: ddp.TaggedHeader{RsvdULP: uint8(rdmap.NewControl(op)), STag: tag, TO: to}, Payload: data}
}

func untaggedSeg(op rdmap.Opcode, data []byte) ddp.Segment {
	return ddp.Segment{Control: ddp.NewControl(false, true), Untagged: ddp.UntaggedHeader{RsvdULP: [5]byte{byte(rdmap.NewControl(op))}, QN: op.Queue()}, Payload: data}
}

func sendSeg(data string) ddp.Segment { return untaggedSeg(rdmap.OpSend, []byte(data)) }

func writeSeg(to rnic.Remote, data []byte) ddp.Segment {
	return taggedSeg(rdmap.OpWrite, to.STag, to.TO, data)
}

func readSeg(r rdmap.ReadRequest) ddp.Segment {
	b, _ := r.AppendBinary(nil)
	return untaggedSeg(rdmap.OpReadRequest, b)
}

func atomicSeg(r rdmap.AtomicRequest) ddp.Segment {
	b, _ := r.AppendBinary(nil)
	return untaggedSeg(rdmap.OpAtomicRequest, b)
}

func terminateSeg(t rdmap.Terminate) ddp.Segment {
	b, _ := t.AppendBinary(nil)
	return untaggedSeg(rdmap.OpTerminate, b)
}

// The changes.

func notLast(s *ddp.Segment) { s.Control &^= 0x40 }

func withMSN(n uint32) change { return func(s *ddp.Segment) { s.Untagged.MSN = n } }

func withMO(n uint32) change { return func(s *ddp.Segment) { s.Untagged.MO = n } }

func withQN(n uint32) change { return func(s *ddp.Segment) { s.Untagged.QN, s.Untagged.MSN = n, 1 } }

func withDDPVersion(v uint8) change {
	return func(s *ddp.Segment) { s.Control = s.Control&^3 | ddp.Control(v) }
}

// withControl changes RDMAP's control field.
func withControl(c byte) change {
	return func(s *ddp.Segment) { s.Tagged.RsvdULP, s.Untagged.RsvdULP[0] = c, c }
}

func invalidating(tag stag.STag) change {
	return func(s *ddp.Segment) { binary.BigEndian.PutUint32(s.Untagged.RsvdULP[1:], uint32(tag)) }
}

// plainRequest asks for nothing but CRCs.
var plainRequest = mpa.Frame{Revision: mpa.Revision1, CRC: true}

// plainReply returns a Reply that accepts a Request of a device as it is.
func plainReply(req *mpa.Frame) mpa.Frame {
	f := mpa.Frame{Reply: true, Revision: req.Revision, CRC: true, Enhanced: req.Enhanced}
	if e, err := mpa.ParseEnhanced(req.PrivateData); req.Enhanced && err == nil {
		e.IRD, e.ORD = e.ORD, e.IRD
		f.PrivateData, _ = e.AppendBinary(nil)
	}
	return f
}

// wantReset wants the stream to end by a reset, with nothing more from the side.
func (h *peer) wantReset() {
	h.Helper()
	h.wantEnd(syscall.ECONNRESET)
}

// want2 returns the side's next two segments, in the order of the opcodes that
// they must have.
func (h *peer) want2(a, b rdmap.Opcode) [2]ddp.Segment {
	h.Helper()
	var got [2]ddp.Segment
	for range got {
		seg, err := h.next()
		switch {
		case err == nil && opcodeOf(seg) == a:
			got[0] = seg
		case err == nil && opcodeOf(seg) == b:
			got[1] = seg
		default:
			h.Fatalf("the side sent %v %v, %v; want %v and %v", opcodeOf(seg), seg, err, a, b)
		}
	}
	return got
}

// terminate returns the side's Terminate, whatever it says, which must be the
// next message.
func (h *peer) terminate() rdmap.Terminate {
	h.Helper()
	t, err := rdmap.ParseTerminate(h.want(rdmap.OpTerminate).Payload)
	if err != nil {
		h.Fatal(err)
	}
	return t
}
