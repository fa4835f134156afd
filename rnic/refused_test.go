package rnic_test

import (
	"testing"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A Terminate tells for which STag a Write or a Read was refused, long after the Write
// has completed.
func TestRefusedTellsTheSTag(t *testing.T) {
	for _, op := range []rnic.Opcode{rnic.OpWrite, rnic.OpRead} {
		t.Run(op.String(), func(t *testing.T) {
			rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
				if s, ok := p.A.QP.Refused(); ok || s != 0 {
					t.Errorf("%v is refused on a connection that works", s)
				}
				src := p.A.Register(t, make([]byte, 100), rnic.LocalWrite)
				p.A.Send(t, rnic.SendWR{Op: op, SGL: []rnic.SGE{src.SGE(0, 100)}, Remote: rnic.Remote{STag: 0x12345678}})
				<-p.A.QP.Done()
				if s, ok := p.A.QP.Refused(); !ok || s != 0x12345678 {
					t.Errorf("%v, %v", s, ok)
				}
				<-p.B.QP.Done()
				if _, ok := p.B.QP.Refused(); ok {
					t.Error("the side that has refused it says that the other one has")
				}
			})
		})
	}
}
