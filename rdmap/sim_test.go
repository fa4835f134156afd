package rdmap

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"urnic/ddp/ddptest"
	"urnic/mpa"
)

// A world is two sides that talk to each other, one step at a time in an order
// that a seed decides.
type world struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	sides    [2]*side
	flows    [2]*flow // flows[i] is from sides[i]
	referees [2]referee
	segments int // posted so far, of both directions

	cutAt int // after so many segments, cut is called; 0: never
	cut   func(w *world)
}

func newWorld(t *testing.T, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 0x5040))
	w := &world{t: t, seed: seed, rng: rng}
	o := ddptest.Options{MULPDU: 128 + rng.IntN(400), Seed: seed, Reorder: rng.IntN(10), Room: 1 + rng.IntN(8)}
	ird, ord := [2]int{1 + rng.IntN(4), 1 + rng.IntN(4)}, [2]int{}
	cfg := [2]Config{}
	for i := range cfg {
		ord[i] = 1 + rng.IntN(ird[1-i])
		cfg[i].IRD, cfg[i].ORD = ird[i], ord[i]
	}
	if kind := mpa.RTR(rng.IntN(2 * int(mpa.RTRRead))); kind == mpa.RTRSend || kind == mpa.RTRWrite || kind == mpa.RTRRead {
		o.Reorder = 0 // only MPA has it
		cfg[0].SendRTR, cfg[1].ExpectRTR = kind, mpa.RTRAll
	}
	a, b := ddptest.Pair(o)
	w.sides = [2]*side{newSide(t, a, cfg[0]), newSide(t, b, cfg[1])}
	for i := range 2 {
		w.flows[i] = newFlow(w.sides[i], w.sides[1-i], rng)
		w.sides[i].llp.see = func(b []byte) {
			if err := w.referees[i].see(b); err != nil {
				t.Fatalf("seed %d: side %d broke a rule: %v", seed, i, err)
			}
			if w.segments++; w.segments == w.cutAt {
				w.cut(w)
			}
		}
	}
	return w
}

// step does something, by chance.
func (w *world) step() {
	s := w.sides[w.rng.IntN(2)]
	switch w.rng.IntN(6) {
	case 0, 1:
		if s.waiting() {
			s.receive()
		}
	case 2, 3:
		if _, err := s.stream.Transmit(s); err != nil && s.transmitting == nil {
			s.transmitting = err
		}
	case 4:
		if _, err := s.llp.Flush(true); err != nil && s.transmitting == nil {
			s.transmitting = err
		}
	case 5:
		if w.rng.IntN(4) == 0 {
			s.llp.SetMULPDU(128 + w.rng.IntN(400))
		}
	}
}

// run has both sides do that many operations, and brings everything to rest.
func (w *world) run(ops int) {
	left := [2]int{ops, ops}
	for left[0]+left[1] > 0 {
		if i := w.rng.IntN(2); left[i] > 0 && w.rng.IntN(4) == 0 {
			w.sides[i].submit(w.flows[i].next())
			left[i]--
		}
		w.step()
	}
	for range 2000 { // a rest takes a few rounds; the bound is for what never rests
		before := w.segments
		for _, s := range w.sides {
			s.settle()
		}
		if w.segments == before && !w.sides[0].waiting() && !w.sides[1].waiting() {
			return
		}
	}
	w.t.Fatalf("seed %d: the sides don't come to rest", w.seed)
}

// wantDone checks one side when everything is done.
func (w *world) wantDone(i int) {
	w.t.Helper()
	s, f, name := w.sides[i], w.flows[i], fmt.Sprintf("seed %d, side %d", w.seed, i)
	if s.err != nil || s.transmitting != nil {
		w.t.Fatalf("%s: %v; %v", name, s.err, s.transmitting)
	}
	if err := f.end(); err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	if !slices.Equal(s.submitted, f.ops) || len(s.failed) != 0 || s.stream.Outstanding() != 0 || s.stream.Answering() != 0 {
		w.t.Fatalf("%s: %d of %d submitted, %d failed, %d outstanding, %d being answered",
			name, len(s.submitted), len(f.ops), len(s.failed), s.stream.Outstanding(), s.stream.Answering())
	}
	if sent, received := s.stream.Stats().Sent, w.sides[1-i].stream.Stats().Received; sent != received {
		w.t.Fatalf("%s: counted %v as sent, %v as received", name, sent, received)
	}
}

