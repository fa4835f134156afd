package rdmap

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"urnic/ddp/ddptest"
	"urnic/stag"
)

func TestSendConsumesOneBuffer(t *testing.T) {
	for _, op := range []Opcode{OpSend, OpSendInvalidate, OpSendSE, OpSendSEInvalidate} {
		s, p := withPeer(t, Config{})
		r := s.memory(8, stag.RemoteInvalidate)
		s.post(64, 64, 64)
		p.send(untagged(op, nil), invalidating(r.tag)) // of no bytes, and takes a buffer all the same
		p.send(untagged(OpSend, []byte("second")))
		p.send(untagged(OpSend, pattern(64, 0))) // fills its buffer
		if s.err != nil || len(s.delivered) != 3 || s.delivered[0].Op != op || s.delivered[0].Length != 0 {
			t.Fatalf("%v: %v; delivered %+v", op, s.err, s.delivered)
		}
		if string(s.buffers[1][:6]) != "second" || !bytes.Equal(s.buffers[0], make([]byte, 64)) || !bytes.Equal(s.buffers[2], pattern(64, 0)) {
			t.Errorf("%v: the buffers hold %x", op, s.buffers)
		}
		p.send(untagged(op, nil), invalidating(r.tag))
		p.wantTerminate(0x1202)
	}
}

func TestSendsAreDeliveredWholeAndInOrder(t *testing.T) {
	// Two messages of three segments each, whose segments come in all orders:
	// neither is delivered early, nor the second before the first.
	first, second := pattern(30, 1), pattern(30, 2)
	inOrder(t, func(p *peer) {
		for i := range uint32(3) {
			last := more
			if i == 2 {
				last = mo(20)
			}
			p.push(untagged(OpSend, first[10*i:10*i+10]), mo(10*i), last)
		}
		for i := range uint32(3) {
			last := more
			if i == 2 {
				last = mo(20)
			}
			p.push(untagged(OpSendSE, second[10*i:10*i+10]), mo(10*i), last)
		}
	}, []Delivery{{Op: OpSend, Length: 30}, {Op: OpSendSE, Length: 30}}, [][]byte{first, second})

	t.Run("Immediate Data", func(t *testing.T) {
		inOrder(t, func(p *peer) {
			p.push(untagged(OpImmediate, pattern(8, 1)))
			p.push(untagged(OpSend, pattern(20, 2)))
			p.push(untagged(OpImmediateSE, pattern(8, 3)))
		}, []Delivery{{Op: OpImmediate, Length: 8}, {Op: OpSend, Length: 20}, {Op: OpImmediateSE, Length: 8}},
			[][]byte{pattern(8, 1), pattern(20, 2), pattern(8, 3)})
	})
}

// inOrder has the segments that push sends arrive in many orders, and wants
// these deliveries whatever the order.
func inOrder(t *testing.T, push func(*peer), want []Delivery, contents [][]byte) {
	t.Helper()
	early := 0
	for seed := range uint64(50) {
		s, p := withPeer(t, Config{}, ddptest.Options{Reorder: 8, Seed: seed})
		s.post(32, 32, 32)
		push(p)
		var deliveredAt []int
		total := s.llp.Waiting()
		for s.llp.Waiting() > 0 {
			s.receive()
			for len(deliveredAt) < len(s.delivered) {
				deliveredAt = append(deliveredAt, total-s.llp.Waiting())
			}
		}
		if s.err != nil || len(s.delivered) != len(want) {
			t.Fatalf("seed %d: %v; delivered %+v", seed, s.err, s.delivered)
		}
		for i := range want {
			if s.delivered[i] != want[i] || !bytes.Equal(s.contents[i], contents[i]) {
				t.Errorf("seed %d: delivery %d is %+v, %x; want %+v, %x", seed, i, s.delivered[i], s.contents[i], want[i], contents[i])
			}
		}
		if deliveredAt[0] == total {
			early++ // something had come before the first message was whole
		}
	}
	if early == 0 {
		t.Error("no order put the first message off")
	}
}

func TestSendLongerThanItsBufferTerminates(t *testing.T) {
	s, p := withPeer(t, Config{})
	s.post(16)
	p.send(untagged(OpSend, pattern(10, 1)), more)
	p.send(untagged(OpSend, pattern(10, 1)), mo(10))
	p.wantTerminate(0x1205)
	if len(s.delivered) != 0 || !bytes.Equal(s.buffers[0][10:], make([]byte, 6)) {
		t.Errorf("delivered %+v; the buffer holds %x", s.delivered, s.buffers[0])
	}
}

func TestImmediateDataConsumesOneBuffer(t *testing.T) {
	for _, op := range []Opcode{OpImmediate, OpImmediateSE} {
		s, p := withPeer(t, Config{})
		s.post(64, 64)
		p.send(untagged(op, []byte("8 octets")))
		p.send(untagged(OpSend, []byte("next")))
		if s.err != nil || len(s.delivered) != 2 || s.delivered[0] != (Delivery{Op: op, Length: 8}) || string(s.contents[0]) != "8 octets" {
			t.Fatalf("%v; delivered %+v", s.err, s.delivered)
		}
		if !bytes.Equal(s.buffers[0], make([]byte, 64)) || string(s.buffers[1][:4]) != "next" {
			t.Errorf("the buffers hold %x", s.buffers)
		}
		p.send(untagged(op, []byte("8 octets")))
		p.wantTerminate(0x1202)
	}
}

