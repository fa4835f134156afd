package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The short flags of perftest mean the same here.
func TestPerfHasTheShortFlagsOfPerftest(t *testing.T) {
	long := ok(t, "perf", "local", "--size", "4K", "--qps", "2", "--iters", "7", "--json")
	short := ok(t, "perf", "local", "-s", "4K", "-q", "2", "-n", "7", "--json")
	for _, want := range []string{`"size":4096,`, `"qps":2,`, `"iterations":14,`} {
		for _, out := range []string{long, short} {
			if !strings.Contains(out, want) {
				t.Errorf("no %s in %s", want, out)
			}
		}
	}
	for text, ns := range map[string]int64{"2": 2e9, "0": 0, "10ms": 1e7, "1m": 6e10} {
		var s seconds
		if err := s.Set(text); err != nil || int64(s) != ns {
			t.Errorf("-D %s is %v, %v", text, s.String(), err)
		}
	}
	for _, text := range []string{"", "s", "-", "1x", "99999999999"} {
		status, _, errOut := urnic(t, nil, "perf", "local", "-D", text)
		wantError(t, []string{"-D", text}, status, errOut, "give a time with its unit")
	}
}

// The table that maps perftest to urnic perf names flags that exist.
func TestPerftestTableNamesFlags(t *testing.T) {
	b, err := os.ReadFile("../../docs/perftest.md")
	if err != nil {
		t.Fatal(err)
	}
	var client *cobra.Command
	for _, c := range documented(newRootCommand()) {
		if c.CommandPath() == "urnic perf client" {
			client = c
		}
	}
	named := 0
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) < 2 {
			continue
		}
		for _, m := range regexp.MustCompile("--?[a-z-]+").FindAllString(strings.Join(regexp.MustCompile("`[^`]*`").FindAllString(cells[1], -1), " "), -1) {
			named++
			name := strings.TrimLeft(m, "-")
			if client.Flags().Lookup(name) == nil && (len(name) > 1 || client.Flags().ShorthandLookup(name) == nil) {
				t.Errorf("`urnic perf client` has no %s", m)
			}
		}
	}
	if named < 12 {
		t.Errorf("the table names only %d flags", named)
	}
}
