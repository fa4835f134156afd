package machine

import (
	"errors"
	"slices"
	"testing"

	"urnic/ulp/rds/wire"
)

// A message with a Read waits for its answer, and so do those behind it of the same
// pair of sockets, but not their operations. Others pass by.
func TestReadsHoldUpTheirPairOnly(t *testing.T) {
	r := newOpPeer(t, 7)
	s, other := r.bind(), r.bind()
	first := r.operate(s, "1", read)
	r.send(s, "2")
	second := r.operate(s, "3", read)
	r.operate(s, "4", write)
	r.send(other, "5")
	if _, err := s.Send(r.now, Endpoint{there, 6000}, []byte("6"), Options{}); err != nil {
		t.Fatal(err)
	}
	r.do()
	r.want("[1]", "[3]", "5", "6")
	third := r.operate(s, "7", read)
	r.want("[7]")
	if i := r.m.Info(r.now, 3); i.UnsentTotal != 5 || len(i.Unsent) != 3 || i.Conns[0].Paths[0].Queued != 5 {
		t.Errorf("%d messages are said to be unsent, %d are shown", i.UnsentTotal, len(i.Unsent))
	}
	r.done(second, nil)
	r.want()
	r.wantEnded(second, "done")
	r.wantEnded(first, "")
	r.done(first, nil)
	r.want("1", "2", "3", "[4]", "4")
	r.wantEnded(first, "done")
	r.done(third, nil)
	r.want("7")
	r.send(s, "8")
	r.want("8")
}

// A Write goes right before its message, and is done when the message is
// acknowledged, for which the message asks.
func TestWriteIsDoneWhenItsMessageIsAcknowledged(t *testing.T) {
	r := newOpPeer(t, 7)
	s := r.bind()
	r.send(s, "asks, as it is the first one of the link")
	r.send(s, "before")
	op := r.operate(s, "1", write)
	if n := r.asked(wire.Data); n != 2 {
		t.Errorf("%d messages ask for an acknowledgement; want 2", n)
	}
	r.want("asks, as it is the first one of the link", "before", "[1]", "1")
	r.says(wire.Header{Ack: 2}, nil)
	r.wantEnded(op, "")
	r.says(wire.Header{Ack: 3}, nil)
	r.wantEnded(op, "done")
	if n := s.Unsent(); n != 0 {
		t.Errorf("%d bytes are unacknowledged", n)
	}
}

// What has waited for an answer, and then for credit, survives the loss of the link.
func TestMessagesThatHaveWaited(t *testing.T) {
	r := newOpPeer(t, 7)
	r.params.Credit, r.params.Granted = 2, 8
	r.lose()
	s := r.bind()
	op := r.operate(s, "1", read)
	r.send(s, "2")
	r.done(op, nil)
	r.want("[1]")
	r.params.Credit = 8
	r.lose()
	r.want("1", "2")
}

// Until the peer has told its generation, operations wait: it may have restarted.
func TestOperationsWaitForTheHandshake(t *testing.T) {
	r := &opPeer{newRawPeer(t, Params{}, func(c *Config) {
		probed(c)
		c.Carriers[0].Operations = true
	}), Params{}}
	s := r.bind()
	r.operate(s, "1", write)
	r.want("probe")
	r.says(wire.Header{Sequence: 1, DestPort: wire.ProbePort, Ack: 1}, nil)
	r.want("[1]", "1")
}

// Operations need no credits, but their messages do.
func TestOperationsTakeNoCredit(t *testing.T) {
	r := newOpPeer(t, 7)
	r.params.Credit, r.params.Granted = 2, 8
	r.lose()
	s := r.bind()
	r.operate(s, "1", write) // the map has taken the first credit, and the last one is kept
	r.operate(s, "2", read)
	r.want("[1]")
	r.says(wire.Header{Credit: 3}, nil)
	r.want("1", "[2]")
}

