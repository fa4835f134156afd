package rpcflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"urnic/internal/program/dissect"
	"urnic/ulp/rpcrdma"
)

// maxProcedures bounds how many procedures are counted apart.
const maxProcedures = 256

// A Summary sums up the RPC-over-RDMA of a connection.
type Summary struct {
	Calls      int // that could be decoded
	Replies    int // that have a call
	Unanswered int // calls without a reply, at the end
	Errors     int // RDMA_ERROR
	BadHeaders int
	MaxOpen    int // calls at a time
	// Asked and Granted are the lowest and the highest credits that calls asked for and
	// that replies granted.
	Asked, Granted [2]uint32

	procedures map[key]*Procedure
	counted    *int // how many procedures all connections have
}

type key struct{ program, version, procedure uint32 }

// A Procedure sums up the calls of one.
type Procedure struct {
	Program, Version, Number uint32
	Name                     string

	Calls, Replies, Failed int
	ReadChunks             int
	ReadOctets             uint64
	WriteChunks            int    // in replies
	WriteOctets            uint64 // that replies say were written
	LongCalls, LongReplies int
	LongOctets             uint64 // of both
	InlineOctets           uint64 // of both, in Sends
	Shortest, Longest, sum time.Duration
}

// Mean returns how long calls have taken on average.
func (p *Procedure) Mean() time.Duration {
	if p.Replies == 0 {
		return 0
	}
	return p.sum / time.Duration(p.Replies)
}

func newSummary(counted *int) *Summary {
	return &Summary{procedures: map[key]*Procedure{}, counted: counted}
}

// Name returns the name of the protocol.
func (s *Summary) Name() string { return "RPC-over-RDMA" }

// Procedures returns the procedures that were called, in the order of their numbers. Those
// of which there were too many have the program 0.
func (s *Summary) Procedures() []*Procedure {
	all := make([]*Procedure, 0, len(s.procedures))
	for _, p := range s.procedures {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Procedure) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Number, b.Number))
	})
	return all
}

func (s *Summary) of(r *RPC) *Procedure {
	k := key{r.Program, r.Version, r.Procedure}
	p := s.procedures[k]
	if p != nil {
		return p
	}
	name := r.Title()
	if len(s.procedures) >= maxProcedures || *s.counted >= maxCounted {
		k, name = key{}, "other procedures"
		if p = s.procedures[k]; p != nil {
			return p
		}
	}
	*s.counted++
	p = &Procedure{Program: k.program, Version: k.version, Number: k.procedure, Name: name}
	s.procedures[k] = p
	return p
}

func spread(r *[2]uint32, n uint32, first bool) {
	if first {
		*r = [2]uint32{n, n}
		return
	}
	r[0], r[1] = min(r[0], n), max(r[1], n)
}

func (s *Summary) ask(credits uint32)   { spread(&s.Asked, credits, s.Asked == [2]uint32{}) }
func (s *Summary) grant(credits uint32) { spread(&s.Granted, credits, s.Granted == [2]uint32{}) }
func (s *Summary) open(n int)           { s.MaxOpen = max(s.MaxOpen, n) }

// call counts a call that was decoded.
func (s *Summary) call(k *call, m *stream) {
	p := s.of(k.rpc)
	s.Calls++
	p.Calls++
	p.ReadChunks += len(m.items)
	p.ReadOctets += m.moved
	if m.long {
		p.LongCalls++
		p.LongOctets += m.length() - m.moved
	} else {
		p.InlineOctets += m.length() - m.moved
	}
}

// reply counts a reply.
func (s *Summary) reply(k *call, h *rpcrdma.Header, r *RPC) {
	if k == nil {
		return
	}
	s.Replies++
	if k.rpc == nil {
		return
	}
	p := s.of(k.rpc)
	p.Replies++
	if r.Failed {
		p.Failed++
	}
	for _, w := range h.Write {
		if n := sum(w); n > 0 {
			p.WriteChunks++
			p.WriteOctets += n
		}
	}
	if r.Long {
		p.LongReplies++
		p.LongOctets += r.Length - r.Moved
	} else {
		p.InlineOctets += r.Length - r.Moved
	}
	p.sum += r.Latency
	if p.Replies == 1 || r.Latency < p.Shortest {
		p.Shortest = r.Latency
	}
	p.Longest = max(p.Longest, r.Latency)
}

