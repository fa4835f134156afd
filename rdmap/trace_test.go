package rdmap

import (
	"slices"
	"testing"

	"urnic/ddp/ddptest"
	"urnic/stag"
)

func TestTraceAndCountersSeeEachMessage(t *testing.T) {
	var lines []string
	s, p := withPeer(t, Config{IRD: 1, ORD: 2, Trace: func(t Trace) { lines = append(lines, t.String()) }}, ddptest.Options{MULPDU: 128})
	r := s.memory(400, stag.LocalWrite|stag.RemoteRead|stag.RemoteWrite|stag.RemoteAtomic|stag.RemoteInvalidate)
	tag := r.tag.String()
	s.post(64, 64)
	s.submit(writeOf(0x500, 6, pattern(200, 1)), invalidateOf(OpSendSEInvalidate, pattern(9, 1), 0x700), immediateOf(OpImmediate, Immediate{}), readOf(1, 2, r.tag, base, 3), addOf(1, 8, 1))
	p.settle()
	for range 4 {
		p.seen++
	}
	id := p.nextAtomic().RequestID
	p.send(tagged(OpReadResponse, r.tag, base, []byte("abc")))
	p.send(atomicResponse(id, 0))
	p.send(tagged(OpWrite, r.tag, base+8, pattern(100, 1)), more)
	p.send(tagged(OpWrite, r.tag, base+108, pattern(50, 1)))
	p.send(readRequest(ReadRequest{SinkSTag: 0x900, SinkTO: 1, Size: 300, SrcSTag: r.tag, SrcTO: base}))
	p.send(untagged(OpSend, []byte("hello")), invalidating(0x123)) // which means nothing
	p.send(untagged(OpSendInvalidate, nil), invalidating(r.tag))
	p.send(terminateOf(Terminate{}))
	if s.err != nil {
		t.Fatal(s.err)
	}
	want := []string{
		"-> RDMA Write stag=0x00000500 to=0x6 len=200",
		"-> Send with SE and Invalidate qn=0 msn=1 len=9 invalidate=0x00000700",
		"-> Immediate Data qn=0 msn=2 len=8",
		"-> RDMA Read Request qn=1 msn=1 len=28",
		"-> Atomic Request qn=1 msn=2 len=52",
		"<- RDMA Read Response stag=" + tag + " to=0x1000 len=3",
		"<- Atomic Response qn=3 msn=1 len=12",
		"<- RDMA Write stag=" + tag + " to=0x1008 len=150",
		"<- RDMA Read Request qn=1 msn=1 len=28",
		"-> RDMA Read Response stag=0x00000900 to=0x1 len=300",
		"<- Send qn=0 msn=1 len=5",
		"<- Send with Invalidate qn=0 msn=2 len=0 invalidate=" + tag,
		"<- Terminate qn=2 msn=1 len=4",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("traced\n%q; want\n%q", lines, want)
	}
	got := s.stream.Stats()
	var stats Stats
	stats.Sent[OpWrite] = Count{1, 200}
	stats.Sent[OpSendSEInvalidate] = Count{1, 9}
	stats.Sent[OpImmediate] = Count{1, 8}
	stats.Sent[OpReadRequest] = Count{1, 28}
	stats.Sent[OpAtomicRequest] = Count{1, 52}
	stats.Sent[OpReadResponse] = Count{1, 300}
	stats.Received[OpReadResponse] = Count{1, 3}
	stats.Received[OpAtomicResponse] = Count{1, 12}
	stats.Received[OpWrite] = Count{1, 150}
	stats.Received[OpReadRequest] = Count{1, 28}
	stats.Received[OpSend] = Count{1, 5}
	stats.Received[OpSendInvalidate] = Count{1, 0}
	stats.Received[OpTerminate] = Count{1, 4}
	if got != stats {
		t.Errorf("counted %+v; want %+v", got, stats)
	}
	got.Add(stats)
	if got.Sent[OpWrite] != (Count{2, 400}) || got.Received[OpWrite] != (Count{2, 300}) || got.Sent[OpSend] != (Count{}) {
		t.Errorf("added up to %+v", got)
	}
}

func TestSolicitedMessages(t *testing.T) {
	var solicited []Opcode
	for op := range Opcode(16) {
		if op.Solicited() {
			solicited = append(solicited, op)
		}
	}
	if want := []Opcode{OpSendSE, OpSendSEInvalidate, OpImmediateSE}; !slices.Equal(solicited, want) {
		t.Errorf("%v; want %v", solicited, want)
	}
}

func TestNamesOfReservedOpcodes(t *testing.T) {
	if o := Opcode(13); o.String() != "reserved opcode 13" || o.Name() != "opcode-13" || o.Queue() != 0 || o.Tagged() {
		t.Errorf("%v, %s, queue %d, tagged %v", o, o.Name(), o.Queue(), o.Tagged())
	}
	if o := AtomicOp(1); o.String() != "reserved atomic operation 1" {
		t.Errorf("%v", o)
	}
	if r := (AtomicResponse{RequestID: 3, Original: 255}); r.String() != "id=3 original=0xff" {
		t.Errorf("%v", r)
	}
}
