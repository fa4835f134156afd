package main

import (
	"path"
	"strings"
)

// A proof is a command whose outcome depends on its inputs alone. The command is recorded with them.
type proof struct {
	name    string
	command []string
	// long proofs take hours: "make verify" leaves them out, and says whether their records
	// hold.
	long bool

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
	"mpa", "ddp", "rdmap", "stag", "pd", "rnic/*", "rnic/internal/cm", "rnic/internal/drive", "rnic/internal/life/*", "internal/ring",
	"internal/door/policy", "internal/door/latch",
	"internal/host/crc32c", "internal/host/memcheck", "internal/host/memfault", "internal/host/pollfd", "internal/host/sockio",
}

// suite is what conformance is judged with. The reports are written behind that.
var suite = []string{
	"go.mod", "go.sum",
	"conformance/*", "conformance/cases", "conformance/catalogue", "conformance/profile",
	"conformance/rpc", "conformance/service/*", "conformance/wire", "internal/host/listen", "internal/host/printable",
}

// guest is what the lab's guest is made of and run by. The peers in it have directories of their own.
var guest = []string{
	"internal/test/interop/lab/build", "internal/test/interop/lab/down", "internal/test/interop/lab/guest", "internal/test/interop/lab/lib.sh",
	"internal/test/interop/lab/rds.sh", "internal/test/interop/lab/sh", "internal/test/interop/lab/up",
}

