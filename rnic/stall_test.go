package rnic_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A staller is a peer that makes a device keep buffers.
type staller struct {
	qp    *rnic.QP
	begun time.Time
}

// stallers are the ways to do so.
var stallers = map[string]func(w *world, s *rnictest.Side) staller{
	"stops in the midst of an FPDU": func(w *world, s *rnictest.Side) staller {
		q := newQP(w, s.Device, s.PD, rnic.QPAttr{RecvCQ: s.RecvCQ, SendCQ: s.SendCQ})
		h := w.peerOf(q, rnic.ConnParam{})
		h.write(h.fpdu(sendSeg(string(make([]byte, 60_000))))[:50_000])
		return staller{q.QP, time.Now()}
	},
	"sends an FPDU by octets": func(w *world, s *rnictest.Side) staller {
		q := newQP(w, s.Device, s.PD, rnic.QPAttr{RecvCQ: s.RecvCQ, SendCQ: s.SendCQ})
		h := w.peerOf(q, rnic.ConnParam{})
		b := h.fpdu(sendSeg(string(make([]byte, 60_000))))
		h.write(b[:50_000])
		begun := time.Now()
		go func() {
			for i := range 10_000 - 1 {
				select {
				case <-time.After(100 * time.Millisecond):
				case <-w.Context().Done():
					return
				}
				if _, err := h.conn.Write(b[50_000+i : 50_001+i]); err != nil {
					return
				}
			}
		}()
		return staller{q.QP, begun}
	},
	"reads nothing": func(w *world, s *rnictest.Side) staller {
		q := newQP(w, s.Device, s.PD, rnic.QPAttr{RecvCQ: s.RecvCQ, SendCQ: s.SendCQ})
		h := w.peerOf(q, rnic.ConnParam{})
		open(w, q.QP)
		h.send(writeSeg(rnic.Remote{}, nil)) // it may speak now
		mr := s.Register(w, make([]byte, 1<<20), 0)
		postSend(w, q.QP, rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{mr.SGE(0, 1<<20)}})
		return staller{q.QP, time.Now()}
	},
}

// wantStalled checks which streams have ended.
func wantStalled(w *world, all []staller, ended func(i int) bool) {
	w.Helper()
	synctest.Wait()
	for i, s := range all {
		if is := s.qp.State() != rnic.RTS; is != ended(i) {
			w.Errorf("stream %d of %d is in state %v (%v)", i, len(all), s.qp.State(), s.qp.Err())
		}
	}
}

// Streams may keep buffers for their peers, up to the limit and for as long as they
// like; beyond it, those end that have done so for longest.
func TestStreamBuffersAreBounded(t *testing.T) {
	for name, stall := range stallers {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const limit = 1 << 20
				s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits[pd.StreamOctets] = limit })
				heldNow := func() int { synctest.Wait(); return int(s.Device.Held(pd.StreamOctets)) }
				first := stall(w, s)
				each := heldNow()
				if each == 0 || each > s.Device.Attr().StreamBuffers {
					w.Fatalf("a stream keeps %d octets; want some, and %d at most", each, s.Device.Attr().StreamBuffers)
				}
				all := []staller{first}
				fit := limit / each
				for range fit - 1 {
					time.Sleep(10 * time.Millisecond)
					all = append(all, stall(w, s))
				}
				time.Sleep(time.Minute)
				wantStalled(w, all, func(int) bool { return false })
				time.Sleep(time.Minute)

				all = append(all, stall(w, s))
				time.Sleep(2 * time.Second) // which may be needed to notice that
				wantStalled(w, all, func(i int) bool { return i == 0 })
				if n := heldNow(); n > limit {
					w.Errorf("%d octets are kept; the limit is %d", n, limit)
				}
				if err := first.qp.Err(); err == nil || !errors.Is(err, rnic.ErrStalled) {
					w.Errorf("the stream ended with %v", err)
				}
				nextEvent(w, s.Device, rnic.EventLost)

				// Again, when that is long over.
				time.Sleep(time.Minute)
				all = append(all, stall(w, s))
				time.Sleep(2 * time.Second)
				wantStalled(w, all, func(i int) bool { return i <= 1 })
				nextEvent(w, s.Device, rnic.EventLost)

				// Many at once exceed it for no longer than they may.
				for range 4 * fit {
					all = append(all, stall(w, s))
				}
				time.Sleep(1500 * time.Millisecond)
				if n := heldNow(); n > 2*limit {
					w.Errorf("%d octets are kept after 1.5 s; the limit is %d", n, limit)
				}
				time.Sleep(5 * time.Second)
				if n := heldNow(); n > limit {
					w.Errorf("%d octets are kept after 6.5 s; the limit is %d", n, limit)
				}
			})
		})
	}
}

