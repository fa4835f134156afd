package datagram

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

var peer = netip.MustParseAddrPort("192.0.2.1:21000")

func TestNothingIsAdmittedWithAWrongQKey(t *testing.T) {
	var q Queue[int]
	if r := q.Admit(0); r != NoQueuePair {
		t.Errorf("a queue that is not open: %v", r)
	}
	q.Open(7)
	if r := q.Admit(8); r != WrongKey {
		t.Errorf("another key: %v", r)
	}
	if r := q.Admit(7); r != Taken {
		t.Errorf("the key: %v", r)
	}
	q.Close()
	if r := q.Admit(7); r != NoQueuePair {
		t.Errorf("a queue that is closed: %v", r)
	}
}

func TestAMessageTakesAReceive(t *testing.T) {
	var q Queue[int]
	q.Open(0)
	if q.Take() != NoReceive {
		t.Error("there was a receive")
	}
	q.Post(2)
	for i, want := range []Reason{Taken, Taken, NoReceive} {
		if got := q.Take(); got != want {
			t.Errorf("message %d with two receives: %v; want %v", i, got, want)
		}
	}
	q.Drop(NoReceive)
	q.Drop(Reasons) // no such reason
	if q.Dropped()[NoReceive] != 1 {
		t.Error("it is not counted")
	}
}

func TestPeersHearOfRoomWhenThereIsSome(t *testing.T) {
	var q Queue[int]
	q.Open(0)
	q.Post(3)
	if room := q.Asked(1, 10); room != 3 {
		t.Errorf("there is room for %d; want 3", room)
	}
	for range 3 {
		q.Take()
	}
	if q.Asked(1, 11) != 0 || q.Asked(2, 20) != 0 || q.Asked(1, 12) != 0 || len(q.Post(0)) != 0 {
		t.Error("there is no room")
	}
	due := q.Post(5)
	if want := []Debt[int]{{1, 12, 5}, {2, 20, 5}}; fmt.Sprint(due) != fmt.Sprint(want) {
		t.Errorf("%v; want %v", due, want)
	}
	if len(q.Post(1)) != 0 {
		t.Error("they hear it twice")
	}
	q.receives = 0
	for i := range 1000 {
		q.Asked(i, 1)
	}
	if n := len(q.Post(1)); n != maxOwed {
		t.Errorf("%d peers are remembered; want %d", n, maxOwed)
	}
}

func TestAFlowWaitsForRoomOnlyForAWhile(t *testing.T) {
	var f Flow
	n, asks := 0, 0
	for {
		_, ask, ok := f.Take(100, 0)
		if !ok {
			break
		}
		if n++; ask {
			asks++
		}
	}
	if n != windowDatagrams || asks != 2 {
		t.Errorf("%d datagrams leave, and %d ask; want %d and 2", n, asks, windowDatagrams)
	}
	if left, waits := f.Wait(patience - 1); left != 1 || !waits {
		t.Errorf("%v, %v are left", left, waits)
	}
	if _, waits := f.Wait(patience); waits || !f.Deaf() {
		t.Error("it waits for ever")
	}
	for range 3 * windowDatagrams {
		if _, _, ok := f.Take(100, patience); !ok {
			t.Fatal("it waits for a process that does not answer")
		}
	}
	if f.Ack(1) || f.Ack(f.next+1) || f.Ack(f.next-windowDatagrams) {
		t.Error("it believes in what can't be an answer")
	}
	if !f.Ack(f.next) || f.Deaf() || f.Ack(f.next) {
		t.Error("it does not hear the answer, or hears it twice")
	}
	for n = 0; ; n++ {
		if _, _, ok := f.Take(windowBytes/4, patience); !ok {
			break
		}
	}
	if n != 4 {
		t.Errorf("%d datagrams of a quarter of the window leave", n)
	}
	if f = (Flow{}); true {
		if _, ask, ok := f.Take(2*windowBytes, 0); !ask || !ok {
			t.Error("what is larger than the window never leaves")
		}
	}
}

