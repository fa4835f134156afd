package rdmap

import (
	"fmt"
	"io"
	"testing"

	"urnic/ddp"
	"urnic/pd"
	"urnic/stag"
)

// A wire is an LLP that costs next to nothing: what one end posts, the other
// finds in the same memory.
type wire struct {
	mulpdu  int
	peer    *wire
	arena   []byte
	ends    []int // of the segments in arena
	posted  uint64
	receive uint64 // order of the next segment
}

func newWires(mulpdu int) (a, b *wire) {
	a = &wire{mulpdu: mulpdu, arena: make([]byte, 0, 64*mulpdu), ends: make([]int, 0, 64)}
	b = &wire{mulpdu: mulpdu, arena: make([]byte, 0, 64*mulpdu), ends: make([]int, 0, 64)}
	a.peer, b.peer = b, a
	return a, b
}

func (w *wire) MULPDU() int { return w.mulpdu }

func (w *wire) Post(header []byte, payload [][]byte, _ bool) (bool, error) {
	if len(w.ends) == cap(w.ends) {
		return false, nil
	}
	w.arena = append(w.arena, header...)
	for _, p := range payload {
		w.arena = append(w.arena, p...)
	}
	w.ends = append(w.ends, len(w.arena))
	w.posted++
	return true, nil
}

func (w *wire) Flush(bool) (bool, error) { return true, nil }
func (w *wire) Posted() uint64           { return w.posted }
func (w *wire) Accepted() uint64         { return w.posted }

func (w *wire) Receive(place func([]byte, uint64) error) error {
	p := w.peer
	if len(p.ends) == 0 {
		return io.ErrNoProgress
	}
	from := 0
	for _, to := range p.ends {
		if err := place(p.arena[from:to], w.receive); err != nil {
			return err
		}
		w.receive++
		from = to
	}
	p.arena, p.ends = p.arena[:0], p.ends[:0]
	return nil
}

func (w *wire) TryReceive(place func([]byte, uint64) error) (bool, error) {
	return true, w.Receive(place)
}

func (w *wire) Discard() error    { return nil }
func (w *wire) CloseWrite() error { return nil }
func (w *wire) Close() error      { return nil }
func (w *wire) Abort() error      { return nil }

// A benchULP submits one operation again and again, and takes what comes into
// one buffer.
type benchULP struct {
	op        *Operation
	buffer    benchBuffer
	delivered int
	completed int
}

// A benchBuffer is a receive buffer: a pointer to it fits an interface without
// an allocation.
type benchBuffer struct{ mem []byte }

func (b *benchBuffer) Len() uint64                      { return uint64(len(b.mem)) }
func (b *benchBuffer) Place(off uint32, p []byte) error { copy(b.mem[off:], p); return nil }

func (u *benchULP) Next() *Operation {
	o := u.op
	u.op = nil
	return o
}
func (*benchULP) Submitted(*Operation, uint64)                     {}
func (*benchULP) Failed(*Operation, error)                         {}
func (*benchULP) Arrived()                                         {}
func (u *benchULP) ReceiveBuffer(uint32, bool) (ddp.Buffer, error) { return &u.buffer, nil }
func (u *benchULP) Deliver(Delivery) error                         { u.delivered++; return nil }
func (u *benchULP) Completed(*Operation) error                     { u.completed++; return nil }
func (*benchULP) Terminated(Terminate)                             {}
func (*benchULP) Wake()                                            {}

// A bench is two streams over a wire.
type bench struct {
	a, b     *Stream
	from, to benchULP
	sink     region // of a
	there    region // of b
	doomed   *stag.Entry
}

func newBench(tb testing.TB, size, mulpdu int) *bench {
	d, err := pd.NewManager(pd.Limits{}, pd.Limits{}).NewDomain()
	if err != nil {
		tb.Fatal(err)
	}
	table := new(stag.Table)
	register := func(access stag.Access) region {
		mem := make([]byte, max(size, 64))
		e, err := table.Register(d, stag.Memory{Mem: mem, Base: base, Access: access})
		if err != nil {
			tb.Fatal(err)
		}
		return region{mem, e.STag(), e}
	}
	n := &bench{sink: register(stag.LocalWrite), there: register(stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead | stag.RemoteAtomic)}
	if n.doomed, err = table.Allocate(d, 64); err != nil {
		tb.Fatal(err)
	}
	wa, wb := newWires(mulpdu)
	cfg := Config{Memory: table, Scope: stag.Scope{Domain: d, Stream: 1}, IRD: 1, ORD: 1}
	n.a, n.b = NewStream(wa, &n.from, cfg), NewStream(wb, &n.to, cfg)
	n.to.buffer.mem = make([]byte, size)
	return n
}

// do carries one operation out, with the response if it has one.
func (n *bench) do(tb testing.TB, o *Operation) {
	n.from.op = o
	for posted := false; !posted; {
		var err error
		if posted, err = n.a.Transmit(&n.from); err != nil {
			tb.Fatal(err)
		}
		if err = n.b.Receive(); err != nil {
			tb.Fatal(err)
		}
	}
	if !o.isRead() {
		return
	}
	done := n.from.completed
	for n.from.completed == done {
		if _, err := n.b.Transmit(&n.to); err != nil {
			tb.Fatal(err)
		}
		if err := n.a.Receive(); err != nil {
			tb.Fatal(err)
		}
	}
}

// operations are those that a bench can do, by name.
func (n *bench) operations(size int) map[string]*Operation {
	data := pattern(size, 1)
	return map[string]*Operation{
		"Send":      sendOf(OpSend, data),
		"Write":     writeOf(n.there.tag, base, data),
		"Read":      readOf(n.there.tag, base, n.sink.tag, base, uint64(size)),
		"FetchAdd":  addOf(n.there.tag, base, 1),
		"CmpSwap":   swapOf(n.there.tag, base, 1, 2),
		"Immediate": immediateOf(OpImmediate, Immediate{1}),
	}
}

func TestNothingIsAllocatedPerOperation(t *testing.T) {
	for _, size := range []int{0, 8, 5000} {
		n := newBench(t, size, 1442)
		for name, o := range n.operations(size) {
			if name == "Immediate" {
				n.to.buffer.mem = make([]byte, max(size, ImmediateLen))
			}
			if got := testing.AllocsPerRun(100, func() { n.do(t, o) }); got != 0 {
				t.Errorf("%s of %d octets: %v allocations", name, size, got)
			}
		}
	}
	t.Run("Send with Invalidate", func(t *testing.T) {
		n := newBench(t, 8, 1442)
		o := invalidateOf(OpSendInvalidate, make([]byte, 8), 0)
		memory := stag.Memory{Mem: make([]byte, 64), Base: base, Access: stag.RemoteRead | stag.RemoteInvalidate}
		got := testing.AllocsPerRun(100, func() {
			if err := n.doomed.FastRegister(memory, n.doomed.STag().Key()+1); err != nil {
				t.Fatal(err)
			}
			o.Invalidate = n.doomed.STag()
			n.do(t, o)
		})
		if got != 0 || n.doomed.Valid() {
			t.Errorf("%v allocations; STag valid: %v", got, n.doomed.Valid())
		}
	})
}

func BenchmarkOperation(b *testing.B) {
	for _, name := range []string{"Send", "Write", "Read", "Immediate", "FetchAdd", "CmpSwap"} {
		sizes := []int{8, 1024, 65536}
		if name == "Immediate" || name == "FetchAdd" || name == "CmpSwap" {
			sizes = []int{8}
		}
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				n := newBench(b, size, 64768)
				o := n.operations(size)[name]
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					n.do(b, o)
				}
			})
		}
	}
}
