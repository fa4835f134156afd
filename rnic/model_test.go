package rnic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A step is one verb of a script. A step that is not possible when its turn
// comes is left out, so that any part of a script is a script.
type step struct {
	verb  string
	pair  int  // which connection
	fromB bool // which end of it
	n     int  // bytes, or whatever the verb counts
	flags rnic.Flags
}

func (s step) String() string {
	end := "A"
	if s.fromB {
		end = "B"
	}
	return fmt.Sprintf("%s%d %s %d 0x%02x", end, s.pair, s.verb, s.n, uint8(s.flags))
}

const (
	modelPairs  = 3
	modelMemory = 2048 // bytes of the region that one end offers to the other
)

// verbsOfModel are the verbs, as often as they are likely.
var verbsOfModel = strings.Fields(strings.Repeat(`
	recv recv recv recv recv send send send write write write read read read atomic atomic swap
	immediate write-immediate send-invalidate inline wait wait wait poll poll reset `, 5) + `
	disconnect disconnect abort terminate orphan overrun`)

func randomScript(rng *rand.Rand, length int) []step {
	script := make([]step, length)
	for i := range script {
		s := step{verb: verbsOfModel[rng.IntN(len(verbsOfModel))], pair: rng.IntN(modelPairs), fromB: rng.IntN(2) > 0}
		switch rng.IntN(4) {
		case 0:
		case 1:
			s.n = rng.IntN(64)
		default:
			s.n = rng.IntN(modelMemory)
		}
		for _, f := range []rnic.Flags{rnic.FlagUnsignaled, rnic.FlagReadFence, rnic.FlagLocalFence, rnic.FlagSolicited} {
			if rng.IntN(4) == 0 {
				s.flags |= f
			}
		}
		script[i] = s
	}
	return script
}

// A request is what the model knows of a request that has not completed.
type request struct {
	id   uint64
	wr   rnic.SendWR
	data []byte // of a message or Write; of a Read, what it must bring
	sink []byte // of a Read
	orig uint64 // of an atomic, what it must bring
}

// An end is one end of a connection, and what the model knows of it.
type end struct {
	*rnictest.Side
	name string
	srq  *rnic.SRQ // where its receives are, or nil

	sq        []*request // not completed, in order
	rq        []uint64   // receives of its own that have not completed
	sent      []*request // messages to the other end, in order
	arrived   int        // messages of the other end that have completed receives
	flushing  bool       // a request was flushed: none may succeed any more
	mayFail   bool       // the stream has been given a reason to end
	mem       []byte     // what the other end may touch, and
	model     []byte     // what it must hold once all is quiet
	word      *[8]byte   // for atomics
	modelWord uint64
	mr, wmr   *rnic.MR
	other     *end
}

// A run is the execution of a script.
type run struct {
	ends   [2 * modelPairs]*end // A0, B0, A1, …
	srq    *rnic.SRQ
	shared int // receives in srq, as far as messages have not been sent for them
	bufs   map[uint64][]byte
	lastID uint64
	rng    *rand.Rand
	net    *simnet.Network
}

// must panics with an error of the test's own doing, which the caller catches.
type modelError struct{ err error }

func must(err error) {
	if err != nil {
		panic(modelError{err})
	}
}

func failf(format string, args ...any) { must(fmt.Errorf(format, args...)) }

// execute runs a script and returns what went wrong.
func execute(t *testing.T, seed uint64, script []step) (err error) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if p := recover(); p != nil {
				e, known := p.(modelError)
				if !known {
					panic(p)
				}
				err = e.err
			}
		}()
		r := newRun(t, seed)
		for i, s := range script {
			func() {
				defer func() {
					if p := recover(); p != nil {
						if e, known := p.(modelError); known {
							p = modelError{fmt.Errorf("step %d, %v: %w", i, s, e.err)}
						}
						panic(p)
					}
				}()
				r.do(s)
			}()
		}
		r.settle()
		for pair := range modelPairs {
			r.checkQuiet(pair)
		}
	})
	return err
}

