package rdmap

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"urnic/ddp"
	"urnic/internal/host/memfault"
	"urnic/mpa"
	"urnic/stag"
)

// intake is the receiver's state.
type intake struct {
	expectRTR mpa.RTR // the peer's first message must be one of these

	requests   slots // of queue 1
	responses  slots // of queue 3
	terminate  slot
	terminated bool // the peer's Terminate has arrived

	tagged taggedMessage // the one in turn
	sends  pieces        // of the message in turn on queue 0

	lease stag.Lease // of what is placed into, as long as there is something at hand
}

func (in *intake) init(cfg Config) {
	in.expectRTR = cfg.ExpectRTR
	in.requests.size, in.responses.size = AtomicRequestLen, AtomicResponseLen
	in.terminate.size = MaxTerminateLen
}

// receiver is the interface of a Stream to DDP's sink.
type receiver Stream

// PlaceTagged implements ddp.Receiver. DDP's checks come before those of the
// opcode and the version (RFC 5040 §7.2).
func (r *receiver) PlaceTagged(h *ddp.TaggedHeader, payload []byte) error {
	c, n := Control(h.RsvdULP), uint64(len(payload))
	need := stag.RemoteWrite
	if c.Opcode() == OpReadResponse {
		found, outstanding := r.depths.sinkOf(h, len(payload))
		if !found {
			return r.stray(h, n, outstanding)
		}
		need = stag.LocalWrite
	}
	mem, err := r.intake.lease.Open(r.cfg.Memory, h.STag, r.cfg.Scope, need, h.TO, n)
	if err == nil {
		err = r.cfg.refuses(need, h.STag, h.TO, n)
	}
	if err != nil {
		return placementError(err)
	}
	if err := r.admit(c, true, 0); err != nil {
		return err
	}
	if err := memfault.Copy(mem, payload); err != nil {
		return &ddp.Error{Code: ddp.CodeBaseBounds, Clause: "RFC 5041 §7.1", Err: err}
	}
	return nil
}

// stray returns the error of a Read Response that no outstanding Read of this
// side has requested (RFC 5040 §5.2.2 allows this check).
func (r *receiver) stray(h *ddp.TaggedHeader, n uint64, outstanding bool) error {
	if err := r.cfg.Memory.Check(h.STag, r.cfg.Scope, 0, h.TO, n); err != nil {
		return placementError(err)
	}
	if !outstanding {
		return &Error{Code: CodeUnexpectedOpcode, Clause: "RFC 5040 §5.2", Reason: "a Read Response came while no Read is outstanding"}
	}
	return &ddp.Error{
		Code: ddp.CodeBaseBounds, Clause: "RFC 5040 §5.2.2",
		Reason: fmt.Sprintf("a Read Response of %d octets for %v+0x%x is not what an outstanding Read asked for", n, h.STag, h.TO),
	}
}

// admit validates opcode and version (RFC 5040 §7.2 rules 2 and 3).
func (r *receiver) admit(c Control, tagged bool, qn uint32) error {
	op := c.Opcode()
	if r.intake.terminated { // "MUST NOT send any more Messages": §5.4
		return &Error{Code: CodeUnexpectedOpcode, Clause: "RFC 5040 §5.4", Reason: fmt.Sprintf("%v after a Terminate", op)}
	}
	if !op.Valid() || op.Tagged() != tagged || !tagged && op.Queue() != qn {
		where := "in a tagged message"
		if !tagged {
			where = fmt.Sprintf("on queue %d", qn)
		}
		return &Error{Code: CodeUnexpectedOpcode, Clause: "RFC 5040 §7.2", Reason: fmt.Sprintf("%v %s", op, where)}
	}
	if !c.ValidVersion() {
		return &Error{Code: CodeInvalidVersion, Clause: "RFC 5040 §7.2", Reason: fmt.Sprintf("RDMAP version %d in a %v", c.Version(), op)}
	}
	return nil
}

// Admit implements ddp.Receiver.
func (r *receiver) Admit(h *ddp.UntaggedHeader) error {
	c := Control(h.RsvdULP[0])
	if err := r.admit(c, false, h.QN); err != nil {
		return err
	}
	if h.QN == QueueSend {
		return r.intake.sends.admit(h, c.Opcode())
	}
	return nil
}

