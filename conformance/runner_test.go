package conformance

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"urnic/conformance/service"
	"urnic/conformance/wire"
	"urnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// deaf is a profile for cases that need no target: Dial reaches a listener that answers
// start-up, and says nothing else.
type deaf struct {
	needs  Needs
	roles  Roles
	llp    LLP // "" is TCP
	listen net.Listener
	begun  int
	closed int
	mu     sync.Mutex
}

func (*deaf) Name() string             { return "deaf" }
func (d *deaf) Offers() (Needs, Roles) { return d.needs, d.roles }
func (*deaf) Serial() bool             { return false }
func (d *deaf) LLP() LLP               { return cmp.Or(d.llp, TCP) }
func (d *deaf) Begin(context.Context, *wire.Tape) (Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun++
	return &deafSession{d: d}, nil
}

type deafSession struct{ d *deaf }

func (s *deafSession) Dial(ctx context.Context, _ Setup) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", s.d.listen.Addr().String())
}

func (s *deafSession) DialAddr(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

func (s *deafSession) Accept(context.Context, Setup) (net.Conn, error) {
	return nil, errors.New("the target does not connect")
}

func (s *deafSession) Again(context.Context) (net.Conn, error) { return nil, errors.New("nor again") }
func (s *deafSession) Attach(context.Context, *Stream) error   { return nil }
func (s *deafSession) Buffer(context.Context, *Stream, BufferSpec) (*Buffer, error) {
	return nil, errors.New("no buffer")
}
func (s *deafSession) Contents(context.Context, *Buffer) ([]byte, error) { return nil, ErrNoSight }
func (s *deafSession) Endpoint() (listener, qp int)                      { return 0, 0 }
func (s *deafSession) Service() *service.Client                          { return nil }
func (s *deafSession) Close() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.closed++
	return nil
}

func newDeaf(t *testing.T) *deaf {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				c := wire.NewConn(nc, wire.NewTape(), nil)
				if request, err := c.ReadFrame(time.Minute); err == nil {
					_ = c.SendFrame(ReplyFor(Setup{}, request), "")
				}
				_, _ = io.Copy(io.Discard, nc)
			})
		}
	})
	return &deaf{roles: BothRoles, listen: l}
}

// The clauses of these cases: a MUST and a SHOULD.
const (
	must   = "rfc5041-7.1-9"
	should = "rfc5041-7.1-15"
)

func runCases(t *testing.T, p Profile, o Options, cases ...Case) *Report {
	t.Helper()
	r := Runner{Groups: []Group{{Name: "some", Cases: cases}}, Profile: p, Options: o}
	report, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		clause string
		run    func(*T)
		strict bool
		want   Verdict
		reason string
	}{
		{"nothing wrong", must, func(*T) {}, false, Pass, ""},
		{"a failure", must, func(t *T) { t.Fail("a", "b %d", 1) }, false, Fail, "expected a; got b 1"},
		{"a SHOULD", should, func(t *T) { t.Fail("a", "b") }, false, Inconclusive, "the RFC says SHOULD"},
		{"a SHOULD, strictly", should, func(t *T) { t.Fail("a", "b") }, true, Fail, "expected a; got b"},
		{"no verdict", must, func(t *T) { t.Inconclusive("it %s", "rains") }, true, Inconclusive, "it rains"},
		{"not tried", must, func(t *T) { t.Skip("no %s", "atomics") }, true, Skipped, "no atomics"},
		{"a panic", must, func(*T) { panic("oh") }, true, Inconclusive, "the tester itself has failed: oh"},
		{"no service", must, func(t *T) { t.Service() }, true, Skipped, "no test service"},
		{"no connection", must, func(t *T) { t.Accept(Setup{}) }, true, Inconclusive, "the target does not connect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeaf(t)
			report := runCases(t, d, Options{Strict: c.strict}, Case{Clause: c.clause, Name: "x", Title: "x", Roles: Responder, Run: c.run})
			if len(report.Results) != 1 {
				t.Fatalf("%d results", len(report.Results))
			}
			res := report.Results[0]
			if res.Verdict != c.want || !strings.Contains(res.Reason, c.reason) {
				t.Errorf("%s: %s", res.Verdict, res.Reason)
			}
			if d.closed != d.begun {
				t.Errorf("of %d sessions, %d are closed", d.begun, d.closed)
			}
		})
	}
}

func TestCasesAreRunOncePerRole(t *testing.T) {
	nothing := func(*T) {}
	both := Case{Clause: must, Name: "both", Run: nothing}
	passive := Case{Clause: must, Name: "passive", Roles: Responder, Run: nothing}
	active := Case{Clause: must, Name: "active", Roles: Initiator, Run: nothing}
	greedy := Case{Clause: must, Name: "greedy", Roles: Responder, Needs: NeedBuffer, Run: nothing}
	d := newDeaf(t)
	if n := len(runCases(t, d, Options{}, both, passive, active).Results); n != 4 {
		t.Errorf("%d results", n)
	}
	d.roles = Responder
	report := runCases(t, d, Options{}, both, passive, active, greedy)
	var got []string
	for _, r := range report.Results {
		got = append(got, r.Case+" "+r.Role+" "+r.Verdict.String())
	}
	want := []string{must + "/both responder pass", must + "/passive responder pass", must + "/active initiator skipped", must + "/greedy responder skipped"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if want := (Totals{Pass: 2, Skipped: 2}); report.Totals != want {
		t.Errorf("%+v", report.Totals)
	}
}

func TestHarmfulCasesComeLast(t *testing.T) {
	var mu sync.Mutex
	var order []string
	mark := func(name string) func(*T) {
		return func(*T) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
		}
	}
	runCases(t, newDeaf(t), Options{},
		Case{Clause: must, Name: "h", Harm: "it crashes", Roles: Responder, Run: mark("harmful")},
		Case{Clause: must, Name: "a", Roles: Responder, Run: mark("a")}, Case{Clause: must, Name: "b", Roles: Responder, Run: mark("b")})
	if len(order) != 3 || order[2] != "harmful" {
		t.Errorf("%v", order)
	}
}

