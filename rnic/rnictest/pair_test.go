package rnictest_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// message has A send n bytes to B.
func message(t *testing.T, p *rnictest.Pair, n int) {
	t.Helper()
	data := bytes.Repeat([]byte("urnic"), n/5+1)[:n]
	buf := make([]byte, n)
	p.B.Recv(t, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{p.B.Register(t, buf, rnic.LocalWrite).SGE(0, n)}})
	p.A.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{p.A.Register(t, data, 0).SGE(0, n)}})
	rnictest.Want(t, p.A.SendCQ, 2)
	rnictest.Want(t, p.B.RecvCQ, 1)
	if !bytes.Equal(buf, data) {
		t.Error("the message has changed")
	}
}

// begin has A send more than is on its way at once, and waits for nothing.
func begin(t *testing.T, p *rnictest.Pair, n int) {
	t.Helper()
	p.B.Recv(t, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{p.B.Register(t, make([]byte, n), rnic.LocalWrite).SGE(0, n)}})
	p.A.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{p.A.Register(t, make([]byte, n), 0).SGE(0, n)}})
}

func wantEvent(t *testing.T, s *rnictest.Side, want rnic.EventType) {
	t.Helper()
	if ev, err := s.Device.WaitEvent(t.Context()); err != nil || ev.Type != want || ev.QP != s.QP {
		t.Errorf("side %s: %v, %v; want %v", s.Name, ev, err, want)
	}
}

func TestPairIsConnected(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		for _, s := range []*rnictest.Side{p.A, p.B} {
			if s.QP.State() != rnic.RTS || s.Device.Name() != s.Name || s.SendCQ.Entries() != 1024 || s.RecvCQ.Entries() != 1024 || s.QP.PD() != s.PD {
				t.Errorf("side %s: %v, device %s", s.Name, s.QP.State(), s.Device.Name())
			}
		}
		start := time.Now()
		message(t, p, 10_000)
		if d := time.Since(start); d != 0 {
			t.Errorf("a perfect network took %v", d)
		}
	})
}

func TestConnectWorksWithoutABubble(t *testing.T) {
	message(t, rnictest.Connect(t), 1000)
}

func TestOptionsConfigureEitherSide(t *testing.T) {
	o := rnictest.Options{
		MSS:    9000,
		Device: func(side string, cfg *rnic.Config) { cfg.Name = "device of " + side },
		QP: func(side string, attr *rnic.QPAttr) {
			if attr.SendCQ == nil || attr.RecvCQ == nil {
				t.Error("the completion queues come too late")
			}
			attr.MaxSendWR = 1
		},
		Conn: func(side string, param *rnic.ConnParam) {
			param.PrivateData = []byte("from " + side)
			if side == "A" {
				param.IRD, param.ORD = 3, 5
			}
		},
	}
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		for s, peer := range map[*rnictest.Side]string{p.A: "B", p.B: "A"} {
			if s.Device.Name() != "device of "+s.Name {
				t.Errorf("side %s is called %q", s.Name, s.Device.Name())
			}
			params, ok := s.QP.Params()
			if !ok || string(params.PrivateData) != "from "+peer {
				t.Errorf("side %s got %q", s.Name, params.PrivateData)
			}
			if s == p.A && (params.IRD != 3 || params.ORD != 5) {
				t.Errorf("depths %d and %d", params.IRD, params.ORD)
			}
		}
		err := p.A.QP.PostSend(rnic.SendWR{Op: rnic.OpImmediate, Flags: rnic.FlagLocalFence}, rnic.SendWR{Op: rnic.OpImmediate})
		if !errors.Is(err, rnic.ErrQueueFull) {
			t.Errorf("two requests in a queue of one: %v", err)
		}
	}, o)
}

func TestCutResetsTheConnection(t *testing.T) {
	for _, o := range []rnictest.Options{{AB: rnictest.Faults{CutAt: 5000}}, {BA: rnictest.Faults{CutAt: 100}}} {
		rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
			if o.BA.CutAt > 0 { // B must have something to say
				mem := make([]byte, 200)
				src := p.B.Register(t, mem, rnic.RemoteRead)
				p.A.Send(t, rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{p.A.Register(t, mem[:100:100], rnic.LocalWrite).SGE(0, 100)}, Remote: src.Remote(100)})
			} else {
				begin(t, p, 10_000)
			}
			wantEvent(t, p.A, rnic.EventLost)
			wantEvent(t, p.B, rnic.EventLost)
		}, o)
	}
}

func TestStallDeliversNothingMore(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		begin(t, p, 10_000)
		rnictest.Want(t, p.A.SendCQ, 2) // the network has it
		time.Sleep(time.Hour)
		if p.B.RecvCQ.Poll(make([]rnic.WC, 1)) != 0 {
			t.Error("the message has arrived")
		}
		if n := p.B.QP.State(); n != rnic.RTS {
			t.Errorf("B is in state %v", n)
		}
	}, rnictest.Options{AB: rnictest.Faults{StallAt: 5000}})
}

func TestCorruptionIsFoundByTheCRC(t *testing.T) {
	for seed := range uint64(8) { // which says which bit
		rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
			begin(t, p, 10_000)
			wantEvent(t, p.B, rnic.EventIntegrity)
			wantEvent(t, p.A, rnic.EventTerminateReceived)
		}, rnictest.Options{AB: rnictest.Faults{Seed: seed, CorruptAt: 5000}})
	}
}

