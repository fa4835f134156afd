package main

import (
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed selector.go.txt
var selector string

// A source is a file of the package that is measured.
type source struct {
	path   string // of the file
	name   string // relative to the module
	code   []byte
	fset   *token.FileSet
	syntax *ast.File
	sites  []*site
}

func (s *source) text(n ast.Node) string { return string(s.code[s.offset(n.Pos()):s.offset(n.End())]) }

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// instrument finds the mutants of a package, and returns them with the files that
// contain all of them, by path.
func instrument(p *pkg) ([]*mutant, map[string]string, error) {
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := p.exports[path]
		if !ok {
			return nil, fmt.Errorf("there is no export data of %s", path)
		}
		return os.Open(file)
	})
	var sources []*source
	var files []*ast.File
	for _, path := range p.files {
		code, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		syntax, err := parser.ParseFile(fset, path, code, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		name, err := filepath.Rel(p.root, path)
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, &source{path: path, name: filepath.ToSlash(name), code: code, fset: fset, syntax: syntax})
		files = append(files, syntax)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports, GoVersion: p.goVersion}
	checked, err := config.Check(p.path, fset, files, info)
	if err != nil {
		return nil, nil, err
	}

	var mutants []*mutant
	for _, s := range sources {
		s.sites = (&finder{source: s, info: info, pkg: checked}).find()
		slices.SortStableFunc(s.sites, func(a, b *site) int {
			if a.from != b.from {
				return int(a.from - b.from)
			}
			if a.to != b.to {
				return int(b.to - a.to)
			}
			return strings.Compare(a.typ, b.typ) // a statement goes around its expression
		})
		for _, site := range s.sites {
			for _, a := range site.alts {
				mutants = append(mutants, a.m)
			}
		}
	}
	name(mutants)
	for i, m := range mutants {
		m.n = i + 1
	}

	selected := fmt.Sprintf(selector, checked.Name(), len(mutants)+1)
	for {
		out := map[string]string{p.selectorPath(): selected}
		for _, s := range sources {
			out[s.path] = s.rewrite()
		}
		bad, err := uncompilable(out, imports, p)
		if err != nil {
			return nil, nil, err
		}
		if len(bad) == 0 {
			return slices.DeleteFunc(mutants, func(m *mutant) bool { return m.n < 0 }), out, nil
		}
		for _, s := range sources {
			for _, site := range s.sites {
				site.alts = slices.DeleteFunc(site.alts, func(a alt) bool {
					if drop := bad[a.m.n]; drop {
						a.m.n = -1
						return true
					}
					return false
				})
			}
			s.sites = slices.DeleteFunc(s.sites, func(s *site) bool { return len(s.alts) == 0 })
		}
	}
}

// rewrite returns the file with all its mutants in it.
func (s *source) rewrite() string {
	var b strings.Builder
	rest := s.sites
	// render writes the code up to an end, and takes the sites that are there.
	var render func(from, to int)
	render = func(from, to int) {
		for len(rest) > 0 && s.offset(rest[0].from) < to {
			site := rest[0]
			rest = rest[1:]
			b.Write(s.code[from:s.offset(site.from)])
			from = s.offset(site.to)
			if site.typ != "" {
				b.WriteString("func() " + site.typ + " { ")
				for _, a := range site.alts {
					fmt.Fprintf(&b, "if mutantOn(%d) {\nreturn %s\n}; ", a.m.n, a.code)
				}
				b.WriteString("return ")
				render(s.offset(site.from), from)
				b.WriteString(" }()")
				continue
			}
			for _, a := range site.alts {
				fmt.Fprintf(&b, "if mutantOn(%d) {\n%s\n} else ", a.m.n, a.code)
			}
			b.WriteString("{ ")
			render(s.offset(site.from), from)
			b.WriteString(" }")
		}
		b.Write(s.code[from:to])
	}
	render(0, len(s.code))
	return b.String()
}

var selection = regexp.MustCompile(`mutantOn\((\d+)\)`)

// uncompilable returns the mutants that the compiler refuses, as constants may
// overflow in them, say.
func uncompilable(files map[string]string, imports types.Importer, p *pkg) (map[int]bool, error) {
	fset := token.NewFileSet()
	var parsed []*ast.File
	for path, code := range files {
		f, err := parser.ParseFile(fset, path, code, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("the mutants of %s can't be parsed: %w", path, err)
		}
		parsed = append(parsed, f)
	}
	bad := map[int]bool{}
	var first error
	config := types.Config{Importer: imports, GoVersion: p.goVersion, Error: func(err error) {
		te, ok := errors.AsType[types.Error](err)
		if !ok {
			return
		}
		at := fset.Position(te.Pos)
		before := files[at.Filename][:at.Offset]
		if all := selection.FindAllStringSubmatch(before, -1); len(all) > 0 {
			n, _ := strconv.Atoi(all[len(all)-1][1])
			bad[n] = true
		} else if first == nil {
			first = err
		}
	}}
	_, _ = config.Check(p.path, fset, parsed, nil) // Error has been told all of them
	if len(bad) == 0 && first != nil {
		return nil, first
	}
	return bad, nil
}