func TestHarmfulCasesCanBeSpared(t *testing.T) {
	report := runCases(t, newDeaf(t), Options{Spare: true},
		Case{Clause: must, Name: "h", Harm: "it crashes", Roles: Responder, Run: func(t *T) { t.Fail("a", "b") }})
	if res := report.Results[0]; res.Verdict != Skipped || !strings.Contains(res.Reason, "it crashes") {
		t.Errorf("%s: %s", res.Verdict, res.Reason)
	}
}

func TestHarmIsThatOfARole(t *testing.T) {
	report := runCases(t, newDeaf(t), Options{Spare: true},
		Case{Clause: must, Name: "h", Harm: "it crashes", HarmAs: Initiator, Run: func(*T) {}})
	if report.Results[0].Verdict != Pass || report.Results[1].Verdict != Skipped {
		t.Errorf("%s as %s, %s as %s", report.Results[0].Verdict, report.Results[0].Role, report.Results[1].Verdict, report.Results[1].Role)
	}
}

// A target that does not accept connections any more is brought back before each
// harmful case; if that fails, the case is skipped.
func TestATargetIsRevivedForHarmfulCases(t *testing.T) {
	harmful := func(name string) Case {
		return Case{Clause: must, Name: name, Harm: "it crashes", Roles: Responder, Run: func(*T) {}}
	}
	revived := 0
	report := runCases(t, newDeaf(t), Options{Timeout: 1, Revive: func(context.Context) error {
		if revived++; revived > 1 {
			return errors.New("it is broken")
		}
		return nil
	}}, harmful("a"), harmful("b"), Case{Clause: must, Name: "c", Roles: Responder, Run: func(*T) {}})
	if revived != 2 || report.Totals != (Totals{Pass: 2, Skipped: 1}) {
		t.Errorf("revived %d times; %+v", revived, report.Totals)
	}
	if reason := report.Results[1].Reason; !strings.Contains(reason, "it is broken") {
		t.Errorf("the reason is %q", reason)
	}
}

func TestOnlySelects(t *testing.T) {
	c := Case{Clause: must, Name: "end-of-it", Also: []string{"rfc5042-6-1"}}
	for pattern, want := range map[string]bool{
		"rfc5041": true, "rfc5041-7": true, "rfc5041-7.1": true, must: true, must + "/end-of-it": true, must + "/end": false, "some": true, "rfc5042-6": true,
		"rfc504": false, "rfc5041-7.1-": false, must + "/en": false, "rfc5041-7.10": false, "end": false, "": false,
	} {
		if got := Matches(pattern, "some", c); got != want {
			t.Errorf("%q selects it: %t", pattern, got)
		}
	}
	r := Runner{Groups: []Group{{Name: "some", Cases: []Case{c}}}, Profile: newDeaf(t), Options: Options{Only: []string{"rfc9999"}}}
	if _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "rfc9999") {
		t.Errorf("a pattern that selects nothing: %v", err)
	}
}

func TestARunThatIsGivenUpSkipsTheRest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cases := []Case{{Clause: must, Name: "first", Roles: Responder, Run: func(*T) { cancel() }}}
	for _, name := range []string{"a", "b", "c"} {
		cases = append(cases, Case{Clause: must, Name: name, Roles: Responder, Run: func(*T) {}})
	}
	r := Runner{Groups: []Group{{Cases: cases}}, Profile: newDeaf(t), Options: Options{Jobs: 1}}
	report, err := r.Run(ctx)
	if want := (Totals{Pass: 1, Skipped: 3}); err != nil || report.Totals != want {
		t.Errorf("%+v, %v", report.Totals, err)
	}
}

func TestAFailureTellsWhatWasSent(t *testing.T) {
	d := newDeaf(t)
	report := runCases(t, d, Options{PcapDir: t.TempDir()}, Case{Clause: must, Name: "x", Roles: Responder, Run: func(t *T) {
		c := t.Dial(Setup{})
		t.Try(c.SendRaw([]byte("abc"), "three octets", "too few"), "sending")
		t.Fail("an answer", "none")
	}})
	res := report.Results[0]
	if res.Sent != "three octets (too few)" || res.Expected != "an answer" || res.Got != "none" {
		t.Errorf("%q, %q, %q", res.Sent, res.Expected, res.Got)
	}
	if len(res.Exchange) != 1 || string(res.Exchange[0].Octets) != "abc" {
		t.Errorf("%+v", res.Exchange)
	}
	info, err := os.Stat(res.Pcap)
	if err != nil || info.Size() == 0 || filepath.Ext(res.Pcap) != ".pcapng" {
		t.Fatalf("the recording %s: %v", res.Pcap, err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the recording has the mode %v", info.Mode())
	}
}
