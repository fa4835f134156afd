package ack

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A world is a queue pair of an RNIC with its peer, as far as a Machine can tell: requests
// are taken by the lower layer in their order, dealt with by the peer in that order, and
// completed by the RNIC in that order.
type world struct {
	*testing.T
	r *rand.Rand
	m Machine

	posted   []item // all, in the order of their numbers; item i has number i+1
	accepted int    // by the lower layer
	placed   int    // by the peer
	retired  int    // completed by the RNIC
	over     bool
	end      End
	faulty   uint64 // the request that the peer refuses, or 0
	failed   uint64 // the request that fails on this side, or 0
	asked    int    // Reads of no bytes
	answered int    // of them
	staggers bool   // two Reads of no bytes may be outstanding

	want     []uint64 // IDs of requests whose completion has not come, in order
	signaled map[uint64]bool
	statuses []Completion
}

type item struct {
	Request
	ack      bool
	fault    bool
	ownFault bool
	tells    bool // the RNIC tells of its success
}

func (w *world) post() {
	r := Request{ID: uint64(len(w.posted) + 1000), Signaled: w.r.IntN(3) > 0}
	it := item{}
	switch w.r.IntN(5) {
	case 0:
		r.Kind, r.STag, r.Size = Read, w.r.Uint32N(3), 8
	case 1:
		r.STag, r.TO, r.Size = w.r.Uint32N(3), uint64(w.r.IntN(3))*100, 50
	case 2:
		r.Messages = 1 + uint8(w.r.IntN(2))
	case 3:
		r.Messages, r.STag, r.TO, r.Size = 1, 7, 0, 10
	case 4: // a Write of its own place, so that there is one that is like no other
		r.STag, r.TO, r.Size = 99, uint64(len(w.posted))*10, 10
	}
	w.want = append(w.want, r.ID)
	w.signaled[r.ID] = r.Signaled
	if w.r.IntN(40) == 0 {
		mark := w.m.Mark()
		n := w.m.Len()
		w.m.Post(r)
		if w.m.Wants() {
			w.m.Ask()
		}
		w.m.Withdraw(mark)
		if w.m.Len() != n {
			w.Fatalf("%d requests after a withdrawal, %d before", w.m.Len(), n)
		}
	}
	it.Request = r
	unlike := r.Size > 0 && r.STag == 99 || r.Messages > 0 && r.Size == 0 || r.Kind == Read
	it.fault = unlike && w.r.IntN(60) == 0
	it.ownFault = !it.fault && w.r.IntN(150) == 0
	if w.r.IntN(9) == 0 && r.Kind == Plain {
		r.Kind, r.Messages, r.Size, it.fault = Local, 0, 0, false
	}
	it.Request = r
	if seq := w.m.Post(r); seq != uint64(len(w.posted)+1) {
		w.Fatalf("number %d for post %d", seq, len(w.posted)+1)
	}
	it.tells = w.m.Tells()
	w.posted = append(w.posted, it)
	w.ask()
}

func (w *world) ask() {
	if !w.m.Wants() || w.r.IntN(5) == 0 { // the owner may be late
		return
	}
	outstanding := 0
	for _, it := range w.posted[w.retired:] {
		if it.ack {
			outstanding++
		}
	}
	if outstanding > 1 || outstanding > 0 && !w.staggers {
		w.Fatalf("one more Read of no bytes, while %d are outstanding", outstanding)
	}
	w.asked++
	if seq := w.m.Ask(); seq != uint64(len(w.posted)+1) {
		w.Fatalf("number %d for the Read behind %d posts", seq, len(w.posted))
	}
	w.posted = append(w.posted, item{Request: Request{Kind: Read, Signaled: true}, ack: true, tells: true})
}

// accept has the lower layer take a request.
func (w *world) accept() {
	if w.accepted == len(w.posted) {
		return
	}
	if w.posted[w.accepted].ownFault {
		w.failed = uint64(w.accepted + 1)
		w.placed = w.accepted // the peer's end comes behind all that was sent; it refuses none of it
		for i := range w.accepted {
			if w.posted[i].fault {
				w.failed, w.faulty, w.placed = 0, uint64(i+1), i
				break
			}
		}
		if w.failed != 0 {
			w.finish(End{Cause: Given})
		} else {
			w.refuse()
		}
		return
	}
	w.accepted++
	w.retire()
}

// place has the peer deal with a request.
func (w *world) place() {
	if w.placed == w.accepted {
		return
	}
	if w.posted[w.placed].fault {
		w.faulty = uint64(w.placed + 1)
		w.refuse()
		return
	}
	w.placed++
	w.retire()
}

func (w *world) refuse() {
	e := End{Cause: Refused}
	switch it := w.posted[w.faulty-1]; {
	case it.Kind != Plain:
		w.failed = w.faulty // the RNIC itself knows which it was
	case it.Size > 0:
		e.Tagged, e.STag, e.TO = true, it.STag, it.TO+uint64(w.r.IntN(int(it.Size)))
	default:
		e.Untagged = true
		for _, before := range w.posted[:w.faulty-1] {
			e.MSN += uint32(before.Messages)
		}
		e.MSN += uint32(w.r.IntN(int(it.Messages)))
	}
	w.finish(e)
}

