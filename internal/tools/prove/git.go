package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// trees returns Git's hash of each input of a proof in HEAD. It is an error if one is not
// there, or if the checkout differs from HEAD in one.
func (c checkout) trees(p proof) (map[string]string, error) {
	trees := map[string]string{}
	var paths []string
	for _, input := range p.inputs {
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
	if strings.HasSuffix(input, "/*") {
		return ":(top,glob)" + input
	}
	return ":(top,literal)" + input
}

// hash returns the hash of one input: of its files in HEAD, by name. Tests in a directory do not
// count, as no proof runs them but those that it names.
func (c checkout) hash(input string) (string, error) {
	args := []string{"ls-tree", "--full-tree", "-r", "HEAD", "--", input}
	dir, files := strings.CutSuffix(input, "/*")
	if files {
		args = []string{"ls-tree", "--full-tree", "HEAD", "--", dir + "/"}
	}
	list, err := c.git(args...)
	if err != nil {
		return "", err
	}
	var blobs strings.Builder
	for line := range strings.Lines(list) {
		about, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if strings.Contains(about, " blob ") && (name == input || !strings.HasSuffix(name, "_test.go")) {
			fmt.Fprintln(&blobs, about, name)
		}
	}
	if blobs.Len() == 0 {
		return "", fmt.Errorf("HEAD has no %s", input)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(blobs.String()))), nil
}

// git runs Git in the checkout, and returns what it prints, without the last line feed.
func (c checkout) git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", string(c)}, args...)...).Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSuffix(string(out), "\n"), err
}
