package dissect

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"urnic/internal/capture"
	"urnic/internal/host/plural"
)

// A Remark is something that a reader of an analysis must know to judge what it found.
type Remark struct {
	Text string
	// Open reports that a part of the capture was not checked, so that there may be
	// violations that were not found.
	Open bool
}

// Remarks returns what there is to say about the capture as a whole.
func (r *Result) Remarks() []Remark {
	s := &r.Stats
	var all []Remark
	add := func(open bool, format string, args ...any) {
		all = append(all, Remark{fmt.Sprintf(format, args...), open})
	}
	if r.Total.Connections == 0 {
		add(true, "no iWARP connection in %s, %s", plural.Count(s.Packets, "packet"), plural.Count(s.Connections, "TCP connection"))
		if r.MidStream > 0 {
			add(false, "the start of %d of them was not captured: record again from their start", r.MidStream)
		}
	}
	if n := s.Short; n > 0 {
		add(true, "%s captured only in part, without %s of their data: record with a longer snap length (tcpdump -s 0)", plural.Count(n, "TCP packet"), plural.Count(s.ShortBytes, "byte"))
	}
	if s.Fragments > 0 {
		add(true, "%s not reassembled", plural.Count(s.Fragments, "IP fragment"))
	}
	if s.Unknown > 0 {
		add(true, "%s of an unknown link type", plural.Count(s.Unknown, "packet"))
	}
	for _, u := range s.Unread {
		add(true, "%s could not be decoded: %v", plural.Count(u.Packets, "packet"), u.Unread)
	}
	if s.GivenUp > 0 {
		add(true, "too many connections at a time; %d were not followed to their end", s.GivenUp)
	}
	if n := r.Total.Undecoded; n > 0 {
		what := "iWARP connections"
		if r.Total.Direct > 0 {
			what = "connections"
		}
		add(true, "%s of %s could not be decoded", plural.Count(n, "byte"), what)
	}
	return all
}

// Open returns the texts of the remarks that report that something was not checked.
func (r *Result) Open() []string {
	var open []string
	for _, m := range r.Remarks() {
		if m.Open {
			open = append(open, m.Text)
		}
	}
	return open
}

// The verdicts on a capture.
const (
	VerdictOK         = "ok"         // there is iWARP, or a ULP that needs none; all of it was checked, and no rule was broken
	VerdictIncomplete = "incomplete" // no broken rule was found, but not all could be checked
	VerdictViolations = "violations"
	VerdictNoIWARP    = "no-iwarp"
)

// Verdict returns one of the verdicts.
func (r *Result) Verdict() string {
	switch {
	case r.Violations() > 0:
		return VerdictViolations
	case r.Total.Connections == 0:
		return VerdictNoIWARP
	case len(r.Open()) > 0:
		return VerdictIncomplete
	}
	return VerdictOK
}

// The part of the summary's JSON that is about a file.
type (
	jsonFile struct {
		File              string       `json:"file"`
		Verdict           string       `json:"verdict"`
		Packets           int          `json:"packets"`
		TCPPackets        int          `json:"tcp_packets"`
		TCPConnections    int          `json:"tcp_connections"`
		IWARPConnections  int          `json:"iwarp_connections"`
		DirectConnections int          `json:"direct_connections"`
		Violations        int          `json:"violations"`
		UndecodedBytes    uint64       `json:"undecoded_bytes"`
		ShortPackets      int          `json:"short_packets"`
		ShortBytes        int          `json:"short_bytes"`
		Fragments         int          `json:"ip_fragments"`
		UnknownLink       int          `json:"unknown_link_packets"`
		Unread            []jsonUnread `json:"undecoded_packets"`
		NotFollowed       int          `json:"not_followed"`
		MidStream         int          `json:"mid_stream"`
		Dropped           jsonDropped  `json:"ignored_segments"`
		Remarks           []string     `json:"remarks"`
	}
	jsonDropped capture.Drops
	jsonUnread  struct {
		Reason  string `json:"reason"`
		Packets int    `json:"packets"`
	}
)

func (r *Result) json(file string) jsonFile {
	s := &r.Stats
	j := jsonFile{
		File: file, Verdict: r.Verdict(),
		Packets: s.Packets, TCPPackets: s.TCP, TCPConnections: s.Connections,
		IWARPConnections: r.Total.Connections - r.Total.Direct, DirectConnections: r.Total.Direct,
		Violations: r.Violations(), UndecodedBytes: r.Total.Undecoded,
		ShortPackets: s.Short, ShortBytes: s.ShortBytes, Fragments: s.Fragments, UnknownLink: s.Unknown,
		Unread: []jsonUnread{}, NotFollowed: s.GivenUp, MidStream: r.MidStream, Dropped: jsonDropped(s.Dropped), Remarks: []string{},
	}
	for _, u := range s.Unread {
		j.Unread = append(j.Unread, jsonUnread{u.String(), u.Packets})
	}
	for _, m := range r.Remarks() {
		j.Remarks = append(j.Remarks, m.Text)
	}
	return j
}

// MarshalJSON writes the counts as an object with the name of each kind.
func (d jsonDropped) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for kind, n := range d {
		if kind > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%q:%d", capture.DropNames[kind], n)
	}
	return append(b, '}'), nil
}

// WriteJSON writes the sums of a capture as one line of JSON, as a last event.
func (r *Result) WriteJSON(w io.Writer, file string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		Event string `json:"event"`
		jsonFile
	}{"file", r.json(file)})
}

// Totals are sums over all connections of a capture, those that are not listed too.
type Totals struct {
	Connections int
	Direct      int // of them, those that are not iWARP
	Violations  int
	Undecoded   uint64
	Segments    Counts
	Messages    Counts
}

// add adds what a connection carried, once nothing more will come of it.
func (t *Totals) add(c *Connection) {
	t.Violations += len(c.Violations) + c.MoreViolations
	t.Undecoded += c.Undecoded
	for op := range c.Segments {
		t.Segments[op] += c.Segments[op]
		t.Messages[op] += c.Messages[op]
	}
}

// clip frees what a connection that has ended keeps without need.
func (c *Connection) clip() {
	c.Violations, c.Notes = slices.Clip(c.Violations), slices.Clip(c.Notes)
}