// retire completes what is done, as the RNIC does.
func (w *world) retire() {
	for w.retired < w.accepted {
		it := w.posted[w.retired]
		if it.Kind == Read && w.retired >= w.placed {
			return
		}
		w.retired++
		if it.tells {
			if it.ack {
				w.answered++
			}
			w.m.Answered(uint64(w.retired))
			if n := w.poll(); n == 0 && w.m.Len() < 1 && it.ack {
				w.Fatal("a Read of no bytes was answered, and nothing completes")
			}
		}
	}
}

// finish ends the stream: the RNIC completes what is left with errors, in any order that
// the owner may look at them.
func (w *world) finish(e End) {
	w.over = true
	for i := w.retired; i < len(w.posted); i++ {
		w.m.Failed(uint64(i+1), uint64(i+1) == w.failed)
	}
	w.end = e
	w.m.End(e)
}

func (w *world) poll() (n int) {
	for {
		c, some := w.m.Next()
		if !some {
			return n
		}
		n++
		w.statuses = append(w.statuses, c)
		for len(w.want) > 0 && w.want[0] != c.ID {
			if w.signaled[w.want[0]] {
				w.Fatalf("%d completes before %d", c.ID, w.want[0])
			}
			w.want = w.want[1:]
		}
		if len(w.want) == 0 {
			w.Fatalf("%d completes, and was over", c.ID)
		}
		w.want = w.want[1:]
		w.judge(c)
	}
}

func (w *world) judge(c Completion) {
	it := w.posted[c.Seq-1]
	switch c.Outcome {
	case Success:
		known := int(c.Seq) <= w.placed || it.tells && it.Kind == Local && int(c.Seq) <= w.retired
		if w.over && w.end.Cause == Closed {
			known = known || int(c.Seq) <= w.retired && w.asked == w.answered
		}
		if !known {
			w.Errorf("number %d has succeeded: the peer has dealt with %d; %+v", c.Seq, w.placed, w.end)
		}
	case Blamed:
		if w.end.Cause == Refused && c.Seq != w.faulty {
			w.Errorf("number %d is blamed; it was %d", c.Seq, w.faulty)
		}
	case Own:
		if c.Seq != w.failed {
			w.Errorf("number %d has a status of its own; it was %d", c.Seq, w.failed)
		}
	case Flushed:
		if w.faulty > 0 && c.Seq < w.faulty || w.end.Cause == Given && c.Seq < w.failed {
			w.Errorf("number %d is flushed, before %d and %d: %+v", c.Seq, w.faulty, w.failed, it)
		}
	}
}

// Over many schedules: a request succeeds only if the peer has dealt with it, all signaled
// ones complete in their order, the one that is to blame is blamed, those before it
// succeed, and one Read of no bytes is outstanding at a time.
func TestSimulation(t *testing.T) {
	var ends [4]int
	for seed := range uint64(4000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &world{T: t, r: rand.New(rand.NewPCG(seed, 0)), signaled: map[uint64]bool{}, staggers: seed%2 == 0}
			if w.staggers {
				w.m.Stagger(4)
			}
			for step := 0; step < 150 && !w.over; step++ {
				switch w.r.IntN(6) {
				case 0, 1:
					w.post()
				case 2:
					w.accept()
				case 3:
					w.place()
				case 4:
					w.poll()
				case 5:
					w.ask()
				}
			}
			if !w.over && w.r.IntN(2) == 0 {
				w.finish(End{Cause: []Cause{Lost, Closed, Given}[w.r.IntN(3)]})
			}
			for !w.over && (w.retired < len(w.posted) || w.m.Waits()) {
				w.accept()
				if !w.over {
					w.place()
				}
				w.ask()
			}
			w.poll()
			for _, id := range w.want {
				if w.signaled[id] || w.over && w.end.Cause == Refused && len(w.statuses) > 0 && w.stageOf() == Flushed {
					t.Errorf("%d has not completed; %+v", id, w.end)
				}
			}
			if w.over {
				ends[w.end.Cause]++
				w.check()
			}
		})
	}
	for c, n := range ends {
		if n < 20 {
			t.Errorf("only %d streams end by cause %d: the schedules are too tame", n, c)
		}
	}
}

func (w *world) stageOf() Outcome { return w.statuses[len(w.statuses)-1].Outcome }

// check checks the outcomes of a stream that is over as a whole: success, at most one that
// is to blame, and then nothing but flushed ones; and so for what is posted later.
func (w *world) check() {
	stage := Success
	for _, c := range w.statuses {
		switch {
		case c.Outcome == Success && stage != Success, c.Outcome != Success && c.Outcome != Flushed && stage != Success:
			w.Errorf("number %d: %d, behind one that has failed", c.Seq, c.Outcome)
		case c.Outcome != Success:
			stage = Flushed
		}
	}
	if w.faulty+w.failed > 0 && (len(w.statuses) == 0 || stage != Flushed) {
		w.Error("nobody is blamed")
	}
	seq := w.m.Post(Request{ID: 1})
	w.m.Failed(seq, false)
	w.m.End(End{Cause: Lost})
	if c, some := w.m.Next(); !some || c.ID != 1 || c.Outcome != Flushed {
		w.Errorf("posted later: %+v, %v", c, some)
	}
	if _, some := w.m.Next(); some {
		w.Error("it completes twice")
	}
}
