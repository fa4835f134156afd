package dissect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"urnic/rdmap"
)

// MarshalJSON writes the counts as an object with the name of each opcode, in
// their order.
func (c Counts) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for op, n := range c {
		if op > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%d", rdmap.Opcode(op).Name(), n)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// The summary's JSON. Programs rely on it: keys are added, never changed, all
// are always there, and no array is null.
type (
	jsonSummary struct {
		Connections []jsonConnection `json:"connections"`
		Unlisted    int              `json:"unlisted_connections"`
		Files       []jsonFile       `json:"files"`
	}
	jsonConnection struct {
		File           string          `json:"file"`
		Client         string          `json:"client"`
		Server         string          `json:"server"`
		MPA            jsonMPA         `json:"mpa"`
		Segments       Counts          `json:"segments"`
		Messages       Counts          `json:"messages"`
		OtherSegments  int             `json:"other_segments"`
		PayloadBytes   uint64          `json:"payload_bytes"`
		CRCBad         int             `json:"crc_bad"`
		UndecodedBytes uint64          `json:"undecoded_bytes"`
		Violations     []jsonViolation `json:"violations"`
		Unlisted       int             `json:"unlisted_violations"`
		Notes          []string        `json:"notes"`
		Dropped        jsonDropped     `json:"ignored_segments"`
		Differing      uint64          `json:"differing_bytes"`
		LLP            string          `json:"llp"`
		LLPSummary     any             `json:"llp_summary"`
		Transport      string          `json:"transport"`
		ULP            string          `json:"ulp"`
		ULPSummary     any             `json:"ulp_summary"`
	}
	jsonMPA struct {
		Revision          uint8  `json:"revision"`
		CRC               bool   `json:"crc"`
		MarkersClient     bool   `json:"markers_client"`
		MarkersServer     bool   `json:"markers_server"`
		Enhanced          bool   `json:"enhanced"`
		IRD               uint16 `json:"ird"`
		ORD               uint16 `json:"ord"`
		P2P               bool   `json:"p2p"`
		Rejected          bool   `json:"rejected"`
		PrivateDataClient int    `json:"private_data_client"`
		PrivateDataServer int    `json:"private_data_server"`
	}
	jsonViolation struct {
		Rule   string `json:"rule"`
		Clause string `json:"clause"`
		From   string `json:"from"`
		Packet int    `json:"packet"`
		Time   string `json:"time"`
		Detail string `json:"detail"`
	}
)

// A Summary collects the results of several captures.
type Summary struct {
	files []string
	all   []*Result
}

// Add adds the result of a capture.
func (s *Summary) Add(file string, r *Result) {
	s.files = append(s.files, file)
	s.all = append(s.all, r)
}

// WriteJSON writes one JSON object with all connections.
func (s *Summary) WriteJSON(w io.Writer) error {
	out := jsonSummary{Files: []jsonFile{}, Connections: []jsonConnection{}}
	for i, r := range s.all {
		out.Files = append(out.Files, r.json(s.files[i]))
		out.Unlisted += r.Unlisted
		for _, c := range r.Connections {
			out.Connections = append(out.Connections, c.json(s.files[i]))
		}
	}
	return json.NewEncoder(w).Encode(out)
}

func (c *Connection) json(file string) jsonConnection {
	m := &c.MPA
	j := jsonConnection{
		File: file, Client: c.Addr[Client], Server: c.Addr[Server], Transport: c.Transport.String(),
		MPA: jsonMPA{
			Revision: m.Revision, CRC: m.CRC,
			MarkersClient: m.Markers[Client], MarkersServer: m.Markers[Server],
			Enhanced: m.Enhanced, IRD: m.IRD, ORD: m.ORD, P2P: m.P2P, Rejected: m.Rejected,
			PrivateDataClient: m.Private[Client], PrivateDataServer: m.Private[Server],
		},
		Segments: c.Segments, Messages: c.Messages, OtherSegments: c.Other,
		PayloadBytes: c.Payload, CRCBad: c.BadCRC, UndecodedBytes: c.Undecoded,
		Violations: []jsonViolation{}, Unlisted: c.MoreViolations, Notes: []string{},
		Dropped: jsonDropped(c.Dropped), Differing: c.Differing, ULPSummary: struct{}{},
		LLPSummary: struct{}{},
	}
	if c.Transport == IWARP {
		j.LLP = "MPA"
	}
	if c.LLP != nil {
		j.LLP, j.LLPSummary = c.LLP.Name(), c.LLP
	}
	if c.Upper != nil {
		j.ULP, j.ULPSummary = c.Upper.Name(), c.Upper
	}
	for i := range c.Violations {
		j.Violations = append(j.Violations, c.Violations[i].json())
	}
	j.Notes = append(j.Notes, c.Notes...)
	return j
}

func (v *Violation) json() jsonViolation {
	return jsonViolation{
		Rule: v.ID, Clause: v.Clause, From: v.From.String(),
		Packet: v.At.Packet, Time: timestamp(v.At.Time), Detail: v.Detail,
	}
}

// timestamp formats a time for JSON; a capture without times has none.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// WriteTable writes the summary as human-readable text: a row for each connection, a row
// for each kind of message, and then violations and notes.
func (s *Summary) WriteTable(w io.Writer) error {
	if err := WriteCells(w, s.rows()); err != nil {
		return err
	}
	for i, r := range s.all {
		for _, c := range r.Connections {
			for _, u := range []UpperSummary{c.LLP, c.Upper} {
				if err := c.writeUpper(w, s.files[i], u); err != nil {
					return err
				}
			}
		}
	}
	for i, r := range s.all {
		for _, c := range r.Connections {
			if err := c.writeRemarks(w, s.files[i]); err != nil {
				return err
			}
		}
		if r.Unlisted > 0 {
			if _, err := fmt.Fprintf(w, "%s: %d more connections are not listed; the sums of messages count them\n", s.files[i], r.Unlisted); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteCells writes lines of cells, which end with tabs, in columns. Summaries of ULPs use it as well.
func WriteCells(w io.Writer, lines string) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if _, err := io.WriteString(t, lines); err != nil {
		return err
	}
	return t.Flush()
}

// rows returns the table's cells, separated by tabs.
func (s *Summary) rows() string {
	var b strings.Builder
	var segments, messages Counts
	for i, r := range s.all {
		for op := range segments {
			segments[op] += r.Total.Segments[op]
			messages[op] += r.Total.Messages[op]
		}
		if len(r.Connections) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s:\n#\tclient\tserver\tMPA\tsegments\tmessages\tpayload\tbad CRC\tviolations\n", s.files[i])
		for _, c := range r.Connections {
			sum := c.Carried()
			fmt.Fprintf(&b, "%d\t%s\t%s\t%v\t%d\t%d\t%d\t%d\t%d\n", c.Number, c.Addr[Client], c.Addr[Server], c.startup(),
				sum.Segments, sum.Messages, sum.Bytes, c.BadCRC, len(c.Violations)+c.MoreViolations)
		}
		b.WriteByte('\n')
	}
	if segments.Total() > 0 {
		b.WriteString("all connections\tsegments\tmessages\n")
		for op, n := range segments {
			if n > 0 {
				fmt.Fprintf(&b, "%s\t%d\t%d\n", rdmap.Opcode(op).Name(), n, messages[op])
			}
		}
	}
	return b.String()
}

// writeUpper writes what the connection's ULP did, or what carries DDP; u may be nil.
func (c *Connection) writeUpper(w io.Writer, file string, u UpperSummary) error {
	if u == nil {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s: connection %d, %s\n", file, c.Number, u.Name()); err != nil {
		return err
	}
	return u.WriteTable(w)
}

func (c *Connection) writeRemarks(w io.Writer, file string) error {
	var b strings.Builder
	for i := range c.Violations {
		v := &c.Violations[i]
		fmt.Fprintf(&b, "%s: connection %d, packet %d: %v\n", file, c.Number, v.At.Packet, v)
	}
	if c.MoreViolations > 0 {
		fmt.Fprintf(&b, "%s: connection %d: %d more violations\n", file, c.Number, c.MoreViolations)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "%s: connection %d: %s\n", file, c.Number, n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// startup shows in few words what start-up settled, or what there is in place of MPA.
func (c *Connection) startup() string {
	switch c.Transport {
	case IWARP:
		return c.MPA.String()
	case RDP:
		if !c.MPA.seen() {
			return "RDP, not seen"
		}
		return c.MPA.show("RDP")
	default:
		return "none: " + c.Transport.String()
	}
}

// String shows in few words what start-up settled.
func (m *Startup) String() string {
	if !m.seen() {
		return "not seen"
	}
	return m.show(fmt.Sprintf("r%d", m.Revision))
}

// seen reports whether the capture has anything of start-up.
func (m *Startup) seen() bool { return m.Seen[Client] || m.Seen[Server] }

// show shows it behind a first word.
func (m *Startup) show(first string) string {
	words := []string{first}
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{m.CRC, "crc"},
		{m.Markers[Client], "markers-to-client"},
		{m.Markers[Server], "markers-to-server"},
		{m.P2P, "p2p"},
		{m.Rejected, "rejected"},
	} {
		if flag.set {
			words = append(words, flag.name)
		}
	}
	if m.Enhanced {
		words = append(words, fmt.Sprintf("ird/ord %d/%d", m.IRD, m.ORD))
	}
	return strings.Join(words, " ")
}