// Arrived implements ddp.Receiver.
func (r *receiver) Arrived() { r.ulp.Arrived() }

// Buffer implements ddp.Receiver.
func (r *receiver) Buffer(h *ddp.UntaggedHeader, ahead uint32) (ddp.Buffer, error) {
	in := &r.intake
	op := Control(h.RsvdULP[0]).Opcode()
	switch h.QN {
	case QueueSend:
		if in.expectRTR != 0 && op == OpSend {
			return (*rtrBuffer)(r), nil // for the provider: no buffer of the ULP is consumed
		}
		return r.ulp.ReceiveBuffer(ahead, op == OpImmediate || op == OpImmediateSE)
	case QueueReadRequest:
		if free := r.depths.free(); free > 0 && ahead < uint32(free) {
			return in.requests.at(ahead), nil
		}
	case QueueTerminate:
		// "MUST guarantee placement of a single Terminate Message": RFC 5040 §5.4
		if ahead == 0 {
			return &in.terminate, nil
		}
	case QueueAtomicResponse:
		if ahead < uint32(r.depths.outstandingAtomics()) {
			return in.responses.at(ahead), nil
		}
	}
	return nil, nil
}

// expected checks the first message of a peer-to-peer connection. A Terminate
// is not passed to it: with it, the Initiator says that it has no RTR to send.
func (r *receiver) expected(op Opcode, length uint64) (isRTR bool, err error) {
	in := &r.intake
	if in.expectRTR == 0 {
		return false, nil
	}
	kinds := map[Opcode]mpa.RTR{OpSend: mpa.RTRSend, OpWrite: mpa.RTRWrite, OpReadRequest: mpa.RTRRead}
	if in.expectRTR&kinds[op] == 0 || length != 0 {
		return false, in.noRTR(op, length)
	}
	in.expectRTR = 0
	return true, nil
}

// noRTR returns the error of a first message of n bytes, or more, that is not the
// RTR that was agreed upon. RFC 6581 has no code of its own for that (§9.3).
func (in *intake) noRTR(op Opcode, length uint64) error {
	return &Error{
		Code: TermCode(mpa.CodeLocalCatastrophic.TermWord()), Clause: "RFC 6581 §9.2",
		Reason: fmt.Sprintf("%v of %d octets came in place of the ready-to-receive indication (%v)", op, length, in.expectRTR),
	}
}

// rtrBuffer is the buffer of a first message that is a Send: it must be an RTR,
// and empty.
type rtrBuffer receiver

// Len implements ddp.Buffer: what is wrong with bytes is not that they are too
// many.
func (*rtrBuffer) Len() uint64 { return ddp.MaxMessage }

// Place implements ddp.Buffer.
func (b *rtrBuffer) Place(off uint32, p []byte) error {
	return b.intake.noRTR(OpSend, uint64(off)+uint64(len(p)))
}

// A taggedMessage is the part of a tagged message that was delivered.
type taggedMessage struct {
	begun  bool
	op     Opcode
	to     uint64
	length uint64
}

// DeliverTagged implements ddp.Receiver.
func (r *receiver) DeliverTagged(h *ddp.TaggedHeader, n int) error {
	c, m := Control(h.RsvdULP), &r.intake.tagged
	if err := r.admit(c, true, 0); err != nil {
		return err
	}
	if !m.begun {
		*m = taggedMessage{begun: true, op: c.Opcode(), to: h.TO}
	}
	if c.Opcode() != m.op { // "MUST contain the same value": RFC 5041 §4.2
		return &Error{Code: CodeUnexpectedOpcode, Clause: "RFC 5041 §4.2", Reason: fmt.Sprintf("%v inside a %v", c.Opcode(), m.op)}
	}
	m.length += uint64(n)
	var read *Operation // that is over with this segment
	if c.Opcode() == OpReadResponse {
		var err error
		if read, err = r.responseInTurn(h, uint64(n)); err != nil {
			return err
		}
	}
	if !h.Control.Last() {
		return nil
	}
	m.begun = false
	if c.Opcode() == OpWrite {
		if _, err := r.expected(OpWrite, m.length); err != nil {
			return err
		}
	}
	s := (*Stream)(r)
	s.counts.received.count(c.Opcode(), m.length)
	s.traceTagged(c.Opcode(), h.STag, m.to, m.length)
	if read != nil {
		return r.completed(read)
	}
	return nil
}

