package rnic_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing/synctest"

	"urnic/ddp"
	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
)

// A scriptPeer is the other end of the queue pair's connection, with what a script can
// do as it.
type scriptPeer struct {
	*peer
	initiates bool                     // it has sent the Request
	requests  <-chan *rnic.ConnRequest // of it
	streams   <-chan net.Conn          // of the side
	mine      mpa.Frame                // its Request or Reply
	full      bool                     // in full operation
	heard     bool                     // it has sent an FPDU, so that the side may send
	held      bool                     // it does not read
	gone      bool                     // it has reset the connection
	fin       bool                     // it has read the side's FIN
	ended     bool                     // it has found the connection reset

	atomics    []uint32 // identifiers of the requests that wait for an answer
	unanswered int      // its own Reads and atomics
	sent       []string // what it sends now, for the table
	last       map[rdmap.Opcode]ddp.Segment
}

// newPeer returns the address at which the next peer waits for the side, or with
// initiates, makes a peer that is connected to the side.
func (l *life) newPeer(initiates bool) string {
	p := &scriptPeer{initiates: initiates, last: map[rdmap.Opcode]ddp.Segment{}}
	l.scriptPeer = p
	if initiates {
		listener, err := l.s.Device.Listen(context.Background(), ":0")
		if err != nil {
			l.Fatal(err)
		}
		requests := make(chan *rnic.ConnRequest, 1)
		p.requests = requests
		go func() {
			if r, err := listener.Accept(context.Background()); err == nil {
				requests <- r
			}
		}()
		p.peer = l.dial(listener.Addr().String())
		return ""
	}
	listener, err := l.Listen(context.Background(), ":0")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = listener.Close() })
	streams := make(chan net.Conn, 2)
	p.streams = streams
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			streams <- c
		}
	}()
	return listener.Addr().String()
}

// request returns the peer's Request, which the side has to answer.
func (l *life) request() *rnic.ConnRequest {
	synctest.Wait()
	select {
	case r := <-l.requests:
		return r
	default:
		l.Fatalf("%s: the peer has sent no Request", l.at)
		return nil
	}
}

// peerDoes carries out what the peer does.
func (l *life) peerDoes(rest string) {
	verb, rest, _ := strings.Cut(rest, " ")
	f, ok := map[string]func(*life, *command){
		"connects": (*life).peerConnects,
		"accepts":  (*life).peerAccepts,
		"rejects":  (*life).peerRejects,
		"fin":      (*life).peerFIN,
		"rst":      (*life).peerRST,
	}[verb]
	if ok {
		c := l.parse(rest)
		f(l, c)
		c.done()
		return
	}
	l.sendSegments(verb, l.parse(rest), strings.Split(rest, ";")...)
}

// peerConnects sends the Request.
func (l *life) peerConnects(c *command) {
	l.newPeer(true)
	f := plainRequest
	if c.has("p2p") {
		enhanced(mpa.Enhanced{PeerToPeer: true, RTR: l.rtr(c.value("p2p", "")), IRD: uint16(c.number("peer-ird", 16)), ORD: uint16(c.number("peer-ord", 16))})(&f)
	}
	l.mine = f
	l.frame(&f)
}

// peerAccepts answers the side's Request.
func (l *life) peerAccepts(c *command) {
	l.see("start-up ends")
	req := l.requestOfSide()
	f := plainReply(&req)
	if c.has("rtr") || c.has("peer-ird") || c.has("peer-ord") {
		e, _ := mpa.ParseEnhanced(req.PrivateData)
		if c.has("rtr") {
			e.RTR = l.rtr(c.value("rtr", ""))
		}
		e.IRD, e.ORD = uint16(c.number("peer-ird", int(e.ORD))), uint16(c.number("peer-ord", int(e.IRD)))
		f.PrivateData, _ = e.AppendBinary(nil)
	}
	l.peer.full(&f, &req)
	l.frame(&f)
	l.full, l.heard = true, true
	l.began = nil // what follows happens in another state
}

func (l *life) peerRejects(*command) {
	l.see("start-up ends")
	req := l.requestOfSide()
	f := plainReply(&req)
	f.Rejected = true
	l.frame(&f)
}

// requestOfSide returns the Request that the side has sent.
func (l *life) requestOfSide() mpa.Frame {
	synctest.Wait()
	l.arrived()
	if l.peer == nil || l.peer.theirs.Revision == 0 {
		l.Fatalf("%s: the side has sent no Request", l.at)
	}
	return l.peer.theirs
}

func (l *life) peerFIN(*command) {
	if !l.full && !l.starting {
		l.began = nil // the queue pair has nothing to do with it
	}
	if door.Outstanding(l.s.QP) > 0 || l.unanswered > 0 {
		l.see("FIN, with work outstanding")
	} else {
		l.see("FIN, with no work outstanding")
	}
	if err := l.conn.(*simnet.Conn).CloseWrite(); err != nil {
		l.say("peer: the connection is reset already")
	}
}

