package rdmap

import (
	"strings"
	"testing"

	"urnic/stag"
)

// Requests of the ULP and responses to the peer are sent by turns while there are
// both, so that neither waits for the last of the other.
func TestRequestsAndResponsesAreSentByTurns(t *testing.T) {
	for _, n := range []struct {
		requests, responses int
		want                string
	}{
		{4, 4, "RORORORO"}, {2, 5, "RORORRR"}, {5, 2, "RORO" + "OOO"}, {0, 3, "RRR"}, {3, 0, "OOO"},
	} {
		var sent []string
		s, p := withPeer(t, Config{IRD: 8, Trace: func(m Trace) {
			switch {
			case !m.Sent:
			case m.Op == OpReadResponse, m.Op == OpAtomicResponse:
				sent = append(sent, "R")
			default:
				sent = append(sent, "O")
			}
		}})
		source := s.memory(64, stag.LocalWrite|stag.RemoteRead|stag.RemoteAtomic)
		for i := range n.responses {
			if i%2 == 0 {
				p.push(readRequest(ReadRequest{SinkSTag: 1, Size: 64, SrcSTag: source.tag, SrcTO: base}))
			} else {
				p.push(atomicRequest(AtomicRequest{Op: AtomicFetchAdd, STag: source.tag, TO: base, CompareMask: ^uint64(0)}))
			}
		}
		for i := range n.requests {
			if i%2 == 0 {
				s.submit(writeOf(1, 2, pattern(3000, 1)))
			} else {
				s.submit(sendOf(OpSend, []byte("x")))
			}
		}
		p.settle()
		if got := strings.Join(sent, ""); got != n.want || s.err != nil {
			t.Errorf("%d requests and %d responses were sent as %s, %v; want %s", n.requests, n.responses, got, s.err, n.want)
		}
		if len(s.failed) > 0 {
			t.Error("an operation has failed")
		}
	}
}
