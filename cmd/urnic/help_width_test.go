package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Help texts fit a terminal of 80 columns, whatever the command.
func TestHelpFits80Columns(t *testing.T) {
	commands := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		commands++
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		_, out, _ := urnic(t, nil, args...)
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%v: %d columns: %s", args, n, line)
			}
			if line != strings.TrimRight(line, " ") {
				t.Errorf("%v: blanks at the end of %q", args, line)
			}
		}
		for _, c := range cmd.Commands() {
			if c.Name() != "completion" { // cobra's own
				check(c)
			}
		}
	}
	check(newRootCommand())
	if commands < 35 {
		t.Errorf("there are only %d commands", commands)
	}
}

// The list of cases fits, too. The IDs of cases are what they are.
func TestConformListFits80Columns(t *testing.T) {
	lines := 0
	for line := range strings.Lines(ok(t, "conform", "--list")) {
		lines++
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 && strings.HasPrefix(line, " ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if lines < 5000 {
		t.Errorf("there are only %d lines", lines)
	}
}

func TestFillKeepsTables(t *testing.T) {
	long := strings.Repeat("word ", 40)
	table := "{\"key\":   " + long
	got := fill("One\nsentence.\n\n" + table + "\n\n  a  " + long + "\n\n" + long)
	filled := strings.TrimSuffix(strings.Repeat("word ", 16), " ")
	if want := "One sentence.\n\n" + table + "\n\n  a  " + long + "\n\n" + filled + "\n" + filled + "\n" + strings.TrimSuffix(strings.Repeat("word ", 8), " "); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
