package door_test

import (
	"testing"
	"time"

	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/rnic"
)

// The numbers that this package gives are those of rnic, whose names tell.
func TestNumbersAreRNICs(t *testing.T) {
	if got := door.OpSendImmediate.String(); got != "Send with Immediate" {
		t.Errorf("OpSendImmediate is %s", got)
	}
	if got := door.EventSQDrained.String(); got != "send queue drained" {
		t.Errorf("EventSQDrained is %s", got)
	}
}

// A host is a device with a domain.
func host(t *testing.T, p policy.Policy) (*rnic.Device, *rnic.PD) {
	t.Helper()
	var cfg rnic.Config
	door.SetPolicy(&cfg, p)
	d, err := rnic.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	domain, err := d.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	return d, domain
}

// takesSplit reports whether a queue pair takes a Read with two sinks, which are not
// memory: so it must not look at them either.
func takesSplit(t *testing.T, d *rnic.Device, domain *rnic.PD, change func(*rnic.QPAttr)) bool {
	t.Helper()
	cq, err := d.CreateCQ(rnic.CQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	attr := rnic.QPAttr{SendCQ: cq, RecvCQ: cq}
	change(&attr)
	q, err := domain.CreateQP(attr)
	if err != nil {
		t.Fatal(err)
	}
	return q.PostSend(rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{{Length: 8}, {Length: 8}}}) == nil
}

// A queue pair has the policy that is set for it; without one, its device's; without that,
// it is strict. What its public attributes ask for holds as well.
func TestPolicyOfAQueuePair(t *testing.T) {
	both := policy.Lenient{Departures: policy.CheckAtTurn | policy.SplitReads}
	unchecked := policy.Lenient{Departures: policy.CheckAtTurn}
	none := func(*rnic.QPAttr) {}
	set := func(p policy.Policy) func(*rnic.QPAttr) {
		return func(attr *rnic.QPAttr) { door.SetPolicyOfQP(attr, p) }
	}
	for _, c := range []struct {
		name   string
		device policy.Policy
		change func(*rnic.QPAttr)
		want   bool
	}{
		{"none", nil, none, false},
		{"of the device", both, none, true},
		{"its own", nil, set(both), true},
		{"its own before that of the device", both, set(policy.Strict{}), false},
		{"one that does not split", unchecked, none, false},
		{"a public attribute", unchecked, func(attr *rnic.QPAttr) { attr.SplitReads = true }, true},
		{"a public attribute, and memory that is checked", nil, func(attr *rnic.QPAttr) { attr.SplitReads = true }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, domain := host(t, c.device)
			if got := takesSplit(t, d, domain, c.change); got != c.want {
				t.Errorf("takes a Read with two sinks: %v", got)
			}
		})
	}
}

// A completion queue and an SRQ have the policy of their device.
func TestPolicyOfADeviceIsThatOfItsQueues(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		var p policy.Policy
		if lenient {
			p = policy.Lenient{Departures: policy.FireForQueued | policy.CheckAtTurn | policy.TakeLate}
		}
		d, domain := host(t, p)
		srq, err := domain.CreateSRQ(rnic.SRQAttr{})
		if err != nil {
			t.Fatal(err)
		}
		if err := srq.PostRecv(rnic.RecvWR{SGL: []rnic.SGE{{Length: 8}}}); (err == nil) != lenient {
			t.Errorf("lenient %v: a receive without memory: %v", lenient, err)
		}
		cq, err := d.CreateCQ(rnic.CQAttr{})
		if err != nil {
			t.Fatal(err)
		}
		q, err := domain.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.PostRecv(rnic.RecvWR{}); err != nil {
			t.Fatal(err)
		}
		q.Abort()
		if err := cq.Arm(rnic.NextCompletion); err != nil {
			t.Fatal(err)
		}
		if got := len(cq.Fired()) > 0; got != lenient {
			t.Errorf("lenient %v: fired for what is queued: %v", lenient, got)
		}
	}
}

// Attr of a queue pair whose number was chosen makes another one, not a second of that
// number.
func TestNumberIsNoAttribute(t *testing.T) {
	d, domain := host(t, nil)
	cq, err := d.CreateCQ(rnic.CQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	attr := rnic.QPAttr{SendCQ: cq, RecvCQ: cq}
	door.SetNum(&attr, 0xABCDEF)
	first, err := domain.CreateQP(attr)
	if err != nil {
		t.Fatal(err)
	}
	second, err := domain.CreateQP(first.Attr())
	if err != nil {
		t.Fatal(err)
	}
	if first.Num() != 0xABCDEF || second.Num() == first.Num() {
		t.Errorf("the numbers are %x and %x", first.Num(), second.Num())
	}
}

func TestPolicies(t *testing.T) {
	var p policy.Policy = policy.Strict{}
	if p.RNR() != 0 || p.Allows(policy.CheckAtTurn) || p.Allows(policy.NotifyEach) {
		t.Error("a strict policy departs from the rules")
	}
	p = policy.Lenient{Wait: time.Second, Departures: policy.HoldSends | policy.TakeLate}
	if p.RNR() != time.Second || !p.Allows(policy.HoldSends) || !p.Allows(policy.TakeLate) || p.Allows(policy.HoldReceives) {
		t.Error("a lenient policy answers with something else than what was set")
	}
}
