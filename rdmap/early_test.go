package rdmap

import (
	"testing"

	"urnic/ddp"
	"urnic/stag"
)

// An LLP may bring a segment early. What is wrong with it then is found when it is to be
// placed, and not only when it is delivered.
func TestEarlySegmentIsRefusedWhenItComes(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		ops  func(r region) []*Operation
		seg  func(r region) (ddp.Segment, []change)
		want TermCode
	}{
		{
			name: "tagged, of a reserved opcode",
			seg: func(r region) (ddp.Segment, []change) {
				return tagged(OpWrite, r.tag, base, []byte("x")), []change{opcode(13)}
			},
			want: CodeUnexpectedOpcode,
		}, {
			name: "Read Response outside of what was asked for",
			cfg:  Config{ORD: 1},
			ops:  func(r region) []*Operation { return []*Operation{readOf(1, 2, r.tag, base, 8)} },
			seg:  func(r region) (ddp.Segment, []change) { return tagged(OpReadResponse, r.tag, base+8, []byte("x")), nil },
			want: 0x1101,
		}, {
			name: "Read Request beyond IRD",
			cfg:  Config{IRD: 2},
			seg:  func(region) (ddp.Segment, []change) { return readRequest(ReadRequest{}), []change{msn(3)} },
			want: 0x1202,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := withPeer(t, tt.cfg)
			r := s.memory(64, stag.LocalWrite|stag.RemoteWrite)
			if tt.ops != nil {
				s.submit(tt.ops(r)...)
				p.settle()
				p.seen++
			}
			seg, changes := tt.seg(r)
			p.inject(3, seg, changes...)
			if s.err == nil {
				t.Fatal("the segment was taken")
			}
			p.wantTerminate(tt.want)
		})
	}
}

// The last request that IRD has room for may come early.
func TestEarlyReadRequestWithinIRDIsTaken(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 2})
	p.inject(1, readRequest(ReadRequest{}), msn(2))
	if s.err != nil {
		t.Fatal(s.err)
	}
	p.msn[QueueReadRequest] = 0
	p.inject(0, readRequest(ReadRequest{}))
	p.next(OpReadResponse)
	p.next(OpReadResponse)
	p.wantNothing()
}

// In place of the RTR comes a Send in pieces: its first byte tells that it is none.
func TestSendInPiecesThatIsNoRTRFailsAtItsFirstSegment(t *testing.T) {
	s, p := withPeer(t, Config{ExpectRTR: 7})
	p.send(untagged(OpSend, []byte("x")), more, mo(10))
	wantReason(t, s.err, "Send of 11 octets came")
}

// The sinks of two Reads overlap: what fits into the second one is too much for the first.
func TestReadResponseTooLongForTheReadInTurnTerminates(t *testing.T) {
	s, p := withPeer(t, Config{ORD: 2})
	r := s.memory(64, stag.LocalWrite)
	s.submit(readOf(1, 2, r.tag, base, 32), readOf(1, 2, r.tag, base, 64))
	p.settle()
	p.seen += 2
	p.send(tagged(OpReadResponse, r.tag, base, make([]byte, 16)), more)
	if s.err != nil {
		t.Fatal(s.err)
	}
	p.send(tagged(OpReadResponse, r.tag, base+16, make([]byte, 24)))
	p.wantTerminate(0x1101)
}

func TestReadResponseWithAGapTellsWhatIsInTurn(t *testing.T) {
	s, p := withPeer(t, Config{ORD: 1})
	r := s.memory(64, stag.LocalWrite)
	s.submit(readOf(1, 2, r.tag, base, 32))
	p.settle()
	p.seen++
	p.send(tagged(OpReadResponse, r.tag, base, make([]byte, 8)), more)
	p.send(tagged(OpReadResponse, r.tag, base+16, make([]byte, 16)))
	wantReason(t, s.err, r.tag.String()+"+0x1008 is in turn")
}

func TestUnexpectedOpcodeTellsWhereItCame(t *testing.T) {
	s, p := withPeer(t, Config{})
	p.send(tagged(OpWrite, s.memory(8, stag.LocalWrite|stag.RemoteWrite).tag, base, []byte("x")), opcode(uint8(OpSend)))
	wantReason(t, s.err, "Send in a tagged message")

	s, p = withPeer(t, Config{})
	s.post(8)
	p.send(untagged(OpSend, nil), opcode(uint8(OpWrite)))
	wantReason(t, s.err, "RDMA Write on queue 0")
}
