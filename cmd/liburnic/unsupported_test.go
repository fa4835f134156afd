//go:build dropin

package main_test

import (
	"os/exec"
	"strings"
	"testing"
)

// A program that asks for what iWARP has not, and says only that a call has failed, is
// explained by the library, in one line, without any setting.
func TestUnsupportedRequestsAreToldByDefault(t *testing.T) {
	lib := libraries(t)
	pingpong, err := exec.LookPath("ibv_ud_pingpong")
	if err != nil {
		t.Fatalf("install ibverbs-utils: %v", err)
	}
	const why = "urnic: create QP: the only type is IBV_QPT_RC: iWARP has no datagrams, "
	for mode, variable := range modes(lib) {
		out, err := output(t, pingpong, variable)
		if err == nil || strings.Count(out, why) != 1 || strings.Count(out, "urnic: ") != 1 {
			t.Errorf("%s: %v, %q", mode, err, out)
		}
	}
	for mode, variable := range modes(lib) {
		out, err := output(t, programs(t)["unsupported"], variable)
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		told := make(map[string]bool)
		for line := range strings.Lines(out) {
			if told[line] {
				t.Errorf("%s tells again: %s", mode, line)
			}
			told[line] = true
		}
		for _, what := range []string{"ibv_create_ah: ", "ibv_attach_mcast: ", "ibv_import_device: "} {
			if strings.Count(out, "urnic: "+what) != 1 {
				t.Errorf("%s does not tell of %s once:\n%s", mode, what, out)
			}
		}
	}
}
