package rdmap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"urnic/stag"
)

const (
	writtenLen = 24 << 10 // bytes that one side may write at the other
	sourceLen  = 4 << 10
	sinkLen    = 24 << 10
	cellCount  = 4
)

// A flow is all that goes from one side's ULP to the other's, with a model of
// what it should do there. No byte is written twice, so that what is read back
// does not depend on how the two directions meet.
type flow struct {
	from, to *side
	rng      *rand.Rand

	written, source, cells region // of to
	sink                   region // of from

	ops        []*Operation
	deliveries []expected // in the order of the Sends
	responses  []expected // in the order of the Reads and atomics
	wrote      []byte     // what written should hold in the end
	wroteUpTo  int
	read       []byte // what sink should hold
	readUpTo   int
	cell       [cellCount]uint64 // what cells should hold

	delivered, completed int
	fault                error // the first thing that was not as it should be
}

// An expected is what one delivery or completion should bring.
type expected struct {
	op       *Operation
	delivery Delivery
	content  []byte // of the delivery, or of the Read's sink
	before   int    // bytes that were written before
	original uint64
	doomed   region // that a Send with Invalidate has invalidated
}

func newFlow(from, to *side, rng *rand.Rand) *flow {
	f := &flow{from: from, to: to, rng: rng, wrote: make([]byte, writtenLen), read: make([]byte, sinkLen)}
	f.written = to.register(stag.Memory{Mem: make([]byte, writtenLen), Base: base, Access: stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead})
	f.source = to.register(stag.Memory{Mem: pattern(sourceLen, 5), Base: 1 << 40, Access: stag.RemoteRead})
	f.cells = to.register(stag.Memory{Mem: make([]byte, 8*cellCount), Base: 0, Access: stag.LocalWrite | stag.RemoteAtomic | stag.RemoteRead})
	f.sink = from.register(stag.Memory{Mem: make([]byte, sinkLen), Base: base, Access: stag.LocalWrite})
	to.onDeliver = f.onDeliver
	from.onDone = f.onDone
	return f
}

// length draws a length: none, less than a segment, or several.
func (f *flow) length() int {
	return []int{0, f.rng.IntN(60), f.rng.IntN(60), f.rng.IntN(1200)}[f.rng.IntN(4)]
}

// data draws that many bytes.
func (f *flow) data(n int) []byte { return pattern(n, byte(f.rng.Uint32())) }

// next makes up an operation.
func (f *flow) next() *Operation {
	kinds := []func() *Operation{f.send, f.send, f.write, f.write, f.readBack, f.readBack, f.atomic, f.immediate}
	o := kinds[f.rng.IntN(len(kinds))]()
	f.ops = append(f.ops, o)
	return o
}

func (f *flow) send() *Operation {
	op := []Opcode{OpSend, OpSendSE, OpSendInvalidate, OpSendSEInvalidate}[f.rng.IntN(4)]
	o := sendOf(op, f.data(f.length()))
	e := expected{op: o, delivery: Delivery{Op: op, Length: uint32(o.Length)}, content: o.Payload.(payload), before: f.wroteUpTo}
	if op.Invalidates() {
		e.doomed = f.to.memory(8, stag.RemoteInvalidate|stag.RemoteRead)
		o.Invalidate, e.delivery.Invalidated = e.doomed.tag, e.doomed.tag
	}
	f.deliveries = append(f.deliveries, e)
	f.to.post(len(e.content) + f.rng.IntN(10))
	return o
}

func (f *flow) immediate() *Operation {
	o := immediateOf([]Opcode{OpImmediate, OpImmediateSE}[f.rng.IntN(2)], Immediate(f.data(ImmediateLen)))
	f.deliveries = append(f.deliveries, expected{
		op: o, delivery: Delivery{Op: o.Op, Length: ImmediateLen}, content: o.Immediate[:], before: f.wroteUpTo,
	})
	f.to.post(f.rng.IntN(10)) // of whatever size: it is consumed, not filled
	return o
}

func (f *flow) write() *Operation {
	data := f.data(min(f.length(), writtenLen-f.wroteUpTo))
	if len(data) == 0 {
		return writeOf(0xBAD, 0xBAD, nil)
	}
	o := writeOf(f.written.tag, base+uint64(f.wroteUpTo), data)
	copy(f.wrote[f.wroteUpTo:], data)
	f.wroteUpTo += len(data)
	return o
}

// readBack reads what was there, what was written, or a cell.
func (f *flow) readBack() *Operation {
	n := min(f.length(), sinkLen-f.readUpTo)
	var from region
	var fromBase uint64
	var content []byte
	at := 0
	switch f.rng.IntN(3) {
	case 0:
		from, fromBase, content = f.source, 1<<40, f.source.mem
	case 1:
		from, fromBase, content = f.written, base, f.wrote[:f.wroteUpTo]
	case 2:
		from, fromBase = f.cells, 0
		for _, v := range f.cell {
			content = binary.NativeEndian.AppendUint64(content, v)
		}
	}
	n = min(n, len(content))
	if n == 0 {
		o := readOf(0xBAD, 0xBAD, 0xBAD, 0xBAD, 0)
		f.responses = append(f.responses, expected{op: o})
		return o
	}
	at = f.rng.IntN(len(content) - n + 1)
	o := readOf(from.tag, fromBase+uint64(at), f.sink.tag, base+uint64(f.readUpTo), uint64(n))
	content = bytes.Clone(content[at : at+n])
	copy(f.read[f.readUpTo:], content)
	f.readUpTo += n
	f.responses = append(f.responses, expected{op: o, content: content})
	return o
}

