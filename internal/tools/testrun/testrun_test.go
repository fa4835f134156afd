package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gotestsum builds gotestsum, and returns where it is.
func gotestsum(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "tool", "-n", "gotestsum").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// module makes a module with one file of tests, .ci/skips and .ci/later, and goes there.
func module(t *testing.T, tests string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example\n\ngo 1.26\n",
		"p_test.go": "package p\n\n" + tests,
		".ci/skips": "# a comment\n^TestHelper$ another test starts it\n",
		".ci/later": "# a comment\ntest,race TestSlow takes minutes\nrace TestFiles/directory takes minutes under the race detector\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

const (
	passing = "import \"testing\"\n\nfunc TestPasses(*testing.T) {}\n"
	chance  = `import (
	"os"
	"testing"
)

// TestChance fails the first time.
func TestChance(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		if _, err := os.Stat("failed"); err != nil {
			os.WriteFile("failed", nil, 0o600)
			t.Error("what it said")
		}
	})
}
`
	failing = "import \"testing\"\n\nfunc TestFails(t *testing.T) { t.Error(\"what it said\") }\n"
	leaking = `import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if m.Run() == 0 && os.Getenv("LEAK") != "no" {
		fmt.Println("goroutines were left behind")
		os.Exit(1)
	}
}

func TestPasses(*testing.T) {}
`
	racing = `import "testing"

func TestRaces(t *testing.T) {
	n, done := 0, make(chan bool)
	go func() { n++; close(done) }()
	n++
	<-done
}
`
	panicking = "import \"testing\"\n\nfunc TestPanics(*testing.T) { panic(\"the product's\") }\n"
	skipping  = "import \"testing\"\n\nfunc TestSkips(t *testing.T) { t.Skip(\"there is no peer\") }\n\nfunc TestPasses(*testing.T) {}\n"
	helping   = "import \"testing\"\n\nfunc TestHelper(t *testing.T) { t.Skip(\"a helper\") }\n\nfunc TestPasses(*testing.T) {}\n"
	broken    = "import \"testing\"\n\nfunc TestPasses(*testing.T) { return 1 }\n"
	exiting   = "import (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestExits(*testing.T) { os.Exit(1) }\n"
	several   = `import "testing"

func TestSlow(t *testing.T) { t.Error("left out") }

func TestSlower(t *testing.T) {}

func TestFiles(t *testing.T) {
	t.Run("memory", func(t *testing.T) {})
	t.Run("directory", func(t *testing.T) {})
}
`
)

// What a run ends with, and what it says.
func TestOutcomes(t *testing.T) {
	program := gotestsum(t)
	for name, tt := range map[string]struct {
		tests string
		flags []string // of testrun and, after "--", of go test
		says  []string
		red   bool
	}{
		"passes":                       {tests: passing, says: []string{"1 tests passed in 1 packages, 0 flaky, 0 skipped"}},
		"by chance":                    {tests: chance, says: []string{"FLAKY example.TestChance/sub (failed 1 of 2)", "what it said", "1 flaky"}},
		"by chance, tried once":        {tests: chance, flags: []string{"-tries", "0"}, red: true, says: []string{"FAILED example.TestChance/sub", "what it said"}},
		"fails":                        {tests: failing, red: true, says: []string{"FAILED example.TestFails", "what it said"}},
		"a package, none of its tests": {tests: leaking, red: true, says: []string{"FAILED example: the package, though none of its tests", "goroutines were left behind"}},
		"data race":                    {tests: racing, flags: []string{"--", "-race"}, red: true, says: []string{"DATA RACE in example.TestRaces"}},
		"panic":                        {tests: panicking, red: true, says: []string{"PANIC in example"}},
		"skip":                         {tests: skipping, red: true, says: []string{"SKIPPED example.TestSkips", "there is no peer"}},
		"skip that may be":             {tests: helping, says: []string{"1 tests passed in 1 packages, 0 flaky, 1 skipped"}},
		"not built":                    {tests: broken, red: true, says: []string{"NOT BUILT example"}},
		"ends in the middle":           {tests: exiting, red: true, says: []string{"TestExits"}},
		"no tests":                     {tests: passing, flags: []string{"--", "-run", "^TestNone$"}, red: true, says: []string{"0 tests passed"}},
		"left out of test":             {tests: several, flags: []string{"-later", "test"}, says: []string{"4 tests passed"}},
		"left out of race":             {tests: several, flags: []string{"-later", "race"}, says: []string{"3 tests passed"}},
	} {
		t.Run(name, func(t *testing.T) {
			module(t, tt.tests)
			t.Setenv("CI", "1")
			args := []string{"-gotestsum", program}
			if len(tt.flags) > 0 && tt.flags[0] != "--" {
				args, tt.flags = append(args, tt.flags[:2]...), tt.flags[2:]
			}
			var out bytes.Buffer
			err := do(t.Context(), &out, append(append(args, "."), tt.flags...))
			if (err != nil) != tt.red {
				t.Errorf("%v; want red: %t", err, tt.red)
			}
			for _, want := range tt.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing", want)
				}
			}
			kept, err := os.ReadFile("artifacts/test/test-flaky.txt")
			if want := strings.Contains(out.String(), "FLAKY"); err != nil || want != strings.Contains(string(kept), "FLAKY example") {
				t.Errorf("kept of flaky tests: %q, %v", kept, err)
			}
			if t.Failed() {
				t.Logf("it said:\n%s", out.String())
			}
		})
	}
}

// A skip that is nobody's concern passes where CI is not set.
func TestSkipsPassOnADevelopersMachine(t *testing.T) {
	program := gotestsum(t)
	module(t, skipping)
	t.Setenv("CI", "")
	var out bytes.Buffer
	if err := do(t.Context(), &out, []string{"-gotestsum", program, "."}); err != nil {
		t.Errorf("%v; it said\n%s", err, out.String())
	}
}

func TestListsThatAreWrongAreRefused(t *testing.T) {
	module(t, passing)
	for file, text := range map[string]string{".ci/later": "test TestWithoutReason\n", ".ci/skips": "^(Test reason\n"} {
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("CI", "1")
		if err := do(t.Context(), t.Output(), []string{"-gotestsum", "none", "-later", "test", "."}); err == nil {
			t.Errorf("%s with %q is taken", file, text)
		}
		if err := os.WriteFile(file, kept, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Long output is cut in the middle.
func TestExcerptKeepsBothEnds(t *testing.T) {
	said := "=== RUN   TestX\nfirst\n" + strings.Repeat("more\n", 200) + "last\n"
	got := excerpt(said)
	if lines := strings.Count(got, "\n"); lines != shown+1 || !strings.HasPrefix(got, "    first\n") || !strings.HasSuffix(got, "    last\n") || !strings.Contains(got, "... 142 lines ...") {
		t.Errorf("%d lines:\n%s", lines, got)
	}
}
