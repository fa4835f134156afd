package demo

import (
	"strings"
	"testing"

	"urnic/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func TestAllStepsSucceed(t *testing.T) {
	var out strings.Builder
	if err := Run(t.Context(), Options{Out: &out}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "ok  "); n != len(Steps) {
		t.Errorf("%d of %d steps are reported:\n%s", n, len(Steps), out.String())
	}
}
