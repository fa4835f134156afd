//go:build linux

package dropin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/ddp"
	"urnic/rdmap"
	"urnic/rnic"
)

// ethernet makes an engine whose completions are InfiniBand's.
func ethernet(t testing.TB, settings ...string) *lab {
	t.Helper()
	return newLab(t, append(settings, "URNIC_TRANSPORT=ethernet")...)
}

// A Send completes when the peer has taken it, not when TCP has.
func TestSendCompletesWhenThePeerHasIt(t *testing.T) {
	l := ethernet(t)
	a, b := l.pair()
	a.post(send(wrSend, 1, a.sge(0, 8)))
	for range 1000 {
		a.none()
		b.none()
	}
	b.recv(2, b.sge(0, 8))
	b.want(2, wcSuccess)
	a.want(1, wcSuccess)
}

// What was written is in the peer's memory when the Write has completed, whatever way the
// completion comes.
func TestWriteIsPlacedWhenItCompletes(t *testing.T) {
	l := ethernet(t)
	a, b := l.pair()
	for round := range 500 {
		fill(a.mem, round)
		b.mem[4095] = ^a.mem[4095]
		a.post(send(wrWrite, 7, a.sge(0, 4096)).toward(b, 0))
		if wc := a.want(7, wcSuccess); wc.ByteLen != 4096 || wc.Opcode != wcWrite {
			t.Errorf("%+v", wc)
		}
		if !bytes.Equal(a.mem[:4096], b.mem[:4096]) {
			t.Fatalf("round %d: it has completed, and is not there", round)
		}
	}
}

// Unsignaled requests complete nothing and are acknowledged by what is behind them; requests
// of all kinds complete in their order.
func TestAcknowledgedRequestsCompleteInTheirOrder(t *testing.T) {
	l := ethernet(t)
	a, b := l.pair()
	quiet := func(w *SendWR) *SendWR {
		w.Flags &^= sendSignaled
		return w
	}
	for range 100 {
		for i := range uint64(3) {
			b.recv(100+i, b.sge(4000, 100))
		}
		a.post(
			quiet(send(wrWrite, 1, a.sge(0, 100)).toward(b, 0)), send(wrSend, 2, a.sge(0, 100)),
			send(wrRead, 3, a.sge(200, 100)).toward(b, 0), send(wrWrite, 4, a.sge(0, 100)).toward(b, 100),
			quiet(send(wrRead, 5, a.sge(200, 100)).toward(b, 0)), send(wrFetchAdd, 6, a.sge(400, 8)).toward(b, 800),
			send(wrWriteImm, 7, a.sge(0, 10)).toward(b, 0), quiet(send(wrWrite, 8, a.sge(0, 10)).toward(b, 0)), send(wrSendImm, 9, a.sge(0, 10)),
		)
		for _, id := range []uint64{2, 3, 4, 6, 7, 9} {
			a.want(id, wcSuccess)
		}
		for i := range uint64(3) {
			b.want(100+i, wcSuccess)
		}
	}
	a.none()
}

// The program has the depth that it was told, no more and no less, though its queue holds
// requests of the library's as well.
func TestDepthIsTheProgramsOwn(t *testing.T) {
	l := ethernet(t)
	const depth = leastAcknowledged + 1
	a, b := l.pair(func(e *end) { e.init.MaxSendWR = depth })
	if a.init.MaxSendWR != depth {
		t.Fatalf("max_send_wr %d; want %d", a.init.MaxSendWR, depth)
	}
	for range 50 {
		for i := range uint64(depth) {
			a.post(send(wrWrite, i, a.sge(0, 64)).toward(b, 0))
		}
		l.want("one more", l.QPPostSend(a.qp, send(wrWrite, depth, a.sge(0, 64)).toward(b, 0), nil), unix.ENOMEM)
		l.want("one more by ibv_wr_complete", l.QPPostAll(a.qp, send(wrWrite, depth, a.sge(0, 64)).toward(b, 0)), unix.ENOMEM)
		for i := range uint64(depth) {
			a.want(i, wcSuccess)
		}
	}
	unsignaled := send(wrWrite, 1, a.sge(0, 64)).toward(b, 0)
	unsignaled.Flags = 0
	for range 10 * depth { // a program that never asks for a completion goes on, too
		l.until("a slot", func() bool { return l.QPPostSend(a.qp, unsignaled, nil) == ok })
	}
	a.post(send(wrWrite, 2, a.sge(0, 64)).toward(b, 0))
	a.want(2, wcSuccess)
}

