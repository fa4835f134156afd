package life

import (
	"errors"
	"testing"

	"urnic/ddp"
	"urnic/rdmap"
)

func receives(n int) (q *RecvQueue, all []*Receive) {
	q = &RecvQueue{}
	q.Init(n)
	for range n {
		all = append(all, &Receive{})
		q.Push(all[len(all)-1])
	}
	return q, all
}

// sendHeader is the header of a message to a queue.
func sendHeader(qn uint32, op rdmap.Opcode) []byte {
	h := ddp.UntaggedHeader{Control: ddp.NewControl(false, true), QN: qn, MSN: 1}
	h.RsvdULP[0] = byte(rdmap.NewControl(op))
	b, _ := h.AppendBinary(nil)
	return b
}

func TestReceivesAreFlushedInOrder(t *testing.T) {
	q, all := receives(3)
	all[1].Refuse(LocalProtection, errModel)
	for i, want := range []Status{Flushed, LocalProtection, Flushed} {
		if r := q.Flush(); r != all[i] || r.Status != want {
			t.Errorf("receive %d: %+v, want status %d", i, r, want)
		}
	}
	if r := q.Flush(); r != nil {
		t.Errorf("one more: %+v", r)
	}
}

func TestAMessageThatIsTooLongBlamesItsReceive(t *testing.T) {
	tooLong := rdmap.TermCode(ddp.CodeMessageTooLong.TermWord())
	for name, c := range map[string]struct {
		e      rdmap.Error
		blames bool
	}{
		"a Send":                 {rdmap.Error{Code: tooLong, Header: sendHeader(rdmap.QueueSend, rdmap.OpSend)}, true},
		"a Send with Invalidate": {rdmap.Error{Code: tooLong, Header: sendHeader(rdmap.QueueSend, rdmap.OpSendInvalidate)}, true},
		"Immediate Data":         {rdmap.Error{Code: tooLong, Header: sendHeader(rdmap.QueueSend, rdmap.OpImmediate)}, false},
		"solicited":              {rdmap.Error{Code: tooLong, Header: sendHeader(rdmap.QueueSend, rdmap.OpImmediateSE)}, false},
		"a Read Request":         {rdmap.Error{Code: tooLong, Header: sendHeader(rdmap.QueueReadRequest, rdmap.OpReadRequest)}, false},
		"another error":          {rdmap.Error{Code: rdmap.CodeInvalidVersion, Header: sendHeader(rdmap.QueueSend, rdmap.OpSend)}, false},
	} {
		q, all := receives(2)
		all[0].Blame(&c.e)
		want := Status(Flushed)
		if c.blames {
			want = LocalLength
		}
		if r := q.Flush(); r != all[0] || r.Status != want || c.blames && !errors.Is(r.Cause, &c.e) {
			t.Errorf("%s: %+v, want status %d", name, r, want)
		}
		if r := q.Flush(); r.Status != Flushed {
			t.Errorf("%s: the next one has status %d", name, r.Status)
		}
	}
}
