package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// A row explains why a mutant survives.
type row struct {
	key
	line int
	why  string
}

// readTable reads the explained mutants of the package in dir, relative to the module,
// from the tables of a Markdown page. Their columns are the file, the function, the
// mutant and the reason. A page that does not exist has no rows.
func readTable(name, dir string) (map[key]*row, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	rows := map[key]*row{}
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		c := cells(s.Text())
		if len(c) == 0 || !strings.HasPrefix(c[0], "`") {
			continue
		}
		if len(c) != 4 || c[3] == "" {
			return nil, fmt.Errorf("%s:%d: a row has a file, a function, a mutant and the reason", name, n)
		}
		r := &row{key{strings.Trim(c[0], "`"), strings.Trim(c[1], "`"), strings.Trim(c[2], "`")}, n, c[3]}
		if path.Dir(r.file) != dir {
			continue
		}
		if was, ok := rows[r.key]; ok {
			return nil, fmt.Errorf("%s:%d: the mutant is explained in line %d", name, n, was.line)
		}
		rows[r.key] = r
	}
	return rows, s.Err()
}

// cells divides a row of a Markdown table. A bar within a cell is written as \|.
func cells(line string) []string {
	line, ok := strings.CutPrefix(strings.TrimSpace(line), "|")
	if !ok {
		return nil
	}
	const bar = "\x00"
	var out []string
	for c := range strings.SplitSeq(strings.TrimSuffix(strings.ReplaceAll(line, `\|`, bar), "|"), "|") {
		out = append(out, strings.ReplaceAll(strings.TrimSpace(c), bar, "|"))
	}
	return out
}

// markdown returns a mutant as a row of the table, without its reason.
func (k key) markdown() string {
	escape := func(s string) string { return "`" + strings.ReplaceAll(s, "|", `\|`) + "`" }
	return fmt.Sprintf("| %s | %s | %s | |", escape(k.file), escape(k.fn), escape(k.change))
}
