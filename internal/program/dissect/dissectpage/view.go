package dissectpage

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"

	"urnic/internal/host/plural"
	"urnic/internal/host/printable"
	"urnic/internal/program/dissect"
	"urnic/rdmap"
)

// A view is what the template shows.
type view struct {
	File, Outcome, Headline string
	Good                    bool
	Packets, Rows, LeftOut  int
	Remarks                 []string
	Connections             []connection
	MoreConnections         int
	Violations, Terminates  []finding
	MoreFound               int
	Charted                 []int
}

type connection struct {
	Number                  int
	Client, Server, Carries string
	Messages                int
	Payload, Undecoded      uint64
	Violations              int
	Rejected                bool
	IRD, ORD                uint16
	Summary                 string // of the layers above and below, as a table of text
}

func (p *Page) view(file string, r *dissect.Result) *view {
	v := &view{
		File: printable.Escape(file), Packets: r.Stats.Packets, Rows: p.all, LeftOut: p.leftOut,
		Violations: p.violations, Terminates: p.terminates, MoreFound: p.moreFound,
		MoreConnections: r.Total.Connections - len(p.connections),
	}
	for _, m := range r.Remarks() {
		v.Remarks = append(v.Remarks, printable.Escape(m.Text))
	}
	switch r.Verdict() {
	case dissect.VerdictOK:
		v.Good, v.Outcome, v.Headline = true, "OK", fmt.Sprintf("no rule was broken in %s", plural.Count(r.Total.Connections, "connection"))
	case dissect.VerdictViolations:
		v.Outcome, v.Headline = "VIOLATIONS", plural.Count(p.broken, "violation")+" in "+plural.Count(r.Total.Connections, "connection")
	case dissect.VerdictNoIWARP:
		v.Outcome, v.Headline = "NOTHING FOUND", "there is no connection of iWARP, RDS, Rx or RDP in the capture"
	default:
		v.Outcome, v.Headline = "INCOMPLETE", "no broken rule was found, but not all could be checked"
	}
	for _, c := range p.connections {
		v.Connections = append(v.Connections, connectionOf(c))
	}
	for n := range p.charts {
		v.Charted = append(v.Charted, n)
	}
	slices.Sort(v.Charted)
	return v
}

func connectionOf(c *dissect.Connection) connection {
	sum := c.Carried()
	out := connection{
		Number: c.Number, Client: c.Addr[dissect.Client], Server: c.Addr[dissect.Server], Carries: c.Transport.String(),
		Messages: sum.Messages, Payload: sum.Bytes, Undecoded: c.Undecoded, Violations: len(c.Violations) + c.MoreViolations,
		Rejected: c.MPA.Rejected, IRD: c.MPA.IRD, ORD: c.MPA.ORD,
	}
	var b bytes.Buffer
	for _, s := range []dissect.UpperSummary{c.LLP, c.Upper} {
		if s != nil {
			out.Carries += ", " + s.Name()
			_ = s.WriteTable(&b) // a Buffer takes everything
		}
	}
	for l := range bytes.Lines(b.Bytes()) {
		out.Summary += printable.Escape(string(bytes.TrimSuffix(l, []byte("\n")))) + "\n"
	}
	return out
}

// explain says in a sentence or two what a Terminate means.
func explain(from dissect.Side, t *rdmap.Terminate) string {
	s := fmt.Sprintf("The %v ended the stream because of %v.", from, t.Code)
	if t.D() && len(t.DDPHeader) > 0 {
		s += " It blames the segment with the DDP header " + hex.EncodeToString(t.DDPHeader)
		if t.M() {
			s += fmt.Sprintf(", of %s", plural.Count(t.SegmentLen, "byte"))
		}
		s += "."
	}
	if r, err := rdmap.ParseReadRequest(t.RDMAHeader); t.R() && err == nil {
		s += fmt.Sprintf(" That was an RDMA Read of %s from STag %v, offset 0x%x.", plural.Count(r.Size, "byte"), r.SrcSTag, r.SrcTO)
	}
	return s
}
