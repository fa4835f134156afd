package rdmap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"urnic/ddp"
	"urnic/internal/host/memfault"
	"urnic/mpa"
	"urnic/stag"
)

// sending is the transmitter's state.
type sending struct {
	rtr mpa.RTR // still to be sent

	busy bool        // msg is being sent
	msg  ddp.Message // of op, of the oldest inbound request, or of neither
	code Opcode
	op   *Operation
	in   *inbound
	id   uint32                                                       // of the last Atomic Request
	own  [max(ReadRequestLen, AtomicRequestLen, MaxTerminateLen)]byte // payload that RDMAP builds
	flat flatPayload
	read readPayload

	answered bool // the last message was a response: it is the ULP's turn
}

// flatPayload is payload in one piece, which belongs to RDMAP.
type flatPayload struct{ b []byte }

func (p *flatPayload) Gather(pieces [][]byte, off, n uint32) ([][]byte, error) {
	return append(pieces, p.b[off:off+n]), nil
}
func (*flatPayload) Release()     {}
func (*flatPayload) Stable() bool { return false }

// readPayload is the memory that a Read Response carries. It is looked up for
// each segment, as the ULP may close it meanwhile, and copied, as others may
// change it.
type readPayload struct {
	table *stag.Table
	scope stag.Scope
	stag  stag.STag
	to    uint64
	pin   stag.Pin
}

func (p *readPayload) Gather(pieces [][]byte, off, n uint32) (_ [][]byte, err error) {
	p.pin, err = p.table.Acquire(p.stag, p.scope, stag.RemoteRead, p.to+uint64(off), uint64(n))
	if err != nil {
		return pieces, err
	}
	return append(pieces, p.pin.Bytes()), nil
}
func (p *readPayload) Release()   { p.pin.Release() }
func (*readPayload) Stable() bool { return false }

// Transmit posts what there is to send: the operations of the ULP and the
// responses to the peer in turn, and a Terminate before anything that has not
// been begun. It returns true when it has nothing more to post, false when the
// LLP has no space. Errors are those of the LLP.
//
// The LLP's Flush sends what is posted.
func (s *Stream) Transmit(from Submitter) (idle bool, err error) {
	t := &s.sending
	defer s.counts.sent.publish()
	for {
		if !t.busy && !s.begin(from) {
			return true, nil
		}
		done, err := s.ddp.Send(&t.msg)
		if err != nil {
			if e, ok := errors.AsType[*ddp.MessageError](err); ok && s.unsent(from, e.Err) {
				continue
			}
			return false, err
		}
		if !done {
			return false, nil
		}
		s.finish(from)
	}
}

// begin chooses the next message. The Terminate is the last (RFC 5040 §5.4).
func (s *Stream) begin(from Submitter) bool {
	t := &s.sending
	switch {
	case s.closed.Load():
		return false
	case t.rtr != 0: // "MUST NOT allow any later FULPDUs to be transmitted before": RFC 6581 §5
		s.beginRTR()
		return true
	}
	if s.terminate.Load() != nil {
		return s.beginTerminate()
	}
	if !t.answered && s.beginResponse() {
		return true
	}
	if op := from.Next(); op != nil {
		if err := s.check(op); err != nil {
			s.giveUp(from, op, err)
			return s.beginTerminate()
		}
		s.beginOperation(op)
		return true
	}
	if s.terminate.Load() != nil { // Next found something wrong
		return s.beginTerminate()
	}
	return s.beginResponse()
}

// start fills in what all messages have.
func (s *Stream) start(code Opcode) *ddp.Message {
	t := &s.sending
	t.busy, t.code, t.op, t.in = true, code, nil, nil
	t.msg = ddp.Message{Tagged: code.Tagged(), QN: code.Queue()}
	t.msg.RsvdULP[0] = byte(NewControl(code)) // "MUST be used by the RDMAP to carry the RDMAP Control Field": §4.1
	return &t.msg
}

// beginOwn begins an untagged message whose payload is b, a part of own.
func (s *Stream) beginOwn(code Opcode, b []byte) {
	m := s.start(code)
	s.sending.flat.b = b
	m.Payload, m.Length = &s.sending.flat, uint64(len(b))
}

// beginRTR begins the empty message that opens a peer-to-peer connection.
func (s *Stream) beginRTR() {
	t := &s.sending
	switch t.rtr {
	case mpa.RTRRead:
		b, _ := ReadRequest{}.AppendBinary(t.own[:0])
		s.beginOwn(OpReadRequest, b)
	case mpa.RTRWrite:
		s.start(OpWrite)
	default:
		s.start(OpSend)
	}
	t.rtr = 0
}

func (s *Stream) beginOperation(o *Operation) {
	t := &s.sending
	t.answered = false
	switch o.Op {
	case OpReadRequest:
		o.received = 0
		b, _ := ReadRequest{
			SinkSTag: o.SinkSTag, SinkTO: o.SinkTO, Size: uint32(o.Length), SrcSTag: o.STag, SrcTO: o.TO,
		}.AppendBinary(t.own[:0])
		s.beginOwn(o.Op, b)
	case OpAtomicRequest:
		t.id++
		b, _ := o.atomicRequest(t.id).AppendBinary(t.own[:0])
		s.beginOwn(o.Op, b)
	case OpImmediate, OpImmediateSE:
		s.beginOwn(o.Op, append(t.own[:0], o.Immediate[:]...))
	default:
		m := s.start(o.Op)
		m.STag, m.TO, m.Length, m.Payload = o.STag, o.TO, o.Length, o.Payload
		if o.Op.Invalidates() {
			binary.BigEndian.PutUint32(m.RsvdULP[1:], uint32(o.Invalidate))
		}
	}
	t.op = o
}

