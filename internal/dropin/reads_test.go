//go:build linux

package dropin

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// sinks names n pieces of 8 bytes of the end's memory, 16 bytes apart.
func (e *end) sinks(at, n int) []SGE {
	sgl := make([]SGE, n)
	for i := range sgl {
		sgl[i] = e.sge(at+16*i, 8)
	}
	return sgl
}

// untouched checks that no sink of 8 bytes holds data.
func (e *end) untouched(at, n int) {
	e.lab.Helper()
	if got := e.mem[at : at+16*n]; !bytes.Equal(got, make([]byte, len(got))) {
		e.lab.Errorf("the refused Read has left data in its sinks: % x", got)
	}
}

// link makes a list of requests.
func link(wrs ...*SendWR) *SendWR {
	for i := range wrs[1:] {
		wrs[i].Next = wrs[i+1]
	}
	return wrs[0]
}

// A Read with several sinks that does not fit is refused as a whole: none of its
// sinks is ever written, and it completes never.
func TestRefusedReadWithSeveralSinksDoesNotRun(t *testing.T) {
	l := newLab(t)
	a, b := l.end(func(e *end) { e.init.MaxSendWR = 3 }), l.end()
	fill(b.mem, 5)
	var bad *SendWR
	fits, refused := send(wrRead, 2, a.sinks(0, 3)...).toward(b, 0), send(wrRead, 4, a.sinks(1024, 4)...).toward(b, 0)
	list := link(send(wrSend, 1), fits, send(wrRead, 3, a.sinks(512, 4)...).toward(b, 0), refused, send(wrSend, 5))
	l.want("post send", l.QPPostSend(a.qp, list, &bad), unix.ENOMEM)
	if bad != refused {
		t.Errorf("bad_wr is request %d; want 4", bad.ID)
	}
	b.recv(1)
	l.connect(a, b)
	for id := range uint64(3) {
		a.want(id+1, wcSuccess)
	}
	a.none()
	a.untouched(1024, 4)
}

// The depth of the send queue counts what the program posts, however many Reads go to
// the peer.
func TestSendQueueTakesAsManyReadsAsItsDepth(t *testing.T) {
	const depth, sinks = 5, 32
	for name, post := range map[string]func(l *lab, e *end, wr *SendWR) Errno{
		"post send": func(l *lab, e *end, wr *SendWR) Errno { var bad *SendWR; return l.QPPostSend(e.qp, wr, &bad) },
		"post all":  func(l *lab, e *end, wr *SendWR) Errno { return l.QPPostAll(e.qp, wr) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			a, b := l.pair(func(e *end) { e.init.MaxSendWR, e.init.MaxSendSGE = depth, sinks })
			fill(b.mem, 9)
			for round := range uint64(3) {
				clear(a.mem)
				var list []*SendWR
				for id := range uint64(depth) {
					list = append(list, send(wrRead, 10*round+id, a.sinks(int(id)*16*sinks, sinks)...).toward(b, int(id)*8*sinks))
				}
				l.must("post", post(l, a, link(list...)))
				l.want("one more than the queue takes", post(l, a, send(wrRead, 99, a.sge(0, 8)).toward(b, 0)), unix.ENOMEM)
				for id := range uint64(depth) {
					wantWC(t, a.next(), WC{ID: 10*round + id, Opcode: wcRead, ByteLen: 8 * sinks, QPN: a.init.QPN})
				}
				a.none()
				for i := range depth * sinks {
					if !bytes.Equal(a.mem[16*i:16*i+8], b.mem[8*i:8*i+8]) {
						t.Fatalf("round %d: sink %d holds other data", round, i)
					}
				}
			}
		})
	}
}

// A list is posted up to its first bad request. Of that one nothing is done.
func TestListOfReadsIsPostedUpToTheFirstBadOne(t *testing.T) {
	for name, spoil := range map[string]func(wr *SendWR){
		"an opcode that is none": func(wr *SendWR) { wr.Opcode = 99 },
		"more sinks than fit":    func(wr *SendWR) { wr.NumSGE = 33 },
		"fewer sinks than none":  func(wr *SendWR) { wr.NumSGE = -1 },
		"more than a message":    func(wr *SendWR) { wr.SGL.Length = 1<<32 - 24 },
		"inline":                 func(wr *SendWR) { wr.Flags |= sendInline },
		"no sinks at all":        func(wr *SendWR) { wr.SGL = nil },
		"one sink too many for the queue": func(wr *SendWR) {
			wr.NumSGE = 5
		},
	} {
		for _, before := range []int{0, 1, 7, 8, 31, 32, 40} {
			l := newLab(t)
			a, b := l.end(), l.end()
			fill(b.mem, 5)
			var list []*SendWR
			for id := range before {
				list = append(list, send(wrRead, uint64(id), a.sinks(64*id, 4)...).toward(b, 0))
			}
			wrong := send(wrRead, 1000, a.sinks(4096, 32)...).toward(b, 0)
			wrong.NumSGE = 4
			spoil(wrong)
			list = append(list, wrong, send(wrRead, 1001, a.sinks(6144, 4)...).toward(b, 0))
			var bad *SendWR
			l.want(name, l.QPPostSend(a.qp, link(list...), &bad), unix.EINVAL)
			if bad != wrong {
				t.Errorf("%s behind %d good ones: bad_wr is another", name, before)
			}
			none := l.end()
			l.want(name+", all or none", l.QPPostAll(none.qp, list[0]), unix.EINVAL)
			none.to(qpsErr)
			none.none()
			l.connect(a, b)
			for id := range before {
				a.want(uint64(id), wcSuccess)
			}
			a.none()
			a.untouched(4096, 36)
			a.untouched(6144, 4)
		}
	}
}