// On a new link a Read is repeated until it is answered. After that only its message is.
func TestReadIsRepeatedOnANewLink(t *testing.T) {
	for _, generation := range []uint32{0, 7} {
		r := newOpPeer(t, generation)
		s := r.bind()
		op := r.operate(s, "1", read)
		r.send(s, "2")
		r.want("[1]")
		old := r.link
		r.lose()
		for _, err := range []error{nil, errBad} { // of the old link
			r.p.Done(r.now, old, op, err)
			r.do()
		}
		r.want("[1]")
		r.wantEnded(op, "")
		r.done(op, nil)
		r.want("1", "2")
		r.lose()
		r.want("1", "2")
		r.wantEnded(op, "done")
	}
}

// A Write is repeated on a new link, if the peer tells there that its message has not arrived; if
// it has, the memory must not be written again.
func TestWriteIsRepeatedOnlyIfItsMessageIsNotThere(t *testing.T) {
	r := newOpPeer(t, 7)
	s := r.bind()
	arrived, lost := r.operate(s, "1", write), r.operate(s, "2", write)
	r.send(s, "3")
	r.want("[1]", "1", "[2]", "2", "3")
	r.lose()
	r.want() // the peer has not told what it has
	r.greet(1)
	r.want("[2]", "2", "3")
	r.wantEnded(arrived, "done")
	r.wantEnded(lost, "")
	r.says(wire.Header{Ack: 3}, nil)
	r.wantEnded(lost, "done")
}

// Linux does not tell what has arrived: a Write whose message is not acknowledged is given
// up. Those that were not sent are.
func TestWriteIsNotRepeatedForAPeerWithoutGeneration(t *testing.T) {
	r := newOpPeer(t, 0)
	r.params.Credit, r.params.Granted = 3, 8
	r.lose()
	s := r.bind()
	sent, unsent := r.operate(s, "1", write), r.operate(s, "2", read)
	next := r.operate(s, "3", write)
	r.want("[1]", "1", "[2]")
	r.lose()
	r.wantEnded(sent, ErrOperation.Error())
	r.want("[2]")
	r.done(unsent, nil)
	r.want("2", "[3]") // 3 itself waits for credit
	r.says(wire.Header{Credit: 3}, nil)
	r.want("3")
	r.wantEnded(next, "")
}

// An atomic is not repeated, unless it was not sent. What the owner knows of it by the time
// that nothing is left of the link counts.
func TestAtomicIsNotRepeated(t *testing.T) {
	r := newOpPeer(t, 7)
	s := r.bind()
	dropped, refused, answered := r.operate(s, "1", atomic), r.operate(s, "2", atomic), r.operate(s, "3", atomic)
	late := r.operate(s, "4", atomic)
	r.want("[1]", "[2]", "[3]", "[4]")
	r.done(answered, nil)
	old := r.link
	p, link, err := r.m.Request(r.now, Request{Key: Key{Peer: there}}) // the peer has hung up
	if err != nil {
		t.Fatal(err)
	}
	r.do()
	r.wantEnded(dropped, "")
	if !dropped.Doomed() || answered.Doomed() {
		t.Errorf("doomed: %v, %v; want only what is not answered", dropped.Doomed(), answered.Doomed())
	}
	p.Done(r.now, old, refused, errBad)
	p.Done(r.now, old, late, nil)
	p.Down(r.now, old, ErrReplaced)
	r.do()
	r.wantEnded(dropped, ErrOperation.Error())
	r.wantEnded(refused, errBad.Error())
	r.link = link
	p.Up(r.now, link, r.params)
	r.do()
	r.want("3", "4")
	r.wantEnded(answered, "done")
	r.wantEnded(late, "done")
}

// What the owner does not tell until the next link is up is given up then.
func TestAtomicOfALinkOfWhichNothingIsHeard(t *testing.T) {
	r := newOpPeer(t, 7)
	op := r.operate(r.bind(), "1", atomic)
	r.connect(r.params)
	r.wantEnded(op, ErrOperation.Error())
}

