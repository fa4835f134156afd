package rnic

import (
	"testing"

	"urnic/stag"
)

// PinRegion opens the memory of a region as a placement does, until the function that it
// returns is called.
func PinRegion(t *testing.T, m *MR) (release func()) {
	t.Helper()
	pin, err := m.pd.dev.memory.Acquire(m.STag(), stag.Scope{Domain: m.pd.domain}, RemoteWrite, m.entry.Base(), m.entry.Len())
	if err != nil {
		t.Fatal(err)
	}
	return pin.Release
}

// SendQueueLocked reports whether somebody holds the lock of a queue pair's send queue.
func SendQueueLocked(q *QP) bool {
	if !q.mu.TryLock() {
		return true
	}
	q.mu.Unlock()
	return false
}

// BeginMaking begins a verb that makes something, which ends with the function that it
// returns.
func BeginMaking(t *testing.T, d *Device) (end func()) {
	t.Helper()
	if err := d.begin(); err != nil {
		t.Fatal(err)
	}
	return d.end
}