// A flow of messages to one queue pair has no more under way than there are receives for, and asks when it has to know of more.
func TestCreditsAreTheReceivesThatThereAre(t *testing.T) {
	var c Credits
	sequence := uint32(0)
	send := func(dest uint32) bool {
		sequence++
		return c.Sent(sequence, dest, true, true, false)
	}
	if !c.May(7, 0) || !send(7) || send(7) {
		t.Error("the first message asks, and no other before there is an answer")
	}
	c.Ack(1, 4) // when the first one had come: the second one has taken one of them
	for i, asks := range []bool{true, false, true} {
		if !c.May(7, 0) || send(7) != asks {
			t.Errorf("message %d asks, or may not be: want %v", i, asks)
		}
	}
	if c.May(7, 10) || !c.May(8, 10) {
		t.Error("one queue pair without receives, and who waits")
	}
	if c.Ack(sequence, 0) || c.May(7, 11) {
		t.Error("it goes on without receives")
	}
	for range 3 * windowDatagrams { // another queue pair of the process goes on
		send(8)
	}
	if left, waits := c.Wait(10 + patience - 1); left != 1 || !waits {
		t.Errorf("%v, %v are left", left, waits)
	}
	if c.Ack(2, 9) || c.Ack(sequence+1, 9) || !c.Ack(5, 2) || !c.May(7, 20) {
		t.Error("it does not hear that there are receives, or believes in what can't be an answer")
	}
	send(7)
	send(7)
	if c.May(7, 100) {
		t.Error("it takes more receives than there are")
	}
	if _, waits := c.Wait(100 + patience); waits || !c.May(7, 100+patience) || !send(7) {
		t.Error("it waits for ever, or does not ask again")
	}
	for dest := range uint32(10 * maxCredits) {
		send(dest + 100)
	}
	if len(c.of) > maxCredits {
		t.Errorf("%d queue pairs are remembered", len(c.of))
	}
}

// A message that has begun has its receive.
func TestCreditsOfMessagesInFragments(t *testing.T) {
	var c Credits
	c.Sent(1, 7, true, true, false)
	c.Sent(2, 7, true, false, false)
	c.Ack(1, 2)
	if c.Sent(3, 7, false, false, false) || !c.Sent(4, 7, false, true, false) {
		t.Error("it is the last fragment that asks, as half of the receives are taken")
	}
	if !c.May(7, 0) || c.Sent(5, 7, true, false, false) || !c.Sent(6, 7, false, true, false) || c.May(7, 0) {
		t.Error("the last receive is not the last")
	}
}

// fragments cuts a message.
func fragments(h Header, message []byte, size int) (all []Header, parts [][]byte) {
	h.Length = uint32(len(message))
	for at := 0; at < len(message); at += size {
		h.Offset = uint32(at)
		all, parts = append(all, h), append(parts, message[at:min(at+size, len(message))])
		h.Sequence++
	}
	return all, parts
}

func TestFragmentsAreJoined(t *testing.T) {
	message := make([]byte, MTU)
	for i := range message {
		message[i] = byte(i * 7)
	}
	hs, parts := fragments(Header{Op: Send, Dest: 1, Source: 2, Sequence: 10}, message, 1000)
	hs[1].Flags = AskAck // the one flag that may differ
	var r Reassembly
	for i := range hs {
		first, got, reason, _ := r.Add(peer, &hs[i], parts[i], 0)
		if i < len(hs)-1 {
			if first != nil || reason != Taken {
				t.Fatalf("fragment %d: %v", i, reason)
			}
			continue
		}
		if first == nil || first.Sequence != 10 || string(got) != string(message) {
			t.Errorf("%+v, %d bytes", first, len(got))
		}
	}
	if r.Len() != 0 {
		t.Error("something is left")
	}
}

func TestFragmentsThatDoNotFitLoseTheMessage(t *testing.T) {
	message := make([]byte, 3000)
	for name, change := range map[string]func(h *Header){
		"another sequence": func(h *Header) { h.Sequence++ },
		"another length":   func(h *Header) { h.Length-- },
		"a gap":            func(h *Header) { h.Offset++ },
		"an overlap":       func(h *Header) { h.Offset-- },
		"another flag":     func(h *Header) { h.Flags |= Solicited },
		"another key":      func(h *Header) { h.Key++ },
	} {
		hs, parts := fragments(Header{Op: Send, Dest: 1, Source: 2}, message, 1000)
		var r Reassembly
		r.Add(peer, &hs[0], parts[0], 0)
		change(&hs[1])
		if first, _, reason, _ := r.Add(peer, &hs[1], parts[1], 0); first != nil || reason != Incomplete || r.Len() != 0 {
			t.Errorf("%s: %v, %d left", name, reason, r.Len())
		}
		if first, _, reason, _ := r.Add(peer, &hs[2], parts[2], 0); first != nil || reason != Incomplete {
			t.Errorf("%s: the rest is %v", name, reason)
		}
	}
}