// An operation that fails takes its message along, and nothing else.
func TestFailedOperations(t *testing.T) {
	r := newOpPeer(t, 7)
	s := r.bind()
	bad, good := r.operate(s, "1", read), r.operate(s, "2", read)
	r.send(s, "3")
	late := r.operate(r.bind(), "4", write)
	r.want("[1]", "[2]", "[4]", "4")
	r.done(bad, errBad)
	r.want()
	r.done(good, nil)
	r.want("2", "3")
	r.wantEnded(bad, errBad.Error())
	r.done(bad, nil)
	r.done(late, errBad)
	r.says(wire.Header{Ack: 1}, nil) // its message has arrived before
	r.lose()
	r.greet(1)
	r.want("2", "3")
	r.wantEnded(late, errBad.Error())
	lost := 0
	for _, e := range r.seen {
		if e.Kind == Report && e.Event.Kind == MessageLost && errors.Is(e.Event.Err, errBad) {
			lost++
		}
	}
	if c := r.m.Counters(); lost != 2 || c.OperationsFailed != 2 || c.Operations != 3 {
		t.Errorf("%d messages are reported as lost, %+v", lost, c)
	}
}

// A Write that the carrier can't carry out takes its message along before it is sent.
func TestWriteThatCanNotBeCarriedOut(t *testing.T) {
	r := newOpPeer(t, 7)
	s := r.bind()
	op := &Operation{Arg: "1"}
	freed := 0
	if _, err := s.Send(r.now, Endpoint{there, 5000}, []byte("1"), Options{Op: op, Free: func() { freed++ }}); err != nil {
		t.Fatal(err)
	}
	r.m.Effects()
	var seg Segment
	if !r.p.Pull(r.now, r.link, &seg) || seg.Op != op {
		t.Fatal("the operation does not come first")
	}
	r.p.Done(r.now, r.link, op, errBad)
	if r.p.Pull(r.now, r.link, &seg) {
		t.Error("the message goes out")
	}
	r.do()
	r.wantEnded(op, errBad.Error())
	if freed != 1 {
		t.Errorf("its data are given back %d times", freed)
	}
}

// An operation because of which all links end is given up after a while.
func TestOperationThatNoLinkSurvives(t *testing.T) {
	for name, op := range map[string]Operation{"read": read, "write": write} {
		t.Run(name, func(t *testing.T) {
			r := newOpPeer(t, 7)
			s := r.bind()
			op := r.operate(s, "1", op)
			r.send(s, "2")
			links := 1
			for ; r.ended(op) == "" && links < 1000; links++ {
				r.lose()
				r.greet(0)
			}
			r.wantEnded(op, ErrOperation.Error())
			if links < 50 {
				t.Errorf("it is given up after %d links", links)
			}
			r.want("2")
		})
	}
}

// No message follows a silent operation. Behind silent Writes goes a ping that asks for
// the acknowledgement, unless something else does.
func TestSilentOperations(t *testing.T) {
	r := newOpPeer(t, 7)
	s := r.bind()
	silent := write
	silent.Silent = true
	one, two := &Operation{Arg: "1", Silent: true}, &Operation{Arg: "2", Silent: true}
	for _, op := range []*Operation{one, two} {
		if _, err := s.Send(r.now, Endpoint{there, 5000}, nil, Options{Op: op}); err != nil {
			t.Fatal(err)
		}
	}
	r.do()
	if r.sent[len(r.sent)-1].Header.Flags&wire.AckRequired == 0 {
		t.Error("nothing asks for an acknowledgement")
	}
	r.want("[1]", "[2]", "ping")
	r.says(wire.Header{Ack: 3}, nil)
	r.wantEnded(one, "done")
	r.wantEnded(two, "done")

	three := r.operate(s, "", silent)
	r.want("[]", "ping")
	r.lose()
	r.want()
	r.greet(3)
	r.want("[]", "ping")
	r.says(wire.Header{Ack: 5}, nil)
	r.wantEnded(three, "done")

	silentRead := read
	silentRead.Silent = true
	four := r.operate(s, "", silentRead)
	r.send(s, "4")
	r.want("[]")
	r.done(four, nil)
	r.wantEnded(four, "done")
	r.want("4")
	r.says(wire.Header{Ack: r.p.next - 1}, nil)
	if n := s.Unsent(); n != 0 {
		t.Errorf("%d bytes are unacknowledged", n)
	}
}

