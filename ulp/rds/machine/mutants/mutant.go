package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A mutant is the machine with one fault in it: a text of a file is replaced by another.
type mutant struct {
	name     string
	fault    string // what the machine does wrong
	file     string
	old, new string
}

// apply returns the file's text with the fault in it. The old text must stand there once.
func (m *mutant) apply(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("%s: what is to be replaced stands in %s %d times", m.name, m.file, n)
	}
	return strings.Replace(string(text), m.old, m.new, 1), nil
}
