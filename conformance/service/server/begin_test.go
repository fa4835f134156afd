package server

import (
	"testing"

	"urnic/conformance/service"
)

func TestDisconnectAndTerminateCanBeBegunOnly(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	check(t, a.BeginDisconnect(t.Context(), a.qp))
	a.becomes(t, service.StateIdle)
	b.becomes(t, service.StateIdle)
	refused(t, a.BeginDisconnect(t.Context(), 99), service.CodeUnknown)

	a, b = pair(t, service.ListenArgs{}, service.ConnectArgs{})
	check(t, a.BeginTerminate(t.Context(), a.qp))
	a.becomes(t, service.StateError)
	if e := must(b.Event(t.Context(), patience))(t); e.Type != service.EventTerminated || e.QP != b.qp {
		t.Errorf("event %+v", e)
	}
}
