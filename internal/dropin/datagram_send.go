//go:build linux

package dropin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"unsafe"

	"urnic/internal/dropin/datagram"
	"urnic/internal/dropin/datagram/carrier"
	"urnic/internal/dropin/rendezvous"
	"urnic/internal/host/memfault"
)

// A pendingSend is a request that is posted.
type pendingSend struct {
	id       uint64
	signaled bool
	inline   bool
	header   datagram.Header
	to       carrier.Peer
	route
	sgl    []SGE
	data   []byte // if inline
	offset uint32 // of what has not been sent
}

var (
	errTooLong = fmt.Errorf("a UD message has at most %d bytes", datagram.MTU)
	errNoAH    = errors.New("a Send of a UD queue pair needs an address handle of its protection domain, and a queue pair number")
)

// immediateOf returns immediate data as the program has them in memory.
func immediateOf(imm [4]byte) uint32 { return binary.NativeEndian.Uint32(imm[:]) }

// sgesOf returns an SGL where the program has it; sglOf has taken it.
func sgesOf(sgl *SGE, n int32) []SGE { return unsafe.Slice(sgl, n) }

// peerOf returns the process that has a queue pair.
func (e *Engine) peerOf(to netip.Addr, qpn uint32) (carrier.Peer, Errno) {
	slot := rendezvous.SlotOf(qpn)
	if slot == 0 || qpn > 0xffffff {
		return carrier.Peer{}, syscall.EINVAL
	}
	return netip.AddrPortFrom(to, e.settings.port+uint16(slot)-1), ok
}

// postSend posts a list of requests.
func (d *datagramQP) postSend(wr *SendWR, bad **SendWR) Errno {
	d.sendMu.Lock()
	defer d.sendMu.Unlock()
	defer d.push()
	for ; wr != nil; wr = wr.Next {
		if number := d.add(wr); number != ok {
			*bad = wr
			return number
		}
	}
	return ok
}

// postAll posts all of a list, or nothing.
func (d *datagramQP) postAll(wr *SendWR) Errno {
	d.sendMu.Lock()
	defer d.sendMu.Unlock()
	before := d.count
	for ; wr != nil; wr = wr.Next {
		if number := d.add(wr); number != ok {
			d.count = before
			return number
		}
	}
	d.push()
	return ok
}

// add puts a request into the queue. The caller holds sendMu.
func (d *datagramQP) add(wr *SendWR) Errno {
	e := d.qp.engine
	state := d.qp.state.Load()
	if state == qpsInit || state == qpsRTR {
		return e.refuse(syscall.EINVAL, "post send: QP 0x%x is in state %s", d.qp.num, stateNames[state])
	}
	if d.count+int(d.unpolledSends.Load()) >= len(d.sends) {
		return syscall.ENOMEM
	}
	w := &d.sends[(d.first+d.count)%len(d.sends)]
	if err := d.translate(wr, w); err != nil {
		return e.refuse(errno(err), "post send: QP 0x%x: request %d: %v", d.qp.num, wr.ID, err)
	}
	d.count++
	return ok
}

// translate makes w the request that the program wants. It is checked as a whole before it is sent.
func (d *datagramQP) translate(wr *SendWR, w *pendingSend) error {
	if _, err := sglOf(wr.SGL, wr.NumSGE); err != nil || uint32(wr.NumSGE) > d.qp.init.MaxSendSGE {
		return errSGL
	}
	sgl := sgesOf(wr.SGL, wr.NumSGE)
	length := lengthOf(sgl)
	*w = pendingSend{id: wr.ID, signaled: wr.Flags&sendSignaled != 0 || d.qp.send.signalAll, sgl: append(w.sgl[:0], sgl...), data: w.data[:0]}
	if wr.Flags&sendInline == 0 {
		d.qp.engine.replaceNullOf(w.sgl, false)
	}
	h := &w.header
	*h = datagram.Header{Source: d.qp.num, Length: uint32(length)}
	switch wr.Opcode {
	case wrSend:
	case wrSendImm:
		h.Flags = datagram.Immediate
		binary.NativeEndian.PutUint32(h.Imm[:], wr.Imm)
	case wrWrite, wrWriteImm:
		if d.kind != qptUC {
			return errOpcode
		}
		h.Op, h.Address, h.RKey = datagram.UCWrite, wr.RDMA().RemoteAddr, wr.RDMA().RKey
		if wr.Opcode == wrWriteImm {
			h.Flags = datagram.Immediate
			binary.NativeEndian.PutUint32(h.Imm[:], wr.Imm)
		}
	default:
		return errOpcode
	}
	if wr.Flags&sendSolicited != 0 {
		h.Flags |= datagram.Solicited
	}
	if err := d.address(wr, w, length); err != nil {
		return err
	}
	if w.inline = wr.Flags&sendInline != 0; w.inline {
		return w.copyInline(sgl, d.qp.init.MaxInline)
	}
	return nil
}

