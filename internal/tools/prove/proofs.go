package main

// A proof is a command whose outcome depends on its inputs alone. The command is recorded with them.
type proof struct {
	name    string
	command []string
	// onDemand proofs take so long that the gate never runs them: it only says whether
	// their records hold.
	onDemand bool

	// inputs are
	//
	//	FILE           a file
	//	DIR            a directory, without the tests in it
	//	DIR/*          the files of a directory, without tests and what is below it
	//	DIR/*_test.go  the tests of a directory, without those below it
	//	FILE#DIR       the rows of a Markdown table whose first cell is a file in DIR
	//
	// With each package, the packages that it imports are inputs too, which a test checks.
	inputs []string
	// cut are packages that inputs import and that do not decide the outcome, each with the reason.
	cut map[string]string

	// tests are packages whose tests the command runs. They are inputs with their tests,
	// testdata, and all that they import, in addition to those above.
	tests []string
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
		// Conformance, and the tests of the lab itself, in which nothing of urnic takes part.
		name:    "siw",
		command: []string{"make", "interop", "TESTFLAGS=-v -run '^(TestConformanceOf|TestKernelNFSClientAtKernelServer|TestWorkload)'"},
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
	{
		name:    "rds-mutants",
		command: []string{"make", "rds-mutants"},
		inputs:  []string{"ulp/rds/machine/mutants"},
		tests:   []string{"ulp/rds/machine"},
	},
	{
		// What the peer does not always survive.
		name:     "rds-siw",
		command:  []string{"make", "interop", "TESTFLAGS=-v -run '^(TestLinuxRDSOverIWARPAtItsLimits)'"},
		onDemand: true,
		inputs: join(stack, []string{
			"internal/capture", "internal/listen", "internal/interop/lab", "internal/interop/guest_test.go", "internal/interop/tap_test.go", "internal/interop/rds_node_test.go",
			"internal/interop/rds_iwarp_test.go", "internal/interop/rds_iwarp_trouble_test.go",
			"ulp/rds/*", "ulp/rds/machine/*", "ulp/rds/wire",
		}),
	},
	mutation("pd", false),
	mutation("stag", true),
	mutation("ddp", true),
	mutation("rdmap", true),
	mutation("mpa", true),
	mutation("rnic", true),
	fuzzing("protocol", "mpa", "ddp", "rdmap", "internal/crc32c"),
	fuzzing("rnic", "rnic", "internal/dropin", "internal/dropin/rendezvous"),
	fuzzing("conformance", "conformance/rpc", "conformance/service", "conformance/wire"),
	fuzzing("tools", "internal/capture", "internal/capture/iwarp", "internal/dissect", "internal/perf", "internal/printable"),
	fuzzing("rpc", "ulp/oncrpc", "ulp/oncrpc/rpcbind", "ulp/oncrpc/xdr", "ulp/rpcrdma", "ulp/rpcrdma/rpcflow"),
	fuzzing("rds", "ulp/rds", "ulp/rds/machine", "ulp/rds/rdsflow", "ulp/rds/rdsstress", "ulp/rds/wire"),
	fuzzing("nfs", "ulp/nfs/nfs3", "ulp/nfs/nfsd", "ulp/nfs/vfs/dirfs", "ulp/nfs/vfs/memfs"),
}

// mutation is the proof that a package's tests notice each mutant of it that
// docs/mutation.md does not explain.
func mutation(pkg string, onDemand bool) proof {
	return proof{
		name:     "mutation-" + pkg,
		command:  []string{"make", "mutation", "PKG=" + pkg},
		onDemand: onDemand,
		inputs:   []string{"internal/tools/mutation", "docs/mutation.md#" + pkg},
		tests:    []string{pkg},
	}
}

// fuzzing is the proof that a minute of fuzzing finds nothing in any target of packages.
func fuzzing(group string, pkgs ...string) proof {
	command := []string{"internal/tools/fuzz", "60s"}
	for _, p := range pkgs {
		command = append(command, "./"+p)
	}
	return proof{name: "fuzz-" + group, command: command, onDemand: true, inputs: []string{"internal/tools/fuzz"}, tests: pkgs}
}

// join returns the elements of lists in one.
func join[E any](lists ...[]E) (all []E) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
