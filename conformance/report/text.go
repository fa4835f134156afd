package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"urnic/conformance"
)

// Widths of a text report, in columns.
const (
	defaultWidth = 96
	minWidth     = 80
	maxWidth     = 120
)

// TextOptions say how [Text] writes.
type TextOptions struct {
	Verbose bool // tell more of inconclusive cases, and of those that passed or were skipped
	Color   bool // of the verdict on the run, for terminals: green if the target passed, else red
	Width   int  // of the terminal, in columns; what is not from 80 to 120 is taken as the nearest that is, 0 as 96
}

// Text writes a human-readable report: the verdict on the run; each case that failed, with what was
// sent, expected and received and the exchange as a ladder; then those that are inconclusive, with
// the reason; then the RFCs in a table and the totals, which so are the last lines of a log. Its
// error is that of w.
func Text(w io.Writer, r *conformance.Report, o TextOptions) error {
	width := defaultWidth
	if o.Width != 0 {
		width = min(max(o.Width, minWidth), maxWidth)
	}
	var b strings.Builder
	textHeadline(&b, r, width, o.Color)
	textHead(&b, r, width)
	for _, v := range []conformance.Verdict{conformance.Fail, conformance.Inconclusive} {
		if v == conformance.Inconclusive && !o.Verbose {
			textQuiet(&b, r, width, v)
			continue
		}
		for i := range r.Results {
			if r.Results[i].Verdict == v {
				textCase(&b, &r.Results[i], width, o.Verbose)
			}
		}
	}
	if o.Verbose {
		textQuiet(&b, r, width, conformance.Pass)
		textQuiet(&b, r, width, conformance.Skipped)
	} else {
		textSkips(&b, r, width)
	}
	textTable(&b, r)
	b.WriteString("\n" + strings.Join(wrap(exercised(r), width), "\n") + "\n")
	textTotals(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

// textHeadline writes the verdict on the run, and why it is so.
func textHeadline(b *strings.Builder, r *conformance.Report, width int, color bool) {
	outcome := strings.ToUpper(string(r.Outcome()))
	for i, l := range wrap(outcome+": "+line(r.Headline()), width) {
		if rest, found := strings.CutPrefix(l, outcome); i == 0 && found && color {
			l = outcomeColor(r) + outcome + "\x1b[0m" + rest
		}
		b.WriteString(l + "\n")
	}
}

// outcomeColor returns what makes a terminal write bold and green, or bold and red.
func outcomeColor(r *conformance.Report) string {
	if r.Outcome() == conformance.Passed {
		return "\x1b[1;32m"
	}
	return "\x1b[1;31m"
}

func textHead(b *strings.Builder, r *conformance.Report, width int) {
	parts := []string{line(r.Tool) + " conform", "target " + line(r.Target), "profile " + line(r.Profile) + " over " + strings.ToUpper(r.LLP.Name())}
	if r.Strict {
		parts = append(parts, "strict")
	}
	parts = append(parts, r.Began.UTC().Format("2006-01-02 15:04:05 MST"))
	for _, l := range wrap(strings.Join(parts, " · "), width) {
		b.WriteString(l + "\n")
	}
	b.WriteByte('\n')
}

// heading names a case as the reports do: its ID, and the target's role.
func heading(r *conformance.Result) string {
	if r.Role == "" {
		return line(r.Case)
	}
	return line(r.Case) + " (" + line(r.Role) + ")"
}

// textCase tells of a case that failed or is inconclusive, or of any other that
// is looked at closely.
func textCase(b *strings.Builder, r *conformance.Result, width int, fields bool) {
	fmt.Fprintf(b, "%s  %s\n", strings.ToUpper(r.Verdict.String()), heading(r))
	const label = 12
	item := func(name, text string) {
		if text == "" {
			return
		}
		for i, l := range wrap(text, width-label) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(b, "  %s%s\n", pad(name, label-2), l)
		}
	}
	item("case", line(r.Title))
	item("clause", line(r.Cite)+", "+line(r.Level)+": "+line(r.Clause))
	if r.Expected == "" || !strings.Contains(r.Reason, r.Expected) { // else it says the same
		item("reason", lines(r.Reason))
	}
	item("sent", lines(r.Sent))
	item("expected", lines(r.Expected))
	item("got", lines(r.Got))
	item("recording", line(r.Pcap))
	if len(r.Exchange) > 0 {
		b.WriteByte('\n')
		b.WriteString(drawLadder(r.Exchange, width, fields))
	}
	b.WriteByte('\n')
}

// textQuiet lists the cases with a verdict that calls for no details.
func textQuiet(b *strings.Builder, r *conformance.Report, width int, v conformance.Verdict) {
	some := false
	for i := range r.Results {
		c := &r.Results[i]
		if c.Verdict != v {
			continue
		}
		some = true
		fmt.Fprintf(b, "%s  %s  %s\n", pad(v.String(), 12), heading(c), seconds(c.Duration))
		text := line(c.Title)
		if c.Reason != "" {
			text = lines(c.Reason)
		}
		for _, l := range wrap(text, width-14) {
			fmt.Fprintf(b, "%14s%s\n", "", l)
		}
	}
	if some {
		b.WriteByte('\n')
	}
}

// textSkips tells why cases were skipped, the most frequent reason first.
func textSkips(b *strings.Builder, r *conformance.Report, width int) {
	times := map[string]int{}
	var reasons []string
	for i := range r.Results {
		if c := &r.Results[i]; c.Verdict == conformance.Skipped {
			reason := line(c.Reason)
			if times[reason] == 0 {
				reasons = append(reasons, reason)
			}
			times[reason]++
		}
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return times[b] - times[a] })
	for _, reason := range reasons {
		for i, l := range wrap(reason, width-18) {
			if i == 0 {
				fmt.Fprintf(b, "skipped %6d    %s\n", times[reason], l)
			} else {
				fmt.Fprintf(b, "%18s%s\n", "", l)
			}
		}
	}
	if len(reasons) > 0 {
		b.WriteByte('\n')
	}
}

