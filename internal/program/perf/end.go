package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"urnic/rnic"
)

// An end is one side's queue pair. One completion queue has what becomes of
// sends and receives, so that whoever polls it drives the connection.
type end struct {
	g   *group
	i   int // its number among those of the case
	qp  *rnic.QP
	cq  *rnic.CQ
	wcs []rnic.WC

	sources []rnic.SGE     // what messages of each content send
	recvs   []rnic.RecvWR  // in the order of their places
	taken   int            // which of them was taken last, and one more
	owed    int            // how many were taken that are not posted anew
	note    [1]rnic.SendWR // Immediate Data

	window int // receives for data: how many messages may be outstanding to here
}

// The notes that the two ends send each other as Immediate Data: a kind, and a
// number in seven bytes.
const (
	noteData   = iota // with a Write: nothing but that
	noteGo            // a round begins
	noteCredit        // so many messages were received and looked at, and as many receives posted
	noteEnd           // all is sent: so many messages
	noteAck           // noteEnd and all before it are here
	noteMark          // so many messages were sent until here
)

// notes is how many receives are there for notes, beyond those for data. The
// most that can be outstanding are a go, an end, an ack, four marks and eight credits.
const notes = 24

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
	if g.delivers() && g.source != nil {
		for v := range variants {
			e.sources = append(e.sources, g.sourceMR.SGE(i*g.sourceStride()+v*wordLen, g.Size))
		}
	}
	e.recvs = make([]rnic.RecvWR, e.window+notes)
	if g.Op == OpSend && g.peerActive {
		for j := range e.recvs {
			e.recvs[j].SGL = []rnic.SGE{g.sinkMR.SGE(i*g.sinkStride()+e.place(j), g.Size)}
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

// place returns where the message is that a receive has taken.
func (e *end) place(recv int) int { return recv % e.g.places.count * e.g.places.step }

// take notes that the next receive was taken, and returns where its message is.
func (e *end) take() (place int) {
	place = e.place(e.taken)
	e.taken = (e.taken + 1) % len(e.recvs)
	e.owed++
	return place
}

// repost posts the receives anew that were taken.
func (e *end) repost() error {
	from := e.taken - e.owed
	e.owed = 0
	if from < 0 {
		if err := e.qp.PostRecv(e.recvs[len(e.recvs)+from:]...); err != nil {
			return err
		}
		from = 0
	}
	return e.qp.PostRecv(e.recvs[from:e.taken]...)
}

// request returns a request of the case. aim makes it one of a message.
func (e *end) request(flags rnic.Flags) rnic.SendWR {
	g := e.g
	wr := rnic.SendWR{Flags: flags, SGL: make([]rnic.SGE, 1)}
	if g.Inline {
		wr.Flags |= rnic.FlagInline
		wr.SGL = nil
	}
	switch g.Op {
	case OpSend:
		wr.Op = rnic.OpSend
	case OpWrite:
		wr.Op = rnic.OpWrite
		if g.pingPong() { // nothing else reports that a Write has arrived
			wr.Op = rnic.OpWriteImmediate
		}
	case OpWriteImm:
		wr.Op = rnic.OpWriteImmediate
	case OpRead:
		wr.Op = rnic.OpRead
	case OpAtomic:
		wr.Op, wr.Remote, wr.SGL, wr.Atomic = rnic.OpFetchAdd, g.peer.Sink.at(e.i*g.sinkStride()), nil, rnic.Atomic{Add: 1}
	}
	return wr
}

// aim makes a request that of message n.
func (e *end) aim(wr *rnic.SendWR, n uint64) {
	g := e.g
	v := variant(n)
	switch g.Op {
	case OpAtomic:
		return
	case OpRead:
		wr.Remote = g.peer.Source.at(e.i*g.sourceStride() + v*wordLen)
		wr.SGL[0] = g.sinkMR.SGE(e.i*g.sinkStride()+g.places.of(n), g.Size)
		return
	case OpWrite, OpWriteImm:
		wr.Remote = g.peer.Sink.at(e.i*g.sinkStride() + g.places.of(n))
	default: // a Send goes where the receive says
	}
	if g.Inline {
		wr.Inline = g.sourcePart(e.i)[v*wordLen:][:g.Size]
	} else {
		wr.SGL[0] = e.sources[v]
	}
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
