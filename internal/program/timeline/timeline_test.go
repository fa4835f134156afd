package timeline

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/mpa"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/rnic/rnictimeline"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const big = 256 << 10

// A side is one end of a connection that is recorded.
type side struct {
	*rnictest.Side
	rec *rnictimeline.Recorder
	mem *rnic.MR
}

// wait polls a completion, and wants one of a request.
func (s *side) wait(t *testing.T, cq *rnic.CQ, id uint64) rnic.WC {
	t.Helper()
	var wcs [1]rnic.WC
	if _, err := s.rec.Wait(t.Context(), cq, wcs[:]); err != nil {
		t.Fatal(err)
	}
	if wcs[0].ID != id {
		t.Fatalf("request %d has completed; want %d", wcs[0].ID, id)
	}
	return wcs[0]
}

func (s *side) send(t *testing.T, wrs ...rnic.SendWR) {
	t.Helper()
	if err := s.rec.PostSend(s.QP, wrs...); err != nil {
		t.Fatal(err)
	}
}

// recorded runs a program on a pair that is recorded into a directory, and returns the directory.
func recorded(t *testing.T, program func(a, b *side), change ...func(*rnic.Config)) string {
	t.Helper()
	dir := t.TempDir()
	recs := map[string]*rnictimeline.Recorder{}
	p := rnictest.Connect(t, rnictest.Options{Device: func(name string, cfg *rnic.Config) {
		r, err := rnictimeline.Start(dir, cfg)
		if err != nil {
			t.Fatal(err)
		}
		recs[name] = r
		for _, f := range change {
			f(cfg)
		}
	}})
	a, b := &side{Side: p.A, rec: recs["A"]}, &side{Side: p.B, rec: recs["B"]}
	for _, s := range []*side{a, b} {
		s.mem = s.Register(t, make([]byte, big), rnic.LocalWrite|rnic.RemoteRead|rnic.RemoteWrite|rnic.RemoteAtomic)
		s.rec.Connected(s.QP)
	}
	program(a, b)
	if err := errors.Join(a.Device.Close(), b.Device.Close(), a.rec.Close(), b.rec.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// load reads what was recorded, and returns the requests by ID.
func load(t *testing.T, dir string) (*Timeline, map[uint64]*Request) {
	t.Helper()
	l, err := Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[uint64]*Request{}
	for i := range l.Requests {
		byID[l.Requests[i].ID] = &l.Requests[i]
	}
	for _, p := range l.Processes {
		if p.Unmatched != 0 || p.Note != "" {
			t.Errorf("%+v", p)
		}
	}
	return l, byID
}

// wantPoints checks that a request has passed these points, in the order of each list, and no others.
func wantPoints(t *testing.T, r *Request, lists ...[]Point) {
	t.Helper()
	if r == nil {
		t.Error("there is no such request")
		return
	}
	var known [NumPoints]bool
	for _, points := range lists {
		last := time.Duration(0)
		for _, p := range points {
			known[p] = true
			if r.Times[p] == None || r.Times[p] < last {
				t.Errorf("request %d, %v: %v at %v, after %v", r.ID, r.Op, p, r.Times[p], last)
			}
			last = max(last, r.Times[p])
		}
	}
	for p := range Point(NumPoints) {
		if r.known(p) != known[p] {
			t.Errorf("request %d, %v: %v is known: %v", r.ID, r.Op, p, r.known(p))
		}
	}
}

// Each kind of request has its points in order: on both sides, with messages of many segments, requests without a
// completion, and several that are posted together.
func TestRequestsHaveTheirPoints(t *testing.T) {
	l, requests := load(t, recorded(t, func(a, b *side) {
		for id := uint64(100); id < 103; id++ {
			if err := b.rec.PostRecv(b.QP, rnic.RecvWR{ID: id, SGL: []rnic.SGE{b.mem.SGE(0, big)}}); err != nil {
				t.Fatal(err)
			}
		}
		data, there := []rnic.SGE{a.mem.SGE(0, big)}, b.mem.Remote(0)
		a.send(t,
			rnic.SendWR{ID: 1, Op: rnic.OpSend, SGL: data},
			rnic.SendWR{ID: 2, Op: rnic.OpWrite, SGL: data, Remote: there, Flags: rnic.FlagUnsignaled},
			rnic.SendWR{ID: 3, Op: rnic.OpRead, SGL: data, Remote: there},
			rnic.SendWR{ID: 4, Op: rnic.OpFetchAdd, SGL: []rnic.SGE{a.mem.SGE(0, 8)}, Remote: there},
			rnic.SendWR{ID: 5, Op: rnic.OpWriteImmediate, SGL: data, Remote: there},
			rnic.SendWR{ID: 6, Op: rnic.OpImmediate},
		)
		for _, id := range []uint64{1, 3, 4, 5, 6} {
			a.wait(t, a.SendCQ, id)
		}
		for id := uint64(100); id < 103; id++ {
			b.wait(t, b.RecvCQ, id)
		}
	}))
	if len(l.Processes) != 2 || len(l.Requests) != 9 || l.Processes[0].Connections != 1 {
		t.Fatalf("%+v, %d requests", l.Processes, len(l.Requests))
	}
	for _, id := range []uint64{1, 5, 6} {
		wantPoints(t, requests[id], []Point{Posted, FirstOut, LastOut, Completed, Polled}, []Point{FirstOut, Placed})
	}
	wantPoints(t, requests[2], []Point{Posted, FirstOut, LastOut, Completed}, []Point{FirstOut, Placed})
	for _, id := range []uint64{3, 4} {
		wantPoints(t, requests[id], []Point{Posted, FirstOut, LastOut}, []Point{FirstOut, FirstIn, Placed, Completed, Polled})
	}
	for id := uint64(100); id < 103; id++ {
		wantPoints(t, requests[id], []Point{Posted, FirstIn, Placed, Completed, Polled})
		if r := requests[id]; !r.Recv || r.Failed {
			t.Errorf("%+v", r)
		}
	}
	if first, last := requests[1].Times[FirstOut], requests[1].Times[LastOut]; last <= first {
		t.Errorf("a Send of many segments leaves from %v to %v", first, last)
	}
}

// What MPA's start-up sends in the peer-to-peer model is no request's.
func TestIndicationsOfStartUpAreNoRequests(t *testing.T) {
	for _, rtr := range []mpa.RTR{mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead} {
		_, requests := load(t, recorded(t, func(a, b *side) {
			if err := b.rec.PostRecv(b.QP, rnic.RecvWR{ID: 100}); err != nil {
				t.Fatal(err)
			}
			for id := uint64(1); id < 4; id++ {
				a.send(t, rnic.SendWR{ID: id, Op: rnic.OpRead, SGL: []rnic.SGE{a.mem.SGE(0, 8)}, Remote: b.mem.Remote(0)})
				a.wait(t, a.SendCQ, id)
			}
			a.send(t, rnic.SendWR{ID: 4, Op: rnic.OpSend})
			a.wait(t, a.SendCQ, 4)
			b.wait(t, b.RecvCQ, 100)
		}, func(cfg *rnic.Config) { cfg.MPA.PeerToPeer, cfg.MPA.RTR = true, rtr }))
		for id := uint64(1); id < 4; id++ {
			wantPoints(t, requests[id], []Point{Posted, FirstOut, LastOut}, []Point{FirstOut, FirstIn, Placed, Completed, Polled})
		}
		wantPoints(t, requests[4], []Point{Posted, FirstOut, LastOut, Completed, Polled}, []Point{FirstOut, Placed})
		wantPoints(t, requests[100], []Point{Posted, FirstIn, Placed, Completed, Polled})
	}
}

// What is flushed is posted and polled, and has not been on the wire; a request that was refused is not there.
func TestRequestsThatFail(t *testing.T) {
	_, requests := load(t, recorded(t, func(a, b *side) {
		if err := b.rec.PostRecv(b.QP, rnic.RecvWR{ID: 100}); err != nil {
			t.Fatal(err)
		}
		b.QP.Abort()
		if wc := b.wait(t, b.RecvCQ, 100); wc.Status == rnic.StatusSuccess {
			t.Error(wc)
		}
		if err := a.rec.PostSend(a.QP, rnic.SendWR{ID: 7, Op: rnic.OpSend, SGL: []rnic.SGE{{Length: 1}}}); err == nil {
			t.Error("a request without memory is taken")
		}
	}))
	wantPoints(t, requests[100], []Point{Posted, Polled})
	if r := requests[100]; r != nil && !r.Failed {
		t.Errorf("%+v", r)
	}
	if len(requests) != 1 {
		t.Errorf("%v", requests)
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "holds no recording") {
		t.Error(err)
	}
	if _, err := Load(t.Context(), dir+"/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(dir+"/1-0.events", []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "1-0.events: ") {
		t.Error(err)
	}
}
