package machine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rx/wire"
)

var update = flag.Bool("update", false, "write the plots of congestion windows in docs")

// A rulebook is the draft's rules of §5.4 and §5.5, written down once more.
type rulebook struct {
	cwind, ssthresh int
	recovering      bool
	nacks           int
}

// ack takes an acknowledgement: how many packets it acknowledges that were not, how many of
// those behind a hole, and whether it is negative, which is a negative acknowledgement
// followed by a positive one.
func (b *rulebook) ack(newly, behind int, negative bool, window int) {
	switch {
	case negative && b.recovering:
		b.cwind++ // every additional negative ack
	case negative:
		// Three in a row; packets that one acknowledgement is of count each.
		if b.nacks += max(1, behind); b.nacks >= 3 {
			b.ssthresh = max(2, min(b.cwind, window)/2)
			b.cwind = b.ssthresh + 3 // that have left the network
			b.recovering, b.nacks = true, 0
		}
	case b.recovering:
		b.cwind, b.recovering, b.nacks = b.ssthresh, false, 0
	default:
		b.nacks = 0
		for range newly {
			if b.cwind < b.ssthresh {
				b.cwind++ // for each packet
				continue
			}
			break
		}
	}
}

// avoid is what follows for a window that had reached the threshold.
func (b *rulebook) avoid(newly int, negative, recovering bool, before int) {
	if newly > 0 && !negative && !recovering && before >= b.ssthresh {
		b.cwind++ // for each acknowledgement
	}
}

func (b *rulebook) timeout(window int) {
	b.ssthresh = max(2, min(b.cwind, window)/2)
	b.cwind, b.recovering, b.nacks = 1, false, 0
}

// A trace is a call that sends to the test, which acknowledges each packet that it does not
// lose, and follows the congestion window.
type trace struct {
	*raw
	k      *Call
	book   rulebook
	got    map[uint32]bool
	first  uint32
	points []point
	marks  []string
}

type point struct{ cwnd, ssthresh int }

func newTrace(t *testing.T) *trace {
	t.Helper()
	r, k := newClient(t, Config{}, DialConfig{DeadTime: time.Hour})
	tr := &trace{raw: r, k: k, got: map[uint32]bool{}, first: 1, book: rulebook{cwind: 1, ssthresh: 255}}
	k.out.peerWindow = 200
	tr.note("")
	return tr
}

// note compares the machine with the rules, and draws.
func (tr *trace) note(mark string) {
	tr.t.Helper()
	if o := &tr.k.out; o.cwnd != tr.book.cwind || o.ssthresh != tr.book.ssthresh || o.recovering != tr.book.recovering {
		tr.t.Fatalf("step %d: cwnd %d, ssthresh %d, recovering %v; the rules say %+v", len(tr.points), o.cwnd, o.ssthresh, o.recovering, tr.book)
	}
	tr.points = append(tr.points, point{tr.k.out.cwnd, tr.k.out.ssthresh})
	tr.marks = append(tr.marks, mark)
}

