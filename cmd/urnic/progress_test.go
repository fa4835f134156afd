package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/schollz/progressbar/v3"
)

// onTerminal makes one writer a terminal for the time of a test.
func onTerminal(t *testing.T, terminal io.Writer) {
	t.Helper()
	before := isTerminal
	isTerminal = func(w io.Writer) bool { return w == terminal }
	t.Cleanup(func() { isTerminal = before })
}

// screen returns what is left on one line of a terminal.
func screen(written string) string {
	var line []rune
	at := 0
	const wipe, wipeRest = "\x1b[2K", "\x1b[0K"
	for _, c := range strings.NewReplacer(wipe, "\v", wipeRest, "\f").Replace(written) {
		switch c {
		case '\r':
			at = 0
			continue
		case '\v':
			line = []rune(strings.Repeat(" ", len(line)))
			continue
		case '\f':
			line = line[:at]
			continue
		}
		if at == len(line) {
			line = append(line, ' ')
		}
		line[at] = c
		at++
	}
	return strings.TrimSpace(string(line))
}

func TestProgressOfLongWorkIsShownAndWiped(t *testing.T) {
	for _, terminal := range []string{"xterm", "dumb"} {
		t.Run(terminal, func(t *testing.T) {
			t.Setenv("TERM", terminal)
			testLongWork(t)
		})
	}
}

func testLongWork(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out output
		onTerminal(t, &out)
		p := newProgress(&out, 400, progressbar.OptionSetDescription("rping"), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rounds"))
		for range 19 {
			time.Sleep(100 * time.Millisecond)
			p.add(10)
		}
		if out.String() != "" {
			t.Errorf("after 1.9 s: %q", out.String())
		}
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		if got := screen(out.String()); !strings.HasPrefix(got, "rping  47% [=") || !strings.Contains(got, "(190/400, 9") || !strings.Contains(got, "rounds/s)") {
			t.Errorf("after 2.05 s: %q", got)
		}
		time.Sleep(time.Second)
		p.add(210)
		if got := screen(out.String()); !strings.Contains(got, "(400/400") {
			t.Errorf("when all is done: %q", got)
		}
		p.end()
		if got := screen(out.String()); got != "" {
			t.Errorf("what is left: %q", got)
		}
		length := len(out.String())
		p.add(1)
		time.Sleep(time.Minute)
		if len(out.String()) != length {
			t.Errorf("after the end: %q", out.String()[length:])
		}
	})
}

// Work that is done when the bar is first shown leaves nothing behind either, nor
// does a bar that is longer when it is full than it ever was before.
func TestFullBarIsWiped(t *testing.T) {
	for _, terminal := range []string{"xterm", "dumb"} {
		for _, before := range []int64{0, 1, 999} {
			t.Run(fmt.Sprintf("%s after %d", terminal, before), func(t *testing.T) {
				t.Setenv("TERM", terminal)
				synctest.Test(t, func(t *testing.T) {
					const total = 1000
					var out output
					onTerminal(t, &out)
					p := newProgress(&out, total)
					if before > 0 {
						p.add(before)
						time.Sleep(patience + time.Millisecond)
						synctest.Wait()
					}
					p.add(total - before)
					time.Sleep(patience + time.Millisecond)
					synctest.Wait()
					if got := screen(out.String()); !strings.Contains(got, "(1000/1000") {
						t.Errorf("when all is done: %q", got)
					}
					p.end()
					if got := screen(out.String()); got != "" {
						t.Errorf("what is left: %q", got)
					}
				})
			})
		}
	}
}

// Where nothing moves, that is shown; where the total is not known, a count.
func TestProgressWithoutATotalCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		onTerminal(t, &out)
		p := newProgress(&out, 0, progressbar.OptionSetDescription("rping"))
		time.Sleep(patience + time.Millisecond)
		synctest.Wait()
		if got := screen(out.String()); !strings.Contains(got, "rping (0/-) [2s]") {
			t.Errorf("before anything is done: %q", got)
		}
		time.Sleep(time.Second)
		p.add(12345)
		if got := screen(out.String()); !strings.Contains(got, "rping (12345/-) [3s]") {
			t.Errorf("later: %q", got)
		}
		p.end()
		if got := screen(out.String()); got != "" {
			t.Errorf("what is left: %q", got)
		}
	})
}

func TestProgressOfShortWorkIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		onTerminal(t, &out)
		p := newProgress(&out, 10)
		time.Sleep(patience - time.Millisecond)
		p.add(10)
		p.end()
		time.Sleep(time.Minute)
		if out.String() != "" {
			t.Errorf("%q", out.String())
		}
	})
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 10)
	if p != nil {
		t.Error("a buffer is no terminal")
	}
	p.add(1) // which must not fail
	p.end()
}

func TestDissectShowsTheOctetsItHasRead(t *testing.T) {
	file := golden + "rping-basic.pcap.gz"
	var stdout, stderr bytes.Buffer
	onTerminal(t, &stderr)
	o := dissectOptions{}
	for name, p := range map[string]*progress{
		"standard input":           o.progress([]string{"-"}, &stdout, &stderr),
		"a file and then stdin":    o.progress([]string{file, "-"}, &stdout, &stderr),
		"a directory":              o.progress([]string{t.TempDir()}, &stdout, &stderr),
		"stderr is no terminal":    o.progress([]string{file}, &stdout, &stdout),
		"the output is in the way": o.progress([]string{file}, &stderr, &stderr),
	} {
		if p != nil {
			p.end()
			t.Errorf("%s: progress is shown", name)
		}
	}
	o.summary = true // whose output comes at the end
	p := o.progress([]string{file, file}, &stderr, &stderr)
	if p == nil {
		t.Fatal("no progress is shown of a summary")
	}
	defer p.end()
	if _, err := dissectFile(t.Context(), o, file, nil, bufio.NewWriter(&stdout), p); err != nil {
		t.Fatal(err)
	}
	if size := p.bar.GetMax64() / 2; p.done != size || size == 0 {
		t.Errorf("%d bytes are told of; the file has %d", p.done, size)
	}
}

func TestRpingShowsItsRoundsWhereNothingElseIsPrinted(t *testing.T) {
	var stderr bytes.Buffer
	onTerminal(t, &stderr)
	for _, tc := range []struct {
		o    rpingOptions
		want bool
	}{
		{rpingOptions{count: 5}, true},
		{rpingOptions{}, true},
		{rpingOptions{verbose: true}, false},
		{rpingOptions{json: true}, false},
		{rpingOptions{deviceFlags: deviceFlags{trace: true}}, false},
	} {
		r := &rpingRun{rpingOptions: tc.o, stderr: &stderr}
		p := r.progress()
		if (p != nil) != tc.want {
			t.Errorf("%+v: shown: %v", tc.o, p != nil)
		}
		var report rpingReport
		report.begin(p)
		report.round(0, 64)
		report.end()
		if p != nil && (p.done != 1 || !p.ended) {
			t.Errorf("%+v: %d rounds are told of; it has ended: %v", tc.o, p.done, p.ended)
		}
	}
}