// An event of the channel is one of a completion, which is there when it comes.
func TestChannelFiresForAcknowledged(t *testing.T) {
	l := ethernet(t)
	a, b := l.pair()
	for round := range 200 {
		l.must("arm", l.CQArm(a.cq, false))
		a.post(send(wrSend, 1, a.sge(0, 8)))
		if readable(t, a.fd) {
			t.Fatalf("round %d: an event before the peer has a receive", round)
		}
		b.recv(2, b.sge(0, 8))
		l.until("an event", func() bool { return readable(t, a.fd) })
		var cookie uint64
		l.must("event", l.ChannelNext(a.channel, &cookie))
		var wc WC
		if n := l.CQPoll(a.cq, 1, &wc); n != 1 || wc.ID != 1 || wc.Status != wcSuccess {
			t.Fatalf("round %d: an event, and then %d completions: %+v", round, n, wc)
		}
		b.want(2, wcSuccess)
	}
}

// Completions for which a poll has no room come with the next ones, and a queue that is
// armed meanwhile fires for them.
func TestCompletionsThatOnePollHasNoRoomFor(t *testing.T) {
	l := ethernet(t)
	a, b := l.pair()
	for round := range 50 {
		var list []*SendWR
		for i := range uint64(10) {
			list = append(list, send(wrWrite, i, a.sge(0, 64)).toward(b, 0))
		}
		a.post(list...)
		a.want(0, wcSuccess)
		l.must("arm", l.CQArm(a.cq, false))
		l.until("an event", func() bool { return readable(t, a.fd) })
		var cookie uint64
		l.must("event", l.ChannelNext(a.channel, &cookie))
		for i := range uint64(9) {
			a.want(i+1, wcSuccess)
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// A peer that takes no Reads can't be asked: then requests complete as on iWARP, and a line
// says so.
func TestPeerThatTakesNoReads(t *testing.T) {
	l := ethernet(t, "URNIC_LOG=warning")
	a, b := l.end(), l.end()
	l.connectWith(a, b, rnic.ConnParam{IRD: -1, ORD: -1})
	a.post(send(wrSend, 1, a.sge(0, 8)))
	a.want(1, wcSuccess)
	b.none()
	b.recv(2, b.sge(0, 8))
	b.want(2, wcSuccess)
	if !strings.Contains(l.said.String(), "the peer accepts no RDMA Reads") {
		t.Errorf("it says\n%s", l.said)
	}
}

// connectWith is connect with parameters.
func (l *lab) connectWith(a, b *end, p rnic.ConnParam) {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := l.device.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	defer n.Close()
	done := make(chan error, 1)
	go func() {
		r, err := n.Accept(ctx)
		if err == nil {
			err = r.Accept(ctx, l.Engine.qp(b.qp).verbs, p)
		}
		done <- err
	}()
	if err := l.qp(a.qp).verbs.Connect(ctx, n.Addr().String(), p); err != nil {
		l.Fatal(err)
	}
	if err := <-done; err != nil {
		l.Fatal(err)
	}
	for _, e := range []*end{a, b} {
		l.Engine.qp(e.qp).connected()
	}
}

// The request that the peer refuses is the one that fails. Those before it succeed, signaled
// or not, and those behind it are flushed. vendor_err and the log say why.
func TestRefusedRequestIsTheOneThatFails(t *testing.T) {
	const whole = 8192
	foreign := func(b *end) uint32 {
		other := *b
		var bad Errno
		other.pd, bad = b.lab.PDAlloc(b.ctx)
		b.lab.must("allocate PD", bad)
		return other.register(make([]byte, whole), allAccess).STag
	}
	write := func(a *end, rkey uint32, to uint64, n int) *SendWR {
		w := send(wrWrite, 50, a.sge(0, n))
		*w.RDMA() = RDMAWR{RemoteAddr: to, RKey: rkey}
		return w
	}
	for _, c := range []struct {
		name   string
		fault  func(a, b *end) *SendWR
		status uint32
		vendor uint32
		says   string
	}{
		{"bad rkey", func(a, b *end) *SendWR { return write(a, b.mr.STag^0xff00, b.mr.Addr, 8) }, wcRemoteAccess, 0x0100, "the peer has no such rkey"},
		{"bounds", func(a, b *end) *SendWR { return write(a, b.mr.STag, b.mr.Addr+whole-4, 8) }, wcRemoteAccess, 0x0101, "out of bounds"},
		{"rights", func(a, b *end) *SendWR {
			mem := make([]byte, 64)
			r := b.register(mem, accessRemoteRead)
			return write(a, r.STag, r.Addr, 8)
		}, wcRemoteAccess, 0x1102, "does not allow it"},
		{"a Read without rights", func(a, b *end) *SendWR {
			mem := make([]byte, 64)
			r := b.register(mem, accessLocalWrite)
			w := send(wrRead, 50, a.sge(0, 8))
			*w.RDMA() = RDMAWR{RemoteAddr: r.Addr, RKey: r.STag}
			return w
		}, wcRemoteAccess, 0x0102, "does not allow it"},
		{"a Read from another domain", func(a, b *end) *SendWR {
			w := send(wrRead, 50, a.sge(0, 8))
			*w.RDMA() = RDMAWR{RemoteAddr: b.mr.Addr, RKey: foreign(b)}
			return w
		}, wcRemoteAccess, 0x0103, "belongs to another protection domain"},
		{"domain", func(a, b *end) *SendWR { return write(a, foreign(b), b.mr.Addr, 8) }, wcRemoteAccess, 0x1102, "another protection domain"},
		{"revoked", func(a, b *end) *SendWR {
			mem := make([]byte, 64)
			r := b.register(mem, allAccess)
			a.post(write(a, r.STag, r.Addr, 8))
			a.want(50, wcSuccess)
			b.lab.must("deregister", b.lab.MRDereg(Handle(r.MR)))
			return write(a, r.STag, r.Addr, 8)
		}, wcRemoteAccess, 0x0110, "revoked"},
		{"a Read of a bad rkey", func(a, b *end) *SendWR {
			w := send(wrRead, 50, a.sge(0, 8))
			*w.RDMA() = RDMAWR{RemoteAddr: b.mr.Addr, RKey: b.mr.STag ^ 0xff00}
			return w
		}, wcRemoteAccess, 0x0100, "the peer has no such rkey"},
		{"a receive that is too short", func(a, _ *end) *SendWR { return send(wrSend, 50, a.sge(0, 200)) }, wcRemoteRequest, 0x1205, "too short"},
		{"a local key", func(a, b *end) *SendWR {
			w := send(wrWrite, 50, a.sge(0, 8)).toward(b, 0)
			w.SGL.LKey ^= 0xff00
			return w
		}, wcLocalProtect, 0, "local protection"},
	} {
		for _, signaled := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, signaled=%t", c.name, signaled), func(t *testing.T) {
				l := ethernet(t, "URNIC_LOG=warning")
				a, b := l.pair()
				for i := range uint64(4) {
					b.recv(i, b.sge(4000, 100))
				}
				fault := c.fault(a, b)
				if !signaled {
					fault.Flags &^= sendSignaled
				}
				quiet := send(wrWrite, 3, a.sge(0, 100)).toward(b, 100)
				quiet.Flags = 0
				fill(a.mem, 9)
				b.mem[4000] = ^a.mem[0]
				a.post(send(wrWrite, 1, a.sge(0, 100)).toward(b, 0), send(wrSend, 2, a.sge(0, 100)), quiet, fault,
					send(wrWrite, 4, a.sge(0, 100)).toward(b, 0), send(wrSend, 5, a.sge(0, 100)))
				a.want(1, wcSuccess)
				a.want(2, wcSuccess)
				if b.mem[4000] != a.mem[0] {
					t.Error("a Send has succeeded, and is not there")
				}
				wc := a.want(50, c.status)
				if c.vendor != 0 && wc.VendorErr != c.vendor {
					t.Errorf("vendor_err 0x%04x; want 0x%04x", wc.VendorErr, c.vendor)
				}
				a.want(4, wcFlushed)
				a.want(5, wcFlushed)
				a.none()
				if !strings.Contains(l.said.String(), c.says) {
					t.Errorf("the log does not say %q:\n%s", c.says, l.said)
				}
			})
		}
	}
}

