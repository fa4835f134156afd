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
	f.compare(t)
}

// runAll runs them side by side, each with a guest of its own, and those with rping in
// two halves: most of the time is spent waiting for what does not come.
func (f *findings) runAll(t *testing.T) {
	for i, half := range halves(cases.All()) {
		f.runRping(t, i+1, half)
	}
	t.Run("raw", func(t *testing.T) {
		t.Parallel()
		g := bootFor(t, "conform-raw")
		startRping(t, g)
		f.run(t, cases.All(), profile.NewRaw(g.address(portRping), nil, patienceWithSIW), true, nil)
	})
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

func (f *findings) runRping(t *testing.T, half int, groups []conformance.Group) {
	t.Run(fmt.Sprintf("rping responder %d", half), func(t *testing.T) {
		t.Parallel()
		g := bootFor(t, fmt.Sprintf("conform-responder%d", half))
		startRping(t, g)
		f.run(t, groups, profile.NewRping(g.address(portRping), nil, patienceWithSIW), false, func(context.Context) error {
			if err := errors.Join(g.down(), g.up()); err != nil {
				return err
			}
			startRping(t, g)
			return nil
		})
	})
	t.Run(fmt.Sprintf("rping initiator %d", half), func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		g := bootFor(t, fmt.Sprintf("conform-initiator%d", half))
		loop := fmt.Sprintf("while :; do rping -c -a %s -p %d -C 1; sleep 0.05; done", hostOfGuest, l.Addr().(*net.TCPAddr).Port)
		g.start(t, loop)
		f.run(t, groups, profile.NewRping("", l.(*net.TCPListener), patienceWithSIW), true, func(context.Context) error {
			if err := errors.Join(g.down(), g.up()); err != nil {
				return err
			}
			g.start(t, loop)
			return nil
		})
	})
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
		if ok, err := path.Match(pattern, id); err != nil {
			t.Fatalf("%q: %v", pattern, err)
		} else if ok {
			known, f.page[pattern] = true, true
		}
	}
	return known
}

// run runs the suite. A failure that the page does not explain has to come again
// twice: siw does some things now and then.
func (f *findings) run(t *testing.T, groups []conformance.Group, p conformance.Profile, spare bool, revive func(context.Context) error) {
	t.Helper()
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	r := conformance.Runner{
		Groups: groups, Profile: p,
		Options: conformance.Options{
			Timeout: patienceWithSIW, Quiet: quietWithSIW, Settle: settleOfSIW, Jobs: 1,
			Revive: revive, Spare: spare, PcapDir: filepath.Join(artifacts, name),
		},
	}
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
	for range 2 {
		if len(doubtful) == 0 {
			return
		}
		r.Options.Only, r.Options.PcapDir = slices.Sorted(maps.Keys(doubtful)), ""
		if rep, err = r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		doubtful = f.sort(t, rep, doubtful)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, res := range doubtful {
		f.failed[id+" as "+res.Role] = res
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