func TestImmediateDataOfAnotherLengthTerminates(t *testing.T) {
	for n := range 17 {
		if n == ImmediateLen {
			continue
		}
		want := CodeOperationUnspecified
		if n > ImmediateLen {
			want = 0x1205 // DDP finds it first: the buffer has 8 bytes
		}
		for _, op := range []Opcode{OpImmediate, OpImmediateSE} {
			s, p := withPeer(t, Config{})
			s.post(64)
			p.send(untagged(op, make([]byte, n)))
			p.wantTerminate(want)
			if len(s.delivered) != 0 {
				t.Errorf("%d octets were delivered", n)
			}
		}
	}
}

// A message of 8 bytes may be cut up like any other (RFC 5041 §5.2).
func TestImmediateDataInPiecesAreDelivered(t *testing.T) {
	for name, cut := range map[string][]int{"4 and 4": {4, 8}, "1, 6 and 1": {1, 7, 8}, "8 and none": {8, 8}, "none and 8": {0, 8}} {
		t.Run(name, func(t *testing.T) {
			for _, op := range []Opcode{OpImmediate, OpImmediateSE} {
				s, p := withPeer(t, Config{})
				s.post(64, 64, 64)
				p.send(untagged(OpSend, []byte("before")))
				at := 0
				for i, end := range cut {
					changes := []change{mo(uint32(at))}
					if i < len(cut)-1 {
						changes = append(changes, more)
					}
					p.send(untagged(op, []byte("8 octets")[at:end]), changes...)
					at = end
				}
				p.send(untagged(OpSend, []byte("behind")))
				if s.err != nil || len(s.delivered) != 3 || s.delivered[1] != (Delivery{Op: op, Length: 8}) || string(s.contents[1]) != "8 octets" {
					t.Errorf("%v; delivered %+v, %q", s.err, s.delivered, s.contents)
				}
			}
		})
	}
}

// Who can't tell what else has come of a message must not deliver pieces of it.
func TestImmediateDataInPiecesOutOfOrderTerminates(t *testing.T) {
	seen := 0
	for seed := range uint64(50) {
		s, p := withPeer(t, Config{}, ddptest.Options{Reorder: 8, Seed: seed})
		s.post(64, 64, 64)
		p.push(untagged(OpSend, []byte("before")))
		p.push(untagged(OpImmediate, []byte("8 oc")), more)
		p.push(untagged(OpImmediate, []byte("tets")), mo(4))
		p.push(untagged(OpSend, []byte("behind")))
		for s.err == nil && s.llp.Waiting() > 0 {
			s.receive()
		}
		if s.err != nil {
			if e, ok := errors.AsType[*Error](s.err); !ok || e.Code != CodeOperationUnspecified {
				t.Errorf("seed %d: %v", seed, s.err)
			}
			seen++
			continue
		}
		if len(s.delivered) != 3 || string(s.contents[1]) != "8 octets" {
			t.Errorf("seed %d: delivered %+v, %q", seed, s.delivered, s.contents)
		}
	}
	if seen == 0 || seen == 50 {
		t.Errorf("%d of 50 orders were refused", seen)
	}
}

// The piece that comes last may be the first of its message, and a Send: the buffer
// of the Immediate Data then holds bytes that nobody sent.
func TestASendBehindPiecesOfImmediateDataTerminates(t *testing.T) {
	for name, script := range map[string]func(p *peer){
		"a start of 5 octets": func(p *peer) {
			p.inject(1, untagged(OpImmediate, []byte("678")), msn(1), mo(5))
			p.inject(0, untagged(OpSend, []byte("12345")), msn(1), more)
		},
		"a start of 5 octets, 3 of them twice": func(p *peer) {
			p.inject(1, untagged(OpImmediate, []byte("123")), msn(1), more)
			p.inject(2, untagged(OpImmediate, []byte("678")), msn(1), mo(5))
			p.inject(0, untagged(OpSend, []byte("12345")), msn(1), more)
		},
		"the midst, a message later": func(p *peer) {
			p.inject(0, untagged(OpImmediateSE, []byte("123")), msn(1), more)
			p.inject(2, untagged(OpImmediateSE, []byte("678")), msn(1), mo(5))
			p.inject(3, untagged(OpSend, []byte("next")), msn(2))
			p.inject(1, untagged(OpSend, []byte("45")), msn(1), mo(3), more)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withPeer(t, Config{})
			s.post(64, 64, 64)
			script(p)
			if e, ok := errors.AsType[*Error](s.err); !ok || e.Code != CodeOperationUnspecified || len(s.delivered) != 0 {
				t.Errorf("%v; delivered %+v, %q", s.err, s.delivered, s.contents)
			}
		})
	}
}

