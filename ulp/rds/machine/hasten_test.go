package machine

import (
	"testing"

	"urnic/ulp/rds/wire"
)

// asked returns how many of the node's messages of a kind ask for an acknowledgement.
func (r *rawPeer) asked(k wire.Kind) (n int) {
	for _, s := range r.sent {
		if s.Header.Kind() == k && s.Header.Flags&wire.AckRequired != 0 {
			n++
		}
	}
	return n
}

func (r *rawPeer) send(s *Socket, data string) {
	r.t.Helper()
	if _, err := s.Send(r.now, Endpoint{there, 5000}, []byte(data), Options{}); err != nil {
		r.t.Fatal(err)
	}
	r.do()
}

func (r *rawPeer) bind() *Socket {
	r.t.Helper()
	s, err := r.m.Bind(0, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// What a peer acknowledges before it is known to know this life of the node does not
// count. It is asked again then, once.
func TestAcknowledgementBeforeThePong(t *testing.T) {
	r := newRawPeer(t, Params{}, probed)
	s := r.bind()
	r.send(s, "two")
	r.says(wire.Header{Ack: 2}, nil) // of the probe and the message
	if s.Unsent() == 0 {
		t.Error("an acknowledgement counts that may be of an earlier life")
	}
	if n := r.asked(wire.Ping); n != 0 {
		t.Errorf("%d pings ask for an acknowledgement before the peer has answered the probe", n)
	}
	r.says(wire.Header{Sequence: 1, DestPort: wire.ProbePort, Ack: 1}, nil)
	if n := r.asked(wire.Ping); n != 1 {
		t.Errorf("%d pings ask for an acknowledgement; want 1", n)
	}
	r.says(wire.Header{Ack: 3}, nil)
	if n := s.Unsent(); n != 0 {
		t.Errorf("%d bytes are unacknowledged", n)
	}
}

// Messages that are not sent yet when their socket waits for acknowledgements ask
// for them when they are: another socket's may be the ones that would.
func TestHastenWithoutALink(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	r.says(wire.Header{Sequence: 1, DestPort: wire.ProbePort}, nil)
	r.send(r.bind(), "the peer is remembered")
	r.says(wire.Header{Ack: r.p.next - 1}, nil)
	r.p.Down(r.now, r.link, ErrReplaced)
	other, s := r.bind(), r.bind()
	r.send(other, "asks, as it is the first one of the link")
	r.send(s, "does not")
	r.send(s, "nor this one")
	s.Hasten(r.now)
	r.do()
	r.sent = nil
	r.connect(Params{})
	if n := r.asked(wire.Data); n != 3 {
		t.Errorf("%d messages ask for an acknowledgement; want 3", n)
	}
}

// A socket gets as many pongs as it has sent pings: one more is the answer to a ping of
// the node itself, from a port that the socket has got meanwhile.
func TestPongsThatNobodyAskedFor(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	s := r.bind()
	if _, err := s.Send(r.now, Endpoint{there, wire.PingPort}, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	r.do()
	for i := range uint64(2) {
		r.says(wire.Header{Sequence: 1 + i, DestPort: s.Port()}, nil)
	}
	if n, _ := s.Queued(); n != 1 {
		t.Errorf("%d pongs came to a socket that has sent a ping", n)
	}
}

// Who waits for a message that was sent after the ping that another one waits for, gets a
// ping of its own.
func TestHastenAfterThePing(t *testing.T) {
	r := newRawPeer(t, Params{}, probed)
	r.says(wire.Header{Sequence: 1, DestPort: wire.ProbePort, Ack: 1}, nil)
	first, second := r.bind(), r.bind()
	r.send(first, "asks, as it is the first one of the link")
	r.send(first, "does not")
	first.Hasten(r.now)
	r.do()
	r.send(second, "follows the ping")
	second.Hasten(r.now)
	r.do()
	if n := r.asked(wire.Ping); n != 1 {
		t.Errorf("%d pings while the first is not answered; want 1", n)
	}
	r.says(wire.Header{Ack: 4}, nil) // of the ping, and not of what follows
	if first.Unsent() != 0 || second.Unsent() == 0 {
		t.Fatalf("%d and %d bytes are unacknowledged", first.Unsent(), second.Unsent())
	}
	if n := r.asked(wire.Ping); n != 2 {
		t.Errorf("%d pings; want 2", n)
	}
}

// The answer to a ping that comes before the pong of the probe does not count, and
// another ping is sent.
func TestHastenBeforeThePong(t *testing.T) {
	r := newRawPeer(t, Params{}, probed)
	s := r.bind()
	r.send(s, "two")
	s.Hasten(r.now)
	r.do()
	r.says(wire.Header{Ack: 3}, nil)
	r.says(wire.Header{Sequence: 1, DestPort: wire.ProbePort, Ack: 1}, nil)
	if n := r.asked(wire.Ping); n != 2 {
		t.Errorf("%d pings; want 2", n)
	}
	r.says(wire.Header{Ack: 4}, nil)
	if n := s.Unsent(); n != 0 {
		t.Errorf("%d bytes are unacknowledged", n)
	}
}
