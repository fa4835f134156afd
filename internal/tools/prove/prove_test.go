package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clone makes a checkout with one commit, in which each file holds its own name.
func clone(t *testing.T, files ...string) checkout {
	t.Helper()
	c := checkout(t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	must(t, c, "init", "-q")
	for _, f := range files {
		c.put(t, f, f)
	}
	commit(t, c)
	return c
}

func must(t *testing.T, c checkout, args ...string) {
	t.Helper()
	if _, err := c.git(args...); err != nil {
		t.Fatal(err)
	}
}

func commit(t *testing.T, c checkout) {
	t.Helper()
	must(t, c, "add", "-A")
	must(t, c, "-c", "user.name=u", "-c", "user.email=u@example.net", "commit", "-qm", "change")
}

func (c checkout) put(t *testing.T, file, text string) {
	t.Helper()
	name := filepath.Join(string(c), file)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var sample = proof{name: "p", command: []string{"true"}, inputs: []string{"dir", "top/*", "file", "named_test.go"}}

func TestRecordHoldsWhileItsInputsStay(t *testing.T) {
	for _, tt := range []struct {
		file         string
		commit, due  bool
		inTheMessage string
	}{
		{file: "other", commit: true},
		{file: "other"},
		{file: "top/sub/f", commit: true}, // DIR/* is without what is below
		{file: "top/sub/new"},
		{file: "dir/a_test.go", commit: true},
		{file: "named_test.go", commit: true, due: true, inTheMessage: "named_test.go"},
		{file: "dir/a", commit: true, due: true, inTheMessage: "dir"},
		{file: "dir/sub/b", commit: true, due: true, inTheMessage: "dir"},
		{file: "dir/new", commit: true, due: true, inTheMessage: "dir"},
		{file: "top/f", commit: true, due: true, inTheMessage: "top/*"},
		{file: "top/new", commit: true, due: true, inTheMessage: "top/*"},
		{file: "file", commit: true, due: true, inTheMessage: "file"},
		{file: "dir/a", due: true, inTheMessage: "differs from HEAD"},
		{file: "dir/new", due: true, inTheMessage: "differs from HEAD"},
		{file: "top/new", due: true, inTheMessage: "differs from HEAD"},
	} {
		name := tt.file
		if !tt.commit {
			name += " not committed"
		}
		t.Run(name, func(t *testing.T) {
			c := clone(t, "dir/a", "dir/sub/b", "dir/a_test.go", "top/f", "top/sub/f", "file", "named_test.go", "other")
			if err := c.run(t.Context(), t.Output(), []proof{sample}); err != nil {
				t.Fatal(err)
			}
			commit(t, c) // the record, which is no input
			if _, err := c.holds(sample); err != nil {
				t.Fatalf("right after the proof: %v", err)
			}
			c.put(t, tt.file, "changed")
			if tt.commit {
				commit(t, c)
			}
			_, err := c.holds(sample)
			if tt.due != (err != nil) || tt.due && !strings.Contains(err.Error(), tt.inTheMessage) {
				t.Errorf("due: %v; want %v with %q", err, tt.due, tt.inTheMessage)
			}
		})
	}
}

func TestWhatFailsIsNotRecorded(t *testing.T) {
	for name, command := range map[string][]string{
		"fails":              {"false"},
		"changes its inputs": {"sh", "-c", "echo changed >dir/a"},
		"commits its inputs": {"sh", "-c", "echo changed >dir/a; git add -A; git -c user.name=u -c user.email=u@example.net commit -qm x"},
		"does not start":     {"no-such-program"},
	} {
		t.Run(name, func(t *testing.T) {
			c := clone(t, "dir/a", "top/f", "file", "named_test.go")
			p := sample
			p.command = command
			if err := c.run(t.Context(), t.Output(), []proof{p}); err == nil {
				t.Error("the run has no error")
			}
			if _, err := os.Stat(filepath.Join(string(c), records, p.name)); err == nil {
				t.Error("it is recorded")
			}
		})
	}
}

func TestProofOfWhatIsNotCommittedDoesNotRun(t *testing.T) {
	c := clone(t, "dir/a", "top/f", "file", "named_test.go")
	c.put(t, "dir/a", "changed")
	p := sample
	p.command = []string{"touch", "ran"}
	if err := c.run(t.Context(), t.Output(), []proof{p}); err == nil {
		t.Error("the run has no error")
	}
	if _, err := os.Stat(filepath.Join(string(c), "ran")); err == nil {
		t.Error("the command has run")
	}
}

func TestRecordsThatSayLessHoldForNothing(t *testing.T) {
	c := clone(t, "dir/a", "top/f", "file", "named_test.go")
	if err := c.write(sample, "passed"); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(string(c), records, sample.name))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(whole)))
	for name, text := range map[string]string{
		"empty":                  "",
		"only said":              lines[0],
		"an input less":          strings.Join(lines[:len(lines)-1], ""),
		"an input that is none":  string(whole) + "tree 0123 elsewhere\n",
		"a line that is unknown": string(whole) + "holds\n",
		"an input twice":         string(whole) + lines[1],
	} {
		t.Run(name, func(t *testing.T) {
			c.put(t, path.Join(records, sample.name), text)
			if _, err := c.holds(sample); err == nil {
				t.Error("it holds")
			}
		})
	}
}

