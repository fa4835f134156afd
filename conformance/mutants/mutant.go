package mutants

import "slices"

// A Mutant is urnic's stack with one deliberate fault.
type Mutant struct {
	Name    string   // such as crc-big-endian
	Fault   string   // what it does wrong, in a sentence
	Clauses []string // IDs of the clauses that this breaks, the first one most plainly
	Edits   []Edit   // mostly one: more only where one place does not make the fault
}

// An Edit replaces a text in a file of the stack, in which it occurs once.
type Edit struct {
	File     string // within the module: mpa/crc.go
	Old, New string
}

// All returns the mutants, RFC by RFC.
func All() []Mutant {
	return slices.Concat(framing, markers, startup, ddpSource, ddpSink, rdmapMessages, rdmapErrors, connect, extensions, security, later,
		rpcHeaders, rpcResponder, rpcRequester)
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
