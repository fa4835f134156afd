package ddp

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"urnic/ddp/ddptest"
	"urnic/stag"
)

// A traffic is random messages, and a reference for what must come of them: a
// ULP to which each is a string, and which has them delivered one by one.
type traffic struct {
	testing.TB
	*upper
	sent  []Message
	texts []string

	tag    stag.STag
	region []byte

	next int               // the message in turn
	told int               // bytes of it that were delivered, if it is tagged
	msn  map[uint32]uint32 // of the last message delivered, by QN
}

const trafficBase = 1 << 48

func newTraffic(t testing.TB, rng *rand.Rand, n int) *traffic {
	tr := &traffic{TB: t, msn: map[uint32]uint32{}}
	queues := make([][]int, 1+rng.IntN(4))
	room := 0 // of the region
	for range n {
		length := []int{0, rng.IntN(20), rng.IntN(500), rng.IntN(5000)}[rng.IntN(4)]
		m := Message{Length: uint64(length), Tagged: rng.IntN(2) == 0, QN: rng.Uint32N(uint32(len(queues)))}
		for i := range m.RsvdULP {
			m.RsvdULP[i] = byte(rng.Uint32())
		}
		var b strings.Builder
		for b.Len() < length {
			b.WriteByte(byte(1 + rng.IntN(255)))
		}
		if m.Tagged {
			room += 1 + rng.IntN(3) // bytes that must stay zero
			m.TO = trafficBase + uint64(room)
			room += length
		} else {
			queues[m.QN] = append(queues[m.QN], length+rng.IntN(2)*rng.IntN(100))
		}
		m.Payload = octets(b.String())
		tr.sent, tr.texts = append(tr.sent, m), append(tr.texts, b.String())
	}
	tr.upper = newUpper(queues...)
	tr.tag, tr.region = tr.expose(t, trafficBase, room+1)
	for i := range tr.sent {
		tr.sent[i].STag = tr.tag
	}
	return tr
}

// DeliverTagged compares a segment with the message in turn.
func (tr *traffic) DeliverTagged(h *TaggedHeader, n int) error {
	if tr.next == len(tr.sent) {
		return fmt.Errorf("%v came after the last message", h)
	}
	m, text := &tr.sent[tr.next], tr.texts[tr.next]
	if !m.Tagged || h.STag != m.STag || h.RsvdULP != m.RsvdULP[0] || h.TO != m.TO+uint64(tr.told) {
		return fmt.Errorf("message %d: %v (%#x) came, %d octets from its beginning", tr.next, h, h.RsvdULP, tr.told)
	}
	tr.told += n
	if h.Control.Last() != (tr.told == len(text)) {
		return fmt.Errorf("message %d: last %v after %d of %d octets", tr.next, h.Control.Last(), tr.told, len(text))
	}
	if !h.Control.Last() {
		return nil
	}
	tr.next, tr.told = tr.next+1, 0
	if at := int(m.TO - trafficBase); string(tr.region[at:at+len(text)]) != text {
		return fmt.Errorf("message %d: was delivered before it was placed", tr.next-1)
	}
	return nil
}

// DeliverUntagged compares a message with the one in turn.
func (tr *traffic) DeliverUntagged(h *UntaggedHeader, length uint32) error {
	if tr.next == len(tr.sent) {
		return fmt.Errorf("%v came after the last message", h)
	}
	m, text := &tr.sent[tr.next], tr.texts[tr.next]
	tr.msn[h.QN]++
	if m.Tagged || h.QN != m.QN || h.MSN != tr.msn[h.QN] || h.RsvdULP != m.RsvdULP || int(length) != len(text) {
		return fmt.Errorf("message %d: %v (%x) came with a length of %d", tr.next, h, h.RsvdULP, length)
	}
	if err := tr.upper.DeliverUntagged(h, length); err != nil {
		return err
	}
	if d := tr.lastData(); d != text {
		return fmt.Errorf("message %d: was delivered with other contents", tr.next)
	}
	tr.next++
	return nil
}

