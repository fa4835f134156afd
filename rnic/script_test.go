package rnic_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
)

// The scripts of a connection's life are in testdata/life; README.txt there says how to
// read them. Each runs over both kinds of network, which must make no difference.
//
// After a change that is meant to be seen in them:
//
//	go test ./rnic -run TestScript -rewrite && git diff rnic/testdata/life
var rewrite = flag.Bool("rewrite", false, "write the scripts of testdata/life anew, with what happens now")

const scriptDir = "testdata/life"

func TestScript(t *testing.T) {
	files, err := filepath.Glob(scriptDir + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	seen, ran, all := make(sightings), 0, 0
	for _, file := range files {
		if filepath.Base(file) == tableFile {
			continue
		}
		all++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			ran++
			s := readScript(t, file)
			s.play(t, false, *rewrite, seen)
			if *rewrite {
				if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s.play(t, true, false, seen)
		})
	}
	if ran == all { // else -run has chosen some
		checkTable(t, seen)
	}
}

// A script is a file of testdata/life.
type script struct {
	name  string
	parts []part
}

// A part is a piece of a script: comments and empty lines, or commands and what comes
// of them.
type part struct {
	text     string // comments
	line     int    // of the first command
	commands []string
	output   string
}

// readScript reads a script. Its first line is a comment that says what it shows.
func readScript(t *testing.T, file string) *script {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{name: strings.TrimSuffix(filepath.Base(file), ".txt")}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if first := lines[0]; !strings.HasPrefix(first, "# ") || !strings.HasSuffix(first, ".") {
		t.Errorf("%s begins with %q; want a comment that says in a sentence what it shows", file, first)
	}
	for i := 0; i < len(lines); {
		if l := lines[i]; l == "" || strings.HasPrefix(l, "#") {
			s.parts = append(s.parts, part{text: l + "\n"})
			i++
			continue
		}
		p := part{line: i + 1}
		for ; i < len(lines) && lines[i] != "----" && lines[i] != ""; i++ {
			p.commands = append(p.commands, lines[i])
		}
		if i == len(lines) || lines[i] == "" {
			if !*rewrite {
				t.Fatalf("%s:%d: no ---- behind the commands", file, p.line)
			}
			i--
		}
		var out strings.Builder
		for i++; i < len(lines) && lines[i] != ""; i++ {
			out.WriteString(lines[i] + "\n")
		}
		p.output = out.String()
		s.parts = append(s.parts, p)
	}
	return s
}

// String returns the text of the script.
func (s *script) String() string {
	var b strings.Builder
	for _, p := range s.parts {
		b.WriteString(p.text)
		for _, c := range p.commands {
			b.WriteString(c + "\n")
		}
		if len(p.commands) > 0 {
			b.WriteString("----\n" + p.output)
		}
	}
	return b.String()
}

// play carries out the commands, and compares what comes of them with what is written
// there, or takes it over.
func (s *script) play(t *testing.T, polls, takeOver bool, seen sightings) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &life{world: &world{TB: t, Network: simnet.Network{Polls: polls}}, file: s.name, seen: seen}
		for i := range s.parts {
			p := &s.parts[i]
			if len(p.commands) == 0 {
				continue
			}
			l.at = fmt.Sprintf("%s/%s.txt:%d", scriptDir, s.name, p.line)
			got := ""
			for _, c := range p.commands {
				got += l.run(c)
			}
			if got == "" {
				got = "ok\n"
			}
			if takeOver {
				p.output = got
			} else if got != p.output {
				t.Errorf("%s, over a network that %s: %s\ngot:\n%swant:\n%s", l.at, networks[polls], strings.Join(p.commands, "; "), got, p.output)
			}
		}
		l.end()
	})
}

// A command is one line of a script: words, and values with names.
type command struct {
	l      *life
	words  []string
	values map[string]string
	used   map[string]bool
}

func (l *life) parse(line string) *command {
	c := &command{l: l, values: map[string]string{}, used: map[string]bool{}}
	for w := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(w, "="); ok {
			c.values[name] = value
		} else {
			c.words = append(c.words, w)
		}
	}
	return c
}

// word returns the next word, or "".
func (c *command) word() string {
	if len(c.words) == 0 {
		return ""
	}
	w := c.words[0]
	c.words = c.words[1:]
	return w
}

// flag reports whether a word is among the rest, and removes it.
func (c *command) flag(name string) bool {
	for i, w := range c.words {
		if w == name {
			c.words = append(c.words[:i:i], c.words[i+1:]...)
			return true
		}
	}
	return false
}

// value returns a value, or what stands for it if it is not given.
func (c *command) value(name, otherwise string) string {
	c.used[name] = true
	if v, ok := c.values[name]; ok {
		return v
	}
	return otherwise
}

func (c *command) has(name string) bool {
	_, ok := c.values[name]
	return ok
}

// number is value for a number.
func (c *command) number(name string, otherwise int) int {
	v := c.value(name, fmt.Sprint(otherwise))
	var n int
	if _, err := fmt.Sscanf(v, "%v", &n); err != nil {
		c.l.Fatalf("%s: %s=%s is no number", c.l.at, name, v)
	}
	return n
}

// done fails the test if something of the command is not understood.
func (c *command) done() {
	for name := range c.values {
		if !c.used[name] {
			c.l.Fatalf("%s: nothing is known of %s=", c.l.at, name)
		}
	}
	if len(c.words) > 0 {
		c.l.Fatalf("%s: nothing is known of %q", c.l.at, c.words)
	}
}
