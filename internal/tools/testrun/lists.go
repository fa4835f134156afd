package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// skips returns a pattern for the tests that may be skipped: the first word of each line of a file
// that is no comment. Without any it matches nothing.
func skips(file string) (*regexp.Regexp, error) {
	patterns, err := rows(file)
	if err != nil {
		return nil, err
	}
	alternatives := []string{`[^\s\S]`} // nothing
	for _, words := range patterns {
		alternatives = append(alternatives, "(?:"+words[0]+")")
	}
	return regexp.Compile(strings.Join(alternatives, "|"))
}

// later returns a pattern for -skip of go test: the tests that a file leaves out of a kind of run.
// Each line has the kinds, separated by commas, then the name of a test, and the reason. The name is a whole one,
// or a pattern for the rest of it if that ends with "*".
func later(file, kind string) (string, error) {
	lines, err := rows(file)
	if err != nil {
		return "", err
	}
	var names []string
	for _, words := range lines {
		if len(words) < 3 {
			return "", fmt.Errorf("%s: %q: want kinds of run, the name of a test, and a reason", file, strings.Join(words, " "))
		}
		if slices.Contains(strings.Split(words[0], ","), kind) {
			names = append(names, exactly(words[1]))
		}
	}
	return strings.Join(names, "|"), nil
}

// exactly returns a pattern that matches a test and its subtests.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if begin, more := strings.CutSuffix(part, "*"); more {
			parts[i] = "^" + regexp.QuoteMeta(begin)
		} else {
			parts[i] = "^" + regexp.QuoteMeta(part) + "$"
		}
	}
	return strings.Join(parts, "/")
}

// rows returns the words of each line of a file that is neither empty nor a comment.
func rows(file string) (lines [][]string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			lines = append(lines, words)
		}
	}
	return lines, nil
}
