package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// A mutant is one change of the code.
type mutant struct {
	n    int    // what selects it; from 1
	file string // relative to the module
	line int
	fn   string // the function, as in "Conn.Close"; empty outside of functions
	// change names the mutant within its function: what was and what is instead,
	// and a number if the function has the same change several times.
	change string
}

// A key identifies a mutant as long as its function and statement stay the same:
// a table that has line numbers is out of date after each change.
type key struct{ file, fn, change string }

func (m *mutant) key() key { return key{m.file, m.fn, m.change} }

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s", m.file, m.line, m.fn, m.change)
}

// A site is a piece of code that has mutants: an expression or a statement.
type site struct {
	from, to token.Pos
	typ      string // of an expression, as the file spells it; empty for a statement
	alts     []alt
}

// An alt is what runs instead of a site's code.
type alt struct {
	m    *mutant
	code string
}

const longest = 90 // characters of a change; what is cut is told apart by a number

// name fills in what identifies the mutants, which are in the order of the source.
func name(mutants []*mutant) {
	seen := map[key]int{}
	for _, m := range mutants {
		m.change = shorten(m.change)
		k := m.key()
		if seen[k]++; seen[k] > 1 {
			m.change += fmt.Sprintf(" #%d", seen[k])
		}
	}
}

func shorten(s string) string {
	s = strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "`", "'")
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "…"
	}
	return s
}

// funcName returns the name of a function with its receiver's type.
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.Ident:
			return u.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}
