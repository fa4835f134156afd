package cases

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"urnic/conformance"
	"urnic/conformance/profile"
	"urnic/internal/program/rping"
	"urnic/internal/test/leakcheck"
	"urnic/rnic"
)

// The cases that need no test service pass on our stack with rping too, and with
// nothing but a port.
func TestOurStackPassesWithRping(t *testing.T) {
	leakcheck.Check(t)
	l := listen(t)
	checkProfile(t, profile.NewRping(startRping(t, l.Addr().String(), rping.DefaultSize, rnic.Config{}), l, patience, 0))
}

func TestOurStackPassesWithAPortOnly(t *testing.T) {
	leakcheck.Check(t)
	l := listen(t)
	checkProfile(t, profile.NewRaw(startRping(t, l.Addr().String(), rping.DefaultSize, rnic.Config{}), l, patience))
}

// Whatever rping's -S is, no case fails that is about its buffer, and all are judged if
// there is room for them.
func TestOurStackPassesWithRpingOfAnySize(t *testing.T) {
	for _, size := range []int{32, 65, 100, 5001, rping.MaxSize} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			leakcheck.Check(t)
			l := listen(t)
			p := profile.NewRping(startRping(t, l.Addr().String(), size, rnic.Config{}), l, patience, 0)
			if size >= rping.DefaultSize {
				checkCases(t, p, onItsBuffer())
				return
			}
			report := runOn(t, p, onItsBuffer())
			if report.Totals.Fail > 0 || report.Totals.Inconclusive == 0 || report.Totals.Pass == 0 {
				t.Errorf("%+v", report.Totals)
			}
		})
	}
}

// The rping of rdma-core does not say how large its buffer is. It has 64 bytes if it does
// not read 65; else nobody knows where it ends, but who started it.
func TestProfileFindsOutWhatRdmaCoresRpingTakes(t *testing.T) {
	for _, test := range []struct {
		name        string
		size, named int
		judged      bool // all cases are
	}{
		{"default size", 64, 0, true},
		{"larger size", 100, 0, false},
		{"larger size that is named", 100, 100, true},
		{"smaller size", 32, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			leakcheck.Check(t)
			p := profile.NewRping(startSilentRping(t, test.size), nil, patience, test.named)
			if test.judged {
				checkCases(t, p, onItsBuffer())
				return
			}
			report := runOn(t, p, onItsBuffer())
			if report.Totals.Fail > 0 || report.Totals.Inconclusive == 0 || report.Totals.Pass == 0 {
				t.Errorf("%+v", report.Totals)
			}
			for _, res := range report.Results {
				if res.Verdict == conformance.Inconclusive && !strings.Contains(res.Reason, "start it with -S 64") {
					t.Errorf("%s: %s", res.Case, res.Reason)
				}
			}
		})
	}
}

// onItsBuffer is the cases about the bounds of a buffer, and one that needs none.
func onItsBuffer() []conformance.Group {
	var cases []conformance.Case
	for _, g := range All() {
		for _, c := range g.Cases {
			bounds := slices.ContainsFunc([]string{"rfc5041-7.1-8", "rfc5041-7.1-9", "rfc5041-7.1-15", "rfc5040-7.2-11", "rfc5040-7.2-12", "rfc5042-6.2.1-1"},
				func(clause string) bool { return c.Clause == clause })
			if bounds && c.Needs == conformance.NeedBuffer || c.ID() == "rfc5041-7.1-6/stag-nobody-gave" {
				cases = append(cases, c)
			}
		}
	}
	return []conformance.Group{{Name: "on rping's buffer", Cases: cases}}
}

func checkProfile(t *testing.T, p conformance.Profile) {
	t.Helper()
	checkCases(t, p, All())
}

// runOn runs the groups.
func runOn(t *testing.T, p conformance.Profile, groups []conformance.Group) *conformance.Report {
	t.Helper()
	r := conformance.Runner{
		Groups: groups, Profile: p,
		Options: conformance.Options{Strict: true, Timeout: patience, Quiet: quiet},
	}
	report, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func checkCases(t *testing.T, p conformance.Profile, groups []conformance.Group) {
	t.Helper()
	report := runOn(t, p, groups)
	for _, res := range report.Results {
		if res.Verdict == conformance.Fail || res.Verdict == conformance.Inconclusive {
			t.Errorf("%s as %s: %s: %s", res.Case, res.Role, res.Verdict, res.Reason)
			for _, e := range res.Exchange {
				t.Logf("%v %s %d: %s; %s", e.At, e.By, e.Conn, e.What, e.Wrong)
			}
		}
	}
	t.Logf("%d results in %v: %+v", len(report.Results), report.Duration, report.Totals)
	if report.Totals.Pass == 0 {
		t.Error("nothing was tried")
	}
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// startRping runs what a person would run on the target: rping -s -P, whose address
// it returns, and rping -c again and again to the tester, with -S size.
func startRping(t *testing.T, tester string, size int, cfg rnic.Config) string {
	t.Helper()
	dev, err := rnic.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	pd, err := dev.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	l, err := dev.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		dev.Close()
		wg.Wait()
	})
	depths := rnic.ConnParam{IRD: 1, ORD: 1}
	wg.Go(func() {
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			wg.Go(func() {
				e, err := rping.NewEnd(pd, rping.Options{Size: size})
				if err != nil {
					req.Close()
					return
				}
				defer e.Close()
				if req.Accept(ctx, e.QP, depths) == nil {
					_ = e.Server(ctx) // how it fares, the tester tells
				}
			})
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			e, err := rping.NewEnd(pd, rping.Options{Size: size, Count: 1})
			if err != nil {
				return
			}
			if e.QP.Connect(ctx, tester, depths) == nil {
				_ = e.Client(ctx)
			}
			e.Close()
		}
	})
	return l.Addr().String()
}
