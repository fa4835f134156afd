package mutants

import "slices"

// A Mutant is urnic's stack with one deliberate fault.
type Mutant struct {
	Name    string   // such as crc-big-endian
	Fault   string   // what it does wrong, in a sentence
	Clauses []string // IDs of the clauses that this breaks, the first one most plainly
	Edits   []Edit   // mostly one: more only where one place does not make the fault

	// Case is the ID of the case that has to find the fault. If it is empty, any case of
	// the clauses will do.
	Case string
	// Later says that the fault begins later in a stream. Only cases that try a rule again
	// there (LaterCases) may find it: one that others find as well shows nothing of them.
	Later bool
	// Base is the build that the fault is put into, and nil for the stack as it is.
	Base *Build
	// Loss is how the target is lost, if that is the fault.
	Loss Loss
}

// A Build is the stack with a change that is no fault, without which a fault would take
// too long to show.
type Build struct {
	Name  string // such as msn-near-wrap
	Edits []Edit
	// FirstMSN is the MSN with which each queue begins, in both directions: the tester
	// has to count from there. 0 stands for 1 (RFC 5041 §4.3).
	FirstMSN uint32
}

// A Loss is a way in which a target is lost: no case can judge it any more.
type Loss string

// The losses.
const (
	Crash Loss = "crash" // its process ends
	Hang  Loss = "hang"  // its process lives, and answers nobody
)

// An Edit replaces a text in a file of the stack, in which it occurs once.
type Edit struct {
	File     string // within the module: mpa/crc.go
	Old, New string
}

// A Family is a number of mutants with faults of one kind.
type Family struct {
	Name    string
	Mutants []Mutant
}

// Families returns the mutants, RFC by RFC and family by family.
func Families() []Family {
	return []Family{
		{"framing", framing},
		{"markers", markers},
		{"start-up", startup},
		{"operation", operation},
		{"ddp-source", ddpSource},
		{"ddp-sink", ddpSink},
		{"placement", placement},
		{"wrap", wrap},
		{"rdmap-messages", rdmapMessages},
		{"rdmap-errors", rdmapErrors},
		{"completion", completion},
		{"connect", connect},
		{"extensions", extensions},
		{"atomicity", atomicity},
		{"security", security},
		{"windows", windows},
		{"revocation", revocation},
		{"losses", losses},
		{"later", beginsLater(later)},
		{"later-effects", beginsLater(laterEffects)},
		{"rpc-headers", rpcHeaders},
		{"rpc-responder", rpcResponder},
		{"rpc-requester", rpcRequester},
	}
}

// beginsLater returns mutants whose faults begin later in a stream.
func beginsLater(list []Mutant) []Mutant {
	list = slices.Clone(list)
	for i := range list {
		list[i].Later = true
	}
	return list
}

// LaterCases returns the IDs of the cases that try a rule once more later in a stream.
func LaterCases() []string { return slices.Clone(laterCases) }

// All returns the mutants of all families.
func All() []Mutant {
	var all []Mutant
	for _, f := range Families() {
		all = append(all, f.Mutants...)
	}
	return all
}

// Lookup returns the mutant of that name.
func Lookup(name string) (Mutant, bool) {
	all := All()
	i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		return Mutant{}, false
	}
	return all[i], true
}

// one is a single edit.
func one(file, old, replacement string) []Edit { return []Edit{{file, old, replacement}} }
