package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// records is where the records are, below the top of the checkout.
const records = ".ci/proved"

// A record says what a proof has passed for.
type record struct {
	said  string            // when and where, for people
	trees map[string]string // hashes, by input, and of the command
}

// parse reads a record. Lines are "said TEXT" and "tree HASH INPUT"; others are an error,
// so that a record that was damaged holds for nothing.
func parse(text string) (record, error) {
	r := record{trees: map[string]string{}}
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch hash, input, ok := strings.Cut(rest, " "); {
		case kind == "said":
			r.said = rest
		case kind == "tree" && ok && r.trees[input] == "":
			r.trees[input] = hash
		default:
			return record{}, fmt.Errorf("%q is no line of a record", line)
		}
	}
	if len(r.trees) == 0 {
		return record{}, errors.New("it names no input")
	}
	return r, nil
}

func (r record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "said %s\n", r.said)
	for _, input := range slices.Sorted(maps.Keys(r.trees)) {
		fmt.Fprintf(&b, "tree %s %s\n", r.trees[input], input)
	}
	return b.String()
}

// A checkout is the top directory of a clone.
type checkout string

// read reads the record of a proof.
func (c checkout) read(p proof) (record, error) {
	b, err := os.ReadFile(filepath.Join(string(c), records, p.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return record{}, errors.New("it has no record")
	case err != nil:
		return record{}, err
	}
	r, err := parse(string(b))
	if err != nil {
		return record{}, fmt.Errorf("its record, %s: %w", path.Join(records, p.name), err)
	}
	return r, nil
}

// write records that a proof has passed for what is checked out.
func (c checkout) write(p proof, said string) error {
	trees, err := c.trees(p)
	if err != nil {
		return fmt.Errorf("%s can't be recorded: %w", p.name, err)
	}
	name := filepath.Join(string(c), records, p.name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(record{said, trees}.String()), 0o644)
}

// holds returns the record of a proof, or an error that says why it does not hold.
func (c checkout) holds(p proof) (record, error) {
	r, err := c.read(p)
	if err != nil {
		return record{}, err
	}
	now, err := c.trees(p)
	if err != nil {
		return record{}, err
	}
	var changed []string
	for input, hash := range now {
		if r.trees[input] != hash {
			changed = append(changed, input)
		}
	}
	for input := range r.trees {
		if now[input] == "" {
			changed = append(changed, input+" (no input any more)")
		}
	}
	if len(changed) > 0 {
		slices.Sort(changed)
		return record{}, fmt.Errorf("since its record (%s), these have changed: %s", r.said, strings.Join(changed, ", "))
	}
	return r, nil
}
