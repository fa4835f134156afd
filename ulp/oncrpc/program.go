package oncrpc

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"urnic/ulp/oncrpc/xdr"
)

// A Program is what a server carries out (RFC 5531 §8.1).
type Program struct {
	Number   uint32
	Name     string // human-readable
	Versions []ProgramVersion

	// Flavors are those that credentials of its calls may have; none stands for
	// AuthNone and AuthSys. Procedure 0 takes AuthNone in any case.
	Flavors []Flavor

	// CallMost is the length of the longest call, header and all, in bytes, if that is
	// more than DefaultRecordMost. Programs declare it because a client that sends a
	// longer call than a transport takes loses its connection each time it tries.
	CallMost int
}

// A ProgramVersion is one version of a program. Procedure 0 need not be named: there is
// one, which does nothing (RFC 5531 §12.1).
type ProgramVersion struct {
	Number     uint32
	Procedures map[uint32]Procedure
}

// A Procedure is one of a program's.
type Procedure struct {
	Name   string // human-readable
	Handle Handler

	// Once says that to carry a call out again is not the same as to do so once: if it
	// was sent again, the server answers as it did before, for as long as it knows that.
	Once bool
}

// A Handler carries out a procedure. It reads the arguments, asks them by Args.End whether
// they are what they should be before it changes anything, and writes the results.
//
// If it could not read all of the arguments, nothing else matters: the caller is told so,
// GARBAGE_ARGS. Or else it may return an *AcceptedError or a *RejectedError for the
// caller, ErrNoReply, or another error, of which the caller learns that the server has
// failed, SYSTEM_ERR. Results do not count if there is an error.
//
// The context ends if the connection does; that of a procedure to be done Once, if the
// server is closed.
type Handler func(ctx context.Context, in *Incoming) error

// An Incoming is a call for a handler, which may use it and all that was decoded from it
// until it returns.
type Incoming struct {
	Header   Call
	Sys      *Sys // who calls, if the credential is of AuthSys
	Args     *xdr.Decoder
	Results  *xdr.Encoder
	Exchange *Exchange
}

// null is procedure 0, for those that have none of their own.
func null(context.Context, *Incoming) error { return nil }

// program is a Program that can be searched.
type program struct {
	flavors   []Flavor
	low, high uint32
	callMost  int
	versions  map[uint32]map[uint32]Procedure
}

func newProgram(p *Program) (*program, error) {
	if len(p.Versions) == 0 {
		return nil, fmt.Errorf("oncrpc: program %d (%s) has no versions", p.Number, p.Name)
	}
	q := &program{flavors: p.Flavors, callMost: p.CallMost, low: math.MaxUint32, versions: make(map[uint32]map[uint32]Procedure)}
	if len(q.flavors) == 0 {
		q.flavors = []Flavor{AuthNone, AuthSys}
	}
	for _, v := range p.Versions {
		if q.versions[v.Number] != nil {
			return nil, fmt.Errorf("oncrpc: program %d (%s) has version %d twice", p.Number, p.Name, v.Number)
		}
		procedures := map[uint32]Procedure{0: {Name: "NULL", Handle: null}}
		maps.Copy(procedures, v.Procedures)
		for n, proc := range procedures {
			if proc.Handle == nil {
				return nil, fmt.Errorf("oncrpc: procedure %d (%s) of program %d (%s) has no handler", n, proc.Name, p.Number, p.Name)
			}
		}
		q.versions[v.Number] = procedures
		q.low, q.high = min(q.low, v.Number), max(q.high, v.Number)
	}
	return q, nil
}

// takes reports whether calls of a procedure may have credentials of a flavor.
func (p *program) takes(f Flavor, procedure uint32) bool {
	return slices.Contains(p.flavors, f) || procedure == 0 && f == AuthNone
}

// find returns what a call asks for, or why there is none.
func (p *program) find(c *Call) (Procedure, error) {
	procedures := p.versions[c.Version]
	if procedures == nil {
		return Procedure{}, &AcceptedError{Stat: ProgramMismatch, Low: p.low, High: p.high}
	}
	proc, ok := procedures[c.Procedure]
	if !ok {
		return Procedure{}, &AcceptedError{Stat: ProcedureUnavailable}
	}
	return proc, nil
}
