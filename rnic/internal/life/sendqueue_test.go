package life

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"urnic/internal/door/policy"
	"urnic/rdmap"
)

// A bench is a machine in RTS, and what holds its requests back.
type bench struct {
	*Machine
	t        *testing.T
	noRead   bool  // ORD is used up
	holds    bool  // memory is open
	fault    error // of Reads that are checked
	position uint64
}

func newBench(t *testing.T) *bench {
	b := &bench{Machine: New(20), t: t}
	b.Follow(policy.Lenient{Departures: policy.CheckAtTurn})
	b.Connected(Params{Initiator: true, ORD: 4})
	return b
}

func (b *bench) MayRead() bool                  { return !b.noRead }
func (b *bench) HoldsMemory() bool              { return b.holds }
func (b *bench) Check(*Request) (Status, error) { return LocalProtection, b.fault }

// put posts a request.
func (b *bench) put(flags Flag, ops ...rdmap.Opcode) *Request {
	r := &Request{Flags: flags}
	for _, op := range ops {
		r.Messages = append(r.Messages, rdmap.Operation{Op: op})
	}
	b.Post(r)
	return r
}

// want is what Next must say.
func (b *bench) want(turn Turn, r *Request) *rdmap.Operation {
	b.t.Helper()
	got, of, o := b.Next(b)
	if got != turn || of != r {
		b.t.Fatalf("turn %d of %p, want %d of %p", got, of, turn, r)
	}
	return o
}

// send begins a request, and posts its message.
func (b *bench) send(r *Request) {
	b.t.Helper()
	b.want(Send, r)
	b.position++
	b.Posted(r, b.position)
}

func (b *bench) wantCompleted(want ...*Request) {
	b.t.Helper()
	if got := b.Completed(); !slices.Equal(got, want) {
		b.t.Fatalf("%d requests have completed, want %d: %p and %p", len(got), len(want), got, want)
	}
}

func TestRequestsCompleteInOrder(t *testing.T) {
	b := newBench(t)
	write, read, send := b.put(0, rdmap.OpWrite), b.put(0, rdmap.OpReadRequest), b.put(0, rdmap.OpSend)
	b.send(write)
	b.send(read)
	b.send(send)
	b.wantCompleted()
	if more := b.Accepted(3); more {
		t.Error("there is more to begin")
	}
	b.wantCompleted(write)
	if b.Outstanding() != 2 {
		t.Errorf("%d requests are outstanding", b.Outstanding())
	}
	b.Answered(read)
	b.wantCompleted(read, send)
}

func TestASendIsDoneWhenTheLLPHasAllOfIt(t *testing.T) {
	b := newBench(t)
	r := b.put(0, rdmap.OpSend)
	b.want(Send, r)
	b.Accepted(7) // before it was posted
	b.wantCompleted()
	b.Posted(r, 8)
	b.Accepted(7)
	b.wantCompleted()
	b.Accepted(8)
	b.wantCompleted(r)
}

func TestAPairIsDoneWithItsSecondMessage(t *testing.T) {
	b := newBench(t)
	pair, next := b.put(0, rdmap.OpWrite, rdmap.OpSend), b.put(0, rdmap.OpSend)
	if o := b.want(Send, pair); o != &pair.Messages[0] {
		t.Error("not the first message")
	}
	b.Posted(pair, 1)
	b.Accepted(1)
	b.wantCompleted()
	if o := b.want(Send, pair); o != &pair.Messages[1] {
		t.Error("not the second message")
	}
	b.want(Send, next)
	b.Posted(pair, 2)
	b.Accepted(2)
	b.wantCompleted(pair)
}

func TestTwoReadsOfARequestAreDoneTogether(t *testing.T) {
	b := newBench(t)
	r := b.put(0, rdmap.OpReadRequest, rdmap.OpReadRequest)
	b.send(r)
	b.noRead = true
	b.want(Wait, nil)
	b.noRead, b.fault = false, errors.New("checked before") // with its first message
	b.send(r)
	b.Accepted(2)
	b.Answered(r)
	b.wantCompleted()
	b.Answered(r)
	b.wantCompleted(r)
}

// RFC 5040 §5.5 rule 12.
func TestAReadFenceWaitsForReads(t *testing.T) {
	b := newBench(t)
	write, read, fenced := b.put(0, rdmap.OpWrite), b.put(0, rdmap.OpAtomicRequest), b.put(ReadFence, rdmap.OpSend)
	b.send(write)
	b.send(read)
	b.want(Wait, nil)
	b.Answered(read)
	b.send(fenced) // though the Write has not completed
	b.wantCompleted()
}

