package rnic_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/ddp"
	"urnic/internal/door"
	"urnic/internal/host/memfault"
	"urnic/internal/test/cutnet"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// lossSize is the size of memory that these tests lose.
const lossSize = 64 << 10

// A loss is memory that a program registers, and then takes away.
type loss struct {
	mr   *rnic.MR
	lose func()
}

// losses are the ways to take memory away. Read-only memory is lost to who writes.
var losses = []struct {
	name   string
	writes bool // only to who writes
	from   func(t *testing.T, s *rnictest.Side) loss
}{
	{"inaccessible", false, func(t *testing.T, s *rnictest.Side) loss { return protected(t, s, unix.PROT_NONE) }},
	{"read-only", true, func(t *testing.T, s *rnictest.Side) loss { return protected(t, s, unix.PROT_READ) }},
	{"truncated file", false, truncated},
}

func protected(t *testing.T, s *rnictest.Side, prot int) loss {
	t.Helper()
	mem := mapping(t, lossSize)
	return loss{foreign(t, s, mem), func() {
		if err := unix.Mprotect(mem, prot); err != nil {
			t.Error(err)
		}
	}}
}

// truncated is memory of a file. To touch it then is SIGBUS, not SIGSEGV.
func truncated(t *testing.T, s *rnictest.Side) loss {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.Truncate(lossSize); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, lossSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	return loss{foreign(t, s, mem), func() {
		if err := f.Truncate(0); err != nil {
			t.Error(err)
		}
	}}
}

// foreign registers memory that Go does not own, with every right.
func foreign(t *testing.T, s *rnictest.Side, mem []byte) *rnic.MR {
	t.Helper()
	memfault.Guard()
	mr, err := s.PD.RegisterMemory(rnic.Memory{Pointer: unsafe.Pointer(unsafe.SliceData(mem)), Length: len(mem)}, everyRight, nil)
	if err != nil {
		t.Fatal(err)
	}
	return mr
}

// eachLoss runs f with each way to lose memory, on both networks.
func eachLoss(t *testing.T, writes bool, f func(t *testing.T, p *rnictest.Pair, take func(s *rnictest.Side) loss), options ...rnictest.Options) {
	t.Helper()
	for _, way := range losses {
		if way.writes && !writes {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				f(t, p, func(s *rnictest.Side) loss { return way.from(t, s) })
			}, options...)
		})
	}
}

// wantOutcome checks that requests 1, 2 and 3 complete: the first well, the second
// with that status, the third flushed.
func wantOutcome(t *testing.T, cq *rnic.CQ, status rnic.Status) {
	t.Helper()
	wantStatus(t, cq, 1, rnic.StatusSuccess)
	wantStatus(t, cq, 2, status)
	wantStatus(t, cq, 3, rnic.StatusFlushed)
}

// wantOver checks that nobody holds the memory any more, and that the queue pair can
// be used for another connection.
func (l *loss) wantOver(t *testing.T, p *rnictest.Pair) {
	t.Helper()
	if err := l.mr.Close(); err != nil {
		t.Error(err)
	}
	for _, s := range []*rnictest.Side{p.A, p.B} {
		s.QP.Abort()
		if err := s.QP.Reset(); err != nil {
			t.Error(err)
		}
	}
	p.Link(t, p.A.QP, p.B.QP)
}