// The more the limit is exceeded, the shorter a stream may stall: with one eighth too much,
// for one eighth of the way from 5 s to 1 s less than 5 s.
func TestStreamsMayStallTheLongerTheLessTheLimitIsExceeded(t *testing.T) {
	inWorld(t, func(w *world) {
		const limit = 1 << 20
		stall := stallers["stops in the midst of an FPDU"]
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits[pd.StreamOctets] = limit })
		all := []staller{stall(w, s)}
		synctest.Wait()
		for each := int(s.Device.Held(pd.StreamOctets)); len(all)*each <= limit; {
			time.Sleep(time.Millisecond)
			all = append(all, stall(w, s))
		}
		synctest.Wait()
		over := float64(s.Device.Held(pd.StreamOctets)-limit) / limit
		may := 5*time.Second - time.Duration(over*float64(4*time.Second))
		time.Sleep(time.Until(all[0].begun.Add(may - time.Millisecond)))
		wantStalled(w, all, func(int) bool { return false })
		time.Sleep(2 * time.Millisecond)
		wantStalled(w, all, func(i int) bool { return i == 0 })
		time.Sleep(time.Minute)
		wantStalled(w, all, func(i int) bool { return i == 0 })
	})
}

// However many streams exceed the limit, one goroutine sees to them.
func TestStreamBuffersAreWatchedByOneGoroutine(t *testing.T) {
	count := func(limit uint64) (n int) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{TB: t}
			s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits[pd.StreamOctets] = limit })
			for range 5 {
				stallers["stops in the midst of an FPDU"](w, s)
			}
			synctest.Wait()
			n = goroutines()
		})
		return n
	}
	if within, beyond := count(1<<30), count(1); beyond != within+1 {
		t.Errorf("%d goroutines beyond the limit, and %d within it; want one more", beyond, within)
	}
}

// A stream whose peer goes on is none of those, however scarce buffers are.
func TestStreamThatMovesOutlivesThoseThatStall(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits[pd.StreamOctets] = 1 })
		q := newQP(w, s.Device, s.PD, rnic.QPAttr{RecvCQ: s.RecvCQ, SendCQ: s.SendCQ})
		h := w.peerOf(q, rnic.ConnParam{})
		var all []staller
		for _, stall := range stallers {
			all = append(all, stall(w, s))
		}
		mem := s.Register(w, make([]byte, 60_000), rnic.LocalWrite)
		for i := range uint64(100) {
			if err := q.QP.PostRecv(rnic.RecvWR{ID: i, SGL: []rnic.SGE{mem.SGE(0, 60_000)}}); err != nil {
				w.Fatal(err)
			}
			b := h.fpdu(sendSeg(string(make([]byte, 60_000))))
			h.write(b[:30_000])
			time.Sleep(900 * time.Millisecond)
			h.write(b[30_000:])
			synctest.Wait()
			for range 20 { // until somebody receives
				time.Sleep(time.Millisecond)
			}
			wantCompletions(w, s.RecvCQ, result{i, rnic.StatusSuccess})
		}
		wantState(w, q.QP, rnic.RTS)
		wantStalled(w, all, func(int) bool { return true })
	})
}

// The limit of a domain ends streams of that domain only.
func TestStreamBuffersOfADomainAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.DomainLimits[pd.StreamOctets] = 300 << 10 })
		other := newQP(w, s.Device, labOf(w, s).domain(), rnic.QPAttr{})
		mine, theirs := []staller{}, []staller{}
		theirs = append(theirs, stallers["stops in the midst of an FPDU"](w, other))
		for range 3 {
			mine = append(mine, stallers["stops in the midst of an FPDU"](w, s))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		wantStalled(w, mine, func(i int) bool { return i == 0 })
		wantStalled(w, theirs, func(int) bool { return false })
	})
}

// A stream that has ended keeps no buffers, though its queue pair stays.
func TestEndedStreamKeepsNoBuffers(t *testing.T) {
	for name, stall := range stallers {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				one := stall(w, s)
				synctest.Wait()
				if s.Device.Held(pd.StreamOctets) == 0 {
					w.Error("it keeps nothing")
				}
				one.qp.Abort()
				if n := s.Device.Held(pd.StreamOctets); n != 0 {
					w.Errorf("%d octets are kept", n)
				}
				if !errors.Is(one.qp.Err(), rnic.ErrAborted) {
					w.Error(one.qp.Err())
				}
			})
		})
	}
}