func newRun(t *testing.T, seed uint64) *run {
	r := &run{bufs: map[uint64][]byte{}, rng: rand.New(rand.NewPCG(seed, 1))}
	f := func() simnet.Faults {
		return simnet.Faults{
			Seed: r.rng.Uint64(), ShortReads: true, ShortWrites: r.rng.IntN(2) > 0,
			Latency: time.Duration(r.rng.IntN(50)) * time.Microsecond, Jitter: time.Duration(r.rng.IntN(20)) * time.Microsecond,
		}
	}
	r.net = &simnet.Network{Options: func(int) simnet.Options {
		return simnet.Options{AB: f(), BA: f(), Buffer: 100 << r.rng.IntN(12), MSS: 128 << r.rng.IntN(6), Polls: seed%2 > 0}
	}}
	first := [2]*rnictest.Side{openSide(t, r.net), openSide(t, r.net)}
	var err error
	r.srq, err = first[1].PD.CreateSRQ(rnic.SRQAttr{})
	must(err)
	for i := range r.ends {
		e := &end{name: fmt.Sprintf("%c%d", 'A'+i%2, i/2), mem: make([]byte, modelMemory), model: make([]byte, modelMemory), word: new([8]byte)}
		attr := rnic.QPAttr{MaxSendWR: 64, SplitReads: true}
		if i%2 == 1 && i > 1 { // B1 and B2
			e.srq, attr.SRQ = r.srq, r.srq
		}
		e.Side = newQP(t, first[i%2].Device, first[i%2].PD, attr)
		e.mr = e.Register(t, e.mem, allRights)
		e.wmr = e.Register(t, e.word[:], allRights)
		r.ends[i] = e
	}
	for i, e := range r.ends {
		e.other = r.ends[i^1]
	}
	for pair := range modelPairs {
		r.connect(pair)
	}
	return r
}

func (r *run) connect(pair int) {
	a, b := r.ends[2*pair], r.ends[2*pair+1]
	if r.rng.IntN(2) > 0 {
		a, b = b, a
	}
	l, err := b.Device.Listen(context.Background(), ":0")
	must(err)
	accepted := make(chan error, 1)
	p := rnic.ConnParam{IRD: 1 + r.rng.IntN(4), ORD: 1 + r.rng.IntN(4)}
	go func() {
		req, err := l.Accept(context.Background())
		if err == nil {
			err = req.Accept(context.Background(), b.QP, rnic.ConnParam{IRD: 1 + r.rng.IntN(4), ORD: 1 + r.rng.IntN(4)})
		}
		accepted <- err
	}()
	must(a.QP.Connect(context.Background(), l.Addr().String(), p))
	must(<-accepted)
	must(l.Close())
	for _, e := range []*end{a, b} {
		e.sent, e.arrived, e.flushing, e.mayFail = nil, 0, false, false
		copy(e.model, e.mem)
		e.modelWord = binary.NativeEndian.Uint64(e.word[:])
	}
	// The initiator speaks first, so that the responder may.
	r.post(a, &request{wr: rnic.SendWR{Op: rnic.OpWrite}})
}

