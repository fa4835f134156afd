package machine

import (
	"errors"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// A carrier that introduces needs no probe: Linux over RDMA must not be sent one.
func TestIntroducedPeersAreNotProbed(t *testing.T) {
	for _, generation := range []uint32{0, 7} { // Linux tells none
		r := newRawPeer(t, Params{Generation: generation}, nil)
		s, err := r.m.Bind(4000, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Send(r.now, Endpoint{there, 5000}, []byte("hello"), Options{}); err != nil {
			t.Fatal(err)
		}
		s.Hasten(r.now)
		r.do()
		var data []wire.Header
		for _, seg := range r.sent {
			switch {
			case seg.Header.SourcePort == wire.ProbePort || seg.Header.DestPort == wire.ProbePort:
				t.Errorf("generation %d: sent: %v", generation, &seg.Header)
			case seg.Header.Kind() == wire.Data:
				data = append(data, seg.Header)
			}
		}
		if len(data) != 1 || data[0].Sequence != 1 || data[0].Flags != wire.AckRequired {
			t.Errorf("generation %d: the data sent are %v", generation, data)
		}
		r.says(wire.Header{Ack: 1}, nil)
		if s.Unsent() != 0 {
			t.Errorf("generation %d: an acknowledgement does not count", generation)
		}
	}
}

// A peer that is introduced with another generation has restarted.
func TestIntroducedPeerHasRestarted(t *testing.T) {
	r := newRawPeer(t, Params{Generation: 7}, nil)
	s, err := r.m.Bind(4000, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.says(r.data(1), []byte{1})
	if _, err := s.Send(r.now, Endpoint{there, 5000}, []byte("unacknowledged"), Options{}); err != nil {
		t.Fatal(err)
	}
	r.do()
	for generation, want := range map[uint32]uint64{0: 0, 7: 1, 8: 0} {
		if got := r.p.Received(generation); got != want {
			t.Errorf("%d is the last number received of generation %d; want %d", got, generation, want)
		}
	}
	r.p.Down(r.now, r.link, nil)
	r.seen = nil
	r.connect(Params{Generation: 8})
	var lost error
	for _, e := range r.seen {
		if e.Kind == Report && e.Event.Kind == MessageLost {
			lost = e.Event.Err
		}
	}
	if !errors.Is(lost, ErrPeerRestarted) || s.Unsent() != 0 {
		t.Errorf("what was not acknowledged before is lost: %v; %d bytes are unsent", lost, s.Unsent())
	}
	// Its first message may be one that it sends again, from the new life.
	h := wire.Header{Sequence: 1, Len: 1, SourcePort: 5000, DestPort: 4000, Flags: wire.Retransmitted}
	r.says(h, []byte{2})
	if n, _ := s.Queued(); n != 2 {
		t.Errorf("%d messages are queued; want 2", n)
	}
	r.p.Down(r.now, r.link, nil)
	r.connect(Params{Generation: 7})
	if rule, broken, _ := r.violation(); !broken || rule != RuleGeneration {
		t.Errorf("the generation before: broken %v, %v", broken, rule)
	}
}

// A peer that has said nothing is sent something more: siw may have overlooked what came
// first, and looks again then.
func TestPeerThatSaysNothingIsNudged(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	advance := func(until time.Duration) (acks int) {
		r.sent = nil
		for at, ok := r.m.Deadline(); ok && at <= until; at, ok = r.m.Deadline() {
			r.now = at
			r.m.Advance(at)
			r.do()
		}
		for _, s := range r.sent {
			if s.Header.Kind() == wire.Ack {
				acks++
			}
		}
		return acks
	}
	if n := advance(time.Second); n != 4 {
		t.Errorf("%d acknowledgements alone are sent to a peer that has said nothing for a second; want 4", n)
	}
	r.says(wire.Header{}, nil)
	if n := advance(time.Minute); n != 0 {
		t.Errorf("%d acknowledgements alone are sent to a peer that has spoken", n)
	}
}
