package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// inputs returns all inputs of a proof, sorted: those that it names and, of the packages whose tests
// it runs, those tests, their testdata, and every package of the module that is linked with them.
func (c checkout) inputs(p proof) ([]string, error) {
	all := slices.Clone(p.inputs)
	if len(p.tests) > 0 {
		linked, err := c.linked(p.tests)
		if err != nil {
			return nil, err
		}
		all = append(all, linked...)
		all = append(all, "go.mod", "go.sum")
	}
	for _, pkg := range p.tests {
		all = append(all, pkg+"/*_test.go")
		testdata, err := c.git("ls-tree", "--full-tree", "--name-only", "HEAD", "--", pkg+"/testdata")
		if err != nil {
			return nil, err
		}
		if testdata != "" {
			all = append(all, testdata)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// linked returns the packages of the module that the tests of packages are linked with, as inputs, and
// the files that are embedded there.
func (c checkout) linked(pkgs []string) ([]string, error) {
	const format = `{{with .Module}}{{if .Main}}{{$.Dir}}/*
{{range $.EmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{range $.TestEmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{range $.XTestEmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`
	args := []string{"list", "-deps", "-test", "-f", format}
	for _, p := range pkgs {
		args = append(args, "./"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = string(c)
	out, err := cmd.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	top, err := filepath.EvalSymlinks(string(c))
	if err != nil {
		return nil, err
	}
	var found []string
	for file := range strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == '\n' }) {
		rel, err := filepath.Rel(top, file)
		if err != nil {
			return nil, err
		}
		found = append(found, filepath.ToSlash(rel))
	}
	return found, nil
}
