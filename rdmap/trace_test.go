package rdmap

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/mpa"
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

func TestTraceTellsWhichMessageWasRefusedAndWhy(t *testing.T) {
	for _, tt := range []struct {
		name string
		seg  func(r region) ddp.Segment
		with []change
		code TermCode
		want string
	}{
		{
			"a Write to a bad STag", func(region) ddp.Segment { return tagged(OpWrite, 0x12345, 7, []byte("x")) }, nil,
			TermCode(ddp.CodeInvalidSTag.TermWord()), "<- RDMA Write stag=0x00012345 to=0x7 len=1 refused: ",
		},
		{
			"a Read Request for a bad STag", func(region) ddp.Segment { return readRequest(ReadRequest{Size: 5, SrcSTag: 9}) }, nil,
			CodeInvalidSTag, "<- RDMA Read Request qn=1 msn=1 len=28 refused: ",
		},
		{
			"a Send without a buffer", func(region) ddp.Segment { return untagged(OpSend, []byte("no")) }, nil,
			TermCode(ddp.CodeMSNNoBuffer.TermWord()), "<- Send qn=0 msn=1 len=2 refused: ",
		},
		{
			"a later segment of it", func(region) ddp.Segment { return untagged(OpSend, []byte("no")) },
			[]change{mo(10)},
			TermCode(ddp.CodeMSNNoBuffer.TermWord()), "<- Send qn=0 msn=1 len=12 refused: ",
		},
		{
			"a reserved opcode in a tagged message", func(r region) ddp.Segment { return tagged(OpWrite, r.tag, base, []byte("x")) },
			[]change{opcode(13)},
			CodeUnexpectedOpcode, "<- reserved opcode 13 stag=TAG to=0x1000 len=1 refused: ",
		},
		{
			"a Terminate in a tagged message", func(r region) ddp.Segment { return tagged(OpTerminate, r.tag, base, nil) }, nil,
			CodeUnexpectedOpcode, "<- Terminate stag=TAG to=0x1000 len=0 refused: ",
		},
		{
			"a Write on an untagged queue", func(region) ddp.Segment { return atomicRequest(AtomicRequest{}) },
			[]change{opcode(uint8(OpWrite))},
			CodeUnexpectedOpcode, "<- RDMA Write qn=1 msn=1 len=52 refused: ",
		},
		{
			"an Atomic Response that nobody waits for", func(region) ddp.Segment { return atomicResponse(1, 2) }, nil,
			TermCode(ddp.CodeMSNNoBuffer.TermWord()), "<- Atomic Response qn=3 msn=1 len=12 refused: ",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var seen []Trace
			s, p := withPeer(t, Config{IRD: 1, ORD: 1, Trace: func(t Trace) { seen = append(seen, t) }})
			r := s.memory(16, stag.LocalWrite|stag.RemoteWrite)
			p.send(tt.seg(r), tt.with...)
			if len(seen) != 2 || seen[1].Op != OpTerminate || !seen[1].Sent || seen[1].Err != nil {
				t.Fatalf("traced %v; want one message and then the Terminate for it", seen)
			}
			if e := seen[0].Err; e == nil || e.Code != tt.code || !errors.Is(s.err, e) {
				t.Errorf("the verdict is %v; want %v, with which Receive returned: %v", e, tt.code, s.err)
			}
			want := strings.ReplaceAll(tt.want, "TAG", r.tag.String())
			if got := seen[0].String(); !strings.HasPrefix(got, want) || !strings.Contains(got, s.err.Error()) {
				t.Errorf("traced %q; want %q and the error", got, want)
			}
		})
	}
}

// Whoever reads a trace finds a request before its response, and each once.
func TestTraceSeesAMessageBeforeWhatItCauses(t *testing.T) {
	var lines []string
	trace := func(t Trace) { lines = append(lines, t.String()) }
	s, p := withPeer(t, Config{IRD: 1, ORD: 1, ExpectRTR: mpa.RTRSend, Trace: trace})
	p.send(untagged(OpSend, nil)) // the RTR, which nobody is told of
	s.post(4)
	p.send(untagged(OpSend, []byte("ping")))
	p.send(readRequest(ReadRequest{SinkSTag: 1}))
	want := []string{
		"<- Send qn=0 msn=1 len=0", "<- Send qn=0 msn=2 len=4",
		"<- RDMA Read Request qn=1 msn=1 len=28", "-> RDMA Read Response stag=0x00000001 to=0x0 len=0",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("traced\n%q; want\n%q", lines, want)
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

// A Send has no STag, though its Operation may have one left from another use.
func TestTraceOfASendShowsNoSTag(t *testing.T) {
	var seen []Trace
	s, p := withPeer(t, Config{Trace: func(t Trace) { seen = append(seen, t) }})
	o := sendOf(OpSend, []byte("x"))
	o.STag, o.TO = 5, 6
	s.submit(o)
	if p.settle(); len(seen) != 1 || seen[0] != (Trace{Sent: true, Op: OpSend, MSN: 1, Length: 1}) {
		t.Errorf("traced %+v", seen)
	}
}

// What can't be read as a header is no message that could be shown.
func TestErrorWithoutAWholeHeaderIsNotTraced(t *testing.T) {
	s, _ := withPeer(t, Config{Trace: func(tr Trace) { t.Errorf("traced %v", tr) }})
	for _, b := range [][]byte{nil, {0x41}, {0xC1, 0x40}} {
		s.stream.traceRefused(&Error{Code: CodeStreamCatastrophic, Header: b})
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
