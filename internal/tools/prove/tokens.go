package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// What of a comment is no mere comment: directives of the compiler and of the Go command.
var directives = []string{"//go:", "//export ", "//line ", "/*line ", "// +build "}

// code returns what of a Go file a proof depends on: its tokens and directives. Comments and blanks may change; a file
// counts as a whole if its comments are read by a program, as those of cgo and of examples are, or if it is no Go.
func code(text []byte) []byte {
	if importsC(text) || bytes.Contains(text, []byte("\nfunc Example")) {
		return text
	}
	var s scanner.Scanner
	var out bytes.Buffer
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, func(token.Position, string) {}, scanner.ScanComments)
	for {
		switch _, tok, lit := s.Scan(); {
		case tok == token.EOF:
			if s.ErrorCount > 0 {
				return text
			}
			return out.Bytes()
		case tok != token.COMMENT, isDirective(lit):
			fmt.Fprintf(&out, "%v %q\n", tok, lit)
		}
	}
}

// importsC reports whether a file is one of cgo, in which comments are C, or can't be parsed.
func importsC(text []byte) bool {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly)
	return err != nil || slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"C"` })
}

func isDirective(comment string) bool {
	for _, d := range directives {
		if strings.HasPrefix(comment, d) {
			return true
		}
	}
	return false
}

// blobs returns the contents of blobs, in their order.
func (c checkout) blobs(ids []string) ([][]byte, error) {
	cmd := exec.Command("git", "-C", string(c), "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	var all [][]byte
	for range ids {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		fields := strings.Fields(string(head)) // the id, "blob" and the size
		if len(fields) != 3 {
			return nil, fmt.Errorf("git cat-file: %s", head)
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil || n >= len(rest) {
			return nil, fmt.Errorf("git cat-file: %s", head)
		}
		all, out = append(all, rest[:n]), rest[n+1:]
	}
	return all, nil
}