func TestLatencyIsThatOfTheDirection(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		start := time.Now()
		message(t, p, 1000)
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("a message from A to B took %v", d)
		}
		sink, src := p.A.Register(t, make([]byte, 8), rnic.LocalWrite), p.B.Register(t, make([]byte, 8), rnic.RemoteRead)
		start = time.Now()
		p.A.Send(t, rnic.SendWR{ID: 3, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 8)}, Remote: src.Remote(0)})
		rnictest.Want(t, p.A.SendCQ, 3)
		if d := time.Since(start); d != 7*time.Second {
			t.Errorf("there and back took %v", d)
		}
	}, rnictest.Options{AB: rnictest.Faults{Latency: 3 * time.Second}, BA: rnictest.Faults{Latency: 4 * time.Second}})
}

func TestShortReadsAndWritesChangeNothingButTheTiming(t *testing.T) {
	f := rnictest.Faults{Seed: 4, ShortReads: true, ShortWrites: true}
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) { message(t, p, 300_000) }, rnictest.Options{AB: f, BA: f})
}

// A run can be repeated: the same seed makes the same choices.
func TestSeedDecides(t *testing.T) {
	times := func(seed uint64) []string {
		var s []string
		f := rnictest.Faults{Seed: seed, Latency: time.Millisecond, Jitter: time.Second}
		rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
			start := time.Now()
			for range 20 {
				message(t, p, 100)
				s = append(s, fmt.Sprint(time.Since(start)))
			}
		}, rnictest.Options{AB: f, BA: f})
		return s
	}
	first := times(1)
	if again := times(1); !slices.Equal(first, again) {
		t.Errorf("seed 1: %v, then %v", first, again)
	}
	if other := times(2); slices.Equal(first, other) {
		t.Errorf("seeds 1 and 2: %v", other)
	}
}

func TestTryConnectReturnsWhyStartupFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := rnictest.TryConnect(t, rnictest.Options{AB: rnictest.Faults{CutAt: 1}})
		if err == nil || p == nil || p.A.QP.State() != rnic.Idle || p.B.QP.State() != rnic.Idle {
			t.Fatalf("%+v, %v", p, err)
		}
		// Both sides say something, and both can be tried again.
		var op *rnic.OpError
		if !errors.As(err, &op) || !strings.Contains(err.Error(), "connect to") || !strings.Contains(err.Error(), "accept") {
			t.Errorf("%v", err)
		}
		if _, err := rnictest.TryConnect(t); err != nil {
			t.Error(err)
		}
	})
}

func TestLinkConnectsMoreQueuePairs(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		create := func(s *rnictest.Side) *rnic.QP {
			q, err := s.PD.CreateQP(rnic.QPAttr{SendCQ: s.SendCQ, RecvCQ: s.RecvCQ})
			if err != nil {
				t.Fatal(err)
			}
			return q
		}
		a, b := create(p.A), create(p.B)
		p.Link(t, a, b)
		if a.State() != rnic.RTS || b.State() != rnic.RTS {
			t.Errorf("%v and %v", a.State(), b.State())
		}
		if err := p.TryLink(a, create(p.B), rnic.ConnParam{}, rnic.ConnParam{}); !errors.Is(err, rnic.ErrNotIdle) {
			t.Errorf("a queue pair was connected twice: %v", err)
		}
		message(t, p, 100)
	})
}

// A judge is a test that must fail: it notes what it is told.
type judge struct {
	testing.TB
	mu   sync.Mutex
	said []string
}

func (j *judge) Helper() {}

func (j *judge) Fatal(args ...any) {
	j.mu.Lock()
	j.said = append(j.said, fmt.Sprint(args...))
	j.mu.Unlock()
	panic(j)
}

func (j *judge) Fatalf(format string, args ...any) { j.Fatal(fmt.Sprintf(format, args...)) }

// fails runs f, which must end with Fatal, and returns what it said.
func fails(t *testing.T, f func(j *judge)) (said string) {
	t.Helper()
	j := &judge{TB: t}
	defer func() {
		t.Helper()
		if r := recover(); r != any(j) {
			t.Errorf("no failure, but %v", r)
			return
		}
		said = strings.Join(j.said, "\n")
	}()
	f(j)
	return ""
}

func TestHelpersFailOnWhatWasNotWanted(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		for what, f := range map[string]func(j *judge){
			"access rights":   func(j *judge) { p.A.Register(j, make([]byte, 8), rnic.RemoteWrite) },
			"can't be posted": func(j *judge) { p.A.Send(j, rnic.SendWR{}) },
			"5 entries":       func(j *judge) { p.A.Recv(j, rnic.RecvWR{SGL: make([]rnic.SGE, 5)}) },
			"is not idle":     func(j *judge) { p.Link(j, p.A.QP, p.B.QP) },
			"connect to":      func(j *judge) { rnictest.Connect(j, rnictest.Options{AB: rnictest.Faults{CutAt: 1}}) },
			"create QP": func(j *judge) {
				_, _ = rnictest.TryConnect(j, rnictest.Options{QP: func(_ string, a *rnic.QPAttr) { a.MaxSGE = -1 }})
			},
			"want 8": func(j *judge) {
				p.A.Send(t, rnic.SendWR{ID: 7, Op: rnic.OpWrite})
				rnictest.Want(j, p.A.SendCQ, 8)
			},
		} {
			if said := fails(t, f); !strings.Contains(said, what) {
				t.Errorf("%q; want one that says %q", said, what)
			}
		}
		p.A.Recv(t, rnic.RecvWR{ID: 1})
		p.A.QP.Abort()
		if said := fails(t, func(j *judge) { rnictest.Want(j, p.A.RecvCQ, 1) }); !strings.Contains(said, "flushed") {
			t.Errorf("%q", said)
		}
		if err := p.A.Device.Close(); err != nil {
			t.Error(err)
		}
		if said := fails(t, func(j *judge) { rnictest.Next(j, p.A.SendCQ) }); !strings.Contains(said, "it is closed") {
			t.Errorf("%q", said)
		}
	})
}
