package catalogue

import (
	"slices"
	"strings"
	"sync"
)

// A Level is how strongly a clause binds (RFC 2119). SHALL and REQUIRED are Must,
// RECOMMENDED is Should.
type Level uint8

// The levels.
const (
	Must Level = iota + 1
	MustNot
	Should
	ShouldNot
)

// String names the level as the RFCs do.
func (l Level) String() string {
	switch l {
	case Must:
		return "MUST"
	case MustNot:
		return "MUST NOT"
	case Should:
		return "SHOULD"
	case ShouldNot:
		return "SHOULD NOT"
	}
	return "no level"
}

// Binding reports whether the level is MUST or MUST NOT.
func (l Level) Binding() bool { return l == Must || l == MustNot }

// A Party is a set of those whom a clause binds.
type Party uint8

// The parties. Initiator and Responder are those of the connection set-up (RFC
// 5044 §7.1), Source and Sink those of a transfer: in RFC 5041 the Source is who
// sends a segment, and the Sink who receives it; in RFC 5040 the Sink of a Read is
// who reads, though it sends the Request.
const (
	Initiator Party = 1 << iota
	Responder
	Source
	Sink
	// Local is the endpoint towards its own consumer, or its administrator.
	Local
	// Requester is who sends calls of RPC-over-RDMA (RFC 8166 §2.2.2). Who answers them
	// is the Responder there too, for a server is both.
	Requester
)

var partyNames = []string{"initiator", "responder", "data source", "data sink", "local interface", "requester"}

// String names the parties.
func (p Party) String() string {
	var names []string
	for i, name := range partyNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// A Clause is one demand of an RFC.
type Clause struct {
	ID      string // such as rfc5041-7.1-3
	Level   Level
	Who     Party
	Summary string // what is demanded, in words of our own
	// Untestable says why no case can test the clause from outside; empty if one
	// can.
	Untestable string
}

// RFC returns the clause's RFC, such as "RFC 5041".
func (c Clause) RFC() string {
	rfc, _, _ := strings.Cut(c.ID, "-")
	return "RFC " + strings.TrimPrefix(rfc, "rfc")
}

// Section returns the clause's section, such as "7.1".
func (c Clause) Section() string {
	parts := strings.Split(c.ID, "-")
	if len(parts) != 3 {
		return ""
	}
	return parts[1]
}

// Cite returns a human-readable reference to the clause: "RFC 5041 §7.1".
func (c Clause) Cite() string { return c.RFC() + " §" + c.Section() }

// All returns the clauses, RFC by RFC and in the order of their sections.
func All() []Clause {
	return slices.Concat(rfc5044, rfc5041, rfc5040, rfc6581, rfc7306, rfc5042, rfc8166, rfc8797, rfc8167)
}

var index = sync.OnceValue(func() map[string]Clause {
	m := map[string]Clause{}
	for _, c := range All() {
		m[c.ID] = c
	}
	return m
})

// Lookup returns the clause with an ID.
func Lookup(id string) (Clause, bool) {
	c, ok := index()[id]
	return c, ok
}
