package rdmap

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/stag"
)

// onPair runs f with two connected sides that work by themselves, and ends the
// stream after it.
func onPair(t *testing.T, o ddptest.Options, cfg Config, f func(t *testing.T, a, b *side)) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := ddptest.Pair(o)
		a, b := newSide(t, la, cfg), newSide(t, lb, cfg)
		a.run()
		b.run()
		f(t, a, b)
		synctest.Wait()
		_ = a.llp.CloseWrite()
		_ = b.llp.CloseWrite()
		<-a.done
		<-b.done
	})
}

func TestEveryOperationPasses(t *testing.T) {
	for _, o := range []ddptest.Options{{}, {MULPDU: 128}, {MULPDU: 200, Reorder: 5, Seed: 7}} {
		onPair(t, o, Config{IRD: 4, ORD: 4}, func(t *testing.T, a, b *side) {
			data := pattern(1000, 1)
			there := b.memory(4096, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead|stag.RemoteAtomic)
			doomed := b.memory(64, stag.RemoteRead|stag.RemoteInvalidate)
			here := a.memory(4096, stag.LocalWrite)
			b.post(2000, 2000, 2000, 2000, 2000)
			read := readOf(there.tag, base+8, here.tag, base, 1000)
			add, swap := addOf(there.tag, base+2048, 5), swapOf(there.tag, base+2048, 5, 77)
			a.submit(
				writeOf(there.tag, base+8, data), sendOf(OpSend, data), read, add, swap, sendOf(OpSendSE, nil),
				immediateOf(OpImmediate, Immediate{1, 2, 3, 4, 5, 6, 7, 8}),
				invalidateOf(OpSendInvalidate, []byte("inv"), doomed.tag),
				immediateOf(OpImmediateSE, Immediate{8}),
			)
			synctest.Wait()
			if a.err != nil || b.err != nil {
				t.Fatalf("a: %v; b: %v", a.err, b.err)
			}
			if !bytes.Equal(there.mem[8:1008], data) || !bytes.Equal(here.mem[:1000], data) {
				t.Error("the data written or read differ")
			}
			if !slices.Equal(a.completed, []*Operation{read, add, swap}) || add.Original != 0 || swap.Original != 5 {
				t.Errorf("completed %v; originals %d, %d", a.completed, add.Original, swap.Original)
			}
			want := []Delivery{
				{Op: OpSend, Length: 1000},
				{Op: OpSendSE},
				{Op: OpImmediate, Length: 8},
				{Op: OpSendInvalidate, Length: 3, Invalidated: doomed.tag},
				{Op: OpImmediateSE, Length: 8},
			}
			if !slices.Equal(b.delivered, want) || !bytes.Equal(b.contents[0], data) || string(b.contents[3]) != "inv" || b.contents[2][7] != 8 {
				t.Errorf("delivered %+v", b.delivered)
			}
			if len(a.submitted) != 9 || a.stream.Outstanding() != 0 || b.stream.Answering() != 0 {
				t.Errorf("%d submitted, %d outstanding, %d being answered", len(a.submitted), a.stream.Outstanding(), b.stream.Answering())
			}
		})
	}
}

