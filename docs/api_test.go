package docs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updateAPI = flag.Bool("update-api", false, "write docs/api.txt anew, as a release does")

// libraries are the packages that programs of others import, each with those below it.
var libraries = []string{"mpa", "ddp", "rdmap", "stag", "pd", "rnic", "ulp"}

// What the last version of the packages exported is still there: docs/api.txt lists it. What has come
// since then may come and go. A release writes the list anew: go test ./docs -run API -update-api
func TestAPIKeepsWhatTheLastVersionHad(t *testing.T) {
	now := map[string]bool{}
	for _, dir := range libraries {
		exportedBelow(t, dir, now)
	}
	if *updateAPI {
		text := strings.Join(slices.Sorted(maps.Keys(now)), "\n") + "\n"
		if err := os.WriteFile("api.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := 0
	for line := range strings.Lines(read(t, "docs/api.txt")) {
		before++
		if line = strings.TrimSpace(line); !now[line] {
			t.Errorf("removed or changed since the last version: %s", line)
		}
	}
	if before < 1000 {
		t.Errorf("the last version had only %d names", before)
	}
}

// exportedBelow adds what the packages in a directory and below it export.
func exportedBelow(t *testing.T, dir string, out map[string]bool) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "internal" || d.Name() == "testdata" || d.Name() == "mutants"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if f.Name.Name == "main" {
			return nil
		}
		pkg, err := filepath.Rel("..", filepath.Dir(path))
		for _, line := range exported(f) {
			out[filepath.ToSlash(pkg)+": "+line] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// exported lists what a file exports, each in a line.
func exported(f *ast.File) (lines []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || receiverExported(d.Recv.List[0].Type)) {
				fn := *d
				fn.Body, fn.Doc = nil, nil
				lines = append(lines, oneLine(&fn))
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				lines = append(lines, exportedSpec(d.Tok, s)...)
			}
		}
	}
	return lines
}

// exportedSpec lists what a declaration of constants, variables or a type exports.
func exportedSpec(kind token.Token, s ast.Spec) (lines []string) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				lines = append(lines, fmt.Sprintf("%v %s", kind, name.Name))
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		of := "type " + s.Name.Name
		switch u := s.Type.(type) {
		case *ast.StructType:
			lines = append(append(lines, of+" struct"), members(of, u.Fields)...)
		case *ast.InterfaceType:
			lines = append(append(lines, of+" interface"), members(of, u.Methods)...)
		default:
			lines = append(lines, of+" "+oneLine(s.Type))
		}
	}
	return lines
}

// members lists the fields of a struct or the methods of an interface that are exported.
func members(of string, list *ast.FieldList) (lines []string) {
	for _, m := range list.List {
		for _, name := range m.Names {
			if name.IsExported() {
				lines = append(lines, fmt.Sprintf("%s, %s %s", of, name.Name, oneLine(m.Type)))
			}
		}
		if len(m.Names) == 0 {
			lines = append(lines, fmt.Sprintf("%s, embeds %s", of, oneLine(m.Type)))
		}
	}
	return lines
}

// receiverExported reports whether a method is one of an exported type.
func receiverExported(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverExported(e.X)
	case *ast.IndexExpr:
		return receiverExported(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}

// oneLine is the source of a node in one line.
func oneLine(n any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// The list notices what is removed, and what changes.
func TestExportedListsWhatMatters(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
const A, b = 1, 2
var C int
type D struct { E int; f int }
type g struct { H int }
type I interface { J(int) error }
type K = map[string]int
func L(a int) (b error) { return nil }
func (d *D) M() {}
func (g) N() {}
func o() {}
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"const A", "var C", "type D struct", "type D, E int", "type I interface", "type I, J func(int) error",
		"type K map[string]int", "func L(a int) (b error)", "func (d *D) M()",
	}
	if got := exported(f); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}
