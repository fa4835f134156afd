package rnic_test

import (
	"testing"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A queue pair refuses the rights that it was told to, and no others.
func TestQueuePairRefusesOnlyTheRightsNamed(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		target := p.B.Register(t, make([]byte, 100), everyRight)
		local := p.A.Register(t, make([]byte, 100), rnic.LocalWrite)
		do := func(id uint64, op rnic.Opcode) {
			t.Helper()
			p.A.Send(t, rnic.SendWR{ID: id, Op: op, SGL: []rnic.SGE{local.SGE(0, 100)}, Remote: target.Remote(0)})
			rnictest.Want(t, p.A.SendCQ, id)
			wantState(t, p.B.QP, rnic.RTS) // once it has taken what was sent
		}
		door.RefuseRemote(p.B.QP, rnic.RemoteWrite|rnic.RemoteAtomic)
		do(1, rnic.OpRead)
		door.RefuseRemote(p.B.QP, rnic.RemoteRead|rnic.LocalWrite) // the latter is none of the peer's
		do(2, rnic.OpWrite)
		door.RefuseRemote(p.B.QP, 0)
		do(3, rnic.OpRead)
	})
}
