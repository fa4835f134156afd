package report

import (
	"fmt"
	"strings"

	"urnic/conformance/wire"
)

const (
	ladderTime   = 13 // columns for the time
	ladderEvents = 60 // how many events a ladder in text shows
	ladderOctets = 64 // how many bytes of each that tells something
)

// A ladder is an exchange drawn between two columns, the tester's and the
// target's.
type ladder struct {
	strings.Builder

	inner  int  // columns between the two bars
	fields bool // show the headers of every event, not only of those that tell something
}

// drawLadder draws an exchange as wide as there is place.
func drawLadder(events []wire.Event, width int, fields bool) string {
	l := &ladder{inner: width - ladderTime - 2, fields: fields}
	fmt.Fprintf(l, "%*s tester%*s\n", ladderTime-1, "seconds", l.inner+2-len("tester"), "target")
	several, current := connections(events) > 1, 0
	for _, s := range steps(events, ladderEvents) {
		if s.leftOut > 0 {
			l.place(note, wire.Control, "", []string{"... " + count(s.leftOut, "event") + " left out ..."})
			continue
		}
		if c := s.event.Conn; several && c != 0 && c != current {
			l.place(note, wire.Control, "", []string{fmt.Sprintf("= connection %d =", c)})
			current = c
		}
		l.event(s.event, s.tells)
	}
	return l.String()
}

func (l *ladder) event(e wire.Event, tells bool) {
	at := fmt.Sprintf("%.6f", e.At.Seconds())
	k, text := kindOf(e), line(e.What)
	if k == note {
		text = "[" + text + "]"
	}
	wrapped := wrap(text, l.inner-8)
	if k == arrow {
		l.row(at, shaft(e.By, wrapped[0], l.inner))
		at, wrapped = "", wrapped[1:]
	}
	l.place(k, e.By, at, wrapped)
	if e.Wrong != "" {
		l.place(k, e.By, "", wrap("!! "+wrong(e), l.inner-8))
	}
	if tells || l.fields {
		var headers []string
		for _, f := range columned(e.Fields) {
			headers = append(headers, fold(f, l.inner-6)...)
		}
		l.place(k, e.By, "", headers)
	}
	if tells {
		l.place(k, e.By, "", dump(e.Octets, ladderOctets, e.Length))
	}
}

// place puts lines of text near the side whose they are; the control's stand in
// the middle.
func (l *ladder) place(k kind, by wire.Side, at string, text []string) {
	longest := 0
	for _, t := range text {
		longest = max(longest, columns(t))
	}
	indent := 3
	switch {
	case k == note:
		indent = max(0, (l.inner-longest)/2)
	case by == wire.Target:
		indent = max(0, l.inner-longest-3)
	}
	for _, t := range text {
		l.row(at, strings.Repeat(" ", indent)+t)
		at = ""
	}
}

func (l *ladder) row(at, text string) {
	fmt.Fprintf(l, "%*s |%s|\n", ladderTime-1, at, pad(text, l.inner))
}

// shaft draws an arrow from a side, with the text near its origin.
func shaft(from wire.Side, text string, inner int) string {
	text = " " + text + " "
	rest := strings.Repeat("-", max(0, inner-3-columns(text)))
	if from == wire.Target {
		return "<" + rest + text + "--"
	}
	return "--" + text + rest + ">"
}

// connections returns how many connections an exchange has.
func connections(events []wire.Event) int {
	n := 0
	for _, e := range events {
		n = max(n, e.Conn)
	}
	return n
}
