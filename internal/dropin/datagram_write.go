//go:build linux

package dropin

import (
	"errors"

	"urnic/internal/dropin/datagram"
	"urnic/internal/dropin/datagram/carrier"
)

// deliverWrite places a fragment of an RDMA Write of UC. If it may not be written there, the rest of the message is
// dropped, as it is on InfiniBand: nobody is told over the wire. A Write with immediate data takes a receive at its end. The caller
// holds recvMu.
func (d *datagramQP) deliverWrite(a *carrier.Arrival, last bool) {
	var err error
	switch address := a.Address + uint64(a.Offset); {
	case !d.writable.Load():
		err = errNotWritable
	case address < a.Address:
		err = errRKey
	case a.Length > 0:
		err = d.writes.place(a.RKey, address, a.Payload)
	}
	if err != nil {
		d.qp.engine.log.printf(logInfo, "QP 0x%x: an RDMA Write of %d bytes to 0x%x, rkey 0x%x: %v", d.qp.num, a.Length, a.Address, a.RKey, err)
		d.queue.Drop(datagram.NoAccess)
		d.stream.Reset()
		return
	}
	if !last || d.placed.flags&datagram.Immediate == 0 {
		return
	}
	r := d.takeRecv()
	if r == nil {
		return
	}
	w := datagramWC{WC: WC{ID: r.id, Opcode: wcRecvImm, ByteLen: a.Length, SrcQP: a.Source}, receive: true}
	describe(&w, d.placed.flags, a.Imm)
	d.complete(d.recvCQ, &w)
}

var errNotWritable = errors.New("the queue pair has no IBV_ACCESS_REMOTE_WRITE")
