package datagram

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// A simulation has one process send messages to another over a network that loses,
// doubles, delays and damages datagrams, beside a stranger who forges them.
type simulation struct {
	rng   *rand.Rand
	now   time.Duration
	path  int // bytes of a fragment
	flow  Flow
	creds Credits
	queue Queue[int]
	parts Reassembly

	air       []flying
	delivered map[uint32]int
	forged    int
}

type flying struct {
	at   time.Duration
	back bool
	b    []byte
}

const simKey = 0x1234

func (s *simulation) throw(b []byte, back bool) {
	copies := 1
	switch s.rng.IntN(20) {
	case 0:
		copies = 0
	case 1:
		copies = 2
	}
	for range copies {
		c := append([]byte(nil), b...)
		if s.rng.IntN(30) == 0 {
			c[s.rng.IntN(len(c))] ^= 1 << s.rng.IntN(8)
		}
		delay := time.Millisecond
		if s.rng.IntN(10) == 0 {
			delay += time.Duration(s.rng.IntN(5)) * time.Millisecond
		}
		s.air = append(s.air, flying{s.now + delay, back, c})
	}
}

// message returns the bytes of message i.
func message(i uint32) []byte {
	b := make([]byte, 4+int(i*997)%(MTU-4))
	binary.BigEndian.PutUint32(b, i)
	for j := 4; j < len(b); j++ {
		b[j] = byte(int(i) + j)
	}
	return b
}

// send sends as much of message i as there is room for, and returns from where on it is to go on.
func (s *simulation) send(i uint32, at int) (next int, done bool) {
	m := message(i)
	for at < len(m) {
		n := min(s.path, len(m)-at)
		if at == 0 && !s.creds.May(1, s.now) {
			return at, false
		}
		sequence, ask, ok := s.flow.Take(HeaderLen+n, s.now)
		if !ok {
			return at, false
		}
		ask = s.creds.Sent(sequence, 1, at == 0, at+n == len(m), ask)
		h := Header{Op: Send, Dest: 1, Source: 2, Key: simKey, Sequence: sequence, Length: uint32(len(m)), Offset: uint32(at)}
		if ask {
			h.Flags |= AskAck
		}
		b := append(make([]byte, HeaderLen), m[at:at+n]...)
		h.Put(b)
		s.throw(b, false)
		at += n
	}
	return at, true
}

func (s *simulation) arrive(f *flying) error {
	h, payload, err := Parse(f.b)
	if err != nil || f.back != (h.Op == Ack) {
		return nil
	}
	if f.back {
		if Intact(f.b) {
			s.flow.Ack(h.Sequence)
			s.creds.Ack(h.Sequence, h.Length)
		}
		return nil
	}
	if r := s.queue.Admit(h.Key); r != Taken {
		s.queue.Drop(r)
		return nil
	}
	if !Intact(f.b) {
		s.queue.Drop(Corrupt)
		return nil
	}
	whole, first := payload, &h
	if !h.Whole(len(payload)) {
		first, whole, _, _ = s.parts.Add(netip.AddrPort{}, &h, payload, s.now)
	}
	if s.parts.Len() > maxPartials {
		return fmt.Errorf("%d messages are incomplete", s.parts.Len())
	}
	if first != nil {
		if r := s.queue.Take(); r != Taken {
			s.queue.Drop(r)
		} else {
			i := binary.BigEndian.Uint32(whole)
			if string(whole) != string(message(i)) {
				return fmt.Errorf("message %d is not what was sent", i)
			}
			s.delivered[i]++
		}
	}
	if h.Flags&AskAck != 0 {
		s.ack(h.Sequence, s.queue.Asked(0, h.Sequence))
	}
	return nil
}

func (s *simulation) ack(sequence, room uint32) {
	h := Header{Op: Ack, Sequence: sequence, Length: room}
	b := make([]byte, HeaderLen)
	h.Put(b)
	s.throw(b, true)
}

// forge sends what a stranger might who does not know the Q_Key.
func (s *simulation) forge() {
	h := Header{Op: Send, Dest: 1, Source: s.rng.Uint32N(1 << 24), Key: simKey + 1 + s.rng.Uint32N(100), Length: 100}
	b := make([]byte, HeaderLen+s.rng.IntN(100)+1)
	h.Length = uint32(len(b) - HeaderLen)
	h.Put(b)
	s.air = append(s.air, flying{s.now, false, b[:s.rng.IntN(len(b)+1)]})
	s.forged++
}

func TestSimulatedMessagesArriveWholeOrNotAtAll(t *testing.T) {
	for seed := range uint64(40) {
		s := simulation{rng: rand.New(rand.NewPCG(seed, 1)), delivered: make(map[uint32]int)}
		s.path = []int{MTU, 1432, 500}[seed%3]
		s.queue.Open(simKey)
		s.queue.Post(64)
		const messages = 500
		i, at, posted := uint32(0), 0, 64
		for step := 0; i < messages || len(s.air) > 0; step++ {
			if step > 100_000 {
				t.Fatalf("seed %d: after a long time, message %d has not left", seed, i)
			}
			for i < messages && s.rng.IntN(4) > 0 {
				next, done := s.send(i, at)
				if at = next; !done {
					s.flow.Wait(s.now)
					s.creds.Wait(s.now)
					break
				}
				i, at = i+1, 0
			}
			if s.rng.IntN(5) == 0 {
				s.forge()
			}
			if n := 64 - s.queue.Receives(); n > 0 && s.rng.IntN(3) == 0 {
				posted += n
				for _, d := range s.queue.Post(n) {
					s.ack(d.Sequence, d.Room)
				}
			}
			s.now += time.Millisecond
			flies := s.air
			s.air = nil
			for j := range flies {
				if flies[j].at > s.now {
					s.air = append(s.air, flies[j])
				} else if err := s.arrive(&flies[j]); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		}
		total := 0
		for _, n := range s.delivered {
			total += n
		}
		if total > posted || len(s.delivered) < messages/4 {
			t.Errorf("seed %d: %d of %d messages came, by %d of %d receives", seed, len(s.delivered), messages, total, posted)
		}
		if s.forged > 20 && s.queue.Dropped()[WrongKey] == 0 {
			t.Errorf("seed %d: none of %d forged datagrams was dropped for its Q_Key", seed, s.forged)
		}
	}
}
