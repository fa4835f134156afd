package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/rnic/rnictimeline"
)

// recordings records a Write of each side of a pair into a directory.
func recordings(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "recordings")
	recs := map[string]*rnictimeline.Recorder{}
	p := rnictest.Connect(t, rnictest.Options{Device: func(name string, cfg *rnic.Config) {
		r, err := rnictimeline.Start(dir, cfg)
		if err != nil {
			t.Fatal(err)
		}
		recs[name] = r
	}})
	for _, s := range []*rnictest.Side{p.A, p.B} {
		r := recs[s.Name]
		if err := r.PostSend(s.QP, rnic.SendWR{ID: 1, Op: rnic.OpWrite}); err != nil {
			t.Fatal(err)
		}
		var wcs [1]rnic.WC
		if _, err := r.Wait(t.Context(), s.SendCQ, wcs[:]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(p.A.Device.Close(), p.B.Device.Close(), recs["A"].Close(), recs["B"].Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The commands of the help make a page and a trace.
func TestTimelineOfAProgramInGo(t *testing.T) {
	dir, out := recordings(t), t.TempDir()
	ok(t, "timeline", dir, out+"/page.html")
	ok(t, "timeline", dir, out+"/trace.json")
	page, err := os.ReadFile(out + "/page.html")
	if err != nil || !strings.Contains(string(page), "<strong>2 work requests</strong> none failed") || !strings.Contains(string(page), "<h1>recordings</h1>") {
		t.Errorf("%.2000s, %v", page, err)
	}
	trace, err := os.ReadFile(out + "/trace.json")
	if err != nil || !json.Valid(trace) || strings.Count(string(trace), `"wr_id"`) != 2 || !strings.Contains(string(trace), `"first byte out"`) {
		t.Errorf("%s, %v", trace, err)
	}
}

func TestTimelineSaysWhatIsWrong(t *testing.T) {
	empty := t.TempDir()
	for want, args := range map[string][]string{
		"the directory of the recordings": {empty},
		".html or .json":                  {empty, "page"},
		"holds no recording":              {empty, filepath.Join(empty, "page.html")},
	} {
		args = append([]string{"timeline"}, args...)
		status, _, errOut := urnic(t, nil, args...)
		wantError(t, args, status, errOut, want)
	}
}

// Flags that can't be carried out are refused before anything is run.
func TestRunRefusesTimelinesThatItCanNotWrite(t *testing.T) {
	lib := libraries(t)
	for want, flags := range map[string][]string{
		`--timeline "x.svg"`: {"--timeline", "x.svg", "true"},
		"--print-env and":    {"--timeline", "x.html", "--print-env"},
	} {
		args := append([]string{"run", "--lib", lib}, flags...)
		status, _, errOut := urnic(t, nil, args...)
		wantErrorStatus(t, args, statusOfRun, status, errOut, want)
	}
}

// The program has the status, and a program that used no device leaves no timeline.
func TestRunWithATimelineHasTheStatusOfTheProgram(t *testing.T) {
	lib := libraries(t)
	file := filepath.Join(t.TempDir(), "x.json")
	for script, want := range map[string]struct {
		status int
		says   string
	}{
		"exit 3":      {3, "sh has ended with status 3; there is no timeline: "},
		"kill -9 $$":  {137, "sh was ended by a signal: killed"},
		"echo fine":   {statusOfRun, "no program that was recorded has used a device"},
		"nonexistent": {127, "status 127"},
	} {
		cmd := command(t, "run", "--lib", lib, "--timeline", file, "sh", "-c", script)
		out, _ := cmd.CombinedOutput() // the status says it
		if got := cmd.ProcessState.ExitCode(); got != want.status || !strings.Contains(string(out), want.says) {
			t.Errorf("%s: status %d, %q; want %d, %q", script, got, out, want.status, want.says)
		}
	}
}
