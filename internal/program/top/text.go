package top

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"urnic/internal/host/printable"
)

// width is how many columns a terminal has at least.
const width = 80

// WriteText writes a round as text of 80 columns, with at most so many rows of each table, the busiest
// first.
func (r *Round) WriteText(w io.Writer, rows int) error {
	t := &text{rows: rows}
	qps := 0
	for i := range r.Processes {
		qps += int(min(r.Processes[i].Device.Held.QPs, 1<<20))
	}
	t.line("%s   %s, %s", r.Time.Format(time.TimeOnly), plural(len(r.Processes), "process", "processes"), plural(qps, "queue pair", "queue pairs"))
	for i := range r.Processes {
		t.process(&r.Processes[i])
	}
	for i, u := range r.Unanswered {
		if i == rows {
			t.line("and %d more without an answer", len(r.Unanswered)-rows)
			break
		}
		t.line("%s: %s", printable.Escape(lastOf(u.Socket)), printable.Escape(u.Error))
	}
	if r.Skipped > 0 {
		t.line("and %s that were not asked", plural(r.Skipped, "process", "processes"))
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// A text is what is written of a round.
type text struct {
	b    strings.Builder
	rows int
}

// line adds a line, which is cut if it is too long.
func (t *text) line(format string, args ...any) {
	line := []rune(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	if len(line) > width {
		line = append(line[:width-1], '…')
	}
	t.b.WriteString(string(line))
	t.b.WriteByte('\n')
}

// more says how many rows a table has left out.
func (t *text) more(all int) {
	if all > t.rows {
		t.line("%10s %d more", "and", all-t.rows)
	}
}

func (t *text) process(p *Process) {
	d, h := &p.Device, &p.Device.Held
	t.line("")
	t.line("PID %d  %s", p.PID, printable.Escape(p.Command))
	t.line("%s for %s: %s, %s, %s of %s bytes", printable.Escape(d.Name), time.Duration(min(max(p.Seconds, 0), 1e9))*time.Second,
		plural(h.QPs, "QP", "QPs"), plural(h.CQs, "CQ", "CQs"), plural(h.MRs, "MR", "MRs"), number(float64(h.MemoryBytes)))
	t.line("connections: %d connected, %d accepted, %d rejected, %d dropped, %d failed, %d lost", d.Connected, d.Accepted, d.Rejected, d.Dropped, d.Failed, d.Lost)
	t.qps(p)
	t.cqs(p)
	t.mrs(p)
}

// busiest returns the order of n rows, the busiest first, as many as are shown.
func (t *text) busiest(n int, rate func(int) float64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rate(b), rate(a)) })
	return order[:min(n, t.rows)]
}

func (t *text) qps(p *Process) {
	all, rates := p.Device.QPs, p.Rates.QPs
	if len(all) == 0 {
		return
	}
	const row = "%8s %-9s %-21s %8s %7s %9s %8s %3s"
	t.line(row, "QP", "State", "Peer", "Out MB/s", "In MB/s", "Out msg/s", "In msg/s", "SQ")
	order := t.busiest(len(all), func(i int) float64 { return rates[i].Sent.Bytes + rates[i].Received.Bytes })
	for _, i := range order {
		q, r := &all[i], &rates[i]
		outMB, inMB, out, in := megabytes(r.Sent.Bytes), megabytes(r.Received.Bytes), number(r.Sent.Messages), number(r.Received.Messages)
		if q.Sent == nil {
			outMB, inMB, out, in = "-", "-", "-", "-"
		}
		t.line(row, fmt.Sprintf("0x%06x", q.Num), column(q.State, 9), column(cmp.Or(q.Remote, q.Type), 21), outMB, inMB, out, in, few(q.Outstanding))
	}
	t.more(len(all))
	for _, i := range order {
		if q := &all[i]; q.Error != "" {
			t.line("0x%06x: %s", q.Num, printable.Escape(q.Error))
		}
	}
}

func (t *text) cqs(p *Process) {
	all, rates := p.Device.CQs, p.Rates.CQs
	if len(all) == 0 {
		return
	}
	const row = "%8s %9s %5s %10s %9s"
	t.line(row, "CQ", "Entries", "QPs", "Polled/s", "Unpolled")
	for _, i := range t.busiest(len(all), func(i int) float64 { return rates[i].Polled }) {
		c, polled := &all[i], "-"
		if c.Polled != nil {
			polled = number(rates[i].Polled)
		}
		t.line(row, strconv.Itoa(int(c.Num)), strconv.Itoa(c.Entries), strconv.Itoa(c.QPs), polled, optional(c.Unpolled))
	}
	t.more(len(all))
}

func (t *text) mrs(p *Process) {
	all, rates := p.Device.MRs, p.Rates.MRs
	if len(all) == 0 {
		return
	}
	const row = "%10s %14s %8s  %s"
	t.line(row, "MR", "Bytes", "In MB/s", "Rights")
	for _, i := range t.busiest(len(all), func(i int) float64 { return rates[i].BytesIn }) {
		m := &all[i]
		t.line(row, column(m.STag, 10), length(m.Length), megabytes(rates[i].BytesIn), printable.Escape(m.Access))
	}
	t.more(len(all))
}

// column makes a text fit a column.
func column(s string, most int) string {
	r := []rune(printable.Column(s))
	if len(r) > most {
		r = append(r[:most-1], '…')
	}
	return string(r)
}

// optional is a number that some processes do not tell.
func optional(n *int) string {
	if n == nil {
		return "-"
	}
	return number(float64(*n))
}

// length is a number of bytes, as it is if that is no longer than a column.
func length(n uint64) string {
	if n >= 1e14 {
		return number(float64(n))
	}
	return strconv.FormatUint(n, 10)
}

// few is optional in three columns.
func few(n *int) string {
	if n != nil && *n > 999 {
		return strconv.Itoa(min(*n/1000, 99)) + "k"
	}
	return optional(n)
}

// megabytes is a rate in 10^6 bytes.
func megabytes(rate float64) string {
	if rate >= 1e12 {
		return number(rate / 1e6)
	}
	return strconv.FormatFloat(rate/1e6, 'f', 1, 64)
}

// number is a number of seven columns at most, in thousands or millions if it is large.
func number(n float64) string {
	for _, unit := range []string{"", "k", "M", "G", "T", "P", "E"} {
		if n < 1e6 {
			return strconv.FormatFloat(n, 'f', 0, 64) + unit
		}
		n /= 1e3
	}
	return "many"
}

// plural counts things.
func plural[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// lastOf returns the name of a file.
func lastOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
