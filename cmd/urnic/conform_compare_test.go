package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConformComparesReports(t *testing.T) {
	dir, target := t.TempDir(), conformTarget(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	ok(t, "conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1", "--json", file("siw.json"))
	ok(t, "conform", "--target", target, "--profile", "urnic", "--only", "rfc5041-7.1-4", "--json", file("urnic.json"))
	out := ok(t, "conform", "compare", "--html", file("matrix.html"), file("siw.json"), file("urnic.json"))
	if !strings.Contains(out, "the verdicts differ in ") || !strings.Contains(out, "\npass  –     rfc5041-7.1-") {
		t.Errorf("it prints %s", out)
	}
	b, err := os.ReadFile(file("matrix.html"))
	if err != nil || !strings.Contains(string(b), "the verdicts differ in ") {
		t.Errorf("the page is %.200s, %v", b, err)
	}
	if out := ok(t, "conform", "compare", file("siw.json"), file("siw.json")); !strings.Contains(out, "the same verdict in all of ") {
		t.Errorf("of a report and itself it says %s", out)
	}
	for _, args := range [][]string{
		{file("siw.json")},
		{file("siw.json"), file("absent.json")},
		{file("siw.json"), file("matrix.html")},
	} {
		if status, out, errOut := urnic(t, nil, append([]string{"conform", "compare"}, args...)...); status != 2 || out != "" || errOut == "" {
			t.Errorf("%q: status %d, %q, %q", args, status, out, errOut)
		}
	}
}
