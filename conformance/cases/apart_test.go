package cases

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The runs of a case, one in each role, go on side by side. So a function of a run,
// one that has a *conformance.T, must write to nothing but what it has made or was
// passed: variables that are declared outside of it are common to the runs.
func TestRunsOfACaseShareNothingThatTheyWrite(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	runs, writes := sharedWrites(set, files)
	if runs < 500 {
		t.Errorf("only %d functions of runs were found", runs)
	}
	for _, w := range writes {
		t.Errorf("%v: %s is common to the runs of a case: write to one of the run's own", set.Position(w.Pos()), types.ExprString(w))
	}
}

func TestSharedWritesAreFound(t *testing.T) {
	const text = `package p
import "urnic/conformance"
var all []int
func (own *receiver) run(t *conformance.T, too *int) { own.n++; *too = 1; all = nil }
func build(post, other struct{ at [2]int }) func(*conformance.T) {
	other.at[0] = 1
	return func(t *conformance.T) {
		var own []int
		func() { own = append(own, 1) }()
		post.at[1] = len(append(all, 1))
		for post.at[0] = range own {
		}
	}
}
type receiver struct{ n int }
`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	runs, writes := sharedWrites(set, []*ast.File{f})
	var got []string
	for _, w := range writes {
		got = append(got, types.ExprString(w))
	}
	if want := []string{"all", "post.at[1]", "all", "post.at[0]"}; runs != 2 || !slices.Equal(got, want) {
		t.Errorf("%d functions, writes to %q; want %q", runs, got, want)
	}
}

// sharedWrites returns how many functions of runs there are, and what they write to
// that is not their own. What is appended to is written to, if it has room.
func sharedWrites(set *token.FileSet, files []*ast.File) (runs int, writes []ast.Expr) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	cfg := types.Config{Importer: nothing{}, Error: func(error) {}} // where variables are declared is known without imports
	_, _ = cfg.Check("cases", set, files, info)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			var typ *ast.FuncType
			switch n := n.(type) {
			case *ast.FuncLit:
				typ = n.Type
			case *ast.FuncDecl:
				typ = n.Type
			default:
				return true
			}
			if !slices.ContainsFunc(typ.Params.List, func(p *ast.Field) bool { return types.ExprString(p.Type) == "*conformance.T" }) {
				return true
			}
			runs++
			for _, w := range written(n) {
				if o := info.Uses[root(w)]; o != nil && (o.Pos() < n.Pos() || o.Pos() >= n.End()) {
					writes = append(writes, w)
				}
			}
			return false
		})
	}
	return runs, writes
}

// nothing imports nothing.
type nothing struct{}

func (nothing) Import(string) (*types.Package, error) {
	return nil, errors.New("imports are not looked at")
}

// written returns what is written to somewhere below n.
func written(n ast.Node) (to []ast.Expr) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			to = append(to, n.Lhs...)
		case *ast.IncDecStmt:
			to = append(to, n.X)
		case *ast.RangeStmt:
			to = append(to, n.Key, n.Value)
		case *ast.CallExpr:
			if f, is := n.Fun.(*ast.Ident); is && slices.Contains([]string{"append", "clear", "copy", "delete"}, f.Name) {
				to = append(to, n.Args[0])
			}
		}
		return true
	})
	return to
}

// root returns the variable that an expression is a part of, or nil.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
