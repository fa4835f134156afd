package conformance

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urnic/conformance/wire"
)

// A frail target answers start-up after a time, and nothing else, until it dies or hangs.
// Nothing of it is on a network: its time is that of a synctest bubble.
type frail struct {
	deaf
	takes      time.Duration
	dead, hung atomic.Bool
}

func (f *frail) Begin(context.Context, *wire.Tape) (Session, error) {
	return &frailSession{deafSession{&f.deaf}, f}, nil
}

type frailSession struct {
	deafSession
	f *frail
}

func (s *frailSession) Dial(context.Context, Setup) (net.Conn, error) {
	if s.f.dead.Load() {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		b := make([]byte, wire.FrameLen+wire.EnhancedLen)
		if _, err := io.ReadFull(theirs, b); err != nil {
			return
		}
		time.Sleep(s.f.takes)
		if !s.f.hung.Load() {
			reply := wire.Frame{Key: wire.ReplyKey, Flags: wire.FlagC | wire.FlagS, Rev: 2, Private: wire.Enhanced{IRD: 1, ORD: 1}.Octets()}
			_, _ = theirs.Write(reply.Octets())
		}
		_, _ = io.Copy(io.Discard, theirs)
	}()
	return ours, nil
}

func newFrail(takes time.Duration) *frail { return &frail{deaf: deaf{roles: Responder}, takes: takes} }

// aCase returns a case of a Responder.
func aCase(name string, run func(*T)) Case {
	return Case{Clause: must, Name: name, Roles: Responder, Run: run}
}

// awaits fails if the target, which answers start-up only, sends nothing.
func awaits(t *T) { t.Open(Setup{}).Await(wire.ReadResponse) }

func TestATargetThatDiesEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFrail(time.Millisecond)
		cases := []Case{
			aCase("fine", func(t *T) { t.Open(Setup{}) }),
			aCase("quiet", func(t *T) {
				s := t.Open(Setup{})
				f.dead.Store(true)
				s.AwaitQuiet("the target has died")
			}),
		}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			cases = append(cases, aCase(name, awaits))
		}
		report := runCases(t, f, Options{Jobs: 1}, cases...)
		if got := report.Outcome(); got != TargetLost {
			t.Errorf("the outcome is %s", got)
		}
		if want := (Totals{Pass: 1, Inconclusive: 4, Skipped: 2}); report.Totals != want {
			t.Errorf("%+v", report.Totals)
		}
		for _, text := range []string{"the target may have crashed", "/a (responder), ", "/c (responder)", "last heard in " + must + "/quiet"} {
			if !strings.Contains(report.Headline(), text) {
				t.Errorf("no %q in %q", text, report.Headline())
			}
		}
	})
}

// A target that does not survive the last case has not passed.
func TestATargetThatDiesOfTheLastCaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFrail(0)
		report := runCases(t, f, Options{}, aCase("last", func(t *T) {
			t.Open(Setup{})
			f.dead.Store(true)
		}))
		if report.Outcome() != TargetLost || report.Totals.Pass != 1 {
			t.Errorf("%s, %+v", report.Outcome(), report.Totals)
		}
	})
}

// A target that hangs fails nothing, and is given up after a few cases.
func TestATargetThatHangsFailsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFrail(time.Millisecond)
		cases := []Case{aCase("hangs", func(t *T) {
			s := t.Open(Setup{})
			f.hung.Store(true)
			s.Await(wire.ReadResponse)
		})}
		for range 100 {
			cases = append(cases, aCase("next", awaits))
		}
		began := time.Now()
		report := runCases(t, f, Options{Jobs: 1, Timeout: 5 * time.Second}, cases...)
		if report.Outcome() != TargetLost || report.Totals.Fail != 0 {
			t.Errorf("%s, %+v", report.Outcome(), report.Totals)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// A target that is stopped for a while, and continues, fails nothing for that.
func TestATargetThatStopsForAWhileFailsNothing(t *testing.T) {
	for _, stop := range []time.Duration{6 * time.Second, 12 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFrail(0)
			first := true
			report := runCases(t, f, Options{Jobs: 1, Timeout: 5 * time.Second}, aCase("stopped", func(t *T) {
				s := t.Open(Setup{})
				if first {
					first = false
					f.hung.Store(true)
					time.AfterFunc(stop, func() { f.hung.Store(false) })
					s.Await(wire.ReadResponse)
				}
			}), aCase("later", func(t *T) { t.Open(Setup{}) }), aCase("at last", func(t *T) { t.Open(Setup{}) }))
			if report.Totals.Fail != 0 || report.Results[2].Verdict != Pass || report.Outcome() != Passed {
				t.Errorf("stopped for %v: %s, %+v", stop, report.Outcome(), report.Totals)
			}
		})
	}
}

// Silence fails a case of a target that answers otherwise, if it comes again.
func TestSilenceOfALiveTargetFailsIfItComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		report := runCases(t, newFrail(0), Options{Jobs: 1}, aCase("silent", awaits), aCase("once", func(t *T) {
			if runs++; runs == 1 {
				awaits(t)
			}
		}), aCase("shown", func(t *T) {
			runs++
			t.Open(Setup{})
			t.Fail("a", "b")
		}))
		var got []string
		for _, r := range report.Results {
			got = append(got, r.Verdict.String())
		}
		if s := strings.Join(got, " "); s != "fail inconclusive fail" || runs != 3 {
			t.Errorf("%s, in %d runs", s, runs)
		}
		runs = 0
		once := Case{Clause: should, Name: "once", Roles: Responder, Run: func(t *T) {
			if runs++; runs == 1 {
				awaits(t)
			}
		}}
		advised := runCases(t, newFrail(0), Options{Jobs: 1}, once).Results[0]
		if advised.Verdict != Inconclusive || !strings.Contains(advised.Reason, "did not fail when it was run again") {
			t.Errorf("a SHOULD: %s: %s", advised.Verdict, advised.Reason)
		}
		if reason := report.Results[1].Reason; !strings.Contains(reason, "did not fail when it was run again") {
			t.Errorf("the reason is %q", reason)
		}
	})
}

// How long nothing must come follows from what the target's answers take.
func TestSilenceIsAwaitedByTheRoundTripTime(t *testing.T) {
	for takes, want := range map[time.Duration]struct{ least, most time.Duration }{
		time.Millisecond:       {100 * time.Millisecond, 100 * time.Millisecond}, // the floor
		100 * time.Millisecond: {400 * time.Millisecond, 1500 * time.Millisecond},
		4 * time.Second:        {5 * time.Second, 5 * time.Second}, // the timeout
	} {
		synctest.Test(t, func(t *testing.T) {
			var waited time.Duration
			runCases(t, newFrail(takes), Options{Jobs: 1, Timeout: 5 * time.Second}, aCase("quiet", func(t *T) {
				s := t.Open(Setup{})
				began := time.Now()
				s.AwaitQuiet("there is nothing to say")
				waited = time.Since(began)
			}))
			if waited < want.least || waited > want.most {
				t.Errorf("answers take %v: it waits for %v", takes, waited)
			}
		})
	}
}

func TestRTTFollowsTheTarget(t *testing.T) {
	var r rtt
	if d := r.quiet(5 * time.Second); d != 250*time.Millisecond {
		t.Errorf("%v without a measurement", d)
	}
	for range 100 {
		r.add(200 * time.Millisecond)
	}
	if d := r.quiet(5 * time.Second); d < 790*time.Millisecond || d > 810*time.Millisecond {
		t.Errorf("%v after answers that all took 200 ms", d)
	}
}
