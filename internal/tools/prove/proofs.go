package main

// A proof is a command whose outcome depends on its inputs alone.
type proof struct {
	name    string
	command []string
	// inputs are files, directories, and DIR/* for the files of a directory without
	// those below it. With each package, the packages that it imports are inputs too,
	// which a test checks.
	inputs []string
	// cut are packages that inputs import and that do not decide the outcome, each with the reason.
	cut map[string]string
}

// stack is what an RNIC of ours is made of.
var stack = []string{
	"mpa", "ddp", "rdmap", "stag", "pd", "rnic/*",
	"internal/crc32c", "internal/memcheck", "internal/memfault", "internal/pollfd", "internal/sockio",
}

// suite is what conformance is judged with.
var suite = []string{
	"go.mod", "go.sum",
	"conformance/*", "conformance/cases", "conformance/catalogue", "conformance/profile", "conformance/report",
	"conformance/rpc", "conformance/wire", "internal/listen", "internal/printable",
}

var proofs = []proof{
	{
		name:    "siw",
		command: []string{"make", "interop", "TESTFLAGS=-v -run ^TestConformanceOf"},
		inputs: join(suite, []string{
			"internal/interop/lab", "internal/interop/conform_test.go", "internal/interop/conform_rpc_test.go",
			"internal/interop/guest_test.go", "internal/interop/nfs_guest_test.go",
			"docs/conformance-siw.md", "docs/conformance-svcrdma.md",
		}),
		cut: map[string]string{
			"internal/capture":    "it writes recordings, which decide no verdict",
			"conformance/service": "the tester uses its messages; the service itself, and the stack below, serve targets of ours",
		},
	},
	{
		name:    "mutants",
		command: []string{"make", "mutants"},
		inputs:  join(suite, stack, []string{"conformance/mutants", "conformance/service", "ulp/oncrpc", "ulp/rpcrdma/*"}),
		cut:     map[string]string{"internal/capture": "it writes recordings, which decide no verdict"},
	},
}

// join returns the elements of lists in one.
func join(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
