package service

import "testing"

func TestDisconnectAndTerminateCanBeBegunOnly(t *testing.T) {
	a, b := pair(t, ListenArgs{}, ConnectArgs{})
	check(t, a.BeginDisconnect(t.Context(), a.qp))
	a.becomes(t, StateIdle)
	b.becomes(t, StateIdle)
	refused(t, a.BeginDisconnect(t.Context(), 99), CodeUnknown)

	a, b = pair(t, ListenArgs{}, ConnectArgs{})
	check(t, a.BeginTerminate(t.Context(), a.qp))
	a.becomes(t, StateError)
	if e := must(b.Event(t.Context(), patience))(t); e.Type != EventTerminated || e.QP != b.qp {
		t.Errorf("event %+v", e)
	}
}
