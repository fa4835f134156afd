package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"urnic/rnic"
)

// An end is one side's queue pair. One completion queue has what becomes of
// sends and receives, so that who polls it drives the connection.
type end struct {
	g   *group
	i   int // its number among those of the case
	qp  *rnic.QP
	cq  *rnic.CQ
	wcs []rnic.WC

	sgl   []rnic.SGE     // what requests send, or where they read to
	recvs []rnic.RecvWR  // all of them alike
	note  [1]rnic.SendWR // Immediate Data

	window int // receives for data: how many messages may be under way to here
}

// The notes that the two ends send each other as Immediate Data: a kind, and a
// number in seven octets.
const (
	noteData   = iota // with a Write: nothing but that
	noteGo            // a round begins
	noteCredit        // so many messages have been received, and as many receives posted
	noteEnd           // all is sent: so many messages
	noteAck           // noteEnd and all before it are here
)

// notes is how many receives are there for notes, beyond those for data. The
// most that can be under way are a go, an end, an ack and four credits.
const notes = 16

// batch and maxBatch are the fewest and the most completions for which there is
// room at once; in between it is the depth.
const (
	batch    = 64
	maxBatch = 512
)

// The IDs of notes whose completion matters.
const (
	idEnd = iota + 1
	idAck
)

func newEnd(g *group, i int) (*end, error) {
	e := &end{g: g, i: i, wcs: make([]rnic.WC, min(max(batch, g.Depth), maxBatch))}
	if g.receives() && g.peerActive {
		e.window = 2 * g.Depth
	}
	var sink []rnic.SGE
	if g.sink != nil {
		sink = []rnic.SGE{g.sinkMR.SGE(i*g.stride(), g.Size)}
	}
	if g.source != nil {
		e.sgl = []rnic.SGE{g.sourceMR.SGE(i*g.stride(), g.Size)}
	}
	if g.Op == OpRead && g.active {
		e.sgl = sink
	}
	e.recvs = make([]rnic.RecvWR, e.window+notes)
	if g.Op == OpSend && g.peerActive {
		for j := range e.recvs {
			e.recvs[j].SGL = sink
		}
	}
	sends := g.Depth + notes
	var err error
	if e.cq, err = g.pd.Device().CreateCQ(rnic.CQAttr{Entries: sends + len(e.recvs)}); err != nil {
		return nil, err
	}
	g.closers = append(g.closers, e.cq.Close)
	e.qp, err = g.pd.CreateQP(rnic.QPAttr{
		SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: sends, MaxRecvWR: len(e.recvs), MaxSGE: 1, MaxInline: rnic.MaxInline,
	})
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, e.qp.Close)
	return e, e.qp.PostRecv(e.recvs...)
}

// request returns a request of the case.
func (e *end) request(flags rnic.Flags) rnic.SendWR {
	g := e.g
	wr := rnic.SendWR{Flags: flags, SGL: e.sgl}
	if g.Inline {
		wr.Flags |= rnic.FlagInline
		wr.SGL, wr.Inline = nil, g.part(g.source, e.i)
	}
	switch off := e.i * g.stride(); g.Op {
	case OpSend:
		wr.Op = rnic.OpSend
	case OpWrite:
		wr.Op, wr.Remote = rnic.OpWrite, g.peer.Sink.at(off)
		if g.pingPong() { // nothing else tells that a Write has arrived
			wr.Op = rnic.OpWriteImmediate
		}
	case OpWriteImm:
		wr.Op, wr.Remote = rnic.OpWriteImmediate, g.peer.Sink.at(off)
	case OpRead:
		wr.Op, wr.Remote = rnic.OpRead, g.peer.Source.at(off)
	case OpAtomic:
		wr.Op, wr.Remote, wr.SGL, wr.Atomic = rnic.OpFetchAdd, g.peer.Sink.at(off), nil, rnic.Atomic{Add: 1}
	}
	return wr
}

// tell sends a note. id asks for a completion, if it is not 0. The fence lets a
// note follow the Reads before it.
func (e *end) tell(kind byte, n, id uint64) error {
	wr := &e.note[0]
	*wr = rnic.SendWR{ID: id, Op: rnic.OpImmediate, Immediate: packNote(kind, n), Flags: rnic.FlagReadFence}
	if id == 0 {
		wr.Flags |= rnic.FlagUnsignaled
	}
	return e.qp.PostSend(e.note[:]...)
}

func packNote(kind byte, n uint64) (b [8]byte) {
	binary.BigEndian.PutUint64(b[:], n)
	b[0] = kind
	return b
}

func unpackNote(b [8]byte) (kind byte, n uint64) {
	kind, b[0] = b[0], 0
	return kind, binary.BigEndian.Uint64(b[:])
}

// why says why a request has failed: a stream that has ended knows best.
func (e *end) why(wc *rnic.WC) error {
	err := wc.Err()
	if cause := e.qp.Err(); cause != nil {
		err = cause
	} else if wc.Status == rnic.StatusFlushed {
		err = errClosed
	}
	return &lostError{fmt.Errorf("queue pair %d: %w", e.i, err)}
}

var errClosed = errors.New("the other side has closed the connection")

// A lostError says that a connection is of no use any more. The other side may
// know why.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// poll waits for completions in the way of the case.
func (e *end) poll(ctx context.Context, s *spinner) ([]rnic.WC, error) {
	if e.g.Poll == PollEvent {
		n, err := e.cq.Wait(ctx, e.wcs)
		return e.wcs[:n], err
	}
	for {
		if n := e.cq.Poll(e.wcs); n > 0 {
			return e.wcs[:n], nil
		}
		if err := s.pause(ctx); err != nil {
			return nil, err
		}
	}
}
