package main

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// patience is how long work may take before its progress is shown.
const patience = 2 * time.Second

// isTerminal reports whether a person sees what is written to w. Tests have
// their own.
var isTerminal = func(w io.Writer) bool {
	f, is := w.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}

// A progress shows in one line of a terminal how far long work has come, and
// leaves nothing behind. A nil one shows nothing.
type progress struct {
	mu    sync.Mutex
	line  *terminalLine
	bar   *progressbar.ProgressBar
	done  int64
	shown bool
	ended bool
	timer *time.Timer // until it is shown
}

// newProgress begins to count towards a total, or without one if it is 0. It
// returns nil if w is no terminal.
func newProgress(w io.Writer, total int64, options ...progressbar.Option) *progress {
	if w = plainWriter(w); !isTerminal(w) {
		return nil
	}
	if total == 0 {
		total = -1
	}
	line := &terminalLine{w: w, dumb: os.Getenv("TERM") == "dumb"}
	p := &progress{line: line, bar: progressbar.NewOptions64(total, append([]progressbar.Option{
		progressbar.OptionSetWriter(line),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionSpinnerType(9), // of ASCII, too
		// They wipe the ^C of an interrupt as well.
		progressbar.OptionUseANSICodes(!line.dumb),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // else a goroutine turns it for ever
	}, options...)...)}
	p.bar.StartWithoutRender()
	p.timer = time.AfterFunc(patience, p.show)
	return p
}

// show is called when the work turns out to be long.
func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.shown = true
	_ = p.bar.Set64(p.done) // what can't be shown is not missed
}

// add reports work that is done.
func (p *progress) add(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.shown && !p.ended {
		_ = p.bar.Set64(p.done) // as above
	}
}

// end wipes the line.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.timer.Stop()
	_ = p.line.wipe() // as above
}

// A terminalLine is the line that a bar is written to. The bar's own Clear leaves
// what was written when it became full.
type terminalLine struct {
	w     io.Writer
	dumb  bool // it knows no ANSI codes
	at    int  // column
	width int  // columns that have been written to
}

// Write writes ASCII, and ANSI codes that count as columns as well.
func (l *terminalLine) Write(b []byte) (int, error) {
	for _, c := range b {
		if l.at++; c == '\r' {
			l.at = 0
		}
		l.width = max(l.width, l.at)
	}
	return l.w.Write(b)
}

// wipe leaves an empty line with the cursor at its beginning, if anything was
// written to it.
func (l *terminalLine) wipe() error {
	if l.width == 0 {
		return nil
	}
	wipe := "\x1b[2K\r"
	if l.dumb {
		wipe = "\r" + strings.Repeat(" ", l.width) + "\r"
	}
	l.at, l.width = 0, 0
	_, err := io.WriteString(l.w, wipe)
	return err
}

// A progressReader tells a progress of what is read.
type progressReader struct {
	io.Reader
	progress *progress
}

func (r progressReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.progress.add(int64(n))
	return n, err
}