// Of a list of requests, the one whose data can't be read fails, as it does if its
// region is no more.
func TestRequestFailsWhoseDataAreLost(t *testing.T) {
	for _, op := range []rnic.Opcode{rnic.OpSend, rnic.OpWrite, rnic.OpSendInvalidate, rnic.OpWriteImmediate, door.OpSendImmediate} {
		for _, size := range []int{8, 5000, 40000} { // copied, gathered, in several segments
			t.Run(fmt.Sprint(op, " ", size), func(t *testing.T) {
				eachLoss(t, false, func(t *testing.T, p *rnictest.Pair, take func(s *rnictest.Side) loss) {
					lost := take(p.A)
					good := p.A.Register(t, pattern(lossSize, 1), 0)
					target := p.B.Register(t, make([]byte, lossSize), everyRight)
					for i := range 4 {
						p.B.Recv(t, rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{target.SGE(0, lossSize)}})
					}
					other := p.B.Register(t, make([]byte, 8), everyRight)
					wr := func(id uint64, sgl ...rnic.SGE) rnic.SendWR {
						return rnic.SendWR{ID: id, Op: op, SGL: sgl, Remote: target.Remote(0), Invalidate: other.STag()}
					}
					lost.lose()
					first := wr(1, good.SGE(0, size))
					if first.Op == rnic.OpSendInvalidate { // what has been invalidated once can't be again
						first.Op = rnic.OpSend
					}
					p.A.Send(t, first, wr(2, good.SGE(0, 4), lost.mr.SGE(0, size)), wr(3, good.SGE(0, size)))
					wantOutcome(t, p.A.SendCQ, rnic.StatusLocalProtection)
					nextEvent(t, p.A.Device, rnic.EventCatastrophic)
					wantTerminate(t, p.B.Device, rdmap.CodeLocalCatastrophic)
					lost.wantOver(t, p)
				}, rnictest.Options{QP: pairs})
			})
		}
	}
}

// Memory into which a response is to be written is that of the request.
func TestRequestFailsWhoseSinkIsLost(t *testing.T) {
	for _, tt := range []struct {
		op   rnic.Opcode
		size int
		code rdmap.TermCode
	}{
		{rnic.OpRead, 8, ddpCode(ddp.CodeBaseBounds)},
		{rnic.OpRead, 40000, ddpCode(ddp.CodeBaseBounds)},
		{rnic.OpReadInvalidate, 40000, ddpCode(ddp.CodeBaseBounds)},
		{rnic.OpFetchAdd, 8, rdmap.CodeLocalCatastrophic},
		{rnic.OpCmpSwap, 8, rdmap.CodeLocalCatastrophic},
	} {
		t.Run(fmt.Sprint(tt.op, " ", tt.size), func(t *testing.T) {
			eachLoss(t, true, func(t *testing.T, p *rnictest.Pair, take func(s *rnictest.Side) loss) {
				lost := take(p.A)
				good := p.A.Register(t, make([]byte, lossSize), rnic.LocalWrite)
				target := p.B.Register(t, make([]byte, lossSize), everyRight)
				wr := func(id uint64, op rnic.Opcode, sink rnic.SGE) rnic.SendWR {
					return rnic.SendWR{ID: id, Op: op, SGL: []rnic.SGE{sink}, Remote: target.Remote(0)}
				}
				lost.lose()
				p.A.Send(t, wr(1, rnic.OpRead, good.SGE(0, 8)), wr(2, tt.op, lost.mr.SGE(0, tt.size)), wr(3, tt.op, good.SGE(0, tt.size)))
				wantOutcome(t, p.A.SendCQ, rnic.StatusLocalProtection)
				wantTerminate(t, p.B.Device, tt.code)
				lost.wantOver(t, p)
			})
		})
	}
}

// Of a Read with several sinks, one may be lost: it is one request all the same.
func TestReadFailsOneOfWhoseSinksIsLost(t *testing.T) {
	split := func(_ string, a *rnic.QPAttr) { a.SplitReads = true }
	eachLoss(t, true, func(t *testing.T, p *rnictest.Pair, take func(s *rnictest.Side) loss) {
		lost := take(p.A)
		good := p.A.Register(t, make([]byte, lossSize), rnic.LocalWrite)
		target := p.B.Register(t, make([]byte, lossSize), everyRight)
		wr := func(id uint64, sinks ...rnic.SGE) rnic.SendWR {
			return rnic.SendWR{ID: id, Op: rnic.OpRead, SGL: sinks, Remote: target.Remote(0)}
		}
		lost.lose()
		p.A.Send(t, wr(1, good.SGE(0, 8), good.SGE(8, 8)), wr(2, good.SGE(0, 8), lost.mr.SGE(0, 8), good.SGE(8, 8)), wr(3, good.SGE(0, 8)))
		wantOutcome(t, p.A.SendCQ, rnic.StatusLocalProtection)
		wantEmpty(t, p.A.SendCQ)
		wantTerminate(t, p.B.Device, ddpCode(ddp.CodeBaseBounds))
		lost.wantOver(t, p)
	}, rnictest.Options{QP: split})
}