var proofs = []proof{
	{
		// Conformance, and the tests of the lab itself, in which nothing of urnic takes part.
		name:    "siw",
		command: []string{"make", "interop", "TESTFLAGS=-v -run '^(TestConformanceOf|TestKernelNFSClientAtKernelServer|TestWorkload)'"},
		inputs: join(suite, guest, []string{
			"internal/test/interop/lab/peerops", "internal/test/interop/conform_test.go", "internal/test/interop/conform_rpc_test.go", "internal/test/interop/guest_test.go", "internal/test/interop/nfs_guest_test.go",
			"docs/conformance-siw.md", "docs/conformance-svcrdma.md",
		}),
		cut: map[string]string{
			"internal/capture":    "it writes recordings, which decide no verdict",
			"conformance/rdpconn": "siw is judged over TCP",
		},
	},
	{
		name:    "mutants",
		command: []string{"make", "mutants"},
		inputs:  join(suite, stack, []string{"conformance/mutants", "conformance/service/server", "ulp/oncrpc", "ulp/rpcrdma/*"}),
		cut: map[string]string{
			"internal/capture":    "it writes recordings, which decide no verdict",
			"conformance/rdpconn": "the mutants are judged over TCP",
			"ulp/rdp/rdpllp":      "the same",
		},
	},
	{
		name:    "life-mutants",
		command: []string{"make", "life-mutants"},
		inputs:  []string{"internal/test/mutants", "rnic/internal/life/mutants"},
		tests:   []string{"rnic/internal/life"},
	},
	{
		name:    "rds-mutants",
		command: []string{"make", "rds-mutants"},
		inputs:  []string{"internal/test/mutants", "ulp/rds/machine/mutants"},
		tests:   []string{"ulp/rds/machine"},
	},
	{
		// Many show in whole simulations only, which take minutes.
		name:    "rdp-mutants",
		command: []string{"make", "rdp-mutants"},
		long:    true,
		inputs:  []string{"internal/test/mutants", "ulp/rdp/machine/mutants", "ulp/rdp/rdpflow/testdata", "docs/rdp-rules.md"},
		tests:   []string{"ulp/rdp/machine"},
	},
	{
		name:    "rx-mutants",
		command: []string{"make", "rx-mutants"},
		inputs: []string{
			"internal/test/mutants", "ulp/rx/machine/mutants", "ulp/rx/rxflow/testdata/captures",
			"docs/rx-congestion-avoidance.svg", "docs/rx-loss-by-nacks.svg", "docs/rx-loss-by-timeout.svg", "docs/rx-slow-start.svg",
		},
		tests: []string{"ulp/rx/machine"},
	},
	{
		// A minute, where the test itself ends after some cuts.
		name:    "rds-cuts",
		command: []string{"go", "test", "-count=1", "-v", "-run", "TestRDMAAcrossCuts", "./ulp/rds/rdsstress", "-args", "-cuts", "1m"},
		tests:   []string{"ulp/rds/rdsstress"},
	},
	{
		// What the peer does not always survive.
		name:    "rds-siw",
		command: []string{"make", "interop", "TESTFLAGS=-v -run '^(TestLinuxRDSOverIWARPAtItsLimits)'"},
		long:    true,
		inputs: join(stack, guest, []string{
			"internal/capture", "internal/wake", "internal/host/listen", "internal/test/interop/lab/rdspeer", "internal/test/interop/guest_test.go", "internal/test/interop/tap_test.go", "internal/test/interop/rds_node_test.go",
			"internal/test/interop/rds_iwarp_test.go", "internal/test/interop/rds_iwarp_trouble_test.go",
			"ulp/rds/*", "ulp/rds/machine/*", "ulp/rds/wire",
		}),
	},
	{
		// RDS with Linux's own, over TCP and over siw, while connections are cut and nodes restart.
		name:    "rds-linux",
		command: []string{"make", "interop", "TESTFLAGS=-v -run '^(TestRDS)'"},
		inputs: join(stack, guest, []string{
			"go.mod", "go.sum", "internal/capture", "internal/host/listen", "internal/test/leakcheck", "internal/test/ownnet",
			"internal/test/interop/lab/rdspeer", "internal/test/interop/guest_test.go", "internal/test/interop/tap_test.go",
			"internal/test/interop/rds_iwarp_rdma_test.go", "internal/test/interop/rds_iwarp_test.go", "internal/test/interop/rds_iwarp_trouble_test.go",
			"internal/test/interop/rds_node_test.go", "internal/test/interop/rds_stress_test.go", "internal/test/interop/rds_tcp_cut_test.go",
			"internal/test/interop/rds_tcp_lossy_test.go", "internal/test/interop/rds_tcp_restart_test.go", "internal/test/interop/rds_tcp_test.go", "internal/test/interop/rds_tcp_traffic_test.go",
			"internal/host/infosock", "internal/wake", "ulp/rds/*", "ulp/rds/machine/*", "ulp/rds/rdsinfo", "ulp/rds/rdsstress", "ulp/rds/wire",
		}),
	},
	{
		// NFS with Linux's client and server, over RDMA and TCP.
		name:    "nfs-linux",
		command: []string{"make", "interop", "TESTFLAGS=-v -run '^(TestOurNFSClientAtKernelServer|TestKernelNFSClientAtOurServer|TestOurServerIsKilledUnderLoad)'"},
		inputs: join(stack, guest, []string{
			"go.mod", "go.sum", "internal/capture", "internal/host/listen", "internal/test/leakcheck", "internal/test/ownnet",
			"ulp/nfs", "ulp/oncrpc", "ulp/rpcrdma/*", "internal/test/interop/guest_test.go", "internal/test/interop/nfs_guest_test.go", "internal/test/interop/nfs_test.go",
			"cmd/urnic/nfsd.go", "cmd/urnic/nfsd_key.go", "cmd/urnic/nfsd_key_unix.go", "cmd/urnic/nfsd_peer.go", "cmd/urnic/nfsd_run.go",
		}),
	},
	mutation("pd", false),
	mutation("stag", true),
	mutation("ddp", true),
	mutation("rdmap", true),
	mutation("mpa", true),
	mutation("rnic", true),
	mutation("rnic/internal/drive", true),
	mutation("rnic/internal/life", true, "rnic"),
	fuzzing("protocol", "mpa", "ddp", "rdmap", "internal/host/crc32c"),
	fuzzing("rnic", "rnic", "rnic/rnictimeline", "internal/dropin", "internal/dropin/datagram", "internal/dropin/datagram/datagramflow", "internal/dropin/rendezvous"),
	fuzzing("conformance", "conformance/rpc", "conformance/service/server", "conformance/wire"),
	fuzzing("tools", "internal/capture", "internal/capture/iwarp", "internal/program/dissect", "internal/program/perf", "internal/host/printable"),
	fuzzing("rpc", "ulp/oncrpc", "ulp/oncrpc/rpcbind", "ulp/oncrpc/xdr", "ulp/rpcrdma", "ulp/rpcrdma/rpcflow"),
	fuzzing("rds", "ulp/rds", "ulp/rds/machine", "ulp/rds/rdsflow", "ulp/rds/rdsstress", "ulp/rds/wire"),
	fuzzing("rdp", "ulp/rdp/machine", "ulp/rdp/rdpflow", "ulp/rdp/rdpllp/llpwire", "ulp/rdp/wire"),
	fuzzing("rx", "ulp/rx/machine", "ulp/rx/rpc", "ulp/rx/rxdebug", "ulp/rx/rxflow", "ulp/rx/rxkad", "ulp/rx/rxkad/fcrypt", "ulp/rx/rxkad/krb5",
		"ulp/rx/rxperf", "ulp/rx/rxperf/rawudp", "ulp/rx/rxrdma", "ulp/rx/rxrdma/machine", "ulp/rx/rxrdma/wire", "ulp/rx/rxudp", "ulp/rx/wire"),
	fuzzing("afs", "ulp/rx/afs", "ulp/rx/afs/bos", "ulp/rx/afs/cb", "ulp/rx/afs/dir", "ulp/rx/afs/fs", "ulp/rx/afs/pt", "ulp/rx/afs/ubik", "ulp/rx/afs/vl", "ulp/rx/afs/vol"),
	fuzzing("nfs", "ulp/nfs/nfs3", "ulp/nfs/nfsd", "ulp/nfs/vfs/dirfs", "ulp/nfs/vfs/memfs"),
}

// mutation is the proof that a package's tests notice each mutant of it that
// docs/mutation.md does not explain, or that those of other packages do.
func mutation(pkg string, long bool, others ...string) proof {
	p := proof{
		name:    "mutation-" + path.Base(pkg),
		command: []string{"make", "mutation", "PKG=" + pkg},
		long:    long,
		inputs:  []string{"internal/tools/mutation", "docs/mutation.md#" + pkg},
		tests:   append([]string{pkg}, others...),
	}
	if len(others) > 0 {
		p.command = append(p.command, "MUTATIONFLAGS=-tests ./"+strings.Join(p.tests, ",./"))
	}
	return p
}

// fuzzing is the proof that a minute of fuzzing finds nothing in any target of packages.
func fuzzing(group string, pkgs ...string) proof {
	command := []string{"internal/tools/fuzz", "60s"}
	for _, p := range pkgs {
		command = append(command, "./"+p)
	}
	return proof{name: "fuzz-" + group, command: command, long: true, inputs: []string{"internal/tools/fuzz"}, tests: pkgs}
}

// join returns the elements of lists in one.
func join[E any](lists ...[]E) (all []E) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
