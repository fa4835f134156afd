//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"urnic/conformance"
	"urnic/conformance/cases"
	"urnic/conformance/profile"
	"urnic/conformance/report"
)

// Answers of siw may take long in a guest without KVM, and it waits 5 s for the rest
// of a Request; and it may overlook an FPDU that comes right after its Reply.
const (
	patienceWithSIW = 7 * time.Second
	quietWithSIW    = 500 * time.Millisecond
	settleOfSIW     = 50 * time.Millisecond
)

// pageOfSIW explains what the suite finds.
const pageOfSIW = project + "/docs/conformance-siw.md"

// TestConformanceOfSIW runs the suite against siw: with rping in both roles, and
// with nothing but a port. Of the cases that may crash it, it runs those in which it is
// the responder, and boots the guest anew after each that did. Each failure is one that docs/conformance-siw.md explains,
// and each that it explains is seen.
func TestConformanceOfSIW(t *testing.T) {
	f := &findings{file: pageOfSIW, target: "Linux siw", page: readPage(t, pageOfSIW), failed: map[string]conformance.Result{}}
	t.Run("with", func(t *testing.T) { f.runAll(t) })
	for _, w := range waysToSIW {
		f.tryUnseen(t, w)
	}
	f.compare(t)
}

// A way is how the suite meets siw.
type way struct {
	name  string
	halve bool // two guests share the cases
	spare bool // without the cases that may crash it
	boots bool // anew where a case was inconclusive, as it may have crashed it
	// start starts siw's side in a guest, and returns the profile, and what starts it again.
	start func(t *testing.T, g *guest) (conformance.Profile, func())
}

var waysToSIW = []way{
	{name: "rping responder", halve: true, boots: true, start: func(t *testing.T, g *guest) (conformance.Profile, func()) {
		startRping(t, g)
		return profile.NewRping(g.address(portRping), nil, patienceWithSIW, 0), func() { startRping(t, g) }
	}},
	{name: "rping initiator", halve: true, spare: true, boots: true, start: func(t *testing.T, g *guest) (conformance.Profile, func()) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		again := func() {
			g.start(t, fmt.Sprintf("while :; do rping -c -a %s -p %d -C 1; sleep 0.05; done", hostOfGuest, l.Addr().(*net.TCPAddr).Port))
		}
		again()
		return profile.NewRping("", l.(*net.TCPListener), patienceWithSIW, 0), again
	}},
	{name: "raw", spare: true, start: func(t *testing.T, g *guest) (conformance.Profile, func()) {
		startRping(t, g)
		return profile.NewRaw(g.address(portRping), nil, patienceWithSIW), func() { startRping(t, g) }
	}},
}

// begin boots a guest, and starts siw's side in it.
func (w way) begin(t *testing.T, name string) (conformance.Profile, func(context.Context) error) {
	t.Helper()
	g := bootFor(t, name)
	p, again := w.start(t, g)
	if !w.boots {
		return p, nil
	}
	return p, func(context.Context) error {
		if err := errors.Join(g.down(), g.up()); err != nil {
			return err
		}
		again()
		return nil
	}
}

// runAll runs them side by side, each with a guest of its own, and those with rping in
// two halves: most of the time is spent waiting for what does not come.
func (f *findings) runAll(t *testing.T) {
	for _, w := range waysToSIW {
		parts := [][]conformance.Group{cases.All()}
		if w.halve {
			h := halves(cases.All())
			parts = h[:]
		}
		for i, groups := range parts {
			t.Run(fmt.Sprintf("%s %d", w.name, i+1), func(t *testing.T) {
				t.Parallel()
				p, revive := w.begin(t, fmt.Sprintf("conform-%s%d", strings.ReplaceAll(w.name, " ", "-"), i+1))
				rep := f.run(t, groups, p, w.spare, revive)
				f.notePassed(w.name, rep)
			})
		}
	}
}

// halves deals the cases out in turn.
func halves(groups []conformance.Group) (h [2][]conformance.Group) {
	n := 0
	for _, g := range groups {
		var parts [2][]conformance.Case
		for _, c := range g.Cases {
			parts[n%2] = append(parts[n%2], c)
			n++
		}
		for i, part := range parts {
			h[i] = append(h[i], conformance.Group{Name: g.Name, Cases: part})
		}
	}
	return h
}

// notePassed notes what has passed one way.
func (f *findings) notePassed(way string, rep *conformance.Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passed == nil {
		f.passed = map[string][]string{}
	}
	for _, res := range rep.Results {
		if res.Verdict == conformance.Pass {
			f.passed[way] = append(f.passed[way], res.Case)
		}
	}
}

// tryUnseen runs the cases again that the page names, and that have passed: siw does not
// fail each time in all of them.
func (f *findings) tryUnseen(t *testing.T, w way) {
	only := f.unseen(t, w)
	if len(only) == 0 {
		return
	}
	t.Run(w.name+" again", func(t *testing.T) {
		p, revive := w.begin(t, "conform-again")
		r := runnerForSIW(cases.All(), p, w.spare, revive)
		for range caseTriesByChance {
			if only = f.unseen(t, w); len(only) == 0 {
				return
			}
			t.Logf("not seen so far: %s", strings.Join(only, ", "))
			r.Options.Only = only
			rep, err := r.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, res := range rep.Results {
				if res.Verdict == conformance.Fail {
					f.explains(t, res.Case)
				}
			}
		}
	})
}