func TestReceiveFailsWhoseMemoryIsLost(t *testing.T) {
	for _, size := range []int{8, 40000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			eachLoss(t, true, func(t *testing.T, p *rnictest.Pair, take func(s *rnictest.Side) loss) {
				lost := take(p.B)
				good := p.B.Register(t, make([]byte, lossSize), rnic.LocalWrite)
				for id, sink := range []*rnic.MR{good, lost.mr, good} {
					p.B.Recv(t, rnic.RecvWR{ID: uint64(id) + 1, SGL: []rnic.SGE{sink.SGE(0, lossSize)}})
				}
				lost.lose()
				src := p.A.Register(t, make([]byte, size), 0)
				for range 3 {
					if err := p.A.QP.PostSend(rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(0, size)}}); err != nil {
						break // the peer has ended the stream
					}
				}
				wantOutcome(t, p.B.RecvCQ, rnic.StatusLocalProtection)
				wantTerminate(t, p.A.Device, rdmap.CodeLocalCatastrophic)
				lost.wantOver(t, p)
			})
		})
	}
}

// What the peer reads or writes fails for the peer.
func TestPeerIsToldThatItsTargetIsLost(t *testing.T) {
	for _, tt := range []struct {
		op     rnic.Opcode
		size   int
		writes bool
		code   rdmap.TermCode
	}{
		{rnic.OpWrite, 8, true, ddpCode(ddp.CodeBaseBounds)},
		{rnic.OpWrite, 40000, true, ddpCode(ddp.CodeBaseBounds)},
		{rnic.OpRead, 8, false, rdmap.CodeProtectionUnspecified},
		{rnic.OpRead, 40000, false, rdmap.CodeProtectionUnspecified},
		{rnic.OpFetchAdd, 8, true, rdmap.CodeProtectionUnspecified},
		{rnic.OpCmpSwap, 8, true, rdmap.CodeProtectionUnspecified},
	} {
		t.Run(fmt.Sprint(tt.op, " ", tt.size), func(t *testing.T) {
			eachLoss(t, tt.writes, func(t *testing.T, p *rnictest.Pair, take func(s *rnictest.Side) loss) {
				lost := take(p.B)
				sink := p.A.Register(t, make([]byte, lossSize), rnic.LocalWrite)
				target := p.B.Register(t, make([]byte, lossSize), everyRight)
				wr := func(id uint64, op rnic.Opcode, to *rnic.MR) rnic.SendWR {
					return rnic.SendWR{ID: id, Op: op, SGL: []rnic.SGE{sink.SGE(0, tt.size)}, Remote: to.Remote(0)}
				}
				lost.lose()
				wrs := []rnic.SendWR{wr(1, tt.op, target), wr(2, tt.op, lost.mr), wr(3, rnic.OpRead, target)}
				if tt.op == rnic.OpWrite { // it is complete when it is sent
					p.A.Send(t, wrs[0])
					wantStatus(t, p.A.SendCQ, 1, rnic.StatusSuccess)
					p.A.Send(t, wrs[1:]...)
					// The Terminate may come before the RNIC looks at what it has sent.
					if wc := rnictest.Next(t, p.A.SendCQ); wc.ID != 2 || wc.Status != rnic.StatusSuccess && wc.Status != rnic.StatusFlushed {
						t.Errorf("completion of request %d: %v (%v); want 2: success or flushed", wc.ID, wc.Status, wc.Cause)
					}
					wantStatus(t, p.A.SendCQ, 3, rnic.StatusFlushed)
				} else {
					p.A.Send(t, wrs...)
					wantOutcome(t, p.A.SendCQ, rnic.StatusRemoteTermination)
				}
				wantTerminate(t, p.A.Device, tt.code)
				nextEvent(t, p.B.Device, rnic.EventProtection)
				lost.wantOver(t, p)
			})
		})
	}
}