// WriteTable writes the summary as human-readable text.
func (s *Summary) WriteTable(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%d calls, %d replies, %d unanswered, %d RDMA_ERROR, %d bad headers; %d open at most; credits asked for %s, granted %s\n",
		s.Calls, s.Replies, s.Unanswered, s.Errors, s.BadHeaders, s.MaxOpen, between(s.Asked), between(s.Granted)); err != nil {
		return err
	}
	all := s.Procedures()
	if len(all) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("procedure\tcalls\treplies\tfailed\tinline\tRead chunks\tbytes\tWrite chunks\tbytes\tlong\tbytes\tshortest\tmean\tlongest\n")
	for _, p := range all {
		fmt.Fprintf(&b, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t%v\t%v\n", p.Name, p.Calls, p.Replies, p.Failed, p.InlineOctets,
			p.ReadChunks, p.ReadOctets, p.WriteChunks, p.WriteOctets, p.LongCalls+p.LongReplies, p.LongOctets,
			p.Shortest.Round(time.Microsecond), p.Mean().Round(time.Microsecond), p.Longest.Round(time.Microsecond))
	}
	return dissect.WriteCells(w, b.String())
}

func between(r [2]uint32) string {
	if r[0] == r[1] {
		return fmt.Sprint(r[0])
	}
	return fmt.Sprintf("%d to %d", r[0], r[1])
}

type (
	jsonSummary struct {
		Calls      int             `json:"calls"`
		Replies    int             `json:"replies"`
		Unanswered int             `json:"unanswered"`
		Errors     int             `json:"rdma_errors"`
		BadHeaders int             `json:"bad_headers"`
		MaxOpen    int             `json:"max_open"`
		Asked      [2]uint32       `json:"credits_asked"`
		Granted    [2]uint32       `json:"credits_granted"`
		Procedures []jsonProcedure `json:"procedures"`
	}
	jsonProcedure struct {
		Name         string  `json:"name"`
		Program      uint32  `json:"program"`
		Version      uint32  `json:"version"`
		Procedure    uint32  `json:"procedure"`
		Calls        int     `json:"calls"`
		Replies      int     `json:"replies"`
		Failed       int     `json:"failed"`
		InlineOctets uint64  `json:"inline_bytes"`
		ReadChunks   int     `json:"read_chunks"`
		ReadOctets   uint64  `json:"read_chunk_bytes"`
		WriteChunks  int     `json:"write_chunks"`
		WriteOctets  uint64  `json:"write_chunk_bytes"`
		LongCalls    int     `json:"long_calls"`
		LongReplies  int     `json:"long_replies"`
		LongOctets   uint64  `json:"long_bytes"`
		Shortest     float64 `json:"shortest_seconds"`
		Mean         float64 `json:"mean_seconds"`
		Longest      float64 `json:"longest_seconds"`
	}
)

// MarshalJSON writes the summary as an object.
func (s *Summary) MarshalJSON() ([]byte, error) {
	j := jsonSummary{
		Calls: s.Calls, Replies: s.Replies, Unanswered: s.Unanswered, Errors: s.Errors, BadHeaders: s.BadHeaders, MaxOpen: s.MaxOpen,
		Asked: s.Asked, Granted: s.Granted, Procedures: []jsonProcedure{},
	}
	for _, p := range s.Procedures() {
		j.Procedures = append(j.Procedures, jsonProcedure{
			Name: p.Name, Program: p.Program, Version: p.Version, Procedure: p.Number, Calls: p.Calls, Replies: p.Replies, Failed: p.Failed,
			InlineOctets: p.InlineOctets, ReadChunks: p.ReadChunks, ReadOctets: p.ReadOctets, WriteChunks: p.WriteChunks,
			WriteOctets: p.WriteOctets, LongCalls: p.LongCalls, LongReplies: p.LongReplies, LongOctets: p.LongOctets,
			Shortest: p.Shortest.Seconds(), Mean: p.Mean().Seconds(), Longest: p.Longest.Seconds(),
		})
	}
	return json.Marshal(j)
}
