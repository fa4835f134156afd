package version

import (
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	set := func(kv ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{}
		for i := 0; i < len(kv); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: kv[i], Value: kv[i+1]})
		}
		return info
	}
	for _, tc := range []struct {
		info   *debug.BuildInfo
		digits int
		want   string
	}{
		{nil, 0, Number},
		{set(), 0, Number},
		{set("vcs.revision", "abcdef"), 0, Number + " abcdef"},
		{set("vcs.revision", "abcdef"), 3, Number + " abc"},
		{set("vcs.revision", "abcdef"), 12, Number + " abcdef"},
		{set("vcs.revision", "abcdef", "vcs.modified", "false"), 0, Number + " abcdef"},
		{set("vcs.revision", "abcdef", "vcs.modified", "true"), 3, Number + " abc+dirty"},
		{set("vcs.modified", "true"), 0, Number},
	} {
		if got := Of(tc.info, tc.digits); got != tc.want {
			t.Errorf("Of(%v, %d) = %q, want %q", tc.info, tc.digits, got, tc.want)
		}
	}
}

// The changelog has a section of this version with its date.
func TestChangelogHasTheVersion(t *testing.T) {
	b, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(b), -1)
	if len(sections) < 2 || sections[0][1] != "Unreleased" {
		t.Fatalf("the changelog does not begin with what is unreleased: %q", sections)
	}
	if want := strings.TrimPrefix(Number, "v") + " (" + Date + ")"; sections[1][1] != want {
		t.Errorf("the section after it is %q, want %q", sections[1][1], want)
	}
}
