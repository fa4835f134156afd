package rdmap

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/pd"
	"urnic/stag"
)

// A side is one end of a connection under test: a stream, its ULP, and the
// memory they share.
type side struct {
	t      *testing.T
	stream *Stream
	llp    ddp.LLP
	table  *stag.Table
	domain *pd.Domain
	scope  stag.Scope

	queue     []*Operation
	submitted []*Operation
	failed    []error

	buffers   [][]byte // posted receives
	delivered []Delivery
	contents  [][]byte
	immediate []Immediate
	completed []*Operation
	term      *Terminate
	err       error // what Receive ended with
	done      chan struct{}
	wake      chan struct{}
}

func newSide(t *testing.T, llp ddp.LLP, cfg Config) *side {
	t.Helper()
	m := pd.NewManager(pd.Limits{}, pd.Limits{})
	d, err := m.NewDomain()
	if err != nil {
		t.Fatal(err)
	}
	s := &side{t: t, llp: llp, table: new(stag.Table), domain: d, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	s.scope = stag.Scope{Domain: d, Stream: 1}
	cfg.Memory, cfg.Scope = s.table, s.scope
	s.stream = NewStream(llp, s, cfg)
	return s
}

// run receives until the stream ends, and transmits whenever it is woken.
func (s *side) run() {
	go func() {
		for range s.wake {
			s.transmit()
		}
	}()
	go func() {
		defer close(s.done)
		for {
			err := s.stream.Receive()
			if err == nil {
				continue
			}
			s.err = err
			if e := (*Error)(nil); errors.As(err, &e) {
				s.stream.Fail(e)
			}
			return
		}
	}()
}

func (s *side) transmit() {
	for {
		idle, err := s.stream.Transmit(s)
		if err == nil {
			_, err = s.llp.Flush(true)
		}
		if idle || err != nil {
			return
		}
	}
}

func (s *side) Next() *Operation {
	if len(s.queue) == 0 || s.queue[0].isRead() && !s.stream.MayRead() {
		return nil
	}
	o := s.queue[0]
	s.queue = s.queue[1:]
	return o
}
func (s *side) Submitted(o *Operation, _ uint64) { s.submitted = append(s.submitted, o) }
func (s *side) Failed(_ *Operation, err error)   { s.failed = append(s.failed, err) }
func (s *side) Terminated(t Terminate)           { s.term = &t }
func (s *side) Completed(o *Operation) error     { s.completed = append(s.completed, o); return nil }
func (s *side) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *side) ReceiveBuffer(ahead uint32, immediate bool) ddp.Buffer {
	i := len(s.delivered) + int(ahead)
	if i >= len(s.buffers) {
		return nil
	}
	if immediate {
		for len(s.immediate) <= i {
			s.immediate = append(s.immediate, Immediate{})
		}
		return sliceBuffer(s.immediate[i][:])
	}
	return sliceBuffer(s.buffers[i])
}

func (s *side) Deliver(d Delivery) error {
	s.contents = append(s.contents, s.buffers[len(s.delivered)][:min(int(d.Length), len(s.buffers[len(s.delivered)]))])
	s.delivered = append(s.delivered, d)
	return nil
}

type sliceBuffer []byte

func (b sliceBuffer) Len() uint64                      { return uint64(len(b)) }
func (b sliceBuffer) Place(off uint32, p []byte) error { copy(b[off:], p); return nil }

// payload is payload in one stable piece.
type payload []byte

func (p payload) Gather(pieces [][]byte, off, n uint32) ([][]byte, error) {
	return append(pieces, p[off:off+n]), nil
}
func (payload) Release()     {}
func (payload) Stable() bool { return true }

// submit queues operations and transmits.
func (s *side) submit(ops ...*Operation) {
	s.queue = append(s.queue, ops...)
	s.Wake()
}

// memory registers n octets at 0x1000.
func (s *side) memory(n int, access stag.Access) ([]byte, stag.STag) {
	s.t.Helper()
	mem := make([]byte, n)
	e, err := s.table.Register(s.domain, stag.Memory{Mem: mem, Base: 0x1000, Access: access})
	if err != nil {
		s.t.Fatal(err)
	}
	return mem, e.STag()
}

