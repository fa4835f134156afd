//go:build linux

package dropin

import (
	"syscall"

	"urnic/internal/dropin/datagram"
	"urnic/internal/dropin/datagram/carrier"
)

// A pendingRecv is a receive that is posted.
type pendingRecv struct {
	id  uint64
	sgl []SGE
}

// A placing is what has come of a UC message.
type placing struct {
	status uint32
	imm    uint32
	flags  datagram.Flags
}

// postRecv posts a list of receives.
func (d *datagramQP) postRecv(wr *RecvWR, bad **RecvWR) Errno {
	d.postMu.Lock()
	defer d.postMu.Unlock()
	number := d.postRecvs(wr, bad)
	d.port.Owe(d.due)
	return number
}

// postRecvs leaves what is due then in due. The caller holds postMu.
func (d *datagramQP) postRecvs(wr *RecvWR, bad **RecvWR) Errno {
	d.recvMu.Lock()
	defer d.recvMu.Unlock()
	n := 0
	defer func() { d.due = append(d.due[:0], d.queue.Post(n)...) }()
	for ; wr != nil; wr = wr.Next {
		if _, err := sglOf(wr.SGL, wr.NumSGE); err != nil || uint32(wr.NumSGE) > d.qp.init.MaxRecvSGE {
			*bad = wr
			return syscall.EINVAL
		}
		if d.pendingRecvs+int(d.unpolledRecvs.Load()) >= len(d.recvs) {
			*bad = wr
			return syscall.ENOMEM
		}
		if d.qp.state.Load() == qpsErr {
			d.complete(d.recvCQ, &datagramWC{WC: WC{ID: wr.ID, Status: wcFlushed, Opcode: wcRecv}, receive: true, urgent: true})
			continue
		}
		r := &d.recvs[(d.firstRcv+d.pendingRecvs)%len(d.recvs)]
		r.id, r.sgl = wr.ID, append(r.sgl[:0], sgesOf(wr.SGL, wr.NumSGE)...)
		d.qp.engine.replaceNullOf(r.sgl, true)
		d.pendingRecvs++
		n++
	}
	return ok
}

// flushRecvs completes all receives. The caller holds recvMu.
func (d *datagramQP) flushRecvs() {
	d.queue.Close()
	d.stream.Reset()
	for d.pendingRecvs > 0 {
		r := d.popRecv()
		d.complete(d.recvCQ, &datagramWC{WC: WC{ID: r.id, Status: wcFlushed, Opcode: wcRecv}, receive: true, urgent: true})
	}
}

func (d *datagramQP) popRecv() *pendingRecv {
	r := &d.recvs[d.firstRcv]
	d.firstRcv = (d.firstRcv + 1) % len(d.recvs)
	d.pendingRecvs--
	return r
}

// Admit decides whether a datagram is looked at.
func (d *datagramQP) Admit(h *datagram.Header, from carrier.Peer) datagram.Reason {
	d.recvMu.Lock()
	defer d.recvMu.Unlock()
	if d.kind == qptUD {
		if h.Op != datagram.Send {
			return datagram.NoQueuePair
		}
		return d.queue.Admit(h.Key)
	}
	switch p := &d.from; {
	case !h.OfUC():
		return datagram.NoQueuePair
	case p.want != 0 && h.Key != p.want:
		return datagram.WrongKey
	case h.Source != p.qpn || from != p.to:
		return datagram.WrongSource
	}
	return d.queue.Admit(d.queue.Key())
}

// Drop counts what is dropped.
func (d *datagramQP) Drop(r datagram.Reason) {
	d.recvMu.Lock()
	defer d.recvMu.Unlock()
	d.queue.Drop(r)
}

// Deliver takes a message of UD, or a fragment of UC.
func (d *datagramQP) Deliver(a *carrier.Arrival) {
	d.recvMu.Lock()
	defer d.recvMu.Unlock()
	if d.kind == qptUC {
		d.deliverUC(a)
		return
	}
	r := d.takeRecv()
	if r == nil {
		return
	}
	w := datagramWC{receive: true}
	w.WC = WC{ID: r.id, Opcode: wcRecv, ByteLen: datagram.GRHLen + uint32(len(a.Payload)), SrcQP: a.Source, Flags: wcGRH}
	describe(&w, a.Flags, a.Imm)
	to := a.To
	if !to.IsValid() {
		to = a.From.Addr() // it comes from this host, most probably
	}
	datagram.PutGRH(&d.grh, a.From.Addr(), to, len(a.Payload))
	w.Status = d.land(r, &a.Header, a.Payload)
	d.countReceived(a, a.To.IsMulticast())
	w.urgent = w.urgent || w.Status != wcSuccess
	d.complete(d.recvCQ, &w)
}

// land copies a message of UD into its receive, and returns the status of that.
func (d *datagramQP) land(r *pendingRecv, h *datagram.Header, payload []byte) uint32 {
	if lengthOf(r.sgl) < uint64(datagram.GRHLen+len(payload)) {
		return wcLocalLength
	}
	err := d.landing.move(r.sgl, 0, d.grh[:], true)
	if err == nil {
		err = d.landing.move(r.sgl, datagram.GRHLen, payload, true)
	}
	if err != nil {
		d.qp.engine.log.printf(logInfo, "QP 0x%x: receive %d for %d bytes: %v", d.qp.num, r.id, h.Length, err)
		return wcLocalProtect
	}
	return wcSuccess
}

// describe sets what a completion says of immediate data.
func describe(w *datagramWC, flags datagram.Flags, imm [4]byte) {
	w.urgent = flags&datagram.Solicited != 0
	if flags&datagram.Immediate != 0 {
		w.Flags |= wcWithImm
		w.Imm = immediateOf(imm)
	}
}

// deliverUC takes a fragment of UC. The receive of a message that is lost is there for the next one.
// The caller holds recvMu.
func (d *datagramQP) deliverUC(a *carrier.Arrival) {
	p := d.stream.Next(&a.Header, len(a.Payload))
	if p.Lost {
		d.queue.Drop(datagram.Incomplete)
	}
	if p.Reason != datagram.Taken {
		d.queue.Drop(p.Reason)
		return
	}
	if p.First {
		d.placed = placing{flags: a.Flags, imm: immediateOf(a.Imm)}
	}
	if p.Last {
		d.countReceived(a, false)
	}
	if a.Op == datagram.UCWrite {
		d.deliverWrite(a, p.Last)
		return
	}
	r := d.oldestRecv()
	if r == nil {
		d.queue.Drop(datagram.NoReceive)
		d.stream.Reset()
		return
	}
	switch err := d.landing.move(r.sgl, a.Offset, a.Payload, true); {
	case d.placed.status != wcSuccess || err == nil:
	case lengthOf(r.sgl) < uint64(a.Length):
		d.placed.status = wcLocalLength
	default:
		d.placed.status = wcLocalProtect
	}
	if !p.Last {
		return
	}
	d.takeRecv()
	w := datagramWC{WC: WC{ID: r.id, Opcode: wcRecv, ByteLen: a.Length, SrcQP: a.Source, Status: d.placed.status}, receive: true}
	describe(&w, d.placed.flags, a.Imm)
	w.urgent = w.urgent || w.Status != wcSuccess
	d.complete(d.recvCQ, &w)
}
