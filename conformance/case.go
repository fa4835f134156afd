package conformance

import "strings"

// Roles is a set of the roles that a target can have in a connection (RFC 5044
// §7.1).
type Roles uint8

// The roles.
const (
	// Responder: the tester connects, and sends the Request.
	Responder Roles = 1 << iota
	// Initiator: the target connects.
	Initiator

	BothRoles = Responder | Initiator
)

// String names the roles.
func (r Roles) String() string {
	var names []string
	if r&Responder != 0 {
		names = append(names, "responder")
	}
	if r&Initiator != 0 {
		names = append(names, "initiator")
	}
	return strings.Join(names, " and ")
}

// Needs is a set of what a case needs of a target, and so of the profile.
type Needs uint8

// The needs.
const (
	// NeedBuffer: memory whose STag opens it for remote reads and writes.
	NeedBuffer Needs = 1 << iota
	// NeedRecv: a receive of at least RecvLen bytes, posted.
	NeedRecv
	// NeedService: the test service, for all the rest.
	NeedService
	// NeedRPC: RPC-over-RDMA, a server of NFS version 3 or a client. Cases that need it
	// are run by the profile that offers it, and by that one alone: see Runner.
	NeedRPC
	// NeedExport: a directory of that server in which files can be made.
	NeedExport
)

// RecvLen is how many bytes fit into the receive of NeedRecv: those of an rping
// message.
const RecvLen = 16

// String names the needs.
func (n Needs) String() string {
	var names []string
	for bit, name := range []string{"a buffer", "a posted receive", "the test service", "RPC-over-RDMA", "an NFS export"} {
		if n&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// A Case is one experiment: small, and independent of the others.
type Case struct {
	Clause string   // ID of the clause that names the case: rfc5041-7.1-4
	Name   string   // tells it from the clause's other cases: end-one-octet-beyond
	Also   []string // IDs of the further clauses that it tests
	Title  string   // what is done, and what must come of it
	Roles  Roles    // of the target; 0 stands for both, one run each
	Needs  Needs
	// Harm says what the case may do to a target other than ours, so that it is
	// run after all others.
	Harm string
	// HarmAs is the roles of the target in which it may do so; 0 stands for both.
	HarmAs Roles
	// MPA names, human-readable, what the case needs that only MPA over TCP has: over other lower
	// layers it is skipped. Cases of clauses of MPA (RFC 5044, 6581) are not run there at all.
	MPA string
	// Over is the only lower layer that the case is for; "" stands for any.
	Over LLP
	Run  func(t *T) // the runs of a case go on side by side: what they write to is their own
}

// ID returns the case's name: that of its clause, and its own.
func (c Case) ID() string { return c.Clause + "/" + c.Name }

// Clauses returns the IDs of all clauses that the case tests.
func (c Case) Clauses() []string { return append([]string{c.Clause}, c.Also...) }

// For returns the roles that the case is for.
func (c Case) For() Roles {
	if c.Roles == 0 {
		return BothRoles
	}
	return c.Roles
}

// harms reports whether the case may harm a target in the role.
func (c Case) harms(role Roles) bool { return c.Harm != "" && (c.HarmAs == 0 || c.HarmAs&role != 0) }

// A Group is a number of cases that belong together.
type Group struct {
	Name  string // such as start-up
	Cases []Case
}

// Matches reports whether a pattern of --only selects a case: its ID, the beginning
// of one up to a boundary (rfc5041, rfc5041-7, rfc5041-7.1, rfc5041-7.1-4), or
// the name of its group. So does a further clause that the case tests.
func Matches(pattern, group string, c Case) bool {
	if pattern == group {
		return true
	}
	if strings.Contains(pattern, "/") {
		return pattern == c.ID()
	}
	for _, id := range append([]string{c.ID()}, c.Also...) {
		rest, ok := strings.CutPrefix(id, pattern)
		if ok && (rest == "" || strings.ContainsRune("-./", rune(rest[0]))) {
			return true
		}
	}
	return false
}
