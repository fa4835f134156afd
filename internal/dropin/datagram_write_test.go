//go:build linux

package dropin

import (
	"bytes"
	"testing"
	"time"

	"urnic/internal/dropin/datagram"
)

// writableUC returns two UC ends whose queue pairs peers may write by.
func writableUC(t *testing.T) (a, b *end) {
	a, b = newLab(t, ethernetSetting).end(uc), newLab(t, ethernetSetting, "URNIC_LOG=info").end(uc)
	for _, e := range []*end{a, b} {
		e.lab.must("set the access", e.lab.QPModify(e.qp, &QPAttr{Access: allAccess}, qpAccess))
	}
	connectUC(t, a, b, 7)
	return a, b
}

// writeTo is an RDMA Write from the beginning of an end's memory.
func (e *end) writeTo(id uint64, n int, to uint64, rkey uint32) *SendWR {
	w := send(wrWrite, id, e.sge(0, n))
	*w.RDMA() = RDMAWR{RemoteAddr: to, RKey: rkey}
	return w
}

func TestUnreliableConnectionsWrite(t *testing.T) {
	a, b := writableUC(t)
	from, to := make([]byte, 300_000), make([]byte, 300_100)
	fill(from, 3)
	fromMR, toMR := a.register(from, allAccess), b.register(to, allAccess)
	big := func(opcode uint32, id, at uint64) *SendWR {
		w := send(opcode, id, SGE{fromMR.Addr, uint32(len(from)), fromMR.STag})
		*w.RDMA() = RDMAWR{RemoteAddr: toMR.Addr + at, RKey: toMR.STag}
		w.Imm = 77
		return w
	}
	b.recv(12)
	a.post(big(wrWrite, 1, 50))
	wantWC(t, a.next(), WC{ID: 1, Opcode: wcWrite, ByteLen: uint32(len(from)), QPN: a.init.QPN})
	a.post(big(wrWriteImm, 2, 50))
	a.want(2, wcSuccess)
	wantWC(t, b.next(), WC{ID: 12, Opcode: wcRecvImm, ByteLen: uint32(len(from)), QPN: b.init.QPN, SrcQP: a.init.QPN, Flags: wcWithImm, Imm: 77})
	if !bytes.Equal(to[50:300_050], from) || !bytes.Equal(to[:50], make([]byte, 50)) || !bytes.Equal(to[300_050:], make([]byte, 50)) {
		t.Error("the data differ")
	}
	b.recv(13)
	empty := send(wrWriteImm, 3)
	a.post(empty)
	a.want(3, wcSuccess)
	if wc := b.want(13, wcSuccess); wc.ByteLen != 0 || wc.Opcode != wcRecvImm {
		t.Errorf("a Write of nothing completes with %+v", wc)
	}
}

// A Write that may not be is dropped and counted, touches nothing, and takes no receive.
func TestUnreliableWritesThatMayNotBe(t *testing.T) {
	a, b := writableUC(t)
	readOnly := b.register(make([]byte, 64), accessLocalWrite|accessRemoteRead)
	foreign := *b
	foreign.pd, _ = b.lab.PDAlloc(b.ctx)
	other := foreign.register(make([]byte, 64), allAccess)
	end := b.mr.Addr + b.mr.Length
	b.recv(12)
	fill(a.mem, 1)
	before := bytes.Clone(b.mem)
	dropped := func(n uint64) bool {
		d := b.lab.qp(b.qp).datagram
		d.recvMu.Lock()
		defer d.recvMu.Unlock()
		return d.queue.Dropped()[datagram.NoAccess] == n
	}
	for i, w := range []*SendWR{
		a.writeTo(1, 8, b.mr.Addr, b.mr.STag^0xff00),
		a.writeTo(2, 8, b.mr.Addr-1, b.mr.STag),
		a.writeTo(3, 8, end-4, b.mr.STag),
		a.writeTo(4, 8, 1<<64-4, b.mr.STag),
		a.writeTo(5, 8, readOnly.Addr, readOnly.STag),
		a.writeTo(6, 8, other.Addr, other.STag),
	} {
		w.Opcode = wrWriteImm
		a.post(w)
		a.want(w.ID, wcSuccess)
		b.lab.until("it is dropped", func() bool {
			b.none()
			return dropped(uint64(i + 1))
		})
	}
	b.lab.must("take the access away", b.lab.QPModify(b.qp, &QPAttr{State: qpsRTS}, qpState|qpAccess))
	a.post(a.writeTo(7, 8, b.mr.Addr, b.mr.STag))
	a.want(7, wcSuccess)
	b.lab.until("it is dropped", func() bool {
		b.none()
		return dropped(7)
	})
	if !bytes.Equal(b.mem, before) {
		t.Error("memory has changed")
	}
}