// A sink that can't be used fails its request, whichever of its sinks it is: there is
// one completion, and no sink has data.
func TestBadSinkFailsTheWholeRead(t *testing.T) {
	for which := range 4 {
		for _, flags := range []uint32{sendSignaled, 0} {
			l := newLab(t)
			a, b := l.pair()
			fill(b.mem, 5)
			b.recv(1)
			sgl := a.sinks(0, 4)
			sgl[which].LKey ^= 0x100
			wr := send(wrRead, 2, sgl...).toward(b, 0)
			wr.Flags = flags
			a.post(send(wrSend, 1), wr, send(wrRead, 3, a.sinks(2048, 3)...).toward(b, 0))
			a.want(1, wcSuccess)
			a.want(2, wcLocalProtect)
			a.want(3, wcFlushed)
			a.none()
			a.untouched(0, 4)
			a.untouched(2048, 3)
		}
	}
}

// What the peer does not allow fails the request once, wherever in it that is.
func TestRefusalOfThePeerFailsTheReadOnce(t *testing.T) {
	for within := range 4 { // so many sinks are filled from memory of the peer
		for _, flags := range []uint32{sendSignaled, 0} {
			l := newLab(t)
			a, b := l.pair()
			wr := send(wrRead, 2, a.sinks(0, 4)...).toward(b, len(b.mem)-8*within)
			wr.Flags = flags
			a.post(send(wrRead, 1, a.sinks(1024, 4)...).toward(b, 0), wr, send(wrRead, 3, a.sinks(2048, 4)...).toward(b, 0))
			a.want(1, wcSuccess)
			a.want(2, wcRemoteAccess)
			a.want(3, wcFlushed)
			a.none()
			a.wantAsync(eventQPFatal, qpCookie)
			b.wantAsync(eventQPAccess, qpCookie)
		}
	}
}

// A Read that is flushed is flushed once, signaled or not.
func TestReadsAreFlushedOnce(t *testing.T) {
	l := newLab(t)
	a := l.end()
	quiet := send(wrRead, 2, a.sinks(512, 4)...)
	quiet.Flags = 0
	a.post(send(wrRead, 1, a.sinks(0, 4)...), quiet, send(wrRead, 3, a.sinks(1024, 2)...))
	a.to(qpsErr)
	for id := range uint64(3) {
		a.want(id+1, wcFlushed)
	}
	a.post(send(wrRead, 4, a.sinks(0, 4)...)) // to a queue pair in state ERR
	a.want(4, wcFlushed)
	a.none()
}

// Sinks of no bytes take no part: their lkeys may be anything.
func TestEmptySinks(t *testing.T) {
	l := newLab(t)
	a, b := l.pair(func(e *end) { e.init.MaxSendSGE = 6 })
	fill(b.mem, 5)
	none := SGE{Addr: 5, LKey: 0xdead_beef}
	a.post(
		send(wrRead, 1, none, a.sge(0, 8), none, none, a.sge(16, 8), none).toward(b, 40),
		send(wrRead, 2, none, none, none).toward(b, 0),
		send(wrRead, 3, none, a.sge(32, 8)).toward(b, 0),
	)
	for id, n := range []uint32{16, 0, 8} {
		wantWC(t, a.next(), WC{ID: uint64(id + 1), Opcode: wcRead, ByteLen: n, QPN: a.init.QPN})
	}
	a.none()
	if !bytes.Equal(append(bytes.Clone(a.mem[:8]), a.mem[16:24]...), b.mem[40:56]) || !bytes.Equal(a.mem[32:40], b.mem[:8]) {
		t.Error("the data differ")
	}
}

// A fence waits for all of a Read, and a Read that is not signaled completes nothing.
func TestFenceWaitsForAllSinks(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	fill(b.mem[:64], 9)
	b.recv(1, b.sge(1000, 64))
	quiet := send(wrRead, 1, a.sge(0, 8), a.sge(8, 8), a.sge(16, 48)).toward(b, 0)
	quiet.Flags = 0
	fenced := send(wrSend, 2, a.sge(0, 64))
	fenced.Flags |= sendFence
	behind := send(wrRead, 3, a.sinks(1024, 4)...).toward(b, 0)
	behind.Flags |= sendFence
	a.post(quiet, fenced, behind)
	a.want(2, wcSuccess)
	a.want(3, wcSuccess)
	a.none()
	b.want(1, wcSuccess)
	if !bytes.Equal(b.mem[1000:1064], b.mem[:64]) {
		t.Error("the Send has not waited")
	}
}
