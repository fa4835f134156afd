package rdmap_test

import (
	"errors"
	"fmt"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/stag"
)

// An owner is what a queue pair is to its stream: it has operations to send, and
// one receive buffer.
type owner struct {
	stream *rdmap.Stream
	todo   []*rdmap.Operation
	buffer buffer
}

func (o *owner) Next() *rdmap.Operation {
	if len(o.todo) == 0 || o.todo[0].Op == rdmap.OpReadRequest && !o.stream.MayRead() {
		return nil
	}
	op := o.todo[0]
	o.todo = o.todo[1:]
	return op
}
func (o *owner) Submitted(*rdmap.Operation, uint64)   {}
func (o *owner) Failed(_ *rdmap.Operation, err error) { fmt.Println("failed:", err) }
func (o *owner) Arrived()                             {}
func (o *owner) ReceiveBuffer(ahead uint32, _ bool) (ddp.Buffer, error) {
	if ahead > 0 {
		return nil, nil
	}
	return o.buffer, nil
}

func (o *owner) Deliver(d rdmap.Delivery) error {
	fmt.Printf("delivered: %v, %q\n", d.Op, o.buffer[:d.Length])
	return nil
}

func (o *owner) Completed(op *rdmap.Operation) error {
	fmt.Printf("completed: %d octets read\n", op.Length)
	return nil
}
func (o *owner) Terminated(t rdmap.Terminate) { fmt.Println("terminated:", t.Code) }
func (o *owner) Wake()                        {} // turn looks by itself

type buffer []byte

func (b buffer) Len() uint64                      { return uint64(len(b)) }
func (b buffer) Place(off uint32, p []byte) error { copy(b[off:], p); return nil }

// text is payload that nobody changes.
type text string

func (t text) Gather(pieces [][]byte, off, n uint32) ([][]byte, error) {
	return append(pieces, []byte(t[off:off+n])), nil
}
func (text) Release()     {}
func (text) Stable() bool { return true }

// Two streams in memory: one writes to the other's memory, says so with a Send,
// reads it back, and then writes where it must not.
func Example() {
	domain, _ := pd.NewManager(pd.Limits{}, pd.Limits{}).NewDomain()
	table := new(stag.Table)
	register := func(access stag.Access) (mem []byte, tag stag.STag) {
		mem = make([]byte, 64)
		entry, err := table.Register(domain, stag.Memory{Mem: mem, Access: access})
		if err != nil {
			panic(err)
		}
		return mem, entry.STag()
	}
	_, there := register(stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead)
	back, here := register(stag.LocalWrite)

	la, lb := ddptest.Pair(ddptest.Options{})
	a, b := new(owner), &owner{buffer: make(buffer, 64)}
	cfg := rdmap.Config{Memory: table, Scope: stag.Scope{Domain: domain, Stream: 1}, IRD: 1, ORD: 1}
	a.stream, b.stream = rdmap.NewStream(la, a, cfg), rdmap.NewStream(lb, b, cfg)

	// turn lets a stream receive what has come and send what there is to send.
	turn := func(o *owner, llp *ddptest.LLP) {
		for llp.Waiting() > 0 {
			err := o.stream.Receive()
			if e, ok := errors.AsType[*rdmap.Error](err); ok {
				fmt.Println("error:", e.Code)
				o.stream.Fail(e)
			}
		}
		if _, err := o.stream.Transmit(o); err != nil {
			panic(err)
		}
		if _, err := llp.Flush(true); err != nil {
			panic(err)
		}
	}

	a.todo = []*rdmap.Operation{
		{Op: rdmap.OpWrite, STag: there, TO: 8, Length: 5, Payload: text("hello")},
		{Op: rdmap.OpSendSE, Length: 8, Payload: text("I wrote!")},
		{Op: rdmap.OpReadRequest, STag: there, TO: 8, SinkSTag: here, Length: 5},
	}
	turn(a, la)
	turn(b, lb)
	turn(a, la)
	fmt.Printf("read back: %q\n", back[:5])

	a.todo = []*rdmap.Operation{{Op: rdmap.OpWrite, STag: there, TO: 60, Length: 5, Payload: text("hello")}}
	turn(a, la)
	turn(b, lb)
	turn(a, la)

	// Output:
	// delivered: Send with SE, "I wrote!"
	// completed: 5 octets read
	// read back: "hello"
	// error: DDP: base or bounds violation (0x1101)
	// terminated: DDP: base or bounds violation (0x1101)
}
