package rpcflow

import (
	"io"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/rdmap"
	"urnic/stag"
	"urnic/ulp/rpcrdma"
)

// What a fuzzed script does. Each step is a kind and a length, and bytes.
const (
	doSend       = iota // a message as it is
	doCall              // a header made of the bytes, with a call behind it
	doReply             // the same with a reply
	doWrite             // to a place that the bytes say
	doRead              // the same, with a response
	doInvalidate        // a Send with Invalidate
	doLose              // packets are lost
	steps
)

// step plays a step, of which the bytes choose little: XIDs, STags and places are few, so
// that they meet.
func (p *player) step(kind byte, b []byte) {
	from := dissect.Side(kind >> 7)
	at := func(i int) uint32 {
		if i >= len(b) {
			return 0
		}
		return uint32(b[i])
	}
	segment := func(i int) rpcrdma.Segment {
		return rpcrdma.Segment{Handle: stag.STag(at(i) & 3), Length: at(i+1) & 63, Offset: uint64(at(i+2) & 31)}
	}
	header := func() rpcrdma.Header {
		h := rpcrdma.Header{XID: at(0) & 3, Version: 1, Credits: at(1) & 7, Proc: rpcrdma.Proc(at(2) & 1)}
		switch at(2) >> 1 & 3 {
		case 1:
			h.Read = []rpcrdma.ReadSegment{{Position: at(3) & 124, Segment: segment(4)}, {Position: at(7) & 124, Segment: segment(8)}}
		case 2:
			h.Write = [][]rpcrdma.Segment{{segment(4), segment(8)}, {}, {segment(12)}}
		case 3:
			h.HasReply, h.Reply = true, []rpcrdma.Segment{segment(4), segment(8)}
		}
		if at(2) == 255 {
			h = rpcrdma.Header{XID: at(0) & 3, Version: 1, Proc: rpcrdma.Error, Err: rpcrdma.ErrCode(1 + at(1)&1)}
		}
		return h
	}
	switch kind & 127 % steps {
	case doSend:
		p.untagged(from, rdmap.OpSend, 0, b)
	case doCall:
		h := header()
		p.untagged(from, rdmap.OpSend, 0, append(h.Append(nil), nfsCall(h.XID, at(15)&31, b)...))
	case doReply:
		h := header()
		p.untagged(from, rdmap.OpSend, 0, append(h.Append(nil), answer(h.XID, b)...))
	case doWrite:
		s := segment(0)
		p.tagged(from, rdmap.OpWrite, s.Handle, s.Offset, b)
	case doRead:
		if s := segment(0); len(b) > 0 {
			p.read(s.Handle, s.Offset, b)
		}
	case doInvalidate:
		h := header()
		p.untagged(from, rdmap.OpSendInvalidate, stag.STag(at(14)&3), append(h.Append(nil), answer(h.XID, b)...))
	}
}

// FuzzAnalyzer: whatever two sides send each other, the analysis ends, forgets what it has
// kept, counts each call once, and can be shown.
func FuzzAnalyzer(f *testing.F) {
	f.Add([]byte{doCall, 16, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 128 | doReply, 4, 1, 4, 0, 0})
	f.Add([]byte{doCall, 16, 1, 4, 2, 80, 1, 20, 0, 80, 2, 9, 0, 0, 0, 0, 0, 7, doRead, 20, 1, 20, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 128 | doInvalidate, 3, 1, 4, 0})
	f.Add([]byte{doCall, 16, 2, 4, 4, 0, 1, 20, 0, 2, 9, 0, 3, 5, 0, 0, 0, 6, 128 | doWrite, 3, 1, 20, 0, 128 | doReply, 14, 2, 4, 4, 0, 1, 3, 0, 2, 0, 0, 3, 0, 0, 0})
	f.Add([]byte{doCall, 16, 3, 4, 6, 0, 1, 20, 0, 2, 9, 0, 3, 5, 0, 0, 0, 6, 128 | doWrite, 30, 1, 20, 0, 3, 128 | doReply, 14, 3, 4, 7, 0, 1, 20, 0, 2, 9, 0, 3, 0, 0, 0})
	f.Add([]byte{doCall, 8, 1, 4, 3, 0, 1, 20, 0, 0, doSend, 5, 1, 2, 3, 4, 5, doLose, 1, 5, 128 | doReply, 3, 1, 2, 255})
	f.Fuzz(func(t *testing.T, script []byte) {
		p := newPlayer(t, Port).start(linux)
		lost := map[int]bool{}
		for len(script) >= 2 {
			kind, n := script[0], min(int(script[1]), len(script)-2)
			b := script[2 : 2+n]
			script = script[2+n:]
			if kind&127%steps == doLose {
				for _, v := range b {
					lost[6+int(v)] = true
				}
				continue
			}
			p.step(kind, b)
		}
		file := p.recording()
		if len(lost) > 0 {
			file = without(t, file, func(n int) bool { return lost[n] })
		}
		o := dissect.Options{Segments: true}
		calls, replies := 0, 0
		r := analyze(t, file, &Analyzer{All: true}, dissect.Text(io.Discard, o), dissect.JSON(io.Discard, o), dissect.Ladder(io.Discard, dissect.Options{Upper: true}), func(e *dissect.Event) error {
			if m, ok := e.Upper.(*RPC); ok {
				switch {
				case m.Reply && m.Matched:
					replies++
				case !m.Reply && m.Known:
					calls++
				}
				if n := uint64(len(m.Octets)); n > m.Length || m.Whole && n < m.Length {
					t.Errorf("%v: %d bytes", m, len(m.Octets))
				}
			}
			return nil
		})
		var s dissect.Summary
		s.Add("fuzz", r.Result)
		if err := s.WriteJSON(io.Discard); err != nil {
			t.Error(err)
		}
		if err := s.WriteTable(io.Discard); err != nil {
			t.Error(err)
		}
		if len(r.Connections) != 1 || r.Connections[0].Upper == nil {
			return
		}
		if sum := r.summary(t); sum.Calls != calls || sum.Replies != replies {
			t.Errorf("%+v, but %d calls and %d replies were shown", sum, calls, replies)
		}
	})
}