func TestMemoryForFragmentsIsBounded(t *testing.T) {
	var r Reassembly
	begin := func(source string, qpn int, now time.Duration) (evicted int) {
		h := Header{Op: Send, Dest: 1, Source: uint32(qpn), Length: 2000}
		_, _, _, evicted = r.Add(netip.AddrPortFrom(netip.MustParseAddr(source), 1), &h, make([]byte, 1000), now)
		return evicted
	}
	lost := 0
	for i := range 10 * maxPartials {
		lost += begin("192.0.2.1", i, 0)
	}
	if r.Len() != maxOfSource || lost != 9*maxPartials+maxPartials-maxOfSource {
		t.Errorf("one source has %d, and has lost %d", r.Len(), lost)
	}
	for i := range 10 * maxPartials {
		begin(fmt.Sprintf("192.0.3.%d", i%16), i, 0)
	}
	if r.Len() > maxPartials || len(r.free)+r.Len() > maxPartials+1 {
		t.Errorf("%d messages are incomplete, and memory for %d is kept", r.Len(), len(r.free))
	}
	if n := begin("192.0.2.9", 1, 2*staleAfter); n != maxPartials {
		t.Errorf("%d are lost after a long time", n)
	}
	r.Forget(2)
	if r.Len() != 1 {
		t.Error("those of another queue pair are forgotten")
	}
	if r.Forget(1); r.Len() != 0 {
		t.Error("they are not forgotten")
	}
}

func TestAStreamLosesWholeMessages(t *testing.T) {
	var s Stream
	h := func(sequence, length, offset uint32) *Header {
		return &Header{Op: UCSend, Sequence: sequence, Length: length, Offset: offset}
	}
	for i, step := range []struct {
		h    *Header
		n    int
		want Place
	}{
		{h(1, 10, 0), 10, Place{First: true, Last: true}},
		{h(2, 20, 0), 10, Place{First: true}},
		{h(3, 20, 10), 10, Place{Last: true}},
		{h(4, 20, 10), 10, Place{Reason: Incomplete}},
		{h(5, 20, 0), 10, Place{First: true}},
		{h(7, 20, 10), 10, Place{Reason: Incomplete, Lost: true}},
		{h(8, 20, 0), 10, Place{First: true}},
		{h(9, 0, 0), 0, Place{First: true, Last: true, Lost: true}},
		{h(10, 30, 0), 10, Place{First: true}},
		{h(11, 31, 10), 10, Place{Reason: Incomplete, Lost: true}},
	} {
		if got := s.Next(step.h, step.n); got != step.want {
			t.Errorf("step %d: %+v; want %+v", i, got, step.want)
		}
	}
	s.Next(h(20, 20, 0), 10)
	if s.Reset(); s.Next(h(21, 20, 10), 10).Reason != Incomplete {
		t.Error("what had begun goes on")
	}
}

func TestReasonsHaveNames(t *testing.T) {
	for r := range Reasons + 1 {
		if r.String() == "" {
			t.Errorf("reason %d has none", r)
		}
	}
}

// FuzzReassembly has fragments come in any order and form: nothing panics, memory stays bounded, and
// what is delivered has the length that its header says.
func FuzzReassembly(f *testing.F) {
	f.Add([]byte{0, 0, 0, 100, 1, 50, 1, 50, 0, 100, 1, 50})
	f.Fuzz(func(t *testing.T, script []byte) {
		var r Reassembly
		payload := make([]byte, MTU)
		now := time.Duration(0)
		for steps := 0; len(script) >= 6 && steps < 100; steps++ {
			h := Header{
				Op: Send, Source: uint32(script[0] & 3), Dest: uint32(script[0] >> 2 & 3), Sequence: uint32(script[1]),
				Offset: uint32(binary.BigEndian.Uint16(script[2:])), Length: uint32(binary.BigEndian.Uint16(script[2:]) + uint16(script[4])),
			}
			n := min(int(script[5])*16, MTU)
			script = script[6:]
			now += time.Duration(n) * time.Millisecond
			b := append(make([]byte, HeaderLen), payload[:n]...)
			h.Put(b)
			h, part, err := Parse(b)
			if err != nil {
				continue
			}
			first, message, _, _ := r.Add(peer, &h, part, now)
			if first != nil && len(message) != int(first.Length) {
				t.Errorf("%d bytes of %+v", len(message), first)
			}
			if r.Len() > 16 {
				t.Errorf("%d messages are incomplete", r.Len())
			}
		}
	})
}

// If more messages than there are receives have left before the first answer came, and none of them asks, the next one does.
func TestSomethingAsksAfterABurst(t *testing.T) {
	var c Credits
	for sequence := range uint32(6) {
		if asks := c.Sent(1+sequence, 1, true, true, false); !c.May(1, 0) || asks != (sequence == 0) {
			t.Fatalf("message %d: it asks: %v", sequence, asks)
		}
	}
	c.Ack(1, 3)
	if !c.May(1, 0) || !c.Sent(7, 1, true, true, false) {
		t.Fatal("nothing asks how many receives there are")
	}
	if c.May(1, 0) {
		t.Fatal("a message goes while the answer is not there")
	}
	if c.Ack(7, 0); c.May(1, 0) {
		t.Fatal("a message goes without a receive")
	}
}
