package conformance

import "fmt"

// A Verdict is how a case ended.
type Verdict uint8

// The verdicts.
const (
	// Pass: the target did what the clause demands.
	Pass Verdict = iota + 1
	// Fail: it did not, and bytes show it.
	Fail
	// Inconclusive: what came says neither. A SHOULD that is not kept is
	// inconclusive too, unless the run is strict.
	Inconclusive
	// Skipped: the case could not be tried, for a reason that lies in the profile
	// or the target's abilities and not in its conduct.
	Skipped
)

var verdictNames = map[Verdict]string{Pass: "pass", Fail: "fail", Inconclusive: "inconclusive", Skipped: "skipped"}

// String names the verdict.
func (v Verdict) String() string {
	if s, ok := verdictNames[v]; ok {
		return s
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// MarshalText returns the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText sets the verdict by its name.
func (v *Verdict) UnmarshalText(b []byte) error {
	for verdict, name := range verdictNames {
		if name == string(b) {
			*v = verdict
			return nil
		}
	}
	return fmt.Errorf("%q is no verdict: pass, fail, inconclusive and skipped are", b)
}
