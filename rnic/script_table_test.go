package rnic_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/rnic"
)

// tableFile is a table of what can happen in which state, with the scripts that show it.
const tableFile = "TABLE.txt"

// A standing is a state, as far as it matters what happens in it.
type standing int

const (
	inIdle standing = iota
	inStartup
	inSilence
	inRTS
	inDraining
	inClosing
	inTerminate
	inError
	numStandings
)

var standings = [numStandings]string{
	inIdle:      "Idle",
	inStartup:   "Idle, start-up under way",
	inSilence:   "RTS, Responder before the first FPDU",
	inRTS:       "RTS",
	inDraining:  "RTS, Disconnect waits for work",
	inClosing:   "Closing",
	inTerminate: "Terminate",
	inError:     "Error",
}

// happenings are the rows of the table.
var happenings = []string{
	"connect", "accept", "start-up ends",
	"post a request", "post a receive", "stop", "resume",
	"LLP takes octets", "request fails",
	"segment arrives", "message delivered", "Read Request arrives", "Response arrives", "bad segment arrives", "Terminate arrives",
	"FIN, with no work outstanding", "FIN, with work outstanding", "RST",
	"disconnect", "terminate", "abort", "close", "reset",
	"CQ overflow", "CloseTimeout passes",
}

// sightings are what the scripts have shown: by happening and standing, where.
type sightings map[string]*[numStandings][]string

// stands returns how the queue pair stands.
func (l *life) stands() *standing {
	s := inRTS
	if l.s == nil {
		return nil
	}
	switch l.s.QP.State() {
	case rnic.Idle:
		s = inIdle
		if l.starting {
			s = inStartup
		}
	case rnic.Closing:
		s = inClosing
	case rnic.Terminating:
		s = inTerminate
	case rnic.Error:
		s = inError
	default:
		switch {
		case l.draining:
			s = inDraining
		case l.scriptPeer != nil && !l.heard:
			s = inSilence
		}
	}
	return &s
}

// see notes that something has happened in the state in which the command began.
func (l *life) see(what string) {
	if l.began == nil {
		return
	}
	row, ok := l.seen[what]
	if !ok {
		row = new([numStandings][]string)
		l.seen[what] = row
	}
	if cell := &row[*l.began]; !slices.Contains(*cell, l.file) {
		*cell = append(*cell, l.file)
	}
}

func (l *life) seeEvent(e rnic.EventType) {
	switch e {
	case rnic.EventCQOverflow:
		l.see("CQ overflow")
	case rnic.EventCatastrophic:
		if !errors.Is(l.s.QP.Err(), rnic.ErrOverflow) {
			l.see("request fails")
		}
	}
}

// never says what can't happen, and why.
var never = map[string]map[standing]string{
	"start-up ends":                 but("none is under way", inIdle, inSilence, inRTS, inDraining, inClosing, inTerminate, inError),
	"LLP takes octets":              unconnected(inClosing, "all are out when this side's half ends"),
	"request fails":                 unconnected(inClosing, "none is left", inTerminate, "none is begun any more"),
	"segment arrives":               unconnected(),
	"message delivered":             unconnected(),
	"Read Request arrives":          unconnected(),
	"Response arrives":              unconnected(inSilence, "no Read Request has left", inClosing, "no Read is outstanding"),
	"bad segment arrives":           unconnected(),
	"Terminate arrives":             unconnected(),
	"FIN, with no work outstanding": but("there is no connection", inIdle, inError),
	"FIN, with work outstanding":    {inIdle: "there is no connection", inError: "there is no connection", inClosing: "no work is left"},
	"RST":                           but("there is no connection", inIdle, inError),
}

// but says that something can't happen in some states.
func but(why string, in ...standing) map[standing]string {
	m := map[standing]string{}
	for _, s := range in {
		m[s] = why
	}
	return m
}

// unconnected says that something can't happen without a connection, nor in further states.
func unconnected(more ...any) map[standing]string {
	m := but("there is no connection", inIdle, inStartup, inError)
	for i := 0; i < len(more); i += 2 {
		m[more[i].(standing)] = more[i+1].(string)
	}
	return m
}

// checkTable compares the table with the scripts: what can happen must be in one of them.
func checkTable(t *testing.T, seen sightings) {
	var b strings.Builder
	b.WriteString("# What can happen in which state, and the scripts in which it does.\n")
	for _, what := range happenings {
		fmt.Fprintf(&b, "\n%s\n", what)
		for s := range numStandings {
			var where []string
			if row := seen[what]; row != nil {
				where = row[s]
			}
			why, can := never[what][s], false
			if why == "" {
				can = true
			}
			switch {
			case can && len(where) == 0:
				t.Errorf("no script shows this: %s, in state %s", what, standings[s])
			case !can && len(where) > 0:
				t.Errorf("this can't happen, but does in %v: %s, in state %s", where, what, standings[s])
			}
			slices.Sort(where)
			text := "never: " + why
			if can {
				text = strings.Join(where, ", ")
			}
			fmt.Fprintf(&b, "    %-38s %s\n", standings[s], text)
		}
	}
	for what := range seen {
		if !slices.Contains(happenings, what) {
			t.Errorf("the table has no row for %q", what)
		}
	}
	file := filepath.Join(scriptDir, tableFile)
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(file)
	if err != nil || string(was) != b.String() {
		t.Errorf("%s is not what the scripts show now: look at the difference after -rewrite; %v", file, err)
	}
}