func (l *life) peerRST(*command) {
	if l.full || l.starting {
		l.see("RST")
	}
	_ = l.conn.(*simnet.Conn).Abort()
	l.gone = true
}

// sendSegments sends segments in one piece: that of the command, or those that its parts,
// the first of which has lost its verb, say.
func (l *life) sendSegments(verb string, c *command, parts ...string) {
	var octets []byte
	l.sent = nil
	for i := range max(1, len(parts)) {
		if len(parts) > 0 {
			c = l.parse(parts[i])
			if i > 0 {
				verb = c.word()
			}
		}
		octets = append(octets, l.fpduOf(verb, c)...)
		c.done()
	}
	n, err := l.conn.(*simnet.Conn).Writev([][]byte{octets}, false)
	switch {
	case err != nil:
		l.say("peer: the connection is closed")
		return
	case n < len(octets):
		l.Fatalf("%s: the network takes %d octets of %d", l.at, n, len(octets))
	}
	if l.full {
		l.heard = true
		for _, e := range l.sent {
			l.see(e)
		}
	}
}

// fpduOf returns the FPDU of a segment, as good or as bad as the command says.
func (l *life) fpduOf(verb string, c *command) []byte {
	event := "segment arrives"
	var seg ddp.Segment
	var changes []change
	data := make([]byte, c.number("len", 0))
	untagged := func(op rdmap.Opcode) ddp.Segment { return untaggedSeg(op, data) }
	to := func() place { return l.place(c.value("to", "mem+0")) }
	switch verb {
	case "send":
		op := rdmap.OpSend
		switch se, inv := c.flag("solicited"), c.has("invalidate"); {
		case se && inv:
			op = rdmap.OpSendSEInvalidate
		case se:
			op = rdmap.OpSendSE
		case inv:
			op = rdmap.OpSendInvalidate
		}
		seg = untagged(op)
		if c.has("invalidate") {
			changes = append(changes, invalidating(l.stagOf(c.value("invalidate", ""))))
		}
	case "immediate":
		b := []byte(c.value("immediate", "now"))
		b = append(b, make([]byte, 8)...)[:8]
		if c.flag("paired") {
			copy(b[4:], policy.PairMark)
		}
		seg = untaggedSeg(rdmap.OpImmediate, b)
	case "write":
		p := to()
		seg = taggedSeg(rdmap.OpWrite, p.stag, p.to, data)
	case "read-request":
		event = "Read Request arrives"
		from, sink := l.place(c.value("from", "mem+0")), l.place(c.value("sink", "their-sink+0"))
		seg = readSeg(rdmap.ReadRequest{SinkSTag: sink.stag, SinkTO: sink.to, Size: uint32(len(data)), SrcSTag: from.stag, SrcTO: from.to})
		l.unanswered++
	case "atomic-request":
		event = "Read Request arrives"
		on := l.place(c.value("on", "mem+0"))
		seg = atomicSeg(rdmap.AtomicRequest{Op: rdmap.AtomicFetchAdd, RequestID: 1, STag: on.stag, TO: on.to, AddSwap: uint64(c.number("add", 0)), CompareMask: ^uint64(0)})
		l.unanswered++
	case "read-response":
		event = "Response arrives"
		p := l.place(c.value("to", "sink+0"))
		seg = taggedSeg(rdmap.OpReadResponse, p.stag, p.to, data)
	case "atomic-response":
		event = "Response arrives"
		id := uint32(0)
		if len(l.atomics) > 0 {
			id, l.atomics = l.atomics[0], l.atomics[1:]
		}
		b, _ := rdmap.AtomicResponse{RequestID: id, Original: uint64(c.number("original", 0))}.AppendBinary(nil)
		seg = untaggedSeg(rdmap.OpAtomicResponse, b)
	case "terminate":
		event = "Terminate arrives"
		seg = terminateSeg(l.terminateOf(c))
	default:
		l.Fatalf("%s: a peer knows no %q", l.at, verb)
	}
	bad := func(f change) {
		event = "bad segment arrives"
		if f != nil {
			changes = append(changes, f)
		}
	}
	if c.flag("more") { // more segments of the message follow
		changes = append(changes, notLast)
	}
	if c.has("mo") {
		changes = append(changes, withMO(uint32(c.number("mo", 0))))
	}
	if c.flag("last") { // of several segments, whose MSN is that of the others
		changes = append(changes, func(s *ddp.Segment) { s.Control |= 0x40 })
	}
	if c.has("msn") {
		bad(withMSN(uint32(c.number("msn", 0))))
	}
	if c.has("qn") {
		bad(withQN(uint32(c.number("qn", 0))))
	}
	if c.has("ddp-version") {
		bad(withDDPVersion(uint8(c.number("ddp-version", 0))))
	}
	if c.has("opcode") {
		bad(withControl(byte(rdmap.NewControl(rdmap.Opcode(c.number("opcode", 0))))))
	}
	if c.flag("bad") { // for a reason that shows: what is wrong is known to this side only
		bad(nil)
	}
	b := l.fpdu(seg, changes...)
	if c.value("crc", "good") != "good" {
		bad(nil)
		b[len(b)-1] ^= 1
	}
	if n := c.number("cut", 0); n > 0 {
		b = b[:n]
		return b // it does not arrive before the rest
	}
	l.sent = append(l.sent, "segment arrives", event)
	return b
}