// Closing a socket ends its operations. Those of the next socket with its port do not
// wait for them.
func TestOperationsOfAClosedSocket(t *testing.T) {
	r := newOpPeer(t, 7)
	s := r.bind()
	port := s.Port()
	ops := []*Operation{r.operate(s, "1", read), r.operate(s, "2", write)}
	s.Close(r.now)
	r.do()
	for _, op := range ops {
		r.wantEnded(op, ErrSocketClosed.Error())
	}
	s, err := r.m.Bind(port, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.sent = nil
	r.send(s, "3")
	r.want("3")
	r.done(ops[0], nil)
	r.want()
	if r.p.conn.busy() && len(r.p.lines) > 0 {
		t.Error("the line of the closed socket is left")
	}
}

// Cookies are of a life of the peer: operations that were accepted before it has
// restarted are lost, also those that were not sent. Messages that were not sent are.
func TestOperationsDoNotOutliveThePeer(t *testing.T) {
	r := newOpPeer(t, 7)
	s := r.bind()
	ops := []*Operation{r.operate(s, "1", write), r.operate(s, "2", read)}
	answered := r.operate(r.bind(), "3", read)
	r.done(answered, nil)
	r.p.Down(r.now, r.link, ErrReplaced)
	r.do()
	ops = append(ops, r.operate(s, "4", write), r.operate(s, "5", read))
	r.send(s, "6")
	r.sent = nil
	r.params.Generation = 8
	r.connect(r.params)
	r.want("6")
	for _, op := range ops {
		r.wantEnded(op, ErrPeerRestarted.Error())
	}
}

// A carrier without operations refuses them, and so does the way to the node itself.
func TestOperationsThatAreNotSupported(t *testing.T) {
	r := newOpPeer(t, 7)
	s := r.bind()
	if _, err := s.Send(r.now, Endpoint{here, 5000}, nil, Options{Op: &Operation{}}); !errors.Is(err, ErrNotSupported) {
		t.Errorf("to the node itself: %v", err)
	}
	r.m.cfg.Carriers[0].Operations = false
	if _, err := s.Send(r.now, Endpoint{there, 5000}, nil, Options{Op: &Operation{}}); !errors.Is(err, ErrNotSupported) {
		t.Errorf("over a carrier without: %v", err)
	}
	if n := s.Unsent(); n != 0 {
		t.Errorf("%d bytes are held of what was refused", n)
	}
}

// The owner learns of the R_Key that a peer has used before the message can be received.
func TestUsedComesBeforeTheMessage(t *testing.T) {
	r := newOpPeer(t, 7)
	s, err := r.m.Bind(4000, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := r.data(0)
	x := wire.Extensions{Has: 1 << wire.ExtRDMA, RKey: 0x1234}
	if h.Extensions, err = x.Encode(); err != nil {
		t.Fatal(err)
	}
	r.seen = nil
	r.says(h, nil)
	var kinds []EffectKind
	for _, e := range r.seen {
		if e.Socket == s {
			kinds = append(kinds, e.Kind)
		}
		if e.Kind == Used && e.RKey != 0x1234 {
			t.Errorf("R_Key %#x", e.RKey)
		}
	}
	if !slices.Equal(kinds, []EffectKind{Used, Readable}) {
		t.Errorf("%v", kinds)
	}

	r.m.cfg.Carriers[0].Operations = false
	r.seen = nil
	h.Sequence++
	r.says(h, nil)
	for _, e := range r.seen {
		if e.Kind == Used {
			t.Error("an R_Key is used over a carrier without operations")
		}
	}
}