// textTable tells what the run exercised: the RFCs of which it tried something.
func textTable(b *strings.Builder, r *conformance.Report) {
	const head, line1, row = "%-12s%-23s%-24s%s\n", "%-9s%6s%5s%7s%6s%5s%5s%7s%6s%7s%5s%5s%5s\n", "%s%6d%5d%7d%6d%5d%5d%7d%6d%7d%5d%5d%5d\n"
	fmt.Fprintf(b, head, "", "MUST clauses", "SHOULD clauses", "cases")
	fmt.Fprintf(b, line1, "RFC", "run", "kept", "broken", "unkn.", "run", "kept", "broken", "unkn.", "pass", "fail", "inc.", "skip")
	write := func(name string, m, s conformance.Clauses, t conformance.Totals) {
		fmt.Fprintf(b, row, pad(name, 9), m.Run, m.Kept, m.Broken, m.Unknown, s.Run, s.Kept, s.Broken, s.Unknown,
			t.Pass, t.Fail, t.Inconclusive, t.Skipped)
	}
	var all conformance.Coverage
	for _, c := range r.Coverage {
		if c.Binding.Run+c.Advised.Run+c.Totals.All() > 0 {
			write(line(c.RFC), c.Binding, c.Advised, c.Totals)
		}
		all.Binding, all.Advised = all.Binding.Plus(c.Binding), all.Advised.Plus(c.Advised)
	}
	write("all", all.Binding, all.Advised, r.Totals)
	b.WriteString("\nrun: exercised; unkn.: unknown, as a case was inconclusive; inc.: inconclusive\n")
}

// exercised tells in sentences how much of the catalogue a run has exercised, and why
// not the rest.
func exercised(r *conformance.Report) string {
	var n conformance.Clauses
	for _, c := range r.Coverage {
		n = n.Plus(c.Binding).Plus(c.Advised)
	}
	text := fmt.Sprintf("This run exercised %d of %s that cases test.", n.Run, count(n.Tested, "clause"))
	var rest []string
	for _, part := range []struct {
		n    int
		text string
	}{
		{n.OtherProfile, "for other profiles"}, {n.OtherLLP, "for another lower layer"}, {n.NotSelected, "not selected by --only"}, {n.NotTried, "skipped"},
	} {
		if part.n > 0 {
			rest = append(rest, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	if len(rest) > 0 {
		text += " Of the others: " + strings.Join(rest, ", ") + "."
	}
	text += fmt.Sprintf(" No case can test %d from outside", n.Untestable)
	if n.Open > 0 {
		text += fmt.Sprintf(", and %d have no case yet", n.Open)
	}
	return text + "."
}

func textTotals(b *strings.Builder, r *conformance.Report) {
	t := r.Totals
	fmt.Fprintf(b, "\n%s in %s: %d passed, %d failed, %d inconclusive, %d skipped\n",
		count(t.All(), "case"), seconds(r.Duration), t.Pass, t.Fail, t.Inconclusive, t.Skipped)
}

// seconds shows a duration in seconds, to the millisecond.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// Coverage writes, human-readable, how many clauses the cases test, RFC by RFC. Its
// error is that of w.
func Coverage(w io.Writer, coverage []conformance.Coverage) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s  %-21s  %s\n", "", "MUST clauses", "SHOULD clauses")
	fmt.Fprintf(&b, "%-9s%7s%9s%6s %7s%9s%6s\n", "RFC", "tested", "untest.", "open", "tested", "untest.", "open")
	for _, c := range coverage {
		fmt.Fprintf(&b, "%s%7d%9d%6d %7d%9d%6d\n", pad(line(c.RFC), 9), c.Binding.Tested, c.Binding.Untestable, c.Binding.Open,
			c.Advised.Tested, c.Advised.Untestable, c.Advised.Open)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
