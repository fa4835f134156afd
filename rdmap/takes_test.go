package rdmap

import (
	"testing"

	"urnic/ddp"
	"urnic/mpa"
)

func TestWhatTakesAReceive(t *testing.T) {
	untagged := func(op Opcode, qn uint32) []byte {
		b, err := ddp.UntaggedHeader{Control: ddp.NewControl(false, true), RsvdULP: [5]byte{uint8(NewControl(op))}, QN: qn, MSN: 1}.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tagged, err := ddp.TaggedHeader{Control: ddp.NewControl(true, true), RsvdULP: uint8(NewControl(OpWrite))}.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		segment []byte
		rtr     mpa.RTR
		want    bool
	}{
		{"Send", untagged(OpSend, QueueSend), 0, true},
		{"Send with Invalidate", untagged(OpSendInvalidate, QueueSend), 0, true},
		{"Immediate Data", untagged(OpImmediate, QueueSend), 0, true},
		{"ready-to-receive indication", untagged(OpSend, QueueSend), mpa.RTRSend, false},
		{"Immediate Data in its place", untagged(OpImmediate, QueueSend), mpa.RTRSend, true},
		{"Read Request", untagged(OpReadRequest, QueueReadRequest), 0, false},
		{"Terminate", untagged(OpTerminate, QueueTerminate), 0, false},
		{"Write", append(tagged, make([]byte, 40)...), 0, false},
		{"too short", untagged(OpSend, QueueSend)[:17], 0, false},
		{"nothing", nil, 0, false},
	} {
		s := &Stream{}
		s.intake.expectRTR = c.rtr
		if got := s.TakesReceive(c.segment); got != c.want {
			t.Errorf("%s: %v; want %v", c.name, got, c.want)
		}
	}
}