// fill writes until no more is taken, so that windows alone bound what is sent.
func (tr *trace) fill() []packet {
	tr.t.Helper()
	for {
		n, err := tr.k.Write(tr.at, pattern(1412))
		if err != nil {
			tr.t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	var data []packet
	for _, p := range tr.take() {
		if p.Type == wire.TypeData {
			data = append(data, p)
		}
	}
	return data
}

// round has what was sent arrive, but for packets that are lost, and acknowledges each that
// does. It returns what is sent for that.
func (tr *trace) round(sent []packet, lost ...uint32) []packet {
	tr.t.Helper()
	var next []packet
	tr.at += 20 * time.Millisecond
	for _, p := range sent {
		gone := false
		for _, seq := range lost {
			gone = gone || p.Seq == seq
		}
		if gone {
			continue
		}
		before, behind := tr.first, 0
		fresh := !tr.got[p.Seq]
		tr.got[p.Seq] = true
		for tr.got[tr.first] {
			tr.first++
		}
		list := ""
		top := tr.first
		for seq := range tr.got {
			top = max(top, seq)
		}
		for seq := tr.first; seq <= top; seq++ {
			if tr.got[seq] {
				list += "+"
			} else {
				list += "-"
			}
		}
		list = strings.TrimRight(list, "-")
		negative := list != ""
		newly := 0
		if fresh {
			newly = 1
			if before == tr.first {
				behind = 1
			}
		}
		had, recovering := tr.book.cwind, tr.book.recovering
		tr.book.ack(newly, behind, negative, 200)
		tr.book.avoid(newly, negative, recovering, had)
		a := wire.Ack{Reason: wire.ReasonRequested, First: tr.first, Serial: p.Serial, Trailer: trailer}
		a.Trailer.Window, a.Trailer.MaxPackets = 200, 1
		tr.acksWith(a, list, 0)
		mark := ""
		if tr.book.recovering && !recovering {
			mark = "loss noticed"
		} else if recovering && !tr.book.recovering {
			mark = "recovered"
		}
		tr.note(mark)
		next = append(next, tr.fill()...)
	}
	return next
}

// silence lets a timeout pass.
func (tr *trace) silence() []packet {
	tr.t.Helper()
	tr.book.timeout(200)
	at := tr.k.out.timeoutAt
	tr.at = at
	tr.Advance(tr.at)
	tr.note("timeout")
	return tr.fill()
}

// The congestion window does, step by step, what the draft's rules say, and the plots in docs
// show it.
func TestCongestionWindows(t *testing.T) {
	for _, c := range []struct {
		file, title string
		play        func(tr *trace)
	}{
		{"slow-start", "Slow start: one more packet for each that is acknowledged", func(tr *trace) {
			sent := tr.fill()
			for range 6 {
				sent = tr.round(sent)
			}
			if tr.k.out.cwnd != 64 {
				tr.t.Errorf("six round trips give %d", tr.k.out.cwnd)
			}
		}},
		{"congestion-avoidance", "Congestion avoidance: from the threshold on, one more for each acknowledgement", func(tr *trace) {
			sent := tr.fill()
			for range 4 {
				sent = tr.round(sent)
			}
			sent = tr.silence()
			for range 6 {
				sent = tr.round(sent)
			}
		}},
		{"loss-by-nacks", "Loss that three negative acknowledgements tell of: fast recovery", func(tr *trace) {
			sent := tr.fill()
			for range 4 {
				sent = tr.round(sent)
			}
			lost := sent[2].Seq
			sent = tr.round(sent, lost)
			again := 0
			for _, p := range sent {
				if p.Seq == lost {
					again++
				}
			}
			if again != 1 || tr.stats.Recoveries != 1 || tr.stats.Timeouts != 0 {
				tr.t.Errorf("the packet is sent again %d times, in %d recoveries", again, tr.stats.Recoveries)
			}
			for range 2 {
				sent = tr.round(sent)
			}
		}},
		{"loss-by-timeout", "Loss that a timeout tells of: one packet, and slow start", func(tr *trace) {
			sent := tr.fill()
			for range 4 {
				sent = tr.round(sent)
			}
			sent = tr.silence()
			if len(sent) != 1 {
				tr.t.Errorf("%d packets are sent after a timeout", len(sent))
			}
			tr.silence()
			sent = tr.silence()
			for range 5 {
				sent = tr.round(sent)
			}
		}},
	} {
		t.Run(c.file, func(t *testing.T) {
			tr := newTrace(t)
			c.play(tr)
			got := tr.svg(c.title)
			file := filepath.Join("..", "..", "..", "docs", "rx-"+c.file+".svg")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // it is for everybody
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%s is not what happens (%v): go test -run CongestionWindows ./ulp/rx/machine -update", file, err)
			}
		})
	}
}

// svg draws the windows, acknowledgement by acknowledgement.
func (tr *trace) svg(title string) string {
	const width, height, left, top, right, bottom = 760, 360, 56, 56, 740, 312
	most := 8
	for _, p := range tr.points {
		most = max(most, p.cwnd)
	}
	most = (most + 7) / 8 * 8
	x := func(i int) float64 { return left + float64(right-left)*float64(i)/float64(max(1, len(tr.points)-1)) }
	y := func(v int) float64 { return bottom - float64(bottom-top)*float64(min(v, most))/float64(most) }
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#333">
<title>%s</title>
<rect width="%d" height="%d" fill="#fff"/>
<text x="%d" y="28" font-size="15" font-weight="bold">%s</text>
`, width, height, width, height, title, width, height, left, title)
	for v := 0; v <= most; v += most / 4 {
		fmt.Fprintf(&s, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e3e3e3"/><text x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n", left, y(v), right, y(v), left-8, y(v)+4, v)
	}
	line := func(of func(point) int, style string) {
		fmt.Fprintf(&s, `<polyline fill="none" %s points="`, style)
		for i, p := range tr.points {
			if i > 0 {
				fmt.Fprintf(&s, "%.1f,%.1f ", x(i), y(of(tr.points[i-1])))
			}
			fmt.Fprintf(&s, "%.1f,%.1f ", x(i), y(of(p)))
		}
		s.WriteString(`"/>` + "\n")
	}
	line(func(p point) int { return p.ssthresh }, `stroke="#c60" stroke-dasharray="5 4"`)
	line(func(p point) int { return p.cwnd }, `stroke="#06c" stroke-width="1.8"`)
	for i, m := range tr.marks {
		if m != "" {
			fmt.Fprintf(&s, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#999" stroke-dasharray="2 3"/><text x="%.1f" y="%d" fill="#666">%s</text>`+"\n", x(i), top, x(i), bottom, x(i)+4, top-4+14*(i%2), m)
		}
	}
	fmt.Fprintf(&s, `<text x="%d" y="%d">acknowledgements and timeouts, in their order</text>
<text x="%d" y="%d" text-anchor="end"><tspan fill="#06c">congestion window</tspan>, <tspan fill="#c60">threshold</tspan> (packets)</text>
</svg>
`, left, height-20, right, height-20)
	return s.String()
}