func TestFailAndTheRestMayBeCalledFromAnywhere(t *testing.T) {
	onPair(t, ddptest.Options{}, Config{IRD: 2, ORD: 2}, func(t *testing.T, a, b *side) {
		there, here := b.memory(64, stag.RemoteRead), a.memory(64, stag.LocalWrite)
		for range 100 {
			a.submit(readOf(there.tag, base, here.tag, base, 64))
		}
		var first atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, _, _ = a.stream.Stats(), a.stream.MayRead(), a.stream.Outstanding()+a.stream.Answering()
				if a.stream.Fail(&Error{Code: CodeStreamCatastrophic}) {
					first.Add(1)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if first.Load() != 1 || b.terms != 1 || !a.stream.Ended() || !b.stream.Ended() {
			t.Errorf("%d errors were the first; %d Terminates came", first.Load(), b.terms)
		}
	})
}

// What can change after it was posted is copied by the LLP.
func TestOnlyPayloadOfTheULPIsStable(t *testing.T) {
	s, p := withPeer(t, Config{IRD: 2, ORD: 2})
	r := s.memory(64, stag.RemoteRead|stag.LocalWrite|stag.RemoteAtomic)
	s.submit(readOf(1, 2, r.tag, base, 8), addOf(1, 8, 1), immediateOf(OpImmediate, Immediate{}))
	p.send(readRequest(ReadRequest{Size: 64, SrcSTag: r.tag, SrcTO: base}))
	p.send(atomicRequest(AtomicRequest{STag: r.tag, TO: base}))
	if n := len(p.ref.messages); n != 5 || s.llp.stable != 0 {
		t.Errorf("%d messages were sent, %d segments of them with stable payload", n, s.llp.stable)
	}
	s.submit(sendOf(OpSend, []byte("stable")))
	if p.settle(); s.llp.stable != 1 {
		t.Errorf("%d segments have stable payload; want that of the Send", s.llp.stable)
	}
	if s.stream.sending.msg.Payload != nil {
		t.Error("the stream keeps payload alive that is sent")
	}
	if n := s.stream.depths.waiting.Load(); n != 0 {
		t.Errorf("%d requests count as waiting for their response", n)
	}
	soon(t, func() { // nothing holds the memory any more
		if err := r.entry.Deregister(); err != nil {
			t.Error(err)
		}
	})
}

func TestMessagesAreLimitedAsDDPHasIt(t *testing.T) {
	s, _ := withPeer(t, Config{})
	if err := s.stream.check(&Operation{Op: OpSend, Length: ddp.MaxMessage}); err != nil {
		t.Errorf("the longest message: %v", err)
	}
	if err := s.stream.check(&Operation{Op: OpSend, Length: ddp.MaxMessage + 1}); err == nil {
		t.Error("one octet more is taken")
	}
}

func TestFailWakesTheTransmitterAndKeepsTheFirstError(t *testing.T) {
	s, _ := withPeer(t, Config{})
	s.wake = make(chan struct{}, 1)
	first := &Error{Code: CodeStreamCatastrophic}
	if s.stream.Failure() != nil || !s.stream.Fail(first) || s.stream.Fail(&Error{}) || s.stream.Failure() != first {
		t.Errorf("the failure is %v", s.stream.Failure())
	}
	select {
	case <-s.wake:
	default:
		t.Error("nobody is told that there is a Terminate to send")
	}
}

func TestErrorOfCloseIsPassedOn(t *testing.T) {
	s, _ := withPeer(t, Config{})
	s.llp.cantClose = errLost
	if err := s.stream.Close(); !errors.Is(err, errLost) {
		t.Errorf("Close = %v", err)
	}
}

func TestTransmitThatFailsIsNotIdle(t *testing.T) {
	s, _ := withPeer(t, Config{})
	s.llp.cantPost = errLost
	s.submit(sendOf(OpSend, []byte("x")))
	if idle, err := s.stream.Transmit(s); idle || !errors.Is(err, errLost) {
		t.Errorf("Transmit = %v, %v", idle, err)
	}
}

// One call posts the Terminate that takes the place of a message that can't be made.
func TestTransmitGoesOnToTheTerminate(t *testing.T) {
	s, p := withPeer(t, Config{})
	s.submit(&Operation{Op: OpSend, Length: 4, Payload: brokenPayload{}})
	if idle, err := s.stream.Transmit(s); !idle || err != nil {
		t.Errorf("Transmit = %v, %v", idle, err)
	}
	if _, err := s.llp.Flush(true); err != nil {
		t.Fatal(err)
	}
	p.wantBareTerminate(CodeLocalCatastrophic)
}