// What a proof's packages import is an input too, or is left out with a reason.
func TestInputsAreClosedUnderImports(t *testing.T) {
	top, err := checkout(".").git("rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proofs {
		t.Run(p.name, func(t *testing.T) {
			c := checkout(top)
			covered := func(pkg string) bool {
				return slices.ContainsFunc(p.inputs, func(in string) bool {
					return pkg == strings.TrimSuffix(in, "/*") || strings.HasPrefix(pkg, in+"/")
				})
			}
			seen := map[string]bool{}
			var follow func(pkg, from string)
			follow = func(pkg, from string) {
				if seen[pkg] || p.cut[pkg] != "" {
					seen[pkg] = true
					return
				}
				seen[pkg] = true
				if !covered(pkg) {
					t.Errorf("%s imports %s, which is no input", from, pkg)
				}
				for _, i := range c.imports(t, pkg) {
					follow(i, pkg)
				}
			}
			for _, in := range p.inputs {
				if _, err := c.hash(in); err != nil {
					t.Error(err)
				}
				for _, pkg := range c.packages(t, in) {
					follow(pkg, p.name)
				}
			}
			for pkg := range p.cut {
				if !seen[pkg] {
					t.Errorf("%s is cut, but nothing imports it", pkg)
				}
			}
		})
	}
}

// imports returns the packages of urnic that a package imports.
func (c checkout) imports(t *testing.T, pkg string) []string {
	t.Helper()
	return c.goList(t, `{{join .Imports "\n"}}`, "./"+pkg)
}

// packages returns the packages in an input.
func (c checkout) packages(t *testing.T, input string) []string {
	t.Helper()
	dir, files := strings.CutSuffix(input, "/*")
	if s, err := os.Stat(filepath.Join(string(c), dir)); err != nil || !s.IsDir() {
		return nil
	}
	pattern := "./" + dir
	if !files {
		pattern += "/..."
	}
	return c.goList(t, "{{.ImportPath}}", pattern)
}

// goList returns those of urnic's packages that go list prints. The tools are a module of their own.
func (c checkout) goList(t *testing.T, format, pattern string) []string {
	t.Helper()
	dir := string(c)
	if tool, is := strings.CutPrefix(pattern, "./internal/tools/"); is {
		dir, pattern = filepath.Join(dir, "internal", "tools"), "./"+tool
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", format, pattern)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if pkg, ok := strings.CutPrefix(strings.TrimSpace(line), "urnic/"); ok {
			found = append(found, pkg)
		}
	}
	return found
}