// The last request that was posted is unsignaled, and nothing is outstanding: when the peer
// refuses it, it completes all the same, and an event tells of it.
func TestRefusedUnsignaledRequestCompletes(t *testing.T) {
	l := ethernet(t)
	a, b := l.pair()
	l.must("arm", l.CQArm(a.cq, false))
	w := send(wrWrite, 5, a.sge(0, 8))
	w.Flags = 0
	*w.RDMA() = RDMAWR{RemoteAddr: b.mr.Addr, RKey: b.mr.STag ^ 0xff00}
	a.post(w)
	l.until("an event", func() bool { return readable(t, a.fd) })
	a.want(5, wcRemoteAccess)
}

// A queue pair that has failed takes part in other connections after a RESET, and knows
// nothing of what was before.
func TestAcknowledgmentsAfterReset(t *testing.T) {
	l := ethernet(t)
	a, b := l.pair()
	w := send(wrWrite, 5, a.sge(0, 8))
	*w.RDMA() = RDMAWR{RemoteAddr: b.mr.Addr, RKey: b.mr.STag ^ 0xff00}
	a.post(w, send(wrWrite, 6, a.sge(0, 8)).toward(b, 0))
	a.want(5, wcRemoteAccess)
	a.to(qpsReset)
	a.to(qpsInit)
	c := l.end()
	l.connect(a, c)
	c.recv(1, c.sge(0, 8))
	a.post(send(wrSend, 7, a.sge(0, 8)))
	a.want(7, wcSuccess)
	c.want(1, wcSuccess)
	a.none()
}