// unseen returns the cases that have passed one way, and that are what the page means by
// something that was not seen.
func (f *findings) unseen(t *testing.T, w way) []string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := map[string]bool{}
	for pattern, seen := range f.page {
		for _, id := range f.passed[w.name] {
			if !seen && matches(t, pattern, id) {
				ids[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// bootFor boots a guest for the test, with arguments of up: some leave siw's connection manager
// dead, some kill it.
func bootFor(t *testing.T, name string, args ...string) *guest {
	t.Helper()
	g, err := boot(name, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.down(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// startRping starts rping's server, again if it ends, and waits until it listens.
func startRping(t *testing.T, g *guest) {
	t.Helper()
	g.start(t, fmt.Sprintf("while :; do rping -s -P -a 0.0.0.0 -p %d; sleep 0.1; done", portRping))
	g.listens(t, portRping)
}

// findings are what the runs have found, by case and role, and what the page
// explains: cases, perhaps with an asterisk for a part, and whether they have failed,
// or need not.
type findings struct {
	file   string // the page
	target string
	mu     sync.Mutex
	failed map[string]conformance.Result
	passed map[string][]string // by way
	page   map[string]bool
}

// explained is how the page names cases.
var explained = regexp.MustCompile("`(rfc[0-9]+-[0-9A-Z.]+-[0-9]+/[^`]+)`")

func readPage(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	always, sometimes, ok := strings.Cut(string(text), "\n## Now and then\n")
	if !ok {
		t.Fatalf("%s does not say what happens now and then", file)
	}
	page := map[string]bool{}
	for _, m := range explained.FindAllStringSubmatch(sometimes, -1) {
		page[m[1]] = true
	}
	for _, m := range explained.FindAllStringSubmatch(always, -1) {
		page[m[1]] = false
	}
	return page
}

// explains reports whether the page explains a failure of the case.
func (f *findings) explains(t *testing.T, id string) bool {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	known := false
	for pattern := range f.page {
		if matches(t, pattern, id) {
			known, f.page[pattern] = true, true
		}
	}
	return known
}

func matches(t *testing.T, pattern, id string) bool {
	t.Helper()
	ok, err := path.Match(pattern, id)
	if err != nil {
		t.Fatalf("%q: %v", pattern, err)
	}
	return ok
}

func runnerForSIW(groups []conformance.Group, p conformance.Profile, spare bool, revive func(context.Context) error) conformance.Runner {
	return conformance.Runner{
		Groups: groups, Profile: p,
		Options: conformance.Options{
			Timeout: patienceWithSIW, Quiet: quietWithSIW, Settle: settleOfSIW, Jobs: 1,
			Revive: revive, Spare: spare,
		},
	}
}

// run runs the suite, and returns the first report.
func (f *findings) run(t *testing.T, groups []conformance.Group, p conformance.Profile, spare bool, revive func(context.Context) error) *conformance.Report {
	t.Helper()
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	r := runnerForSIW(groups, p, spare, revive)
	r.Options.PcapDir = filepath.Join(artifacts, name)
	rep, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rep.Tool, rep.Target = "urnic", f.target
	write(t, filepath.Join(artifacts, name+".json"), rep, report.JSON)
	write(t, filepath.Join(artifacts, name+".html"), rep, report.HTML)
	t.Logf("%+v in %v", rep.Totals, rep.Duration.Round(time.Second))
	if rep.Totals.Pass == 0 {
		t.Error("no case has passed")
	}
	doubtful := f.sort(t, rep, nil)
	for n := 1; len(doubtful) > 0; n++ {
		r.Options.Only, r.Options.PcapDir = slices.Sorted(maps.Keys(doubtful)), ""
		again, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		doubtful = f.sort(t, again, doubtful)
		f.count(t, doubtful, n)
	}
	return rep
}

// count takes what has failed in each of n more tries out of what is in doubt, if that is
// often enough for a verdict (see caseTries).
func (f *findings) count(t *testing.T, doubtful map[string]conformance.Result, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, res := range doubtful {
		fault, ok := recogniseCase(res.Reason)
		if ok {
			t.Logf("%s: %v", id, fault)
		}
		if n >= caseTries(ok) {
			f.failed[id+" as "+res.Role] = res
			delete(doubtful, id)
		}
	}
}

// sort keeps the failures that the page explains, and returns the others, as far as
// they were among the former ones, if there are any.
func (f *findings) sort(t *testing.T, rep *conformance.Report, former map[string]conformance.Result) map[string]conformance.Result {
	t.Helper()
	doubtful := map[string]conformance.Result{}
	for _, res := range rep.Results {
		switch _, again := former[res.Case]; {
		case res.Verdict == conformance.Inconclusive && former == nil:
			f.explains(t, res.Case) // an inconclusive case does not gainsay the page
			t.Logf("inconclusive: %s: %s", res.Case, res.Reason)
		case res.Verdict != conformance.Fail:
		case former == nil && f.explains(t, res.Case):
		case former == nil || again:
			t.Logf("not explained: %s: %s", res.Case, res.Reason)
			doubtful[res.Case] = res
		}
	}
	return doubtful
}

// compare compares the findings with the page.
func (f *findings) compare(t *testing.T) {
	t.Helper()
	for key, res := range f.failed {
		t.Errorf("%s does not explain %s: sent %s; %s", filepath.Base(f.file), key, res.Sent, res.Reason)
	}
	for pattern, failed := range f.page {
		if !failed {
			t.Errorf("%s names %s, which has not failed", filepath.Base(f.file), pattern)
		}
	}
}

func write(t *testing.T, name string, rep *conformance.Report, form func(io.Writer, *conformance.Report) error) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := form(f, rep); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