// A message that is part Send, part Immediate Data would lie in two buffers, and
// whoever reads one of them would take for data what was there before.
func TestAMessageThatIsPartImmediateDataTerminates(t *testing.T) {
	for name, mix := range map[string][]func(p *peer){
		"a Send that ends as Immediate Data": {
			func(p *peer) { p.send(untagged(OpSend, []byte("12345")), more) },
			func(p *peer) { p.send(untagged(OpImmediate, []byte("678")), mo(5)) },
		},
		"Immediate Data that ends as a Send": {
			func(p *peer) { p.send(untagged(OpImmediate, []byte("12345678")), more) },
			func(p *peer) { p.send(untagged(OpSend, []byte("9")), mo(8)) },
		},
		"Immediate Data that end as a Send of no octets": {
			func(p *peer) { p.send(untagged(OpImmediate, []byte("12345678")), more) },
			func(p *peer) { p.send(untagged(OpSend, nil), mo(8)) },
		},
		"a Send that ends as Immediate Data of no octets": {
			func(p *peer) { p.send(untagged(OpSend, []byte("12345678")), more) },
			func(p *peer) { p.send(untagged(OpImmediate, nil), mo(8)) },
		},
		"a Send in the midst of Immediate Data": {
			func(p *peer) { p.send(untagged(OpImmediate, []byte("1234")), more) },
			func(p *peer) { p.send(untagged(OpSend, []byte("5")), mo(4), more) },
			func(p *peer) { p.send(untagged(OpImmediate, []byte("678")), mo(5)) },
		},
		"Immediate Data in the midst of a Send": {
			func(p *peer) { p.send(untagged(OpSend, []byte("1234")), more) },
			func(p *peer) { p.send(untagged(OpImmediateSE, []byte("5")), mo(4), more) },
			func(p *peer) { p.send(untagged(OpSend, []byte("678")), mo(5)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withPeer(t, Config{})
			s.post(64)
			for _, piece := range mix {
				if piece(p); s.err != nil {
					break
				}
			}
			p.wantTerminate(CodeOperationUnspecified)
			if len(s.delivered) != 0 {
				t.Errorf("delivered %+v", s.delivered)
			}
		})
	}
}

func TestRDMAWriteIsPlacedButNotDelivered(t *testing.T) {
	s, p := withPeer(t, Config{})
	r := s.memory(64, stag.LocalWrite|stag.RemoteWrite)
	s.post(64)
	p.send(tagged(OpWrite, r.tag, base+10, []byte("first")), more)
	p.send(tagged(OpWrite, r.tag, base+15, []byte("second")))
	p.send(tagged(OpWrite, 0, 0, nil)) // of no bytes: nothing is checked
	want := make([]byte, 64)
	copy(want[10:], "firstsecond")
	if s.err != nil || !bytes.Equal(r.mem, want) {
		t.Errorf("%v; the region holds %q", s.err, r.mem)
	}
	if len(s.delivered) != 0 || len(s.completed) != 0 || s.term != nil || !bytes.Equal(s.buffers[0], make([]byte, 64)) {
		t.Errorf("the ULP was told: delivered %+v, completed %v", s.delivered, s.completed)
	}
	p.wantNothing()
	if got := s.stream.Stats().Received[OpWrite]; got != (Count{2, 11}) {
		t.Errorf("counted %+v", got)
	}
}

func TestWritesAreThereWhenALaterSendIsDelivered(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, p := withPeer(t, Config{}, ddptest.Options{Reorder: 6, Seed: seed})
		r := s.memory(1000, stag.LocalWrite|stag.RemoteWrite)
		s.post(8)
		want := make([]byte, 1000)
		s.onDeliver = func(Delivery) {
			if !bytes.Equal(r.mem, want) {
				t.Errorf("seed %d: the Send came before the Writes", seed)
			}
		}
		for at := 0; at < 900; {
			data := pattern(1+rng.IntN(90), byte(at))
			copy(want[at:], data)
			p.push(tagged(OpWrite, r.tag, base+uint64(at), data))
			at += len(data)
		}
		p.push(untagged(OpSend, nil))
		p.settle()
		if s.err != nil || len(s.delivered) != 1 {
			t.Errorf("seed %d: %v", seed, s.err)
		}
	}
}

func TestOpcodeThatChangesInsideATaggedMessageTerminates(t *testing.T) {
	s, p := withPeer(t, Config{ORD: 1})
	r := s.memory(64, stag.LocalWrite|stag.RemoteWrite)
	s.submit(readOf(1, 2, r.tag, base, 8))
	p.settle()
	p.next(OpReadRequest)
	p.send(tagged(OpReadResponse, r.tag, base, make([]byte, 8)), more)
	p.send(tagged(OpWrite, r.tag, base+8, make([]byte, 8)))
	p.wantTerminate(CodeUnexpectedOpcode)
	if len(s.completed) != 0 {
		t.Error("the Read was completed")
	}
}