// In state SQD, what was begun completes, and what is posted waits. Nothing is lost or comes
// twice.
func TestAcknowledgmentsBeforeSQD(t *testing.T) {
	l := ethernet(t)
	a, b := l.pair()
	for range 50 {
		for i := range uint64(5) {
			a.post(send(wrWrite, i, a.sge(0, 64)).toward(b, 0))
		}
		l.must("SQD", l.QPModify(a.qp, &QPAttr{State: qpsSQD, SQDNotify: 1}, qpState|qpSQDNotify))
		a.wantAsync(eventSQDrained, qpCookie)
		a.post(send(wrWrite, 5, a.sge(0, 64)).toward(b, 0))
		var wcs [8]WC
		n := l.CQPoll(a.cq, int32(len(wcs)), &wcs[0]) // the others have not been begun
		for i := range n {
			if wcs[i].ID != uint64(i) || wcs[i].Status != wcSuccess || i == 5 {
				t.Fatalf("completion %d: %+v", i, wcs[i])
			}
		}
		a.to(qpsRTS)
		for i := uint64(n); i <= 5; i++ {
			a.want(i, wcSuccess)
		}
	}
	a.none()
}

// What the peer says becomes a status of InfiniBand's.
func TestRefusalStatuses(t *testing.T) {
	for code, want := range map[rdmap.TermCode]uint32{
		rdmap.CodeInvalidSTag: wcRemoteAccess, rdmap.CodeBaseBounds: wcRemoteAccess, rdmap.CodeAccessRights: wcRemoteAccess,
		rdmap.CodeSTagNotAssociated: wcRemoteAccess, rdmap.CodeTOWrap: wcRemoteAccess,
		rdmap.TermCode(ddp.CodeInvalidSTag.TermWord()): wcRemoteAccess, rdmap.TermCode(ddp.CodeBaseBounds.TermWord()): wcRemoteAccess,
		rdmap.TermCode(ddp.CodeMSNNoBuffer.TermWord()): wcRNRRetryExceeded, rdmap.TermCode(ddp.CodeMessageTooLong.TermWord()): wcRemoteRequest,
		rdmap.CodeUnexpectedOpcode: wcRemoteRequest, rdmap.CodeLocalCatastrophic: wcRemoteOp, rdmap.CodeStreamCatastrophic: wcRemoteOp,
	} {
		if got := refusalStatus(plainCode(code)); got != want {
			t.Errorf("%v: status %d; want %d", code, got, want)
		}
	}
}