func TestRandomTrafficOfAllOperations(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		w.run(60)
		w.wantDone(0)
		w.wantDone(1)
	}
}

// The same with the sides working by themselves, each sending and receiving at
// the same time.
func TestRandomTrafficInParallel(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			for i, s := range w.sides {
				s.llp.see = nil // the referees would take turns
				for range 200 {
					s.submit(w.flows[i].next())
				}
			}
			for _, s := range w.sides {
				s.run()
				s.Wake()
			}
			synctest.Wait()
			w.wantDone(0)
			w.wantDone(1)
			for _, s := range w.sides {
				_ = s.llp.CloseWrite()
			}
			for _, s := range w.sides {
				<-s.done
			}
		})
	}
}

// Whatever happens to the lower layer, and after whichever segment: what was
// done until then is right, and everybody is told.
func TestStreamThatIsCutAfterEachSegment(t *testing.T) {
	const ops = 12
	for name, cut := range map[string]func(*world){
		"aborted": func(w *world) { _ = w.sides[0].llp.Abort() },
		"ended":   func(w *world) { _ = w.sides[0].llp.CloseWrite() },
		"failed":  func(w *world) { w.sides[0].stream.Fail(&Error{Code: CodeStreamCatastrophic}) },
		"failed on both sides": func(w *world) {
			w.sides[0].stream.Fail(&Error{Code: CodeStreamCatastrophic})
			w.sides[1].stream.Fail(&Error{Code: CodeGlobalCatastrophic})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				whole := newWorld(t, seed)
				whole.run(ops)
				for at := 1; at <= whole.segments; at++ {
					w := newWorld(t, seed)
					w.cutAt, w.cut = at, cut
					w.run(ops)
					if name == "aborted" || name == "ended" {
						w.receiveEnd()
					}
					for i := range 2 {
						if err := w.wantPrefix(i, name); err != nil {
							t.Fatalf("seed %d, cut after segment %d of %d, side %d: %v", seed, at, whole.segments, i, err)
						}
					}
				}
			}
		})
	}
}

// receiveEnd lets both sides see that the stream has ended.
func (w *world) receiveEnd() {
	for _, s := range w.sides {
		_ = s.llp.CloseWrite()
	}
	for _, s := range w.sides {
		for !s.lost {
			s.receive()
		}
	}
}

// wantPrefix checks one side of a world that was cut.
func (w *world) wantPrefix(i int, name string) error {
	s, f := w.sides[i], w.flows[i]
	if err := f.soFar(); err != nil {
		return err
	}
	if n := len(s.submitted); n > len(f.ops) || !slices.Equal(s.submitted, f.ops[:n]) || len(s.failed) > 0 {
		return fmt.Errorf("%d operations submitted, %d failed", n, len(s.failed))
	}
	for _, o := range s.completed {
		if !slices.Contains(s.submitted, o) {
			return fmt.Errorf("%v was completed and not submitted", o.Op)
		}
	}
	switch name {
	case "aborted":
		if s.stream.terminate.Load() != nil || s.term != nil || !errors.Is(s.err, ddptest.ErrAborted) {
			return fmt.Errorf("Terminate %v; Receive: %w", s.term, s.err)
		}
	case "ended":
		if !errors.Is(s.err, io.EOF) {
			return fmt.Errorf("Receive: %w", s.err)
		}
	case "failed", "failed on both sides":
		if s.err != nil || s.terms > 1 {
			return fmt.Errorf("%d Terminates; Receive: %w", s.terms, s.err)
		}
		if i == 1 && s.term == nil && (name == "failed" || w.sides[0].term == nil) {
			return errors.New("no Terminate came")
		}
	}
	return nil
}
