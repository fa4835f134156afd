package machine

import (
	"errors"
	"net/netip"
	"testing"

	"urnic/ulp/rds/wire"
)

// A send buffer that is full of messages to a peer that can't be reached, and of few to one that can,
// does not stay full: the latter is asked to acknowledge.
func TestFullBufferAsks(t *testing.T) {
	r := newRawPeer(t, Params{}, probed)
	r.says(wire.Header{Sequence: 1, DestPort: wire.ProbePort, Ack: 1}, nil)
	other := r.bind()
	r.send(other, "asks, as it is the first one of the link")
	r.says(wire.Header{Ack: 2}, nil)
	s, err := r.m.Bind(0, 4096, 0)
	if err != nil {
		t.Fatal(err)
	}
	away := Endpoint{netip.MustParseAddr("10.9.9.9"), 5000}
	for range 3 {
		if _, err := s.Send(r.now, away, make([]byte, 1100), Options{}); err != nil {
			t.Fatal(err)
		}
	}
	r.sent = nil
	to := Endpoint{there, 5000}
	for range 2 {
		if _, err := s.Send(r.now, to, make([]byte, 400), Options{}); err != nil {
			t.Fatal(err)
		}
		r.do()
	}
	if r.asked(wire.Data) != 0 || r.asked(wire.Ping) != 0 {
		t.Fatal("it asks before the buffer is full")
	}
	for range 2 {
		if _, err := s.Send(r.now, to, nil, Options{}); !errors.Is(err, ErrBufferFull) {
			t.Fatalf("%d bytes are taken: %v", s.Unsent(), err)
		}
		r.do()
	}
	if n := r.asked(wire.Ping); n != 1 {
		t.Errorf("%d pings ask for an acknowledgement; want 1", n)
	}
	r.says(wire.Header{Ack: 4}, nil)
	if _, err := s.Send(r.now, to, nil, Options{}); err != nil {
		t.Error(err)
	}
}

// While an acknowledgement is on its way, a full buffer asks for no other one.
func TestFullBufferWaitsForWhatItHasAskedFor(t *testing.T) {
	r := newRawPeer(t, Params{}, probed)
	r.says(wire.Header{Sequence: 1, DestPort: wire.ProbePort, Ack: 1}, nil)
	s, err := r.m.Bind(0, 4096, 0)
	if err != nil {
		t.Fatal(err)
	}
	to := Endpoint{there, 5000}
	r.sent = nil
	for range 16 {
		if _, err := s.Send(r.now, to, make([]byte, 256), Options{}); err != nil {
			t.Fatal(err)
		}
		r.do()
	}
	if _, err := s.Send(r.now, to, nil, Options{}); !errors.Is(err, ErrBufferFull) {
		t.Fatal(err)
	}
	r.do()
	// The first of the link, and then each quarter of the buffer.
	if n := r.asked(wire.Data); n != 1+15/4 {
		t.Errorf("%d of 16 messages ask for an acknowledgement; want %d", n, 1+15/4)
	}
	if n := r.asked(wire.Ping); n != 0 {
		t.Errorf("%d pings ask again", n)
	}
}