// responseInTurn processes a segment of a Read Response, which belongs to the
// oldest Read (RFC 5040 §5.5 rule 20). It returns the ULP's Read that completes
// with it, if one does.
func (r *receiver) responseInTurn(h *ddp.TaggedHeader, n uint64) (*Operation, error) {
	first, ok := r.depths.firstOutbound()
	if !ok || first.isAtomic() {
		return nil, &Error{Code: CodeUnexpectedOpcode, Clause: "RFC 5040 §5.2", Reason: "a Read Response came while no Read is in turn"}
	}
	o := first.op
	if o == nil { // the RTR's: there is nothing to compare, and nothing to notify
		if n != 0 || !h.Control.Last() {
			return nil, badResponse("the response to an empty Read is not empty")
		}
		r.depths.popOutbound()
		r.ulp.Wake()
		return nil, nil
	}
	if n > 0 {
		if h.STag != o.SinkSTag || h.TO != o.SinkTO+uint64(o.received) || n > o.Length-uint64(o.received) {
			return nil, &ddp.Error{
				Code: ddp.CodeBaseBounds, Clause: "RFC 5040 §5.2.2",
				Reason: fmt.Sprintf("a Read Response goes to %v+0x%x where %v+0x%x is in turn", h.STag, h.TO, o.SinkSTag, o.SinkTO+uint64(o.received)),
			}
		}
		o.received += uint32(n)
	}
	if !h.Control.Last() {
		return nil, nil
	}
	if uint64(o.received) != o.Length {
		return nil, badResponse(fmt.Sprintf("a Read Response ends after %d octets of %d", o.received, o.Length))
	}
	r.depths.popOutbound()
	r.ulp.Wake() // a Read may have waited for its slot
	return o, nil
}

// completed notifies the ULP, which may invalidate the sink.
func (r *receiver) completed(o *Operation) error {
	r.intake.lease.End()
	r.counts.received.publish()
	return r.ulp.Completed(o)
}

func badResponse(reason string) error {
	return &Error{Code: CodeStreamCatastrophic, Clause: "RFC 5040 §5.2.2", Reason: reason}
}

// DeliverUntagged implements ddp.Receiver.
func (r *receiver) DeliverUntagged(h *ddp.UntaggedHeader, length uint32) error {
	c := Control(h.RsvdULP[0])
	if err := r.admit(c, false, h.QN); err != nil { // the last segment decides, if they differ
		return err
	}
	op := c.Opcode()
	s := (*Stream)(r)
	s.counts.received.count(op, uint64(length))
	switch op {
	case OpReadRequest:
		return r.readRequest(h, length)
	case OpAtomicRequest:
		return r.atomicRequest(h, length)
	case OpAtomicResponse:
		return r.atomicResponse(h, length)
	case OpTerminate:
		return r.terminateMessage(h, length)
	default: // a Send or Immediate Data
	}
	if rtr, err := r.expected(op, uint64(length)); err != nil {
		return err
	} else if rtr {
		r.traceUntagged(h, length)
		return nil
	}
	return r.send(op, h, length)
}

// send delivers a Send message type or Immediate Data.
func (r *receiver) send(op Opcode, h *ddp.UntaggedHeader, length uint32) error {
	d := Delivery{Op: op, Length: length}
	switch {
	case (op == OpImmediate || op == OpImmediateSE) && length != ImmediateLen:
		return wrongLength(op, int(length))
	case op.Invalidates():
		d.Invalidated = stag.STag(binary.BigEndian.Uint32(h.RsvdULP[1:]))
		r.intake.lease.End() // which it would wait for
		if err := r.cfg.Memory.RemoteInvalidate(d.Invalidated, r.cfg.Scope); err != nil {
			return invalidationError(err)
		}
	}
	r.traceUntagged(h, length) // before what it causes
	r.counts.received.publish()
	r.intake.lease.Count()
	return r.ulp.Deliver(d)
}

