package rnic_test

import (
	"testing"

	"urnic/ddp"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A Terminate tells which bytes of a Write were refused, or that it was a Read or an
// atomic.
func TestRefusalTellsTheRequest(t *testing.T) {
	to := rnic.Remote{STag: 0x12345678, TO: 7}
	for _, tt := range []struct {
		name string
		wr   rnic.SendWR
		want rnic.Refusal
	}{
		{"write", rnic.SendWR{Op: rnic.OpWrite}, rnic.Refusal{Write: true, Remote: to, Length: 100, Last: true}},
		{"read", rnic.SendWR{Op: rnic.OpRead}, rnic.Refusal{Read: true}},
		{"atomic", rnic.SendWR{Op: rnic.OpFetchAdd}, rnic.Refusal{Read: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
				if r, ok := p.A.QP.Refusal(); ok {
					t.Errorf("%+v is refused on a connection that works", r)
				}
				tt.wr.Remote = to
				if tt.wr.Op != rnic.OpFetchAdd {
					src := p.A.Register(t, make([]byte, 100), rnic.LocalWrite)
					tt.wr.SGL = []rnic.SGE{src.SGE(0, 100)}
				}
				p.A.Send(t, tt.wr)
				<-p.A.QP.Done()
				if r, ok := p.A.QP.Refusal(); !ok || r != tt.want {
					t.Errorf("%+v, %v; want %+v", r, ok, tt.want)
				}
				<-p.B.QP.Done()
				if _, ok := p.B.QP.Refusal(); ok {
					t.Error("the side that has refused it says that the other one has")
				}
			})
		})
	}
}

// Without a header, the code of a Terminate tells whether it is about memory. A Send is
// neither a Write nor a Read; siw tells no length.
func TestRefusalWithoutTheRequest(t *testing.T) {
	send := func() []byte {
		seg := sendSeg("")
		seg.Untagged.Control, seg.Untagged.MSN = seg.Control, 1
		header, _ := seg.Untagged.AppendBinary(nil)
		return header
	}()
	write, _ := ddp.TaggedHeader{Control: ddp.NewControl(true, false), STag: 5, TO: 6}.AppendBinary(nil)
	for name, tt := range map[string]struct {
		term rdmap.Terminate
		want rnic.Refusal
	}{
		"memory":    {rdmap.Terminate{Code: rdmap.CodeAccessRights}, rnic.Refusal{Write: true, Read: true}},
		"operation": {rdmap.Terminate{Code: rdmap.CodeUnexpectedOpcode}, rnic.Refusal{Unsupported: true}},
		"a Send":    {rdmap.Terminate{Code: ddpCode(ddp.CodeMSNNoBuffer), HdrCt: 0xC0, SegmentLen: 18, DDPHeader: send}, rnic.Refusal{}},
		"a Write, by siw": {
			rdmap.Terminate{Code: 0x1100, HdrCt: 3, SegmentLen: 50, DDPHeader: write},
			rnic.Refusal{Write: true, Remote: rnic.Remote{STag: 5, TO: 6}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			withReader(t, func(r *reader) {
				r.h.send(terminateSeg(tt.term))
				r.h.close()
				wantState(r, r.s.QP, rnic.Error)
				if got, ok := r.s.QP.Refusal(); got != tt.want || !ok {
					r.Errorf("%+v, %v; want %+v", got, ok, tt.want)
				}
			})
		})
	}
}
