//go:build linux

package dropin

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fill fills memory with bytes that differ.
func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
}

func wantWC(t testing.TB, got, want WC) {
	t.Helper()
	if got != want {
		t.Errorf("completion %+v; want %+v", got, want)
	}
}

// Each operation does what it says, and completes as rdma-core says.
func TestOperations(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(a.mem[:4096], 1)
	same := func(what string, x, y []byte) {
		t.Helper()
		if !bytes.Equal(x, y) {
			t.Errorf("%s: the data differ", what)
		}
	}
	from, to := a.init.QPN, b.init.QPN

	b.recv(11, b.sge(0, 100), b.sge(200, 100))
	a.post(send(wrSend, 1, a.sge(0, 50), a.sge(50, 100)))
	wantWC(t, a.next(), WC{ID: 1, Opcode: wcSend, ByteLen: 150, QPN: from})
	wantWC(t, b.next(), WC{ID: 11, Opcode: wcRecv, ByteLen: 150, QPN: to})
	same("send", append(bytes.Clone(b.mem[:100]), b.mem[200:250]...), a.mem[:150])

	a.post(send(wrWrite, 2, a.sge(0, 1000)).toward(b, 1000), send(wrRead, 3, a.sge(5000, 1000)).toward(b, 1000))
	wantWC(t, a.next(), WC{ID: 2, Opcode: wcWrite, ByteLen: 1000, QPN: from})
	wantWC(t, a.next(), WC{ID: 3, Opcode: wcRead, ByteLen: 1000, QPN: from})
	same("write", b.mem[1000:2000], a.mem[:1000])
	same("read", a.mem[5000:6000], a.mem[:1000])

	imm := send(wrWriteImm, 4, a.sge(100, 300)).toward(b, 3000)
	imm.Imm = 0x12345678
	b.recv(14)
	a.post(imm)
	wantWC(t, a.next(), WC{ID: 4, Opcode: wcWrite, ByteLen: 300, QPN: from})
	wantWC(t, b.next(), WC{ID: 14, Opcode: wcRecvImm, ByteLen: 300, Imm: 0x12345678, Flags: wcWithImm, QPN: to})
	same("write with immediate", b.mem[3000:3300], a.mem[100:400])

	imm = send(wrSendImm, 5, a.sge(7, 13))
	imm.Imm = 0x9abcdef0
	b.recv(15, b.sge(0, 13))
	b.recv(16)
	a.post(imm, send(wrSend, 6))
	wantWC(t, a.next(), WC{ID: 5, Opcode: wcSend, ByteLen: 13, QPN: from})
	wantWC(t, a.next(), WC{ID: 6, Opcode: wcSend, QPN: from})
	wantWC(t, b.next(), WC{ID: 15, Opcode: wcRecv, ByteLen: 13, Imm: 0x9abcdef0, Flags: wcWithImm, QPN: to})
	wantWC(t, b.next(), WC{ID: 16, Opcode: wcRecv, QPN: to})
	same("send with immediate", b.mem[:13], a.mem[7:20])

	binary.NativeEndian.PutUint64(b.mem[64:], 40)
	add := send(wrFetchAdd, 7, a.sge(4096, 8)).toward(b, 64)
	add.WR.CompareAdd = 2
	swap := send(wrCmpSwap, 8, a.sge(4104, 8)).toward(b, 64)
	swap.WR.CompareAdd, swap.WR.Swap = 42, 7
	missed := send(wrCmpSwap, 9, a.sge(4112, 8)).toward(b, 64)
	missed.WR.CompareAdd, missed.WR.Swap = 42, 9
	a.post(add, swap, missed)
	wantWC(t, a.next(), WC{ID: 7, Opcode: wcFetchAdd, ByteLen: 8, QPN: from})
	wantWC(t, a.next(), WC{ID: 8, Opcode: wcCmpSwap, ByteLen: 8, QPN: from})
	wantWC(t, a.next(), WC{ID: 9, Opcode: wcCmpSwap, ByteLen: 8, QPN: from})
	for i, want := range []uint64{40, 42, 7} {
		if got := binary.NativeEndian.Uint64(a.mem[4096+8*i:]); got != want {
			t.Errorf("atomic %d has found %d; want %d", i, got, want)
		}
	}
	if got := binary.NativeEndian.Uint64(b.mem[64:]); got != 7 {
		t.Errorf("at the end %d; want 7", got)
	}
	a.none()
	b.none()
	a.noAsync()
	b.noAsync()
}