// address says where a request goes.
func (d *datagramQP) address(wr *SendWR, w *pendingSend, length uint64) error {
	h := &w.header
	if d.kind == qptUC {
		p := &d.peer
		if length > datagram.MaxMessage {
			return errSGL
		}
		if h.Op == 0 {
			h.Op = datagram.UCSend
		}
		h.Dest, h.Key = p.qpn, p.psn
		w.to, w.route = p.to, p.route
		return nil
	}
	ud := wr.UD()
	if length > datagram.MTU {
		return errTooLong
	}
	if ud.AH == nil {
		return errNoAH
	}
	a := d.qp.engine.ahs.get(Handle((*ibvAH)(ud.AH).handle))
	if a == nil || a.pd != d.qp.pd {
		return errNoAH
	}
	h.Op, h.Dest, h.Key = datagram.Send, ud.QPN, ud.QKey
	if ud.QKey&qpOwnKey != 0 {
		h.Key = d.key.Load()
	}
	w.route = a.route
	if a.to.IsMulticast() {
		if ud.QPN != datagram.Multicast || d.qp.engine.settings.port == 1 {
			return errNoAH
		}
		w.to = netip.AddrPortFrom(a.to, d.qp.engine.settings.port-1)
		return nil
	}
	var number Errno
	if w.to, number = d.qp.engine.peerOf(a.to, ud.QPN); number != ok {
		return errNoAH
	}
	return nil
}

// copyInline copies the data of a request that are inline.
func (w *pendingSend) copyInline(sgl []SGE, limit uint32) error {
	if lengthOf(sgl) > uint64(limit) {
		return errInline
	}
	for _, s := range sgl {
		if s.Length == 0 {
			continue
		}
		if s.Addr == 0 {
			return errNoMemory
		}
		end := len(w.data)
		w.data = slices.Grow(w.data, int(s.Length))[:end+int(s.Length)]
		if err := memfault.Copy(w.data[end:], unsafe.Slice((*byte)(pointer(s.Addr)), s.Length)); err != nil {
			return fmt.Errorf("inline data: %w: %w", syscall.EFAULT, err)
		}
	}
	return nil
}

// push sends what it can. The caller holds sendMu.
func (d *datagramQP) push() {
	if d.count == 0 {
		return
	}
	switch d.qp.state.Load() {
	case qpsRTS:
		d.waits.Store(true) // so that room which comes in the meantime is not missed
		if d.port.Send(d.send) != nil || d.count == 0 {
			d.waits.Store(false)
		}
	case qpsSQE, qpsErr:
		d.flushSends()
	}
}

// sendAll sends requests until there is no more room. The caller holds sendMu.
func (d *datagramQP) sendAll(s *carrier.Sender) {
	for d.count > 0 {
		w := &d.sends[d.first]
		status, done := d.sendOne(s, w)
		if !done {
			return
		}
		d.first = (d.first + 1) % len(d.sends)
		d.count--
		if status == wcSuccess {
			d.countSent(w)
		}
		if w.signaled || status != wcSuccess {
			wc := datagramWC{WC: WC{ID: w.id, Status: status, Opcode: w.opcode(), ByteLen: w.header.Length}, urgent: status != wcSuccess}
			d.complete(d.sendCQ, &wc)
		}
		if status != wcSuccess {
			d.qp.state.CompareAndSwap(qpsRTS, qpsSQE)
			d.flushSends()
			return
		}
	}
}

// sendOne sends what is left of a request, and reports whether that was all.
func (d *datagramQP) sendOne(s *carrier.Sender, w *pendingSend) (status uint32, done bool) {
	h := &w.header
	for {
		n := int(min(uint32(w.payload-(h.Len()-datagram.HeaderLen)), h.Length-w.offset))
		h.Offset = w.offset
		b := s.Take(h, n, w.to, w.from)
		if b == nil {
			return 0, false
		}
		var err error
		if w.inline {
			copy(b[:n], w.data[w.offset:])
		} else {
			err = d.memory.move(w.sgl, w.offset, b[:n], false)
		}
		if err != nil {
			d.qp.engine.log.printf(logInfo, "QP 0x%x: request %d: %v", d.qp.num, w.id, err)
			return wcLocalProtect, true
		}
		s.Put(h)
		if w.offset += uint32(n); w.offset == h.Length {
			return wcSuccess, true
		}
	}
}

// opcode returns that of the completion.
func (w *pendingSend) opcode() uint32 {
	if w.header.Op == datagram.UCWrite {
		return wcWrite
	}
	return wcSend
}

// flushSends completes all requests that have not been sent. The caller holds sendMu.
func (d *datagramQP) flushSends() {
	for ; d.count > 0; d.count-- {
		w := &d.sends[d.first]
		d.first = (d.first + 1) % len(d.sends)
		d.complete(d.sendCQ, &datagramWC{WC: WC{ID: w.id, Status: wcFlushed, Opcode: w.opcode()}, urgent: true})
	}
	d.waits.Store(false)
}
