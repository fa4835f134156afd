package life

import (
	"urnic/ddp"
	"urnic/rdmap"
)

// kinds are the requests that a script can post.
var kinds = map[string]struct {
	flags Flag
	ops   []rdmap.Opcode
}{
	"send":   {0, []rdmap.Opcode{rdmap.OpSend}},
	"write":  {0, []rdmap.Opcode{rdmap.OpWrite}},
	"silent": {Unsignaled, []rdmap.Opcode{rdmap.OpWrite}},
	"pair":   {0, []rdmap.Opcode{rdmap.OpWrite, rdmap.OpSend}},
	"read":   {0, []rdmap.Opcode{rdmap.OpReadRequest}},
	"reads":  {0, []rdmap.Opcode{rdmap.OpReadRequest, rdmap.OpReadRequest}},
	"fence":  {LocalFence, []rdmap.Opcode{rdmap.OpSend}},
	"rfence": {ReadFence, []rdmap.Opcode{rdmap.OpSend}},
	"local":  {0, nil},
	"lfence": {LocalFence, nil},

	// That fail.
	"badlocal": {0, nil},
	"badread":  {0, []rdmap.Opcode{rdmap.OpReadRequest}}, // before it is sent
	"badsink":  {0, []rdmap.Opcode{rdmap.OpReadRequest}}, // when its response is in
}

// A modelPayload is memory that is never looked at.
type modelPayload struct{ ddp.Payload }

// ready reports whether the program can do the next thing of the script.
func (s *modelSide) ready() bool {
	if len(s.script) == 0 {
		return false
	}
	switch s.script[0] {
	case "reset":
		return s.over
	case "connect": // the peer does it for both
		p := s.peer
		return s.over && s.m.State() == Idle && p.over && p.m.State() == Idle && len(p.script) > 0 && p.script[0] == "accept"
	case "accept":
		return false
	}
	return true
}

// program does the next thing of the script.
func (s *modelSide) program() {
	op := s.script[0]
	s.script = s.script[1:]
	if _, ok := kinds[op]; ok {
		s.post(op, false)
		return
	}
	switch op {
	case "late": // as with the policy that takes requests which can only be flushed
		s.post("write", true)
	case "recv":
		r := &Receive{}
		r.Owner = r
		s.receives.Push(r)
		s.waiting = append(s.waiting, r)
		if s.over && s.m.State() == Error {
			s.flushReceives()
		}
	case "disconnect":
		if st := s.m.State(); s.m.Live() && st != Error {
			s.act(s.m.Disconnect())
		}
	case "terminate":
		s.asked = true
		s.act(s.m.Fail(LocalFault(errModel), 0))
	case "abort":
		s.asked = true
		s.act(s.m.Abort(errModel, 0))
	case "cq":
		s.overflow()
	case "stop", "go":
		s.stop(op == "stop")
	case "reset":
		if !s.m.Reset() || s.m.State() != Idle {
			s.fail("Reset has failed in state %v", s.m.State())
		}
		s.stopped, s.drained = false, 0
	case "connect":
		s.peer.script = s.peer.script[1:]
		s.connect("")
	default:
		s.happen(op)
	}
}

// happen has something happen to the connection.
func (s *modelSide) happen(op string) {
	switch op {
	case "cut": // both ends lose the connection
		for _, o := range []*modelSide{s, s.peer} {
			if !o.gone {
				o.in, o.unsent, o.gone, o.finished = append(o.in[:0], item{kind: aRST}), nil, true, true
			}
		}
	case "break": // what is sent fails, what arrives does not yet
		s.broken, s.kick = true, true
	case "spoil": // what is to be sent, its memory is gone
		s.spoiled, s.kick = true, true
	case "full", "room": // the LLP takes nothing any more, or does so again
		s.full, s.kick = op == "full", true
	case "one": // it takes one message, and is full as before
		if s.full && len(s.unsent) > 0 && s.canSend() {
			s.flush(1)
			s.kick = true
		}
	default:
		panic(op)
	}
}

// post posts a request.
func (s *modelSide) post(kind string, late bool) {
	ok, isLate := s.m.Admits()
	if ok == isLate {
		s.fail("a request is taken and late")
	}
	if !ok && !late {
		return
	}
	k := kinds[kind]
	r := &modelRequest{kind: kind, late: isLate}
	r.Flags, r.Owner = k.flags, r
	for _, op := range k.ops {
		o := rdmap.Operation{Op: op}
		if op != rdmap.OpReadRequest {
			o.Payload = modelPayload{}
		}
		r.Messages = append(r.Messages, o)
	}
	s.posted = append(s.posted, r)
	if isLate {
		s.late++
	}
	s.m.Post(&r.Request)
	s.kick = true
	s.collect()
}

// stop stops the send queue, or has it continue.
func (s *modelSide) stop(stopped bool) {
	st := s.m.State()
	if ok := s.m.Stop(stopped); ok != (st == Idle || st == RTS) {
		s.fail("Stop says %v in state %v", ok, st)
	} else if !ok {
		return
	}
	s.stopped, s.drained, s.kick = stopped, 0, true
	s.collect()
}
