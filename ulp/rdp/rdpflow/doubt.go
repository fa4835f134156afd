package rdpflow

import (
	"container/list"
	"fmt"
	"slices"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
)

// A doubt is a broken rule, unless the capture lacks a packet of the other side, or has it out of
// order.
type doubt struct {
	finding
	still    func() bool // it is not refuted
	proves   func(s *Segment, number uint64) bool
	followed bool // by a segment that proves it, if the capture has that in order
}

// A finding is a rule that a side broke.
type finding struct {
	rule   dissect.Rule
	from   dissect.Side
	at     capture.At
	detail string
}

const (
	// settleAfter is how long a doubt waits for packets that the capture may have out of order.
	settleAfter = 20 * time.Millisecond
	// maxDoubts bounds the doubts of a direction. Of more, the first ones count.
	maxDoubts = 16
)

// A line is what all connections of the analysis have.
type line struct {
	a      *Analyzer
	r      *dissect.Reporter
	sum    *Summary
	place  *list.Element
	blamed []finding // what is reported when the segment that is looked at was shown
	noted  []finding // the same, of notes
	last   capture.At
	number int // how many segments there were
}

// blame reports that a side broke a rule.
func (l *line) blame(rule dissect.Rule, from dissect.Side, at capture.At, format string, args ...any) {
	l.blamed = append(l.blamed, finding{rule: rule, from: from, at: at, detail: fmt.Sprintf(format, args...)})
}

// note tells something that a reader should know.
func (l *line) note(from dissect.Side, at capture.At, format string, args ...any) {
	l.noted = append(l.noted, finding{from: from, at: at, detail: fmt.Sprintf(format, args...)})
}

// flush shows a segment, and then what was found with it.
func (l *line) flush(from dissect.Side, at capture.At, s *Segment) {
	if !l.a.Brief {
		l.r.Emit(from, at, s)
	}
	l.tell()
}

// tell reports what was found.
func (l *line) tell() {
	for _, f := range l.blamed {
		l.r.Violate(f.rule, f.from, f.at, "%s", f.detail)
	}
	for _, f := range l.noted {
		l.r.Note(f.from, f.at, "%s", f.detail)
	}
	l.blamed, l.noted = l.blamed[:0], l.noted[:0]
}

// doubt reports that a side broke a rule if that is so still when a segment of the other side proves
// it. Of the segment, proves is given the number that it carries.
func (c *conn) doubt(f finding, still func() bool, proves func(s *Segment, number uint64) bool) {
	d := &c.dirs[1-f.from]
	switch {
	case !still():
	case c.a.Complete:
		c.blamed = append(c.blamed, f)
	case len(d.doubts) < maxDoubts:
		d.doubts = append(d.doubts, doubt{finding: f, still: still, proves: proves})
	}
}

// settle settles the doubts of a direction with a segment that has come.
func (c *conn) settle(from dissect.Side, at capture.At, s *Segment, number uint64) {
	d := &c.dirs[from]
	d.doubts = slices.DeleteFunc(d.doubts, func(x doubt) bool {
		if !x.still() {
			return true
		}
		if at.Time.Sub(x.at.Time) < settleAfter || !x.proves(s, number) {
			return false
		}
		c.blamed = append(c.blamed, x.finding)
		return true
	})
	for i := range d.doubts {
		if x := &d.doubts[i]; !at.Time.Before(x.at.Time) && x.proves(s, number) {
			x.followed = true
		}
	}
}

// settleAll settles the doubts that are left at the end.
func (c *conn) settleAll() {
	for side := range c.dirs {
		d := &c.dirs[side]
		for _, x := range d.doubts {
			switch {
			case !x.still():
			case x.followed:
				c.blamed = append(c.blamed, x.finding)
			case d.any:
				c.note(x.from, x.at, "perhaps a violation of %s, unless the capture lacks packets: %s", x.rule.Clause, x.detail)
			}
		}
		d.doubts = nil
	}
	c.tell()
}
