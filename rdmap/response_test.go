package rdmap

import (
	"bytes"
	"testing"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/stag"
)

// Two Reads of 32 bytes are outstanding, into bytes 32 to 63 and 96 to 127 of a
// region of 160. What comes is not the Response to the first one.
func TestReadResponseThatIsNotInTurnTerminates(t *testing.T) {
	const sinkTO, otherTO = base + 32, base + 96
	data := bytes.Repeat([]byte{0xEE}, 64)
	response := func(tag stag.STag, to uint64, n int) ddp.Segment { return tagged(OpReadResponse, tag, to, data[:n]) }
	for _, tt := range []struct {
		name string
		send func(p *peer, tag, another stag.STag)
		want TermCode
		mem  string // which parts of the region may have changed: . no, x yes; 8 bytes each
	}{
		{"empty", func(p *peer, tag, _ stag.STag) { p.send(response(tag, sinkTO, 0)) }, 0x0207, "...................."},
		{"too short", func(p *peer, tag, _ stag.STag) { p.send(response(tag, sinkTO, 16)) }, 0x0207, "....xx.............."},
		{"too short, in two segments", func(p *peer, tag, _ stag.STag) {
			p.send(response(tag, sinkTO, 16), more)
			p.send(response(tag, sinkTO+16, 8))
		}, 0x0207, "....xxx............."},
		{"too long", func(p *peer, tag, _ stag.STag) { p.send(response(tag, sinkTO, 40)) }, 0x1101, "...................."},
		{"too long in the second segment", func(p *peer, tag, _ stag.STag) {
			p.send(response(tag, sinkTO, 24), more)
			p.send(response(tag, sinkTO+24, 16))
		}, 0x1101, "....xxx............."},
		{"another segment after the whole", func(p *peer, tag, _ stag.STag) {
			p.send(response(tag, sinkTO, 32), more)
			p.send(response(tag, sinkTO+32, 8))
		}, 0x1101, "....xxxx............"},
		{"before the sink", func(p *peer, tag, _ stag.STag) { p.send(response(tag, sinkTO-8, 32)) }, 0x1101, "...................."},
		{"behind the sink", func(p *peer, tag, _ stag.STag) { p.send(response(tag, sinkTO+32, 8)) }, 0x1101, "...................."},
		{"far behind the sink", func(p *peer, tag, _ stag.STag) { p.send(response(tag, sinkTO+40, 8)) }, 0x1101, "...................."},
		{"beyond the region", func(p *peer, tag, _ stag.STag) { p.send(response(tag, base+152, 16)) }, 0x1101, "...................."},
		{"TO wraps", func(p *peer, tag, _ stag.STag) { p.send(response(tag, 1<<64-8, 32)) }, 0x1101, "...................."},
		{"a gap", func(p *peer, tag, _ stag.STag) {
			p.send(response(tag, sinkTO, 8), more)
			p.send(response(tag, sinkTO+16, 16))
		}, 0x1101, "....x.xx............"},
		{"the end first", func(p *peer, tag, _ stag.STag) { p.send(response(tag, sinkTO+16, 16), more) }, 0x1101, "......xx............"},
		{"a part twice", func(p *peer, tag, _ stag.STag) {
			p.send(response(tag, sinkTO, 8), more)
			p.send(response(tag, sinkTO, 8), more)
		}, 0x1101, "....x..............."},
		{"of the second Read", func(p *peer, tag, _ stag.STag) { p.send(response(tag, otherTO, 32)) }, 0x1101, "............xxxx...."},
		{"half of each Read", func(p *peer, tag, _ stag.STag) {
			p.send(response(tag, sinkTO, 16), more)
			p.send(response(tag, otherTO+16, 16))
		}, 0x1101, "....xx........xx...."},
		{"another STag of ours", func(p *peer, _, another stag.STag) { p.send(response(another, sinkTO, 32)) }, 0x1101, "...................."},
		{"an STag that is not valid", func(p *peer, tag, _ stag.STag) { p.send(response(tag^1, sinkTO, 32)) }, 0x1100, "...................."},
		{"of RDMAP version 3", func(p *peer, tag, _ stag.STag) { p.send(response(tag, sinkTO, 32), rdmapVersion(3)) }, 0x0205, "...................."},
		{"an RDMA Write into the sink", func(p *peer, tag, _ stag.STag) { p.send(response(tag, sinkTO, 32), opcode(0)) }, 0x1102, "...................."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{ORD: 2})
			r, another := s.memory(160, stag.LocalWrite), s.memory(160, stag.LocalWrite)
			s.submit(readOf(1, 2, r.tag, sinkTO, 32), readOf(1, 2, r.tag, otherTO, 32))
			p.settle()
			p.next(OpReadRequest)
			p.next(OpReadRequest)
			tt.send(p, r.tag, another.tag)
			p.wantTerminate(tt.want)
			for i, c := range tt.mem {
				if changed := !bytes.Equal(r.mem[8*i:8*i+8], make([]byte, 8)); changed != (c == 'x') {
					t.Errorf("octets %d to %d hold %x", 8*i, 8*i+7, r.mem[8*i:8*i+8])
				}
			}
			if !bytes.Equal(another.mem, make([]byte, 160)) || len(s.completed) != 0 {
				t.Errorf("completed %v; the other region holds %x", s.completed, another.mem)
			}
		})
	}
}

