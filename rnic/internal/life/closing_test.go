package life

import (
	"errors"
	"strings"
	"testing"

	"urnic/rdmap"
)

func TestCloseOwn(t *testing.T) {
	closing := func(m *Machine) { m.Disconnect(); m.Judge(Sent{All: true}) }
	closedBoth := func(m *Machine) { peerFIN(m); m.Judge(Sent{All: true}) }
	for name, c := range map[string]struct {
		before         func(m *Machine)
		terminated     bool
		polls, mayWait bool
		want           HalfClose
	}{
		"nobody closes":             {func(*Machine) {}, false, true, true, KeepHalf},
		"asked, not judged":         {disconnect, false, true, true, KeepHalf},
		"this side":                 {closing, false, true, false, CloseHalf},
		"this side, no TCP":         {closing, false, false, true, CloseHalf},
		"this side, in a program":   {closing, false, false, false, DeferHalf},
		"the peer before":           {closedBoth, false, true, true, LeaveHalf},
		"the peer before, no TCP":   {closedBoth, false, false, true, CloseHalf},
		"a Terminate":               {func(*Machine) {}, true, true, false, CloseHalf},
		"a Terminate, in a program": {func(*Machine) {}, true, false, false, DeferHalf},
		"a Terminate, peer before":  {peerFIN, true, true, true, CloseHalf},
	} {
		m := New(1)
		m.Connected(Params{Initiator: true})
		c.before(m)
		if got := m.CloseOwn(Sent{All: true, Terminated: c.terminated}, c.polls, c.mayWait); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Ending says when Judge is to be asked.
func TestEnding(t *testing.T) {
	for name, c := range map[string]struct {
		before func(m *Machine)
		want   bool
	}{
		"nobody closes":   {func(*Machine) {}, false},
		"this side":       {disconnect, true},
		"the peer":        {peerFIN, true},
		"the peer's word": {peerTerminate, true},
		"an error":        {func(m *Machine) { m.Fail(violation(), 0) }, true},
		"over":            {func(m *Machine) { m.Abort(errTable, 0); m.Over(false) }, false},
	} {
		m := New(1)
		m.Connected(Params{Initiator: true})
		c.before(m)
		if m.Ending() != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// The first error that ends a stream is the one that is told, until there is another
// stream.
func TestWhy(t *testing.T) {
	first, second := violation(), errors.New("later")
	m := New(1)
	m.Connected(Params{Initiator: true})
	m.Fail(first, 0)
	m.Abort(second, 0)
	m.Over(false)
	if !errors.Is(m.Why(), first) || !m.Aborted() {
		t.Errorf("%v, aborted: %v", m.Why(), m.Aborted())
	}
	m.Reset()
	if m.Why() != nil {
		t.Errorf("after Reset: %v", m.Why())
	}
	m.Connected(Params{Initiator: true})
	if m.Aborted() {
		t.Error("the next stream is aborted")
	}
}

// A Terminate that comes while the connection is closing is told of with it.
func TestATerminateWhileClosing(t *testing.T) {
	m := New(1)
	m.Connected(Params{Initiator: true})
	m.Disconnect()
	m.Judge(Sent{All: true})
	m.Arrived()
	m.Received(Arrival{Terminate: &rdmap.Terminate{Code: rdmap.CodeInvalidVersion}})
	var pe *rdmap.PeerError
	if err := m.Why(); !errors.Is(err, errBadClose) || !errors.As(err, &pe) || pe.Terminate.Code != rdmap.CodeInvalidVersion {
		t.Errorf("%v", err)
	}
}

func TestAStreamThatThePeerClosesSaysHowMuchIsLeft(t *testing.T) {
	m := New(2)
	m.Connected(Params{Initiator: true})
	m.Post(&Request{Messages: []rdmap.Operation{{Op: rdmap.OpSend}}})
	peerFIN(m)
	m.Judge(Sent{All: true, Answering: 2})
	if err := m.Why(); err == nil || !strings.Contains(err.Error(), "3 requests") {
		t.Errorf("%v", err)
	}
}

func TestStatesHaveNames(t *testing.T) {
	if s := Terminating.String() + State(9).String(); s != "Terminatestate 9" {
		t.Error(s)
	}
}