// do carries out one step.
func (r *run) do(s step) {
	e := r.ends[2*s.pair]
	if s.fromB {
		e = e.other
	}
	alive := !e.mayFail && !e.other.mayFail
	n := s.n
	wr := rnic.SendWR{Flags: s.flags &^ rnic.FlagSolicited}
	switch s.verb {
	case "recv":
		if alive {
			r.recv(e)
		}
	case "send", "inline", "immediate", "send-invalidate":
		if alive && r.room(e) && r.takeReceive(e) {
			r.message(e, s, wr)
		}
	case "write", "write-immediate":
		if !alive || !r.room(e) {
			return
		}
		wr.Op = rnic.OpWrite
		if s.verb == "write-immediate" {
			if !r.takeReceive(e) {
				return
			}
			wr.Op = rnic.OpWriteImmediate
			binary.BigEndian.PutUint64(wr.Immediate[:], uint64(n))
		}
		off := r.rng.IntN(modelMemory - n)
		data := r.fresh(n)
		wr.SGL, wr.Remote = r.sgl(e, data), e.other.mr.Remote(off)
		wr.Flags |= rnic.FlagReadFence // else it might overtake the Response of a Read before it: RFC 5040 §5.5 rule 12
		copy(e.other.model[off:], data)
		q := &request{wr: wr, data: data}
		if wr.Op == rnic.OpWriteImmediate {
			e.sent = append(e.sent, q)
		}
		r.post(e, q)
	case "read":
		if alive && r.room(e) {
			off := r.rng.IntN(modelMemory - n)
			sink := make([]byte, n)
			wr.Op, wr.Remote = rnic.OpRead, e.other.mr.Remote(off)
			wr.SGL = r.sgl(e, sink)
			for len(wr.SGL) > 0 && len(wr.SGL) < rnic.DefaultSGE && r.rng.IntN(2) == 0 { // in several pieces
				last := &wr.SGL[len(wr.SGL)-1]
				cut := uint32(r.rng.IntN(int(last.Length) + 1))
				rest := rnic.SGE{Addr: last.Addr + uint64(cut), Length: last.Length - cut, LKey: last.LKey}
				last.Length = cut
				wr.SGL = append(wr.SGL, rest)
			}
			r.post(e, &request{wr: wr, data: bytes.Clone(e.other.model[off : off+n]), sink: sink})
		}
	case "atomic", "swap":
		if !alive || !r.room(e) {
			return
		}
		q := &request{orig: e.other.modelWord}
		wr.Op, wr.Remote = rnic.OpFetchAdd, e.other.wmr.Remote(0)
		wr.Atomic = rnic.Atomic{Add: uint64(n), Compare: uint64(n % 8), Swap: uint64(n)}
		if s.verb == "swap" {
			wr.Op = rnic.OpCmpSwap
			if e.other.modelWord == wr.Atomic.Compare {
				e.other.modelWord = wr.Atomic.Swap
			}
		} else {
			e.other.modelWord += wr.Atomic.Add
		}
		q.wr = wr
		r.post(e, q)
	case "wait":
		time.Sleep(time.Duration(n) * time.Microsecond)
	case "poll":
		r.poll(e)
	case "disconnect":
		r.disconnect(s.pair, e)
	case "abort":
		e.mayFail, e.other.mayFail = true, true
		e.QP.Abort()
	case "terminate":
		if alive {
			e.mayFail, e.other.mayFail = true, true
			go func() { _ = e.QP.Terminate(context.Background()) }()
		}
	case "orphan": // a message for which there is no receive
		if alive && r.room(e) && e.other.srq == nil && len(e.other.rq) == e.unmatched() {
			e.mayFail, e.other.mayFail = true, true
			r.post(e, &request{wr: rnic.SendWR{Op: rnic.OpSend}})
		}
	case "overrun": // a Write beyond the region
		if alive && r.room(e) {
			e.mayFail, e.other.mayFail = true, true
			data := make([]byte, 10)
			r.post(e, &request{wr: rnic.SendWR{Op: rnic.OpWrite, SGL: r.sgl(e, data), Remote: e.other.mr.Remote(modelMemory - 9)}, data: data})
		}
	case "reset":
		if !alive {
			r.again(s.pair)
		}
	}
}

// fresh returns n bytes that were not there before.
func (r *run) fresh(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.rng.Uint32())
	}
	return b
}

// sgl registers memory.
func (r *run) sgl(e *end, b []byte) []rnic.SGE {
	if len(b) == 0 {
		return nil
	}
	mr, err := e.PD.Register(b, rnic.LocalWrite)
	must(err)
	return []rnic.SGE{mr.SGE(0, len(b))}
}

func (r *run) nextID() uint64 {
	r.lastID++
	return r.lastID
}