// What comes would be right for another Read that is outstanding.
func TestReadResponseOfALaterReadTerminates(t *testing.T) {
	for _, tt := range []struct {
		name string
		ops  func(a, b region) []*Operation
		seg  func(a, b region) ddp.Segment
		want TermCode
	}{
		{
			"at the same TO of another STag",
			func(a, b region) []*Operation {
				return []*Operation{readOf(1, 2, a.tag, base, 8), readOf(1, 2, b.tag, base, 8)}
			},
			func(a, b region) ddp.Segment { return tagged(OpReadResponse, b.tag, base, make([]byte, 8)) }, 0x1101,
		}, {
			"longer than the first, at the same place",
			func(a, b region) []*Operation {
				return []*Operation{readOf(1, 2, a.tag, base, 8), readOf(1, 2, a.tag, base, 32)}
			},
			func(a, b region) ddp.Segment { return tagged(OpReadResponse, a.tag, base, make([]byte, 32)) }, 0x1101,
		}, {
			"where an atomic is in turn",
			func(a, b region) []*Operation { return []*Operation{addOf(1, 8, 1), readOf(1, 2, a.tag, base, 8)} },
			func(a, b region) ddp.Segment { return tagged(OpReadResponse, a.tag, base, make([]byte, 8)) }, 0x0206,
		}, {
			"of no octets, where an atomic is in turn",
			func(a, b region) []*Operation { return []*Operation{addOf(1, 8, 1), readOf(1, 2, a.tag, base, 0)} },
			func(a, b region) ddp.Segment { return tagged(OpReadResponse, a.tag, base, nil) }, 0x0206,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{ORD: 2})
			a, b := s.memory(32, stag.LocalWrite), s.memory(32, stag.LocalWrite)
			ops := tt.ops(a, b)
			s.submit(ops...)
			p.settle()
			for _, o := range ops {
				p.next(o.Op)
			}
			p.send(tt.seg(a, b))
			p.wantTerminate(tt.want)
			if len(s.completed) != 0 {
				t.Errorf("completed %v", s.completed)
			}
		})
	}
}