// A region may be deregistered while a request of the peer waits for its answer.
func TestTargetThatIsGoneBeforeTheAnswerIsAnEvent(t *testing.T) {
	for _, op := range []rnic.Opcode{rnic.OpRead, rnic.OpFetchAdd} {
		t.Run(op.String(), func(t *testing.T) {
			var mr *rnic.MR
			o := rnictest.Options{Device: func(side string, cfg *rnic.Config) {
				if side == "B" {
					cfg.Trace = func(m rnic.Trace) {
						if !m.Sent {
							closing(t, &mr)
						}
					}
				}
			}}
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				target := p.B.Register(t, make([]byte, 64), everyRight)
				mr = target
				sink := p.A.Register(t, make([]byte, 8), rnic.LocalWrite)
				p.A.Send(t, rnic.SendWR{ID: 1, Op: op, SGL: []rnic.SGE{sink.SGE(0, 8)}, Remote: target.Remote(0)})
				wantStatus(t, p.A.SendCQ, 1, rnic.StatusRemoteTermination)
				wantTerminate(t, p.A.Device, rdmap.CodeInvalidSTag)
				if ev := nextEvent(t, p.B.Device, rnic.EventProtection); ev.QP != p.B.QP || p.B.QP.Err() == nil {
					t.Errorf("%v; the queue pair says %v", ev, p.B.QP.Err())
				}
			}, o)
		})
	}
}