func (f *flow) atomic() *Operation {
	i := f.rng.IntN(cellCount)
	old, r := f.cell[i], f.rng
	o := addOf(f.cells.tag, uint64(8*i), r.Uint64())
	if r.IntN(2) == 0 {
		o.Atomic.AddSwapMask = r.Uint64() & r.Uint64()
		f.cell[i] = fetchAddByBit(old, o.Atomic.AddSwap, o.Atomic.AddSwapMask)
	} else {
		o = swapOf(f.cells.tag, uint64(8*i), old, r.Uint64())
		o.Atomic.AddSwapMask = r.Uint64()
		if r.IntN(3) == 0 {
			o.Atomic.Compare++ // it won't match
		} else {
			f.cell[i] = old&^o.Atomic.AddSwapMask | o.Atomic.AddSwap&o.Atomic.AddSwapMask
		}
	}
	f.responses = append(f.responses, expected{op: o, original: old})
	return o
}

func (f *flow) wrong(format string, args ...any) {
	if f.fault == nil {
		f.fault = fmt.Errorf(format, args...)
	}
}

// onDeliver holds a delivery to the model.
func (f *flow) onDeliver(d Delivery) {
	if f.delivered == len(f.deliveries) {
		f.wrong("%+v was delivered, and nothing more was sent", d)
		return
	}
	e, i := f.deliveries[f.delivered], f.delivered
	f.delivered++
	if d != e.delivery || !bytes.Equal(f.to.contents[i], e.content) {
		f.wrong("delivery %d is %+v with %x; want %+v with %x", i, d, f.to.contents[i], e.delivery, e.content)
	}
	filled := len(e.content)
	if d.Op == OpImmediate || d.Op == OpImmediateSE {
		filled = 0
	}
	if rest := f.to.buffers[i][filled:]; !bytes.Equal(rest, make([]byte, len(rest))) {
		f.wrong("delivery %d was placed beyond its end: %x", i, rest)
	}
	if !bytes.Equal(f.written.mem[:e.before], f.wrote[:e.before]) {
		f.wrong("delivery %d overtook a Write", i)
	}
	if e.doomed.entry != nil && e.doomed.entry.Valid() {
		f.wrong("delivery %d has not invalidated its STag", i)
	}
}

// onDone holds the completion of a Read or an atomic to the model.
func (f *flow) onDone(o *Operation) {
	if f.completed == len(f.responses) || f.responses[f.completed].op != o {
		f.wrong("completion %d is of %+v", f.completed, o)
		return
	}
	e := f.responses[f.completed]
	f.completed++
	if o.Original != e.original {
		f.wrong("%v returned %#x; want %#x", o.Atomic, o.Original, e.original)
	}
	if len(e.content) > 0 {
		if at := o.SinkTO - base; !bytes.Equal(f.sink.mem[at:at+o.Length], e.content) {
			f.wrong("a Read of %d octets from %v+0x%x differs", o.Length, o.STag, o.TO)
		}
	}
}

// end holds the memory to the model when everything is done.
func (f *flow) end() error {
	switch {
	case f.fault != nil:
	case f.delivered != len(f.deliveries) || f.completed != len(f.responses):
		f.wrong("%d of %d delivered, %d of %d completed", f.delivered, len(f.deliveries), f.completed, len(f.responses))
	case !bytes.Equal(f.written.mem, f.wrote):
		f.wrong("what was written differs")
	case !bytes.Equal(f.sink.mem, f.read):
		f.wrong("what was read differs")
	case !bytes.Equal(f.source.mem, pattern(sourceLen, 5)):
		f.wrong("what was only to be read has changed")
	}
	for i, v := range f.cell {
		if got := *f.cells.cell(8 * i); got != v {
			f.wrong("cell %d holds %#x; want %#x", i, got, v)
		}
	}
	return f.fault
}

// soFar holds the memory to the model when the stream was cut: each byte is as
// it was, or as it should become.
func (f *flow) soFar() error {
	within := func(what string, got, want []byte) {
		for i := range got {
			if got[i] != 0 && got[i] != want[i] {
				f.wrong("%s: octet %d is %#x; want 0 or %#x", what, i, got[i], want[i])
			}
		}
	}
	within("written", f.written.mem, f.wrote)
	within("read", f.sink.mem, f.read)
	if !bytes.Equal(f.source.mem, pattern(sourceLen, 5)) {
		f.wrong("what was only to be read has changed")
	}
	return f.fault
}
