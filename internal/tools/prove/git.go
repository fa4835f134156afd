package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// theCommand stands for a proof's command among its inputs.
const theCommand = "(command)"

// trees returns a hash of each input of a proof in HEAD, and of its command. It is an error if one is not
// there, or if the checkout differs from HEAD in one.
func (c checkout) trees(p proof) (map[string]string, error) {
	inputs, err := c.inputs(p)
	if err != nil {
		return nil, err
	}
	trees := map[string]string{theCommand: sum(strings.Join(p.command, "\n"))}
	var paths []string
	for _, input := range inputs {
		hash, err := c.hash(input)
		if err != nil {
			return nil, err
		}
		trees[input] = hash
		paths = append(paths, pathspec(input))
	}
	dirty, err := c.git(append([]string{"status", "--porcelain", "--untracked-files=all", "--"}, paths...)...)
	if err != nil {
		return nil, err
	}
	if dirty != "" {
		return nil, fmt.Errorf("the checkout differs from HEAD:\n%s", dirty)
	}
	return trees, nil
}

// pathspec returns what Git matches an input with.
func pathspec(input string) string {
	if strings.HasSuffix(input, "/*") || strings.HasSuffix(input, testsOf) {
		return ":(top,glob)" + input
	}
	file, _, _ := strings.Cut(input, "#")
	return ":(top,literal)" + file
}

// testsOf is behind the directory in an input that is its tests.
const testsOf = "/*_test.go"

// hash returns the hash of one input: of its files in HEAD, by name. Tests in a directory do not
// count, as no proof runs them but those that it names, and neither do the comments of Go files.
func (c checkout) hash(input string) (string, error) {
	if file, dir, is := strings.Cut(input, "#"); is {
		return c.rows(file, dir)
	}
	args := []string{"ls-tree", "--full-tree", "-r", "HEAD", "--", input}
	dir, tests := strings.CutSuffix(input, testsOf)
	dir, inDir := strings.CutSuffix(dir, "/*")
	if inDir || tests {
		args = []string{"ls-tree", "--full-tree", "HEAD", "--", dir + "/"}
	}
	list, err := c.git(args...)
	if err != nil {
		return "", err
	}
	var files, ids []string
	for line := range strings.Lines(list) {
		about, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if mode, id, is := strings.Cut(about, " blob "); is && (name == input || tests == strings.HasSuffix(name, "_test.go")) {
			files, ids = append(files, mode+" "+name), append(ids, id)
		}
	}
	if len(files) == 0 {
		return "", fmt.Errorf("HEAD has no %s", input)
	}
	texts, err := c.blobs(ids)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for i, file := range files {
		text := texts[i]
		if strings.HasSuffix(file, ".go") {
			text = code(text)
		}
		fmt.Fprintf(&all, "%x %s\n", sha256.Sum256(text), file)
	}
	return sum(all.String()), nil
}

// rows returns the hash of the rows of a Markdown table in HEAD whose first cell is a file in a
// directory. There may be none.
func (c checkout) rows(file, dir string) (string, error) {
	text, err := c.git("show", "HEAD:"+file)
	if err != nil {
		return "", err
	}
	var rows strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| `"+dir+"/") {
			fmt.Fprintln(&rows, strings.TrimSpace(line))
		}
	}
	return sum(rows.String()), nil
}

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// git runs Git in the checkout, and returns what it prints, without the last line feed.
func (c checkout) git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", string(c)}, args...)...).Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSuffix(string(out), "\n"), err
}