// A Send that waits for a receive holds up nothing that is before it.
func TestWriteBeforeASendThatWaits(t *testing.T) {
	l := ethernet(t)
	for range 50 {
		a, b := l.pair()
		a.post(send(wrWrite, 1, a.sge(0, 8)).toward(b, 0))
		a.post(send(wrSend, 2, a.sge(0, 8)))
		a.want(1, wcSuccess)
		b.recv(3, b.sge(0, 8))
		b.want(3, wcSuccess)
		a.want(2, wcSuccess)
	}
}

// The table of docs/drop-in.md has a row for each cause that vendor_err tells apart, with the
// number and the line that the log has.
func TestCausesOfThePageAreThoseOfTheLog(t *testing.T) {
	page, err := os.ReadFile("../../docs/drop-in.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) == 5 && strings.HasPrefix(cells[2], "0x") {
			rows[cells[2]] += cells[3] + "\n"
		}
	}
	want := map[uint32]string{vendorRevoked: saysRevoked}
	for code, why := range refusals {
		if code != rdmap.CodeTOWrap { // which is one of out of bounds
			want[uint32(code)] = why
		}
	}
	for vendor, why := range want {
		number := fmt.Sprintf("0x%04x", vendor)
		why, _, _ = strings.Cut(why, ": the peer's log")
		if !strings.Contains(rows[number], why) {
			t.Errorf("vendor_err %s: the page does not say %q:\n%s", number, why, rows[number])
		}
		delete(rows, number)
	}
	if len(rows) > 0 {
		t.Errorf("the log has nothing of %v", rows)
	}
}

// A completion queue with as many places as the program has requests does not overflow when
// they are flushed, with those of the library.
func TestFlushedAcknowledgmentsHaveRoom(t *testing.T) {
	l := ethernet(t)
	small := func(e *end) {
		entries := uint32(8)
		var bad Errno
		e.cq, bad = l.CQCreate(e.ctx, &entries, e.channel, cqCookie)
		l.must("create CQ", bad)
		if entries != 8 {
			t.Fatalf("%d entries", entries)
		}
		e.init.SendCQ, e.init.RecvCQ, e.init.MaxSendWR = e.cq, e.cq, 8
	}
	for range 20 {
		a, _ := l.pair(small)
		for i := range uint64(8) {
			a.post(send(wrSend, i, a.sge(0, 8))) // for which there is no receive
		}
		a.to(qpsErr)
		for i := range uint64(8) {
			a.want(i, wcFlushed)
		}
		entries := uint32(16)
		if l.must("resize", l.CQResize(a.cq, &entries)); entries != 16 {
			t.Errorf("%d entries; want 16", entries)
		}
		a.noAsync()
	}
}

// Sends are flushed before receives of the same completion queue, with what acknowledges
// them.
func TestSendsAreFlushedBeforeReceives(t *testing.T) {
	l := ethernet(t)
	for range 20 {
		a, _ := l.pair()
		a.recv(10, a.sge(0, 8))
		a.post(send(wrSend, 1, a.sge(0, 8)), send(wrSend, 2, a.sge(0, 8)))
		a.to(qpsErr)
		for _, id := range []uint64{1, 2, 10} {
			a.want(id, wcFlushed)
		}
		a.none()
	}
}

// Who has a message and gives its queue pair up at once has acknowledged it.
func TestPeerThatLeavesHasAcknowledged(t *testing.T) {
	l := ethernet(t)
	for range 50 {
		a, b := l.pair()
		b.recv(1, b.sge(0, 4096))
		b.recv(2, b.sge(0, 4096))
		b.recv(3, b.sge(0, 4096))
		for i := range uint64(3) { // the second and the third are not asked about before the first has completed
			a.post(send(wrSend, 5+i, a.sge(0, 4096)))
		}
		for i := range uint64(3) {
			b.want(1+i, wcSuccess)
		}
		l.must("destroy", l.QPDestroy(b.qp))
		for i := range uint64(3) {
			a.want(5+i, wcSuccess)
		}
	}
}