// The second Read of a request need not wait for the first.
func TestAReadFenceIsBeforeTheRequest(t *testing.T) {
	b := newBench(t)
	r := b.put(ReadFence, rdmap.OpReadRequest, rdmap.OpReadRequest)
	b.send(r)
	b.send(r)
}

func TestALocalFenceWaitsForAll(t *testing.T) {
	b := newBench(t)
	write, fenced := b.put(0, rdmap.OpWrite), b.put(LocalFence, rdmap.OpSend)
	b.send(write)
	b.want(Wait, nil)
	if more := b.Accepted(1); !more {
		t.Error("nobody is told that the fence is open")
	}
	b.send(fenced)
}

func TestALocalRequestWaitsForMemory(t *testing.T) {
	b := newBench(t)
	write, local := b.put(0, rdmap.OpWrite), b.put(0)
	b.send(write)
	b.holds = true
	b.want(Flush, nil)
	b.holds = false
	b.want(CarryOut, local)
	b.want(Wait, nil)
	b.CarriedOut(local)
	b.wantCompleted()
	b.Accepted(1)
	b.wantCompleted(write, local)
}

func TestAReadNeedsORD(t *testing.T) {
	b := newBench(t)
	r := b.put(0, rdmap.OpReadRequest)
	b.noRead = true
	b.want(Wait, nil)
	b.noRead = false
	b.want(Send, r)

	b = newBench(t)
	b.stream.ORD = 0
	r = b.put(0, rdmap.OpAtomicRequest)
	b.want(Failed, r)
	if r.Status != NoReadResources || !errors.Is(r.Cause, errNoORD) {
		t.Errorf("status %d because of %v", r.Status, r.Cause)
	}
}

func TestAReadIsChecked(t *testing.T) {
	b := newBench(t)
	r, next := b.put(0, rdmap.OpReadRequest), b.put(0, rdmap.OpReadRequest)
	b.fault = errors.New("no such sink")
	b.want(Failed, r)
	b.Abort(b.fault, 0)
	b.Over(false)
	b.wantCompleted(r, next)
	if r.Status != LocalProtection || !errors.Is(r.Cause, b.fault) || next.Status != Flushed || next.Cause != nil {
		t.Errorf("statuses %d because of %v, %d because of %v", r.Status, r.Cause, next.Status, next.Cause)
	}
}

// Of several requests that have failed, the first is to blame.
func TestOneRequestIsToBlame(t *testing.T) {
	b := newBench(t)
	var all []*Request
	for range 4 {
		all = append(all, b.put(Unsignaled, rdmap.OpWrite))
	}
	_ = all[1].Refuse(LocalProtection, errModel)
	_ = all[2].Refuse(RemoteTermination, errModel)
	_ = all[3].Refuse(LocalProtection, nil)
	b.Abort(errModel, 0)
	b.Over(false)
	b.wantCompleted(all...)
	for i, want := range []Status{Flushed, LocalProtection, Flushed, Flushed} {
		if all[i].Status != want || all[i].Silent() {
			t.Errorf("request %d: status %d, want %d, silent %v", i, all[i].Status, want, all[i].Silent())
		}
	}
	late := b.put(Unsignaled, rdmap.OpWrite)
	b.wantCompleted(late)
	if late.Status != Flushed {
		t.Errorf("a late request has status %d", late.Status)
	}
}

func TestBatch(t *testing.T) {
	b := newBench(t)
	var all []*Request
	for range 5 {
		all = append(all, b.put(0, rdmap.OpWrite))
	}
	all = append(all, b.put(ReadFence, rdmap.OpWrite), b.put(0, rdmap.OpSend))
	b.send(all[0])
	got, more := b.Batch(make([]*Request, 0, 3))
	if !slices.Equal(got, all[1:4]) || more {
		t.Errorf("%d requests, all: %v", len(got), more)
	}
	if got, more = b.Batch(got[:0]); !slices.Equal(got, all[4:5]) || more { // not beyond the fence, if it is open or not
		t.Errorf("%d requests, all: %v", len(got), more)
	}
	b.send(all[5])
	if got, more = b.Batch(got[:0]); !slices.Equal(got, all[6:]) || !more {
		t.Errorf("%d requests, all: %v", len(got), more)
	}
	for i, r := range all {
		b.Posted(r, uint64(i+2))
	}
	b.Accepted(9)
	b.wantCompleted(all...)
}

