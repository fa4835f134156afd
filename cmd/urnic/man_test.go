package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Each command has a page, and each of its flags is there.
func TestEachFlagIsInAManPage(t *testing.T) {
	dir := t.TempDir()
	if out := ok(t, "man", dir); out != "" {
		t.Errorf("man prints %q", out)
	}
	root := newRootCommand()
	root.InitDefaultCompletionCmd()
	commands, flags := 0, 0
	for _, cmd := range documented(newRootCommand()) {
		commands++
		b, err := os.ReadFile(filepath.Join(dir, manName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		text := strings.ReplaceAll(string(b), "\\-", "-")
		cmd.InheritedFlags() // joins the flags of its parents
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			flags++
			if want := "\\fB--" + f.Name + "\\fR"; !f.Hidden && !strings.Contains(text, want) {
				t.Errorf("%s: no --%s", manName(cmd), f.Name)
			}
			if want := "\\fB-" + f.Shorthand + "\\fR, "; f.Shorthand != "" && !f.Hidden && !strings.Contains(text, want) {
				t.Errorf("%s: no -%s", manName(cmd), f.Shorthand)
			}
		})
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"SEE ALSO\""} {
			if section == "OPTIONS" {
				section = "\"OPTIONS\""
			}
			if !strings.Contains(text, "\n.SH "+section+"\n") {
				t.Errorf("%s: no section %s", manName(cmd), section)
			}
		}
	}
	if commands < 30 || flags < 200 {
		t.Errorf("there are only %d commands and %d flags", commands, flags)
	}
}

// Mandoc finds nothing wrong with the pages, even in style.
func TestManPagesAreClean(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("mandoc is missing: on Debian, apt-get install mandoc")
		}
		t.Skip("mandoc is missing")
	}
	dir := t.TempDir()
	ok(t, "man", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	out, err := exec.CommandContext(t.Context(), mandoc, append([]string{"-T", "lint", "-W", "style"}, pages...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestManWantsOneDirectory(t *testing.T) {
	status, _, errOut := urnic(t, nil, "man")
	wantError(t, []string{"man"}, status, errOut, "give one directory")
	none := filepath.Join(t.TempDir(), "none")
	status, _, errOut = urnic(t, nil, "man", none)
	wantError(t, []string{"man", none}, status, errOut, "no such file or directory")
}

// Roff takes none of a text for a request or an escape.
func TestRoffEscapes(t *testing.T) {
	for in, want := range map[string]string{
		"a-b": `a\-b`, ".TH": `\&.TH`, "'x": `\&'x`, `a\b`: `a\eb`, "~^`": "\\(ti\\(ha\\(ga",
	} {
		if got := roff(in); got != want {
			t.Errorf("roff(%q) = %q, want %q", in, got, want)
		}
	}
}

// The completions of each shell are scripts that the shell reads.
func TestCompletionsAreScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			script := ok(t, "completion", shell)
			if !strings.Contains(script, "urnic") {
				t.Fatalf("no urnic in %q", script)
			}
			path, err := exec.LookPath(shell)
			if err != nil {
				if os.Getenv("CI") != "" {
					t.Fatalf("%s is missing: on Debian, apt-get install %[1]s", shell)
				}
				t.Skipf("%s is missing", shell)
			}
			if out, err := exec.CommandContext(t.Context(), path, "-n", temp(t, []byte(script))).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if _, out, _ := urnic(t, nil, "__complete", "perf", "client", "--du"); !strings.HasPrefix(out, "--duration\t") {
		t.Errorf("--du is completed to %q", out)
	}
}