var termCodes = map[string]rdmap.TermCode{
	"local-catastrophic": rdmap.CodeLocalCatastrophic, "stream-catastrophic": rdmap.CodeStreamCatastrophic,
	"global-catastrophic": rdmap.CodeGlobalCatastrophic, "invalid-stag": rdmap.CodeInvalidSTag, "base-bounds": rdmap.CodeBaseBounds,
	"access-rights": rdmap.CodeAccessRights, "ddp-invalid-stag": ddpCode(ddp.CodeInvalidSTag), "ddp-no-buffer": ddpCode(ddp.CodeMSNNoBuffer),
	"ddp-too-long": ddpCode(ddp.CodeMessageTooLong), "unexpected-opcode": rdmap.CodeUnexpectedOpcode,
}

// terminateOf returns the Terminate of a command: with the headers of the last message of a
// kind, if it names one.
func (l *life) terminateOf(c *command) rdmap.Terminate {
	name := c.word()
	code, ok := termCodes[name]
	if !ok {
		l.Fatalf("%s: no code %q", l.at, name)
	}
	e := &rdmap.Error{Code: code}
	if of := c.value("of", ""); of != "" {
		op := map[string]rdmap.Opcode{"read": rdmap.OpReadRequest, "atomic": rdmap.OpAtomicRequest, "write": rdmap.OpWrite, "send": rdmap.OpSend}[of]
		seg, ok := l.last[op]
		if !ok {
			l.Fatalf("%s: the side has sent no %v", l.at, op)
		}
		b, _ := seg.AppendBinary(nil)
		e.Header, e.SegmentLen = b[:len(b)-len(seg.Payload)], len(b)
		if op == rdmap.OpReadRequest {
			e.RDMAHeader = seg.Payload
		}
	}
	return e.Terminate()
}

// arrived reads what the side has sent, unless the peer does not read.
func (l *life) arrived() (lines []string) {
	p := l.scriptPeer
	select {
	case c := <-p.streams: // a second one, if a Request of revision 2 was not understood (RFC 6581 §10)
		p.peer, p.fin, p.ended, p.gone = newPeer(l, c), false, false, false
	default:
	}
	if p.peer == nil || p.held || p.gone || p.ended {
		return nil
	}
	for {
		var buf [4096]byte
		n, err := p.conn.(*simnet.Conn).TryRead(buf[:])
		p.in = append(p.in, buf[:n]...)
		if n > 0 && p.full {
			l.see("LLP takes octets")
		}
		lines = append(lines, l.whole()...)
		switch {
		case n > 0:
		case err == nil, p.fin && errors.Is(err, io.EOF):
			return lines
		default:
			end := "wire: RST"
			if p.fin = errors.Is(err, io.EOF); p.fin {
				end = "wire: FIN"
			} else if p.ended = true; !errors.Is(err, syscall.ECONNRESET) {
				end = "wire: " + err.Error()
			}
			if len(p.in) > 0 {
				lines = append(lines, "wire: a part of an FPDU")
				p.in = nil
			}
			return append(lines, end)
		}
	}
}

// whole returns the frames and segments that are whole.
func (l *life) whole() (lines []string) {
	p := l.scriptPeer
	for !p.full {
		f, n, err := mpa.ParseFrame(p.in)
		if err != nil {
			return lines
		}
		f.PrivateData = slices.Clone(f.PrivateData)
		p.theirs, p.in = f, slices.Clone(p.in[n:])
		lines = append(lines, "wire: "+l.frameWords(&f))
		if p.initiates && !f.Rejected {
			p.peer.full(&p.mine, &f)
			p.full = true
		} else {
			return lines
		}
	}
	for {
		ulpdu, n, err := p.deframer.Next(p.in)
		if err != nil {
			l.Fatalf("%s: the side sent a bad FPDU: %v", l.at, err)
		}
		if n == 0 {
			return lines
		}
		seg, err := ddp.ParseSegment(slices.Clone(ulpdu))
		if err != nil {
			l.Fatalf("%s: the side sent a bad segment: %v", l.at, err)
		}
		p.in = slices.Clone(p.in[n:])
		lines = append(lines, "wire: "+l.segmentWords(seg))
	}
}