func TestBatchTakesPlainRequestsOnly(t *testing.T) {
	for name, put := range map[string]func(b *bench){
		"read":        func(b *bench) { b.put(0, rdmap.OpReadRequest) },
		"atomic":      func(b *bench) { b.put(0, rdmap.OpAtomicRequest) },
		"local":       func(b *bench) { b.put(0) },
		"pair":        func(b *bench) { b.put(0, rdmap.OpWrite, rdmap.OpSend) },
		"local fence": func(b *bench) { b.put(LocalFence, rdmap.OpSend) },
		"read fence":  func(b *bench) { b.put(ReadFence, rdmap.OpSend) },
	} {
		b := newBench(t)
		put(b)
		if got, all := b.Batch(make([]*Request, 0, 4)); len(got) > 0 || all {
			t.Errorf("%s: %d requests, all: %v", name, len(got), all)
		}
	}
	b := newBench(t)
	b.put(0, rdmap.OpSend)
	b.Stop(true)
	if got, all := b.Batch(make([]*Request, 0, 4)); len(got) > 0 || !all {
		t.Errorf("stopped: %d requests, all: %v", len(got), all)
	}
}

func TestAStoppedQueueDrains(t *testing.T) {
	b := newBench(t)
	pair, next := b.put(0, rdmap.OpWrite, rdmap.OpSend), b.put(0, rdmap.OpSend)
	b.send(pair)
	if !b.Stop(true) || b.Drained() {
		t.Error("it is drained with a request half begun")
	}
	b.send(pair) // it continues
	b.want(Wait, nil)
	b.Accepted(2)
	if !b.Drained() || b.Drained() {
		t.Error("it is not drained, or twice")
	}
	b.Stop(false)
	b.send(next)
	if b.Drained() {
		t.Error("it is drained, and was not stopped")
	}
}

func TestTheEndOfAStreamLetsAStoppedQueueGoOn(t *testing.T) {
	b := newBench(t)
	b.Stop(true)
	b.Abort(errModel, 0)
	b.Over(false)
	b.Reset()
	b.Connected(Params{Initiator: true})
	b.send(b.put(0, rdmap.OpSend))

	m := New(1)
	m.Stop(true)
	m.Reset() // of an idle one does so too
	m.Connected(Params{Initiator: true})
	if m.stopped {
		t.Error("the queue is still stopped")
	}
}

// An owner posts a request again that has completed, whatever was with it.
func TestARequestIsPostedAgain(t *testing.T) {
	b := newBench(t)
	r := b.put(0, rdmap.OpSend)
	b.send(r)
	_ = r.Refuse(LocalProtection, errModel)
	b.Abort(errModel, 0)
	b.Over(false)
	b.Completed()
	b.Reset()
	fresh := Request{Messages: r.Messages}
	if b.Post(r); !reflect.DeepEqual(*r, fresh) {
		t.Errorf("it is %+v, want %+v", *r, fresh)
	}
}

// Reads that were flushed hold nothing back on the next stream.
func TestAReadFenceForgetsTheLastStream(t *testing.T) {
	b := newBench(t)
	b.send(b.put(0, rdmap.OpReadRequest))
	b.Abort(errModel, 0)
	b.Over(false)
	b.Reset()
	b.Connected(Params{Initiator: true})
	b.send(b.put(ReadFence, rdmap.OpSend))
}

func TestRoom(t *testing.T) {
	b := newBench(t)
	b.put(0, rdmap.OpSend)
	if got := b.Room(3); got != 16 {
		t.Errorf("there is room for %d requests, want 16", got)
	}
}

// What waits in Idle is for the next stream, what is late is not.
func TestLateRequestsAreNotOutstanding(t *testing.T) {
	b := newBench(t)
	b.Disconnect()
	if ok, late := b.Admits(); ok || !late || !b.Draining() {
		t.Error("requests are taken while the queue drains")
	}
	late := b.put(0, rdmap.OpSend)
	b.want(Wait, nil)
	if b.Outstanding() != 0 {
		t.Error("a late request is outstanding")
	}
	b.Judge(Sent{All: true})
	b.Over(true)
	b.wantCompleted(late)
	if late.Status != Flushed || b.State() != Idle {
		t.Errorf("status %d in state %v", late.Status, b.State())
	}
	waits := b.put(0, rdmap.OpSend)
	b.wantCompleted()
	b.Connected(Params{Initiator: true})
	b.send(waits)
}