// A Read with several sinks is one request: one completion, in its turn, with the
// bytes of all in the order of the sinks.
func TestReadWithSeveralSinks(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(b.mem, 5)
	a.post(
		send(wrRead, 1, a.sge(0, 10), a.sge(100, 0), a.sge(200, 30)).toward(b, 50),
		send(wrRead, 2, a.sge(300, 5)).toward(b, 0),
	)
	a.want(1, wcSuccess)
	a.want(2, wcSuccess)
	a.none()
	if !bytes.Equal(append(bytes.Clone(a.mem[:10]), a.mem[200:230]...), b.mem[50:90]) {
		t.Error("the data differ")
	}
	sgl := make([]SGE, 32)
	for i := range sgl {
		sgl[i] = a.sge(16*i, 16)
	}
	big := l.end(func(e *end) { e.init.MaxSendSGE, e.init.MaxSendWR = 32, 3 })
	other := l.end()
	l.connect(big, other)
	for i := range sgl {
		sgl[i] = big.sge(16*i, 16)
	}
	other.recv(1)
	big.post(send(wrSend, 1), send(wrRead, 2, sgl...).toward(other, 0), send(wrRead, 3, sgl...).toward(other, 0))
	for id := range uint64(3) {
		big.want(id+1, wcSuccess)
	}
	if !bytes.Equal(big.mem[:512], other.mem[:512]) {
		t.Error("the data of 32 sinks differ")
	}
}

// Inline data are copied when they are posted, from any memory.
func TestInlineDataAreCopied(t *testing.T) {
	l := newLab(t)
	a, b := l.end(), l.end()
	data := []byte("inline data of several pieces")
	plain := a.register(data, 0)
	l.must("deregister", l.MRDereg(Handle(plain.MR))) // inline data need no region
	sgl := []SGE{{Addr: plain.Addr, Length: 7}, {}, {Addr: plain.Addr + 7, Length: uint32(len(data) - 7)}}
	for id := range uint64(40) {
		b.recv(id, b.sge(64*int(id), 64))
	}
	var list []*SendWR
	for id := range uint64(40) {
		wr := send(wrSend, id, sgl...)
		wr.Flags |= sendInline
		list = append(list, wr)
	}
	a.post(list...) // there is no connection yet
	clear(data)
	l.connect(a, b)
	for id := range uint64(40) {
		a.want(id, wcSuccess)
		b.want(id, wcSuccess)
		if got := string(b.mem[64*id:][:29]); got != "inline data of several pieces" {
			t.Fatalf("message %d: %q", id, got)
		}
	}
}

// Inline data that can't be read are an error of the call, and nothing else.
func TestInlineDataThatCannotBeRead(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(page); err != nil {
			t.Error(err)
		}
	})
	b.recv(1, b.sge(0, 8))
	b.recv(2, b.sge(0, 8))
	good, wrong, last := send(wrSend, 3, a.sge(0, 8)), send(wrSend, 4, a.sge(0, 8), SGE{Addr: uint64(uintptr(unsafe.Pointer(&page[0]))), Length: 8}), send(wrSend, 5, a.sge(0, 8))
	for _, wr := range []*SendWR{good, wrong, last} {
		wr.Flags |= sendInline
	}
	good.Next, wrong.Next = wrong, last
	l.want("all", l.QPPostAll(a.qp, good), unix.EFAULT)
	var bad *SendWR
	l.want("one by one", l.QPPostSend(a.qp, good, &bad), unix.EFAULT)
	if bad != wrong {
		t.Errorf("the bad request is %p; want %p", bad, wrong)
	}
	a.post(last)
	a.want(3, wcSuccess)
	a.want(5, wcSuccess)
	b.want(1, wcSuccess)
	b.want(2, wcSuccess)
}

func TestOnlyWhatIsSignaledCompletes(t *testing.T) {
	l := newLab(t)
	for name, all := range map[string]uint32{"as asked": 0, "all": 1} {
		a, b := l.pair(func(e *end) { e.init.SignalAll = all })
		for id := range uint64(3) {
			b.recv(id)
		}
		quiet := send(wrSend, 1)
		quiet.Flags = 0
		a.post(send(wrSend, 0), quiet, send(wrSend, 2))
		a.want(0, wcSuccess)
		if all != 0 {
			a.want(1, wcSuccess)
		}
		a.want(2, wcSuccess)
		for id := range uint64(3) {
			b.want(id, wcSuccess)
		}
		a.none()
		if t.Failed() {
			t.Log(name)
		}
	}
}