// readRequest decodes a Read Request and checks it (RFC 5040 §7.2).
func (r *receiver) readRequest(h *ddp.UntaggedHeader, length uint32) error {
	b := r.intake.requests.take(length)
	req, err := ParseReadRequest(b)
	if err != nil {
		return err
	}
	if _, err := r.expected(OpReadRequest, uint64(req.Size)); err != nil {
		return err
	}
	if req.Size > 0 { // an empty one is not checked: §5.2.1
		err = r.cfg.Memory.Check(req.SrcSTag, r.cfg.Scope, stag.RemoteRead, req.SrcTO, uint64(req.Size))
		if err == nil {
			err = r.cfg.refuses(stag.RemoteRead, req.SrcSTag, req.SrcTO, uint64(req.Size))
		}
		if err != nil {
			e := protectionError(err)
			e.RDMAHeader = append([]byte(nil), b...)
			return e
		}
	}
	r.answer(h, length, inbound{op: OpReadRequest, read: req})
	return nil
}

// atomicRequest decodes an Atomic Request and checks it (RFC 7306 §8.2).
func (r *receiver) atomicRequest(h *ddp.UntaggedHeader, length uint32) error {
	req, err := ParseAtomicRequest(r.intake.requests.take(length))
	if err != nil {
		return err
	}
	if _, err := r.expected(OpAtomicRequest, AtomicLen); err != nil {
		return err
	}
	if !req.Op.Valid() {
		return &Error{Code: CodeUnexpectedOpcode, Clause: "RFC 7306 §5.2.1", Reason: fmt.Sprintf("%v is not supported", req.Op)}
	}
	pin, err := r.cfg.Memory.Open(req.STag, r.cfg.Scope, stag.RemoteAtomic, req.TO, AtomicLen)
	if err != nil {
		return protectionError(err)
	}
	aligned := uintptr(unsafe.Pointer(unsafe.SliceData(pin.Bytes())))%AtomicLen == 0
	pin.Release()
	if err := r.cfg.refuses(stag.RemoteAtomic, req.STag, req.TO, AtomicLen); err != nil {
		return protectionError(err)
	}
	if !aligned {
		return misaligned(req)
	}
	r.answer(h, length, inbound{op: OpAtomicRequest, atomic: req})
	return nil
}

// answer queues a request for the transmitter. DDP has admitted it, so there is
// a slot.
func (r *receiver) answer(h *ddp.UntaggedHeader, length uint32, in inbound) {
	r.traceUntagged(h, length)
	_, _ = h.AppendBinary(in.header[:0])
	in.segmentLen = ddp.UntaggedHeaderLen + int(length-h.MO) // of the last one, whose header that is
	r.depths.pushInbound(in)
	r.ulp.Wake()
}

// atomicResponse completes the oldest request, which must be the atomic that
// the response is for: responses keep the order of the requests.
func (r *receiver) atomicResponse(h *ddp.UntaggedHeader, length uint32) error {
	resp, err := ParseAtomicResponse(r.intake.responses.take(length))
	if err != nil {
		return err
	}
	first, ok := r.depths.firstOutbound()
	if !ok || !first.isAtomic() || first.requestID != resp.RequestID {
		return &Error{Code: CodeUnexpectedOpcode, Clause: "RFC 7306 §5.2.2", Reason: fmt.Sprintf("an Atomic Response to request %d, which is not in turn", resp.RequestID)}
	}
	r.traceUntagged(h, length)
	first.op.Original = resp.Original
	r.depths.popOutbound()
	r.ulp.Wake()
	return r.completed(first.op)
}

// terminateMessage processes the peer's Terminate, after which nothing more is
// sent.
func (r *receiver) terminateMessage(h *ddp.UntaggedHeader, length uint32) error {
	t, err := ParseTerminate(r.intake.terminate.b[:length])
	if err != nil {
		return err
	}
	r.traceUntagged(h, length)
	r.intake.terminated = true
	r.closed.Store(true)
	r.ulp.Terminated(t)
	return nil
}