func TestUnsolicitedReadResponseTerminates(t *testing.T) {
	for _, tt := range []struct {
		name string
		seg  func(tag stag.STag) ddp.Segment
		want TermCode
	}{
		{"into memory of ours", func(tag stag.STag) ddp.Segment { return tagged(OpReadResponse, tag, base, make([]byte, 8)) }, 0x0206},
		{"empty", func(stag.STag) ddp.Segment { return tagged(OpReadResponse, 0, 0, nil) }, 0x0206},
		{"STag not valid", func(tag stag.STag) ddp.Segment { return tagged(OpReadResponse, tag^1, base, make([]byte, 8)) }, 0x1100},
		{"out of bounds", func(tag stag.STag) ddp.Segment { return tagged(OpReadResponse, tag, base+60, make([]byte, 8)) }, 0x1101},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{IRD: 1, ORD: 1})
			r := s.memory(64, stag.LocalWrite|stag.RemoteWrite)
			copy(r.mem, pattern(64, 1))
			p.send(tt.seg(r.tag))
			p.wantTerminate(tt.want)
			if !bytes.Equal(r.mem, pattern(64, 1)) {
				t.Errorf("the region holds %x", r.mem)
			}
		})
	}
	t.Run("after the Response", func(t *testing.T) {
		s, p := withPeer(t, Config{ORD: 1})
		r := s.memory(8, stag.LocalWrite)
		s.submit(readOf(1, 2, r.tag, base, 8))
		p.settle()
		p.next(OpReadRequest)
		p.send(tagged(OpReadResponse, r.tag, base, []byte("response")))
		p.send(tagged(OpReadResponse, r.tag, base, []byte("too much")))
		p.wantTerminate(0x0206)
		if string(r.mem) != "response" || len(s.completed) != 1 {
			t.Errorf("the region holds %q; %d completed", r.mem, len(s.completed))
		}
	})
}

// A Response that comes before its Request has been posted answers something
// else: the Read would be completed before it was submitted.
func TestResponseBeforeItsRequestTerminates(t *testing.T) {
	for name, tt := range map[string]struct {
		op   *Operation
		seg  ddp.Segment
		want TermCode
	}{
		"Read":   {readOf(1, 2, 3, 4, 0), tagged(OpReadResponse, 3, 4, nil), 0x0206},
		"atomic": {addOf(1, 8, 1), atomicResponse(1, 0), 0x1202},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withPeer(t, Config{ORD: 1}, ddptest.Options{Room: 1})
			s.submit(sendOf(OpSend, nil), tt.op)
			if idle, err := s.stream.Transmit(s); idle || err != nil || len(s.submitted) != 1 {
				t.Fatalf("idle %v, %v; %d submitted", idle, err, len(s.submitted))
			}
			p.push(tt.seg)
			s.receiveAll()
			if len(s.completed) != 0 {
				t.Fatal("the operation was completed")
			}
			p.settle()
			p.next(OpSend)
			p.next(tt.op.Op) // was begun
			p.wantTerminate(tt.want)
		})
	}
}

func TestReadWhoseSinkIsClosedTerminates(t *testing.T) {
	for _, tt := range []struct {
		name  string
		close func(t *testing.T, s *side, r region)
		want  TermCode
	}{
		{"invalidated", func(t *testing.T, s *side, r region) {
			if err := s.table.Invalidate(r.tag, s.scope); err != nil {
				t.Fatal(err)
			}
		}, 0x1100},
		{"deregistered", func(t *testing.T, s *side, r region) {
			if err := r.entry.Deregister(); err != nil {
				t.Fatal(err)
			}
		}, 0x1100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, Config{ORD: 1})
			r := s.memory(64, stag.LocalWrite)
			s.submit(readOf(1, 2, r.tag, base, 64))
			p.settle()
			p.next(OpReadRequest)
			p.send(tagged(OpReadResponse, r.tag, base, pattern(32, 1)), more)
			tt.close(t, s, r)
			p.send(tagged(OpReadResponse, r.tag, base+32, pattern(32, 1)))
			p.wantTerminate(tt.want)
			if !bytes.Equal(r.mem[32:], make([]byte, 32)) || len(s.completed) != 0 {
				t.Errorf("the region holds %x; %d completed", r.mem, len(s.completed))
			}
		})
	}
	t.Run("without the right of local write", func(t *testing.T) {
		s, p := withPeer(t, Config{ORD: 1})
		r := s.memory(64, stag.RemoteRead)
		s.submit(readOf(1, 2, r.tag, base, 8))
		p.settle()
		p.next(OpReadRequest)
		p.send(tagged(OpReadResponse, r.tag, base, make([]byte, 8)))
		p.wantTerminate(0x1102)
	})
}
