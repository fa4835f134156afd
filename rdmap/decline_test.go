package rdmap

import (
	"errors"
	"fmt"
	"testing"

	"urnic/ddp"
	"urnic/mpa"
)

// What the Handler declines waits with the LLP; neither is the peer told anything, nor
// does it cost anything but the wait.
func TestDeclinedMessageWaits(t *testing.T) {
	s, p := withPeer(t, Config{})
	s.buffers = [][]byte{make([]byte, 8)}
	s.decline = fmt.Errorf("later: %w", ddp.ErrDeclined)
	p.llp.Inject(p.make(untagged(OpSend, []byte("hello"))), 0)
	for i := range 3 {
		var err error
		if some := false; i%2 == 0 {
			err = s.stream.Receive()
		} else if some, err = s.stream.TryReceive(); some {
			t.Error("TryReceive has received something")
		}
		if err != s.decline { //nolint:errorlint // as it is
			t.Fatalf("receiving a message that is declined: %v", err)
		}
		if s.arrived != i+1 || s.llp.Waiting() != 1 || s.stream.Failure() != nil {
			t.Errorf("%d segments have arrived; %d are with the LLP; failure %v", s.arrived, s.llp.Waiting(), s.stream.Failure())
		}
	}
	s.decline = nil
	if err := s.stream.Receive(); err != nil || len(s.contents) != 1 || string(s.contents[0]) != "hello" {
		t.Errorf("Receive = %v; delivered %q", err, s.contents)
	}
}

// Only messages of queue 0 are for the Handler to decline, and not the ready-to-receive
// indication.
func TestOnlyWhatTakesAReceiveCanBeDeclined(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 1})
	s.decline = ddp.ErrDeclined
	order := uint64(0)
	take := func(b []byte) error {
		p.llp.Inject(b, order)
		order++
		return s.stream.Receive()
	}
	b, _ := ReadRequest{}.AppendBinary(nil)
	for _, seg := range [][]byte{p.make(untagged(OpReadRequest, b)), p.make(tagged(OpWrite, 0, 0, nil))} {
		if err := take(seg); err != nil {
			t.Errorf("Receive = %v", err)
		}
	}
	if s.arrived != 2 {
		t.Errorf("%d segments have arrived", s.arrived)
	}
	if err := take(p.make(untagged(OpImmediate, make([]byte, ImmediateLen)))); !errors.Is(err, ddp.ErrDeclined) {
		t.Errorf("of Immediate Data, Receive = %v", err)
	}

	s, p = withPeer(t, Config{ExpectRTR: mpa.RTRSend})
	s.decline = ddp.ErrDeclined
	p.llp.Inject(p.make(untagged(OpSend, nil)), 0)
	if err := s.stream.Receive(); err != nil {
		t.Errorf("of the ready-to-receive indication, Receive = %v", err)
	}
	p.llp.Inject(p.make(untagged(OpSend, nil)), 1)
	if err := s.stream.Receive(); !errors.Is(err, ddp.ErrDeclined) {
		t.Errorf("of a Send behind it, Receive = %v", err)
	}
}
