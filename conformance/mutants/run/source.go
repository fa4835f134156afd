package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"go/version"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A source is a package, as go list describes it.
type source struct {
	ImportPath     string
	Name           string
	Dir            string
	Export         string // its archive
	Standard       bool
	Imports        []string
	GoFiles        []string
	CgoFiles       []string
	SFiles         []string
	EmbedFiles     []string
	DefaultGODEBUG string
	Module         struct{ Path, GoVersion string }
}

// list compiles packages and those that they import, and describes them, each behind
// those that it imports. It overrides a -trimpath of GOFLAGS: compile gives files the
// names that they have without it, and other names would make each archive differ.
func (w *works) list(ctx context.Context, names ...string) ([]source, error) {
	out, err := w.run(ctx, append([]string{
		"list", "-buildvcs=false", "-trimpath=false", "-deps", "-export",
		"-json=ImportPath,Name,Dir,Export,Standard,Imports,GoFiles,CgoFiles,SFiles,EmbedFiles,DefaultGODEBUG,Module",
	}, names...)...)
	if err != nil {
		return nil, err
	}
	var listed []source
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p source
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("reading what go list says: %w", err)
		}
		listed = append(listed, p)
	}
	return listed, nil
}

// files returns the package's files with those that are edited, which it writes to
// dir, in place of their originals. It reports whether there are any.
func (p *source) files(root, dir string, edited map[string][]byte) (files []string, changed bool, err error) {
	for _, f := range p.GoFiles {
		file := filepath.Join(p.Dir, f)
		place, err := filepath.Rel(root, file)
		if err != nil {
			return nil, false, err
		}
		if b, ok := edited[filepath.ToSlash(place)]; ok {
			original, err := os.ReadFile(file)
			if err != nil {
				return nil, false, err
			}
			changed = true
			file = filepath.Join(p.copies(dir), f)
			if err := os.MkdirAll(p.copies(dir), 0o700); err != nil {
				return nil, false, err
			}
			if err := os.WriteFile(file, align(b, original), 0o600); err != nil {
				return nil, false, err
			}
		}
		files = append(files, file)
	}
	return files, changed, nil
}

// copies is where in dir the package's edited files are.
func (p *source) copies(dir string) string {
	return filepath.Join(dir, strings.ReplaceAll(p.ImportPath, "/", "_"))
}

// align gives the lines behind the last edit the numbers that they have in the
// original, if there are now fewer: a package shows others where things are declared.
func align(b, original []byte) []byte {
	missing := bytes.Count(original, []byte("\n")) - bytes.Count(b, []byte("\n"))
	if missing <= 0 {
		return b
	}
	same := 0
	for same < min(len(b), len(original)) && b[len(b)-1-same] == original[len(original)-1-same] {
		same++
	}
	at := len(b) - same // where the end that they have in common begins
	if at > 0 {
		line := bytes.IndexByte(b[at-1:], '\n')
		if line < 0 {
			return b
		}
		at += line // the beginning of a line
	}
	return slices.Concat(b[:at], bytes.Repeat([]byte("\n"), missing), b[at:])
}

// addImports adds to the archives those of packages that only edited files import.
func (w *works) addImports(ctx context.Context, edited map[string][]byte, archives map[string]string) error {
	var unknown []string
	for file, b := range edited {
		f, err := parser.ParseFile(token.NewFileSet(), file, b, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if archives[name] == "" && name != "unsafe" {
				unknown = append(unknown, name)
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	listed, err := w.list(ctx, unknown...)
	for _, p := range listed {
		if archives[p.ImportPath] == "" && p.Export != "" {
			archives[p.ImportPath] = p.Export
		}
	}
	return err
}

// compile compiles a package, and returns its archive.
func (w *works) compile(ctx context.Context, dir string, p source, files []string, archives map[string]string) (string, error) {
	if len(p.CgoFiles)+len(p.SFiles)+len(p.EmbedFiles) > 0 {
		return "", fmt.Errorf("%s has more than files in Go: this can't compile them", p.ImportPath)
	}
	config, err := writeConfig(dir, archives)
	if err != nil {
		return "", err
	}
	name := p.ImportPath
	if p.Name == "main" {
		name = p.Name
	}
	archive := p.copies(dir) + ".a"
	_, err = w.run(ctx, append([]string{
		"tool", "compile", "-p", name, "-lang=" + version.Lang("go"+p.Module.GoVersion), "-complete", "-nolocalimports",
		"-trimpath", p.copies(dir) + "=>" + p.Dir, "-importcfg", config, "-pack", "-o", archive,
	}, files...)...)
	return archive, err
}

// link links the target, without tables that nobody reads, and returns its binary.
func (w *works) link(ctx context.Context, dir string, archives map[string]string) (string, error) {
	target := w.packages[len(w.packages)-1]
	config, err := writeConfig(dir, archives)
	if err != nil {
		return "", err
	}
	binary := dir + ".target"
	_, err = w.run(ctx, "tool", "link", "-importcfg", config, "-buildmode=exe", "-s", "-w",
		"-X=runtime.godebugDefault="+target.DefaultGODEBUG, "-o", binary, archives[target.ImportPath])
	return binary, err
}

// writeConfig writes to a file in dir where archives are.
func writeConfig(dir string, archives map[string]string) (string, error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(archives)) {
		fmt.Fprintf(&b, "packagefile %s=%s\n", name, archives[name])
	}
	name := filepath.Join(dir, "importcfg")
	return name, os.WriteFile(name, []byte(b.String()), 0o600)
}

// differ reports whether two archives show those that import them something else.
func differ(a, b string) (bool, error) {
	x, err := exported(a)
	if err != nil {
		return false, err
	}
	y, err := exported(b)
	return !bytes.Equal(x, y), err
}

// exported returns what an archive shows to those that import it: the first file in
// it, but for the lines at its head, which name what has compiled it.
func exported(archive string) ([]byte, error) {
	b, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	const (
		magic  = "!<arch>\n"
		name   = "__.PKGDEF"
		header = 60 // of a file, at whose byte 48 its size has 10
	)
	if len(b) >= len(magic)+header && bytes.HasPrefix(b, []byte(magic+name)) {
		size, err := strconv.Atoi(strings.TrimSpace(string(b[len(magic)+48:][:10])))
		if b = b[len(magic)+header:]; err == nil && 0 <= size && size <= len(b) {
			if _, data, ok := bytes.Cut(b[:size], []byte("\n$$B\n")); ok {
				return data, nil
			}
		}
	}
	return nil, fmt.Errorf("%s is no archive of the compiler as this knows it", archive)
}
