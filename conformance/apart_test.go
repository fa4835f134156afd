package conformance_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The tester is linked with nothing of the stack that it judges. What runs on the stack by its
// nature is a target, or a program that has targets of ours. RDP is not judged, so that profiles may have connections of it.
func TestWhatJudgesIsLinkedWithNothingOfTheStack(t *testing.T) {
	stack := []string{"mpa", "ddp", "rdmap", "rnic", "stag", "pd", "ulp"}
	targets := map[string]bool{ // whether the package was found to be linked with the stack
		"urnic/conformance/service/server":  false,
		"urnic/conformance/mutants/rpcpeer": false,
		"urnic/conformance/mutants/run":     false,
		"urnic/conformance/mutants/target":  false,
	}
	rdp := []string{"urnic/conformance/rdpconn", "urnic/conformance/profile"} // what may have connections of RDP
	transport := []string{"ulp/rdp", "ulp/rdp/machine", "ulp/rdp/wire", "ulp/rdp/congestion"}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		pkg, deps := names[0], names[1:]
		_, target := targets[pkg]
		packages++
		for _, dep := range deps {
			name, ours := strings.CutPrefix(dep, "urnic/")
			first, _, _ := strings.Cut(name, "/")
			switch {
			case !ours || !slices.Contains(stack, first):
			case slices.Contains(rdp, pkg) && slices.Contains(transport, name):
			case target:
				targets[pkg] = true
			default:
				t.Errorf("%s is linked with %s", pkg, dep)
			}
		}
	}
	if packages < 10 {
		t.Errorf("only %d packages were found", packages)
	}
	for pkg, linked := range targets {
		if !linked {
			t.Errorf("%s is not linked with the stack: it need not be named here", pkg)
		}
	}
}