// lastData takes the data of the last untagged delivery.
func (tr *traffic) lastData() string {
	d := tr.got[len(tr.got)-1].data
	tr.got = tr.got[:0]
	return d
}

// finished checks that all messages came, and nothing beside the tagged ones.
func (tr *traffic) finished() {
	tr.Helper()
	if tr.next != len(tr.sent) {
		tr.Errorf("%d of %d messages were delivered", tr.next, len(tr.sent))
	}
	want := make([]byte, len(tr.region))
	for i, m := range tr.sent {
		if m.Tagged {
			copy(want[m.TO-trafficBase:], tr.texts[i])
		}
	}
	if string(want) != string(tr.region) {
		tr.Error("something was placed beside the messages")
	}
}

// A repeater is an LLP that passes some segments more than once.
type repeater struct {
	*ddptest.LLP
	rng  *rand.Rand
	kept []func(place func([]byte, uint64) error) error
}

func (l *repeater) Receive(place func([]byte, uint64) error) error {
	return l.LLP.Receive(func(b []byte, order uint64) error {
		err := place(b, order)
		switch l.rng.IntN(4) {
		case 0:
			err = errors.Join(err, place(b, order))
		case 1:
			l.kept = append(l.kept, func(place func([]byte, uint64) error) error { return place(b, order) })
		case 2:
			for _, again := range l.kept {
				err = errors.Join(err, again(place))
			}
			l.kept = nil
		}
		return err
	})
}

func TestRandomTrafficOutOfOrder(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := ddptest.Options{
			MULPDU: 128 + rng.IntN(1500), Seed: seed, Room: 1 + rng.IntN(64),
			Reorder: []int{1, 2, 5, 20, 100, 1000}[rng.IntN(6)],
		}
		t.Run(fmt.Sprintf("seed %d, window %d", seed, o.Reorder), func(t *testing.T) {
			tr := newTraffic(t, rng, 1+rng.IntN(60))
			a, b := ddptest.Pair(o)
			var low LLP = b
			if rng.IntN(2) == 0 {
				low = &repeater{LLP: b, rng: rng}
			}
			from, to := NewStream(a, newUpper(), len(tr.queues)), NewStream(low, tr, len(tr.queues))
			receive := func(n int) {
				for ; n > 0 && b.Waiting() > 0; n-- {
					if err := to.Receive(); err != nil {
						t.Fatal(err)
					}
				}
			}
			for i := range tr.sent {
				for {
					if rng.IntN(3) == 0 {
						a.SetMULPDU(128 + rng.IntN(1500))
					}
					done, err := from.Send(&tr.sent[i])
					if err != nil {
						t.Fatal(err)
					}
					if !done || rng.IntN(2) == 0 {
						if _, err := a.Flush(true); err != nil {
							t.Fatal(err)
						}
						receive(rng.IntN(30))
					}
					if done {
						break
					}
				}
			}
			if err := from.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			receive(b.Waiting())
			tr.finished()
			if n := len(to.sink.waiting); n > 0 {
				t.Errorf("%d segments are still kept", n)
			}
		})
	}
}

// One goroutine sends and another one receives, on both sides.
func TestBothDirectionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		ulps := []*traffic{newTraffic(t, rng, 200), newTraffic(t, rng, 200)} // at a and b
		queues := max(len(ulps[0].queues), len(ulps[1].queues))
		a, b := ddptest.Pair(ddptest.Options{Seed: 1, Reorder: 10, Room: 7, MULPDU: 300})
		for i, llp := range []*ddptest.LLP{a, b} {
			s := NewStream(llp, ulps[i], queues)
			go func() {
				for j := range ulps[1-i].sent {
					if err := sendWholly(&s.Source, &ulps[1-i].sent[j]); err != nil {
						t.Error(err)
					}
				}
				if err := s.CloseWrite(); err != nil {
					t.Error(err)
				}
			}()
			go func() {
				var err error
				for err == nil {
					err = s.Receive()
				}
				if !errors.Is(err, io.EOF) {
					t.Errorf("Receive = %v", err)
				}
			}()
		}
		synctest.Wait()
		ulps[0].finished()
		ulps[1].finished()
	})
}