// beginResponse begins the response to the oldest request of the peer: in the
// order of the requests (RFC 5040 §5.5 rule 20, RFC 7306 §5.4 rule 8).
func (s *Stream) beginResponse() bool {
	t := &s.sending
	in, ok := s.depths.firstInbound()
	if !ok {
		return false
	}
	if in.op == OpAtomicRequest {
		b, err := s.carryOut(&in.atomic, t.own[:0])
		if err != nil {
			s.failInbound(in, 0, err)
			return s.beginTerminate()
		}
		s.beginOwn(OpAtomicResponse, b)
	} else {
		m := s.start(OpReadResponse)
		m.STag, m.TO, m.Length = in.read.SinkSTag, in.read.SinkTO, uint64(in.read.Size) // "copied, without interpretation": §4.4
		t.read = readPayload{table: s.cfg.Memory, scope: s.cfg.Scope, stag: in.read.SrcSTag, to: in.read.SrcTO}
		m.Payload = &t.read
	}
	t.in, t.answered = in, true
	return true
}

// beginTerminate begins the Terminate that is wanted, if one is: the peer's may
// have come first.
func (s *Stream) beginTerminate() bool {
	e := s.terminate.Load()
	if e == nil {
		return false
	}
	term := e.Terminate()
	b, _ := term.AppendBinary(s.sending.own[:0])
	s.beginOwn(OpTerminate, b)
	return true
}

// carryOut carries out an atomic operation and appends its response to b.
func (s *Stream) carryOut(r *AtomicRequest, b []byte) ([]byte, error) {
	pin, err := s.cfg.Memory.Acquire(r.STag, s.cfg.Scope, stag.RemoteAtomic, r.TO, AtomicLen)
	if err != nil {
		return b, err
	}
	defer pin.Release()
	target := unsafe.Pointer(unsafe.SliceData(pin.Bytes()))
	if uintptr(target)%AtomicLen != 0 {
		return b, misaligned(*r)
	}
	// Nothing of any stream comes between load and store (RFC 7306 §5.3).
	orig, err := memfault.Update((*uint64)(target), r.Apply)
	if err != nil {
		return b, err
	}
	return AtomicResponse{RequestID: r.RequestID, Original: orig}.AppendBinary(b)
}

func misaligned(r AtomicRequest) *Error {
	return &Error{
		Code: CodeStreamCatastrophic, Clause: "RFC 7306 §8.2",
		Reason: fmt.Sprintf("the target of %v is not aligned to 64 bits", r),
	}
}

// finish ends a message all of which has been posted.
func (s *Stream) finish(from Submitter) {
	t := &s.sending
	t.busy = false
	s.counts.sent.count(t.code, t.msg.Length)
	s.traceSent()
	switch {
	case t.op != nil:
		from.Submitted(t.op, s.ddp.Posted())
		if t.op.isRead() { // no response counts before: it can't be one to this request
			s.depths.pushOutbound(t.op, t.id)
		}
	case t.code == OpReadRequest: // the RTR
		s.depths.pushOutbound(nil, 0)
	case t.in != nil:
		// The slot is free before the response can be on the wire: the peer may
		// use it as soon as it has the response.
		s.depths.popInbound()
	case t.code == OpTerminate:
		s.closed.Store(true) // "MUST NOT send any more Messages": §5.4
	}
	t.msg.Payload = nil
}

// unsent drops a message that could not be sent, and reports whether the
// message is thereby over: Transmit then continues with the Terminate, if one
// is still wanted.
func (s *Stream) unsent(from Submitter, err error) bool {
	t := &s.sending
	switch {
	case t.op != nil:
		s.giveUp(from, t.op, err)
	case t.in != nil:
		s.failInbound(t.in, t.msg.Sent(), err)
	default:
		return false
	}
	t.busy = false
	return true
}

// giveUp ends the stream for an operation that can't be carried out: "the
// Terminate Message and Error code are sent instead of the request" (RFC 5040
// §7.1 rule 1).
func (s *Stream) giveUp(from Submitter, o *Operation, err error) {
	s.Fail(&Error{Code: CodeLocalCatastrophic, Clause: "RFC 5040 §7.1", Err: err})
	from.Failed(o, err)
}

// failInbound reports that the memory of a request could not be used after all,
// when sent bytes of the response have been posted.
func (s *Stream) failInbound(in *inbound, sent uint32, err error) {
	e := protectionError(err)
	e.Header, e.SegmentLen = in.header[:], in.segmentLen
	if in.op == OpReadRequest {
		r := in.read // "updated to reflect the current location": §4.8
		r.SinkTO, r.SrcTO, r.Size = r.SinkTO+uint64(sent), r.SrcTO+uint64(sent), r.Size-sent
		e.RDMAHeader, _ = r.AppendBinary(nil)
	}
	s.Fail(e)
}
