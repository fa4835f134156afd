//go:build linux

package dropin

import (
	"syscall"
	"testing"
)

// A program that manages its queue pair itself brings it to RTS after it has heard of
// the connection (rdma_establish(3)), when it is there already.
func TestProgramBringsConnectedQueuePairToRTS(t *testing.T) {
	l := newCMLab(t)
	a, b, _ := l.connect(l.port(), l.port(), "127.0.0.1:0")
	for _, state := range []uint32{qpsInit, qpsRTR, qpsRTS} {
		l.must("modify QP", l.QPModify(a.qp, &QPAttr{State: state, Access: 3}, qpState|qpAccess))
		var got QPAttr
		l.must("query QP", l.QPQuery(a.qp, &got))
		if got.State != qpsRTS || got.Access != 3 {
			t.Errorf("after %s, it is in state %s with access %d; want RTS, 3", stateNames[state], stateNames[got.State], got.Access)
		}
	}
	exchange(&a, &b)
	l.want("modify QP to SQE", l.QPModify(a.qp, &QPAttr{State: qpsSQE}, qpState), syscall.EINVAL)
	l.must("reset QP", l.QPModify(a.qp, &QPAttr{State: qpsReset}, qpState))
	l.want("modify QP to RTR", l.QPModify(a.qp, &QPAttr{State: qpsRTR}, qpState), syscall.EINVAL)
}
