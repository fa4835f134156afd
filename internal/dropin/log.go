package dropin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"urnic/internal/host/printable"
)

// Levels of URNIC_LOG, as engine.h numbers them.
const (
	logError uint32 = iota + 1
	logWarning
	logInfo
	logDebug
)

var levels = map[string]uint32{"": logError, "error": logError, "warning": logWarning, "info": logInfo, "debug": logDebug}

// A logger writes human-readable lines to the standard error output.
type logger struct {
	level uint32 // that and what is more important

	mu sync.Mutex
	w  io.Writer

	said sync.Map // kinds of lines that were written and are written once
}

// print writes one line. Peers have written parts of some messages, so what a terminal can't
// show is escaped.
func (l *logger) print(level uint32, message string) {
	if level > l.level {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, "urnic: %s\n", printable.Escape(message))
}

func (l *logger) printf(level uint32, format string, args ...any) {
	if level <= l.level {
		l.print(level, fmt.Sprintf(format, args...))
	}
}

// warnOnce tells once what iWARP hardware would refuse, and the clause.
func (l *logger) warnOnce(message string) {
	if l.level >= logWarning { // else nothing is allocated for it
		l.once(logWarning, message, "warning: "+message)
	}
}

// once writes a line of a kind that is written once.
func (l *logger) once(level uint32, kind, message string) {
	if level > l.level {
		return
	}
	if _, said := l.said.LoadOrStore(kind, true); !said {
		l.print(level, message)
	}
}

// slog returns a logger for package rnic, whose events are information.
func (l *logger) slog() *slog.Logger { return slog.New(&slogHandler{l: l}) }

type slogHandler struct {
	l     *logger
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (h *slogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return ofSlog(level) <= h.l.level
}

// Handle implements slog.Handler.
func (h *slogHandler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	b.WriteString(r.Message)
	show := func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	}
	for _, a := range h.attrs {
		show(a)
	}
	r.Attrs(show)
	h.l.print(ofSlog(r.Level), b.String())
	return nil
}

// WithAttrs implements slog.Handler.
func (h *slogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &slogHandler{l: h.l, attrs: append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup implements slog.Handler. Package rnic has no groups.
func (h *slogHandler) WithGroup(string) slog.Handler { return h }

func ofSlog(level slog.Level) uint32 {
	switch {
	case level >= slog.LevelError:
		return logError
	case level >= slog.LevelWarn:
		return logWarning
	case level >= slog.LevelInfo:
		return logInfo
	}
	return logDebug
}