// The messages of several UC queue pairs to one process, each longer than what may be under way, do not
// cut each other up.
func TestUnreliableConnectionsSideBySide(t *testing.T) {
	l, other := newLab(t, ethernetSetting), newLab(t, ethernetSetting)
	const pairs, messages, size, ahead = 3, 20, 300_000, 3
	var from, to []*end
	began := time.Now()
	for range pairs {
		a, b := l.end(uc), other.end(uc)
		connectUC(t, a, b, 7)
		mem, sink := make([]byte, size), make([]byte, size)
		a.mr, b.mr = a.register(mem, allAccess), b.register(sink, allAccess)
		a.mem, b.mem = mem, sink
		from, to = append(from, a), append(to, b)
		for i := range ahead { // one that has none holds up all others for a time
			b.recv(uint64(i), b.sge(0, size))
		}
	}
	for i := range messages {
		for k := range pairs {
			to[k].recv(uint64(i+ahead), to[k].sge(0, size))
			from[k].post(send(wrSend, uint64(i), from[k].sge(0, size)))
		}
		for k := range pairs {
			from[k].want(uint64(i), wcSuccess)
			to[k].want(uint64(i), wcSuccess)
		}
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("%d messages take %v: somebody waits in vain", pairs*messages, d)
	}
}

// RDMA Writes are not sent faster than they are taken, though they take no receives.
func TestUnreliableWritesAreAcknowledged(t *testing.T) {
	a, b := writableUC(t)
	for i := range 300 {
		a.post(a.writeTo(uint64(i), 4096, b.mr.Addr, b.mr.STag))
		a.want(uint64(i), wcSuccess)
		b.none() // it is this thread that receives
	}
	if n := a.lab.qp(a.qp).datagram; n.port.Deaf() {
		t.Error("the peer has not answered")
	}
}

// A queue pair that has no more receives holds up no other one of its process, and loses nothing of theirs.
func TestQueuePairWithoutReceivesHoldsUpNoOther(t *testing.T) {
	l, other := newLab(t, ethernetSetting), newLab(t, ethernetSetting)
	const size, messages = 65536, 200
	var from, to [2]*end
	for i := range from {
		a, b := l.end(uc), other.end(uc)
		connectUC(t, a, b, uint32(7+i))
		a.mr, b.mr = a.register(make([]byte, size), allAccess), b.register(make([]byte, size), allAccess)
		from[i], to[i] = a, b
	}
	to[0].recv(1, to[0].sge(0, size))
	from[0].post(send(wrSend, 1, from[0].sge(0, size)))
	from[0].want(1, wcSuccess)
	to[0].want(1, wcSuccess)
	began := time.Now()
	for i := range uint64(messages) {
		to[1].recv(i, to[1].sge(0, size))
		from[1].post(send(wrSend, i, from[1].sge(0, size)))
		from[1].want(i, wcSuccess)
		if l.qp(from[0].qp).datagram.port.Deaf() {
			t.Fatalf("message %d has waited in vain for an answer, for %v", i, time.Since(began))
		}
		to[1].want(i, wcSuccess)
	}
}