func (r *run) recv(e *end) {
	id := r.nextID()
	buf := make([]byte, modelMemory)
	wr := rnic.RecvWR{ID: id, SGL: r.sgl(e, buf)}
	half := uint32(len(buf) / 2)
	wr.SGL = []rnic.SGE{wr.SGL[0], wr.SGL[0]} // in two pieces
	wr.SGL[0].Length, wr.SGL[1].Length = half, half
	wr.SGL[1].Addr += uint64(half)
	if e.srq != nil {
		if e.srq.Len() == rnic.DefaultWR {
			return
		}
		must(e.srq.PostRecv(wr))
		r.shared++
	} else {
		if len(e.rq) == rnic.DefaultWR {
			return
		}
		must(e.QP.PostRecv(wr))
		e.rq = append(e.rq, id)
	}
	r.bufs[id] = buf
}

// room reports whether the send queue takes one more for sure.
func (r *run) room(e *end) bool { return len(e.sq) < 64 }

// unmatched returns how many messages this end has sent that have not completed
// a receive.
func (e *end) unmatched() int { return len(e.sent) - e.other.arrived }

// takeReceive reports whether the other end has a receive for one more message.
func (r *run) takeReceive(e *end) bool {
	if e.other.srq != nil {
		if r.shared == 0 {
			return false
		}
		r.shared--
		return true
	}
	return len(e.other.rq) > e.unmatched()
}

// message posts a Send of some kind, or Immediate Data.
func (r *run) message(e *end, s step, wr rnic.SendWR) {
	wr.Flags |= s.flags & rnic.FlagSolicited
	q := &request{}
	switch s.verb {
	case "immediate":
		wr.Op = rnic.OpImmediate
		binary.BigEndian.PutUint64(wr.Immediate[:], uint64(s.n))
	case "inline":
		q.data = r.fresh(s.n % (rnic.DefaultInline + 1))
		wr.Op, wr.Inline = rnic.OpSend, bytes.Clone(q.data)
		wr.Flags |= rnic.FlagInline
	case "send-invalidate":
		mr, err := e.other.PD.RegisterMemory(rnic.Memory{Slice: make([]byte, 1)}, rnic.RemoteRead|rnic.RemoteInvalidate, e.other.QP)
		must(err)
		wr.Op, wr.Invalidate = rnic.OpSendInvalidate, mr.STag()
		fallthrough
	default:
		if wr.Op == 0 {
			wr.Op = rnic.OpSend
		}
		q.data = r.fresh(s.n)
		wr.SGL = r.sgl(e, q.data)
	}
	q.wr = wr
	e.sent = append(e.sent, q)
	r.post(e, q)
	if wr.Flags&rnic.FlagInline != 0 {
		clear(wr.Inline) // it was copied
	}
}

func (r *run) post(e *end, q *request) {
	q.id = r.nextID()
	q.wr.ID = q.id
	err := e.QP.PostSend(q.wr)
	var state *rnic.StateError
	if err != nil && (!e.mayFail || !errors.As(err, &state)) {
		failf("%s: %w", e.name, err)
	}
	if err == nil {
		e.sq = append(e.sq, q)
	}
}

// shorten returns the shortest part of a failing script that it finds, and how
// that fails.
func shorten(t *testing.T, seed uint64, script []step, err error) ([]step, error) {
	for size := len(script) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(script); {
			shorter := slices.Delete(slices.Clone(script), at, at+size)
			if e := execute(t, seed, shorter); e != nil {
				script, err = shorter, e
			} else {
				at += size
			}
		}
	}
	return script, err
}

func TestRandomVerbsDoWhatTheModelSays(t *testing.T) {
	seeds := uint64(250)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		script := randomScript(rand.New(rand.NewPCG(seed, 0)), 500)
		if err := execute(t, seed, script); err != nil {
			script, err = shorten(t, seed, script, err)
			lines := make([]string, len(script))
			for i, s := range script {
				lines[i] = s.String()
			}
			t.Fatalf("seed %d: %v\nwith these steps:\n%s", seed, err, strings.Join(lines, "\n"))
		}
	}
}
