package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// ownImmediates: the Immediate Data that the target sends.
func ownImmediates() []conformance.Case {
	var out []conformance.Case
	add := func(clause, name, title string, also []string, run func(t *conformance.T, s *conformance.Stream)) {
		out = append(out, conformance.Case{
			Clause: clause, Name: name, Title: title, Also: also, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openImmediate(t, conformance.Setup{})
				s.Hello()
				run(t, s)
			},
		})
	}
	for _, k := range []struct {
		name, title, post string
		op                wire.Opcode
	}{
		{"own-imm", "The target's Immediate Data", service.OpImmediate, wire.ImmediateData},
		{"own-imm-se", "The target's Immediate Data with SE", service.OpImmediateSE, wire.ImmediateDataSE},
	} {
		post := service.Post{Op: k.post, Immediate: immediateValue}
		add("rfc7306-6.3-1", k.name+"-untagged", k.title+" are untagged, and one segment", nil,
			func(t *conformance.T, s *conformance.Stream) {
				s.Posts(post)
				a := s.Await(k.op)
				t.Check(!a.Tagged && a.Last && a.MO == 0, "one untagged segment with MO 0", "%q", a.Fields())
			})
		add("rfc7306-6.3-4", k.name+"-on-queue-0", k.title+" go to queue 0", nil,
			func(t *conformance.T, s *conformance.Stream) {
				s.Posts(post)
				a := s.Await(k.op)
				t.Check(a.QN == 0, "QN 0", "%s", a.Segment)
			})
		add("rfc7306-6.3-5", k.name+"-of-8-octets", k.title+" have the 8 octets that the program gave, in its order", nil,
			func(t *conformance.T, s *conformance.Stream) {
				s.Posts(post)
				a := s.Await(k.op)
				t.Check(bytes.Equal(a.Payload, immediateOctets), fmt.Sprintf("%x", immediateOctets), "%x", a.Payload)
			})
		add("rfc7306-4.1-1", k.name+"-control-fields", k.title+" have RV 01b, their opcode, Invalidate STag 0, and nothing in what is reserved", nil,
			func(t *conformance.T, s *conformance.Stream) {
				s.Posts(post)
				a := s.Await(k.op)
				t.Check(a.RV == 1 && a.Invalidate == 0 && a.RDMAPReserved == 0 && a.Reserved == 0, "RV 1, Invalidate STag 0, reserved bits 0", "%q", a.Fields())
			})
	}
	add("rfc5041-4.3-7", "own-imm-and-sends-count", "The target's Immediate Data and Sends share queue 0: their MSNs count up together", nil,
		func(t *conformance.T, s *conformance.Stream) {
			send := service.Post{Op: service.OpSend, Data: service.Hex{1, 2}}
			s.Posts(service.Post{Op: service.OpImmediate}, send, service.Post{Op: service.OpImmediateSE}, send)
			for i, op := range []wire.Opcode{wire.ImmediateData, wire.Send, wire.ImmediateDataSE, wire.Send} {
				a := s.Await(op)
				t.Check(a.QN == 0 && a.MSN == uint32(i+1), fmt.Sprintf("QN 0 and MSN %d", i+1), "%s", a.Segment)
			}
		})
	add("rfc7306-6.3-6", "own-imm-in-order", "The target's Immediate Data come in the order in which its program has posted them", nil,
		func(t *conformance.T, s *conformance.Stream) {
			var posts []service.Post
			for i := range uint64(6) {
				posts = append(posts, service.Post{Op: []string{service.OpImmediate, service.OpImmediateSE}[i%2], Immediate: service.Uint64(i)})
			}
			s.Posts(posts...)
			for i := range byte(6) {
				a := s.Await([]wire.Opcode{wire.ImmediateData, wire.ImmediateDataSE}[i%2])
				t.Check(bytes.Equal(a.Payload, []byte{0, 0, 0, 0, 0, 0, 0, i}), fmt.Sprintf("Immediate Data %d", i), "%x", a.Payload)
			}
		})
	add("rfc7306-6.3-6", "own-imm-behind-its-write", "A Write with Immediate Data of the target is a Write, and behind it the Immediate Data", []string{"rfc5041-5.3-2"},
		func(t *conformance.T, s *conformance.Stream) {
			data := service.Hex(conformance.Pattern(4096))
			s.Posts(service.Post{Op: service.OpWriteImmediate, Data: data, Remote: there(0), Immediate: immediateValue})
			w := s.AwaitMessage(wire.Write)
			t.Check(w.STag == theirSTag && w.TO == theirTO && bytes.Equal(w.Payload, data), "a Write of 4096 octets", "%s", w)
			a := s.Await(wire.ImmediateData)
			t.Check(bytes.Equal(a.Payload, immediateOctets), fmt.Sprintf("%x", immediateOctets), "%x", a.Payload)
			s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
		})
	return out
}
