package life

import (
	"testing"

	"urnic/internal/door/policy"
	"urnic/rdmap"
)

// strictly and leniently are for what a departure makes of a machine.
func strictly() *Machine { return New(4) }

func leniently(d policy.Departure) *Machine {
	m := New(4)
	m.Follow(policy.Lenient{Departures: d})
	return m
}

// Each departure is for what it says, and no other is.
func TestMachineDepartsInWhatItsPolicyAllows(t *testing.T) {
	for d := policy.CheckAtTurn; d != 0; d <<= 1 {
		m := leniently(d)
		if got, want := m.ChecksAtTurn(), d == policy.CheckAtTurn; got != want {
			t.Errorf("departure %b: ChecksAtTurn %v", d, got)
		}
		if got, want := m.HoldsSlots(), d == policy.HoldSends; got != want {
			t.Errorf("departure %b: HoldsSlots %v", d, got)
		}
		m.End(errModel)
		if ok, late := m.Admits(); ok != (d == policy.TakeLate) || !late {
			t.Errorf("departure %b: Admits %v, %v after the end", d, ok, late)
		}
		var q RecvQueue
		q.Init(4)
		q.Follow(policy.Lenient{Departures: d})
		if got, want := q.ChecksAtTurn(), d == policy.CheckAtTurn; got != want {
			t.Errorf("departure %b: ChecksAtTurn %v of receives", d, got)
		}
		if got, want := q.HoldsSlots(), d == policy.HoldReceives; got != want {
			t.Errorf("departure %b: HoldsSlots %v of receives", d, got)
		}
		var p Pairing
		p.Follow(policy.Lenient{Departures: d})
		if got, want := p.Allowed(), d == policy.PairImmediate; got != want {
			t.Errorf("departure %b: pairs %v", d, got)
		}
	}
}

// What nobody has said anything to is strict.
func TestMachineIsStrictByDefault(t *testing.T) {
	m := strictly()
	m.End(errModel)
	if ok, _ := m.Admits(); ok || m.ChecksAtTurn() || m.HoldsSlots() {
		t.Error("it departs from the rules")
	}
	strict := strictly()
	strict.Follow(policy.Strict{})
	strict.End(errModel)
	if ok, _ := strict.Admits(); ok || strict.ChecksAtTurn() || strict.HoldsSlots() {
		t.Error("it departs from the rules by a strict policy")
	}
}

// A Read that was checked when it was posted is not checked again.
func TestReadIsCheckedAtItsTurnOnlyIfThePolicySaysSo(t *testing.T) {
	b := &bench{Machine: strictly(), t: t, fault: errModel}
	b.Connected(Params{Initiator: true, ORD: 4})
	b.want(Send, b.put(0, rdmap.OpReadRequest))
}

func TestRoomOfAReceiveQueue(t *testing.T) {
	var q RecvQueue
	q.Init(3)
	q.Push(new(Receive))
	if got := q.Room(0); got != 2 {
		t.Errorf("room for %d; want 2", got)
	}
	if got := q.Room(2); got != 0 {
		t.Errorf("room for %d with 2 slots held; want 0", got)
	}
}

func TestPairing(t *testing.T) {
	marked := &rdmap.Immediate{1, 2, 3, 4}
	copy(marked[4:], policy.PairMark)
	var p Pairing
	if p.Hold(marked) {
		t.Error("a strict queue pair holds Immediate Data back")
	}
	p.Follow(policy.Lenient{Departures: policy.PairImmediate})
	if p.Hold(&rdmap.Immediate{1, 2, 3, 4}) {
		t.Error("Immediate Data without the mark are held back")
	}
	if _, some := p.Take(); some {
		t.Error("a message has what nobody sent")
	}
	if !p.Hold(marked) {
		t.Fatal("Immediate Data with the mark are not held back")
	}
	if data, some := p.Take(); !some || data != (rdmap.Immediate{1, 2, 3, 4}) {
		t.Errorf("%v, %v", data, some)
	}
	if _, some := p.Take(); some {
		t.Error("two messages have the same")
	}
	p.Hold(marked)
	p.Drop()
	if _, some := p.Take(); some {
		t.Error("a message has what was sent on the stream before")
	}
}