// A fenced request waits for the Reads before it.
func TestFenceWaitsForReads(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(b.mem[:8], 9)
	b.recv(1, b.sge(100, 8))
	fenced := send(wrSend, 2, a.sge(0, 8))
	fenced.Flags |= sendFence
	a.post(send(wrRead, 1, a.sge(0, 8)).toward(b, 0), fenced)
	a.want(1, wcSuccess)
	a.want(2, wcSuccess)
	b.want(1, wcSuccess)
	if !bytes.Equal(b.mem[100:108], b.mem[:8]) {
		t.Error("the Send has not waited")
	}
}

// A completion queue fires at its channel for what it was armed for.
func TestCompletionChannel(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	for id := range uint64(4) {
		b.recv(id)
	}
	var cookie uint64
	l.want("nothing has fired", l.ChannelNext(b.channel, &cookie), unix.EAGAIN)
	l.must("arm", l.CQArm(b.cq, true))
	solicited := send(wrSend, 2)
	solicited.Flags |= sendSolicited
	a.post(send(wrSend, 1))
	l.until("a receive", func() bool { var wc WC; return l.CQPoll(b.cq, 1, &wc) == 1 })
	if readable(l.TB, b.fd) {
		t.Error("it has fired for a Send that is not solicited")
	}
	a.post(solicited)
	l.until("the descriptor", func() bool { return readable(l.TB, b.fd) })
	l.must("next", l.ChannelNext(b.channel, &cookie))
	if cookie != cqCookie || readable(l.TB, b.fd) {
		t.Errorf("cookie %d; want %d, and then nothing", cookie, cqCookie)
	}
	b.want(1, wcSuccess)
	l.must("arm", l.CQArm(b.cq, false))
	a.post(send(wrSend, 3))
	l.until("the descriptor", func() bool { return readable(l.TB, b.fd) })
	l.want("destroy a channel in use", l.ChannelDestroy(b.channel), unix.EBUSY)
	l.must("destroy QP", l.QPDestroy(b.qp))
	l.must("destroy CQ", l.CQDestroy(b.cq))
	l.want("the queue is gone", l.ChannelNext(b.channel, &cookie), unix.EAGAIN)
	l.must("destroy channel", l.ChannelDestroy(b.channel))
}

// Lists are posted up to the first bad request, wherever that is.
func TestListsArePostedUpToTheFirstBadOne(t *testing.T) {
	l := newLab(t)
	for _, n := range []int{0, 1, 2, 31, 32, 33, 60} {
		a := l.end()
		var list []*SendWR
		for id := range n {
			list = append(list, send(wrSend, uint64(id)))
		}
		wrong := send(99, 1000)
		list = append(list, wrong, send(wrSend, 1001))
		for i := range list[1:] {
			list[i].Next = list[i+1]
		}
		var bad *SendWR
		l.want("post send", l.QPPostSend(a.qp, list[0], &bad), unix.EINVAL)
		if bad != wrong {
			t.Errorf("%d good ones: bad_wr is another", n)
		}
		recvs := make([]RecvWR, n+2)
		for i := range recvs {
			recvs[i].ID = uint64(1000 + i)
			if i > 0 {
				recvs[i-1].Next = &recvs[i]
			}
		}
		recvs[n].NumSGE = -1
		var badRecv *RecvWR
		l.want("post receive", l.QPPostRecv(a.qp, &recvs[0], &badRecv), unix.EINVAL)
		if badRecv != &recvs[n] {
			t.Errorf("%d good ones: bad_wr is another receive", n)
		}
		a.to(qpsErr)
		for id := range n {
			a.want(uint64(id), wcFlushed)
		}
		for id := range n {
			a.want(uint64(1000+id), wcFlushed)
		}
		a.none()
	}
}

func TestFullQueues(t *testing.T) {
	l := newLab(t)
	a := l.end(func(e *end) { e.init.MaxSendWR, e.init.MaxRecvWR = 2, 3 })
	list := []*SendWR{send(wrSend, 0), send(wrSend, 1), send(wrSend, 2)}
	list[0].Next, list[1].Next = list[1], list[2]
	var bad *SendWR
	l.want("post send", l.QPPostSend(a.qp, list[0], &bad), unix.ENOMEM)
	if bad != list[2] {
		t.Error("bad_wr is another")
	}
	for id := range uint64(3) {
		a.recv(id)
	}
	var badRecv *RecvWR
	wr := &RecvWR{}
	l.want("post receive", l.QPPostRecv(a.qp, wr, &badRecv), unix.ENOMEM)
	if badRecv != wr {
		t.Error("bad_wr is another receive")
	}
}