// What was checksummed may be lost before the kernel copies it. A segment is begun
// then, so that no Terminate can follow.
func TestRequestFailsWhoseDataAreLostWhileTheyAreSent(t *testing.T) {
	for _, crc := range []mpa.CRCPolicy{mpa.CRCPrefer, mpa.CRCOff} {
		for _, op := range []rnic.Opcode{rnic.OpSend, rnic.OpWrite, rnic.OpWriteImmediate} {
			t.Run(fmt.Sprintf("%v crc=%v", op, crc), func(t *testing.T) {
				var lose func()
				sent := 0
				config := func(cfg *rnic.Config, _ *rnic.QPAttr) {
					cfg.MPA.CRC = crc
					cfg.Trace = func(m rnic.Trace) {
						if m.Sent && m.Length == 20000 {
							if sent++; sent == 2 {
								lose()
							}
						}
					}
				}
				p := &rnictest.Pair{A: openSide(t, nil, config), B: openSide(t, nil, func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.MPA.CRC = crc })}
				p.Link(t, p.A.QP, p.B.QP)
				lost := protected(t, p.A, unix.PROT_NONE)
				lose = lost.lose
				data := pattern(20000, 1)
				good, buf := p.A.Register(t, data, 0), make([]byte, lossSize)
				target := p.B.Register(t, buf, everyRight)
				for i := range 4 {
					p.B.Recv(t, rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{target.SGE(0, lossSize)}})
				}
				wr := func(id uint64, src *rnic.MR) rnic.SendWR {
					return rnic.SendWR{ID: id, Op: op, SGL: []rnic.SGE{src.SGE(0, len(data))}, Remote: target.Remote(0)}
				}
				p.A.Send(t, wr(1, good), wr(2, lost.mr), wr(3, good))
				wantOutcome(t, p.A.SendCQ, rnic.StatusLocalProtection)
				nextEvent(t, p.A.Device, rnic.EventCatastrophic)
				nextEvent(t, p.B.Device, rnic.EventLost)
				if op != rnic.OpWrite {
					wantStatus(t, p.B.RecvCQ, 0, rnic.StatusSuccess)
					wantStatus(t, p.B.RecvCQ, 1, rnic.StatusFlushed)
				}
				if op == rnic.OpSend && !slices.Equal(buf[:len(data)], data) {
					t.Error("what came before it differs")
				}
				if err := lost.mr.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A losingNetwork runs a function before one of the writes of those who dial.
type losingNetwork struct {
	cutnet.Network
	writes atomic.Int64 // until then
	lose   func()
}

type losingConn struct {
	*cutnet.Conn
	network *losingNetwork
}

func (n *losingNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &losingConn{c.(*cutnet.Conn), n}, nil
}

func (c *losingConn) Writev(pieces [][]byte, wait bool) (int, error) {
	if c.network.writes.Add(-1) == 0 {
		c.network.lose()
	}
	return c.Conn.Writev(pieces, wait)
}

// Data may be lost while only some of the segments are out.
func TestRequestFailsWhoseDataAreLostInTheMiddle(t *testing.T) {
	const size = 500_000
	for _, op := range []rnic.Opcode{rnic.OpSend, rnic.OpWrite, rnic.OpWriteImmediate, door.OpSendImmediate} {
		for writes := int64(1); writes <= 4; writes++ {
			t.Run(fmt.Sprint(op, " ", writes), func(t *testing.T) {
				mem := mapping(t, size)
				n := &losingNetwork{Network: cutnet.Network{Seed: uint64(writes)}, lose: func() {
					if err := unix.Mprotect(mem, unix.PROT_NONE); err != nil {
						t.Error(err)
					}
				}}
				p := &rnictest.Pair{A: openSide(t, n), B: openSide(t, n)}
				p.Link(t, p.A.QP, p.B.QP)
				bad, good := foreign(t, p.A, mem), p.A.Register(t, make([]byte, 8), 0)
				target := p.B.Register(t, make([]byte, size), everyRight)
				for i := range 6 {
					p.B.Recv(t, rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{target.SGE(0, size)}})
				}
				wr := func(id uint64, src rnic.SGE) rnic.SendWR {
					return rnic.SendWR{ID: id, Op: op, SGL: []rnic.SGE{src}, Remote: target.Remote(0)}
				}
				n.writes.Store(writes)
				p.A.Send(t, wr(1, good.SGE(0, 8)), wr(2, bad.SGE(0, size)), wr(3, good.SGE(0, 8)))
				wantOutcome(t, p.A.SendCQ, rnic.StatusLocalProtection)
				nextEvent(t, p.A.Device, rnic.EventCatastrophic)
				if err := bad.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Two requests may fail before the stream has ended: data are lost while they are sent,
// and a Read behind them can't be begun. Only the first has a status of its own.
func TestOnlyTheFirstOfTwoThatFailHasAStatusOfItsOwn(t *testing.T) {
	var lose func()
	p := &rnictest.Pair{
		A: openSide(t, nil, func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.Trace = func(m rnic.Trace) {
				if m.Sent && m.Length == 20000 {
					lose()
				}
			}
		}),
		B: openSide(t, nil),
	}
	if err := p.TryLink(p.A.QP, p.B.QP, rnic.ConnParam{ORD: -1}, rnic.ConnParam{}); err != nil {
		t.Fatal(err)
	}
	lost := protected(t, p.A, unix.PROT_NONE)
	lose = lost.lose
	target := p.B.Register(t, make([]byte, lossSize), everyRight)
	p.A.Send(t,
		rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{lost.mr.SGE(0, 20000)}, Remote: target.Remote(0)},
		rnic.SendWR{ID: 2, Op: rnic.OpRead},
		rnic.SendWR{ID: 3, Op: rnic.OpSend},
	)
	wantStatus(t, p.A.SendCQ, 1, rnic.StatusLocalProtection)
	wantStatus(t, p.A.SendCQ, 2, rnic.StatusFlushed)
	wantStatus(t, p.A.SendCQ, 3, rnic.StatusFlushed)
}
