package report

import (
	"fmt"
	"strings"

	"urnic/conformance"
	"urnic/conformance/catalogue"
	"urnic/conformance/wire"
)

// A kind of event is how a ladder draws it.
type kind int

const (
	arrow  kind = iota // on a connection, from one side to the other
	remark             // beside the connections, by one side
	note               // the control's
)

func kindOf(e wire.Event) kind {
	switch {
	case e.By != wire.Tester && e.By != wire.Target:
		return note
	case e.Conn == 0:
		return remark
	}
	return arrow
}

// A step is an event that a ladder draws, or the number of those that it leaves
// out.
type step struct {
	event   wire.Event
	tells   bool // its headers and bytes show the fault, or what came in its place
	leftOut int
}

// steps chooses at most n events: those at the beginning, more of those at the
// end, where the fault most often is, and between them those that are wrong.
func steps(events []wire.Event, n int) []step {
	first, last, wrong := n/4, n/2, n-n/4-n/2
	if len(events) <= n {
		first = n
	}
	tells := telling(events)
	var out []step
	gap := 0
	for i, e := range events {
		show := i < first || i >= len(events)-last
		if !show && e.Wrong != "" && wrong > 0 {
			wrong--
			show = true
		}
		if !show {
			gap++
			continue
		}
		if gap > 0 {
			out = append(out, step{leftOut: gap})
			gap = 0
		}
		out = append(out, step{event: e, tells: e.Wrong != "" || i == tells})
	}
	return out
}

// telling returns the index of the target's last bytes, if none of its bytes are
// said to be wrong: they came where others were expected. Without any it is -1.
func telling(events []wire.Event) int {
	last := -1
	for i, e := range events {
		if e.By == wire.Target && e.Wrong != "" {
			return -1
		}
		if e.By == wire.Target && len(e.Octets) > 0 {
			last = i
		}
	}
	return last
}

// dump shows bytes in hexadecimal, 16 in a line, after their offset. Of more than
// n it shows the first, and says how many follow: length is how many there were on
// the wire.
func dump(octets []byte, n, length int) []string {
	length = max(length, len(octets))
	octets = octets[:min(len(octets), n)]
	var out []string
	for at := 0; at < len(octets); at += 16 {
		var b strings.Builder
		fmt.Fprintf(&b, "%04x ", at)
		for i, c := range octets[at:min(at+16, len(octets))] {
			if i == 8 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, " %02x", c)
		}
		out = append(out, b.String())
	}
	if rest := length - len(octets); rest > 0 && len(octets) > 0 {
		out = append(out, fmt.Sprintf("%04x  and %s more", len(octets), count(rest, "octet")))
	}
	return out
}

// columned aligns the parts of header fields, "DDP  STag  0x00000100": the layer, a
// word; the name; and after two spaces or more the value.
func columned(fields []string) []string {
	rows := make([][]string, len(fields))
	var width []int
	for i, f := range fields {
		layer, rest, _ := strings.Cut(strings.TrimSpace(line(f)), " ")
		name, value, _ := strings.Cut(strings.TrimSpace(rest), "  ")
		for _, part := range []string{layer, name, strings.TrimSpace(value)} {
			if part != "" {
				rows[i] = append(rows[i], part)
			}
		}
		for j, part := range rows[i][:max(0, len(rows[i])-1)] {
			if j == len(width) {
				width = append(width, 0)
			}
			width[j] = max(width[j], columns(part))
		}
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		var b strings.Builder
		for j, part := range row {
			if j < len(row)-1 {
				part = pad(part, width[j]+2)
			}
			b.WriteString(part)
		}
		out[i] = b.String()
	}
	return out
}

// rfcOf returns the RFC whose clause a case is named by, such as "RFC 5041", or ""
// if it is named otherwise.
func rfcOf(r *conformance.Result) string {
	id := r.Case
	if len(r.Clauses) > 0 {
		id = r.Clauses[0]
	}
	if !strings.HasPrefix(id, "rfc") {
		return ""
	}
	return line(catalogue.Clause{ID: id}.RFC())
}

// wrong says what is wrong with an event, in a line, or "".
func wrong(e wire.Event) string {
	if e.Wrong == "" || e.By != wire.Tester {
		return line(e.Wrong)
	}
	return "by intent: " + line(e.Wrong)
}