// onPair runs f with two connected sides, and ends the stream after it.
func onPair(t *testing.T, o ddptest.Options, cfg Config, f func(t *testing.T, a, b *side)) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := ddptest.Pair(o)
		a, b := newSide(t, la, cfg), newSide(t, lb, cfg)
		a.run()
		b.run()
		f(t, a, b)
		synctest.Wait()
		_ = a.llp.CloseWrite()
		_ = b.llp.CloseWrite()
		<-a.done
		<-b.done
		close(a.wake)
		close(b.wake)
	})
}

func TestEveryOperationPasses(t *testing.T) {
	for _, o := range []ddptest.Options{{}, {MULPDU: 128}, {MULPDU: 200, Reorder: 5, Seed: 7}} {
		onPair(t, o, Config{IRD: 4, ORD: 4}, func(t *testing.T, a, b *side) {
			data := bytes.Repeat([]byte("0123456789"), 100)
			sink, sinkTag := b.memory(4096, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead|stag.RemoteAtomic)
			_, invTag := b.memory(64, stag.RemoteRead|stag.RemoteInvalidate)
			local, localTag := a.memory(4096, stag.LocalWrite)
			for range 8 {
				b.buffers = append(b.buffers, make([]byte, 2000))
			}
			read := &Operation{Op: OpReadRequest, Length: 1000, STag: sinkTag, TO: 0x1000 + 8, SinkSTag: localTag, SinkTO: 0x1000}
			add := &Operation{Op: OpAtomicRequest, STag: sinkTag, TO: 0x1000 + 2048, Atomic: AtomicRequest{Op: AtomicFetchAdd, AddSwap: 5}}
			swap := &Operation{Op: OpAtomicRequest, STag: sinkTag, TO: 0x1000 + 2048, Atomic: AtomicRequest{Op: AtomicCmpSwap, Compare: 5, CompareMask: ^uint64(0), AddSwap: 77, AddSwapMask: ^uint64(0)}}
			a.submit(
				&Operation{Op: OpWrite, Length: 1000, Payload: payload(data), STag: sinkTag, TO: 0x1000 + 8},
				&Operation{Op: OpSend, Length: 1000, Payload: payload(data)},
				read, add, swap,
				&Operation{Op: OpSendSE},
				&Operation{Op: OpImmediate, Immediate: Immediate{1, 2, 3, 4, 5, 6, 7, 8}},
				&Operation{Op: OpSendInvalidate, Length: 3, Payload: payload("inv"), Invalidate: invTag},
				&Operation{Op: OpImmediateSE, Immediate: Immediate{8}},
			)
			synctest.Wait()
			if a.err != nil || b.err != nil {
				t.Fatalf("a: %v; b: %v", a.err, b.err)
			}
			if !bytes.Equal(sink[8:1008], data) || !bytes.Equal(local[:1000], data) {
				t.Error("the data written or read differ")
			}
			if !slices.Equal(a.completed, []*Operation{read, add, swap}) || add.Original != 0 || swap.Original != 5 {
				t.Errorf("completed %v; originals %d, %d", a.completed, add.Original, swap.Original)
			}
			want := []Delivery{
				{Op: OpSend, Length: 1000}, {Op: OpSendSE}, {Op: OpImmediate, Length: 8},
				{Op: OpSendInvalidate, Length: 3, Invalidated: invTag}, {Op: OpImmediateSE, Length: 8},
			}
			if !slices.Equal(b.delivered, want) || !bytes.Equal(b.contents[0], data) || string(b.contents[3]) != "inv" || b.immediate[2][7] != 8 {
				t.Errorf("delivered %+v", b.delivered)
			}
			if len(a.submitted) != 9 || a.stream.Outstanding() != 0 || b.stream.Answering() != 0 {
				t.Errorf("%d submitted, %d outstanding, %d being answered", len(a.submitted), a.stream.Outstanding(), b.stream.Answering())
			}
		})
	}
}

func TestReadRequestBeyondIRDTerminates(t *testing.T) {
	onPair(t, ddptest.Options{}, Config{IRD: 0, ORD: 1}, func(t *testing.T, a, b *side) {
		a.submit(&Operation{Op: OpReadRequest})
		synctest.Wait()
		var e *Error
		if !errors.As(b.err, &e) || e.Code != TermCode(ddp.CodeMSNNoBuffer.TermWord()) {
			t.Errorf("responder: %v", b.err)
		}
		if a.term == nil || a.term.Code != 0x1202 || !a.term.D() || a.term.R() {
			t.Errorf("requester got %v", a.term)
		}
	})
}
