//go:build dropin

package dropintest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// compiled is a program of testdata's, in a directory that everybody may read.
func compiled(t *testing.T, source string, compiler ...string) string {
	t.Helper()
	name := strings.TrimSuffix(source, filepath.Ext(source))
	program := filepath.Join(directory(t), name)
	line := append(compiler[1:len(compiler):len(compiler)], "-O1", "-o", program, filepath.Join("testdata", source))
	if compiler[0] == "g++" {
		line = append(line, "-lgloo", "-libverbs")
	}
	if out, err := exec.CommandContext(t.Context(), compiler[0], line...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler[0], err, out)
	}
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// someRanks is how many processes an MPI program has: the quick runs have the smallest number.
func someRanks() []string {
	if testing.Short() {
		return []string{"2"}
	}
	return []string{"2", "4"}
}

// Open MPI over libfabric, which leaves out the interface lo.
func TestPackageOpenMPIOverLibfabric(t *testing.T) {
	program := compiled(t, "allreduce.c", "mpicc.openmpi")
	for _, ranks := range someRanks() {
		t.Run(ranks, func(t *testing.T) {
			t.Parallel()
			line := []string{
				"mpirun.openmpi", "--oversubscribe", "-np", ranks, "--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "btl", "^openib",
				"--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm",
			}
			out := oneHost(t).start(t, append(line, interpose.runArgs("--transport ethernet", program)...)).wait()
			wantText(t, out, ranks+" ranks: all sums are right", 1)
		})
	}
}

// Debian's MPICH is built for UCX.
func TestPackageMPICH(t *testing.T) {
	program := compiled(t, "allreduce.c", "mpicc.mpich")
	for _, ranks := range someRanks() {
		t.Run(ranks, func(t *testing.T) {
			t.Parallel()
			line := []string{
				"mpirun.mpich", "-np", ranks, "-genv", "UCX_TLS", "rc_v,ud_v,self", "-genv", "UCX_NET_DEVICES", "urnic0:1",
			}
			out := newNetwork(t).start(t, append(line, interpose.runArgs("--transport ethernet", program)...)).wait()
			wantText(t, out, ranks+" ranks: all sums are right", 1)
		})
	}
}

// OpenSHMEM of Open MPI: puts, gets and atomics. Its shmem_finalize crashes over any transport (4.1.4), so how it ends does not count.
func TestPackageOpenSHMEM(t *testing.T) {
	program := compiled(t, "shmem.c", "oshcc")
	for _, ranks := range someRanks() {
		t.Run(ranks, func(t *testing.T) {
			t.Parallel()
			line := []string{
				"oshrun", "--oversubscribe", "-np", ranks, "-x", "UCX_TLS=rc_v,ud_v,self", "-x", "UCX_NET_DEVICES=urnic0:1",
			}
			p := newNetwork(t).start(t, append(line, interpose.runArgs("--transport ethernet", program)...))
			p.ends()
			wantText(t, p.output(), ranks+" elements: all puts, gets and atomics are right", 1)
		})
	}
}

// Gloo's transport ibverbs, which knows the device by its name.
func TestPackageGloo(t *testing.T) {
	binary := compiled(t, "gloo.cc", "g++")
	for _, ranks := range []int{2, 3} {
		t.Run(strconv.Itoa(ranks), func(t *testing.T) {
			t.Parallel()
			n, store := newNetwork(t), directory(t)
			var all []*program
			for rank := range ranks {
				all = append(all, n.start(t, interpose.run("--transport ethernet",
					binary+" "+store+" "+strconv.Itoa(rank)+" "+strconv.Itoa(ranks))))
			}
			for _, p := range all {
				wantText(t, p.wait(), "all sums are right", 1)
			}
		})
	}
}
