// Package version has the version of urnic, which all of its programs report.
package version

import "runtime/debug"

// Number is the version of this source: that of the last release, or of the one that is being made.
const Number = "v0.1.0"

// Date is the day of that version, as the changelog has it.
const Date = "2026-11-27"

// Of returns the version of a build, and behind it the revision of the source, where the build
// knows it: at most digits characters of it, all of it if digits is 0. A revision with changes that
// were not committed ends in "+dirty".
func Of(info *debug.BuildInfo, digits int) string {
	if info == nil {
		return Number
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if revision == "" {
		return Number
	}
	if digits > 0 {
		revision = revision[:min(len(revision), digits)]
	}
	return Number + " " + revision + dirty
}
