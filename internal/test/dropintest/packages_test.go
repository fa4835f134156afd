//go:build dropin

package dropintest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Programs of other packages of Debian that use libibverbs. "make programs" runs these tests alone.

// fio's rdma engine moves blocks from one process to another by Writes, Reads or Sends. Its server exits as soon as it has the
// last block.
func TestPackageFio(t *testing.T) {
	const port, blocks = 17777, 256
	for _, verb := range []string{"write", "read", "send", "write ethernet", "read ethernet", "send ethernet"} {
		t.Run(verb, func(t *testing.T) {
			verb, transport, _ := strings.Cut(verb, " ")
			if transport != "" {
				transport = "--transport " + transport
			}
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				job := "fio --ioengine=rdma --bs=64k --size=" + strconv.Itoa(blocks*64) + "k --iodepth=16 --port=" + strconv.Itoa(port)
				server := n.start(t, m.run(transport, job+" --name=server --rw=read"))
				server.listens(n, port)
				client := n.start(t, m.run(transport, job+" --name=client --rw=write --hostname=127.0.0.1 --verb="+verb))
				out := client.wait()
				wantText(t, out, "err= 0", 1)
				wantText(t, out, "total=0,"+strconv.Itoa(blocks)+",0,0", 1) // Reads, Writes, trims, syncs
				wantText(t, server.wait(), "err= 0", 1)
			})
		})
	}
}

// UCX's UCP connects by UD queue pairs, and moves data by reliable connections or by datagrams. It finds the device in
// mode interpose only.
func TestPackageUCX(t *testing.T) {
	const port = 13337
	for _, transport := range []string{"rc_v,ud_v", "ud_v"} {
		for test, size := range map[string]int{"tag_lat": 8, "tag_bw": 65536, "ucp_put_bw": 65536, "ucp_get": 65536, "ucp_fadd": 8, "ucp_cswap": 8} {
			t.Run(transport+" "+test, func(t *testing.T) {
				t.Parallel()
				n := newNetwork(t)
				perf := "ucx_perftest -p " + strconv.Itoa(port)
				server := n.start(t, interpose.run("--transport ethernet", perf), "UCX_TLS="+transport)
				server.listens(n, port)
				client := n.start(t, interpose.run("--transport ethernet",
					perf+" 127.0.0.1 -n 100 -w 10 -t "+test+" -s "+strconv.Itoa(size)), "UCX_TLS="+transport)
				if out := client.wait(); !regexp.MustCompile(`(?m)^Final: +100 `).MatchString(out) {
					t.Errorf("no result:\n%s", tail(out))
				}
			})
		}
	}
}

// Open MPI's pml ucx takes UCX, and an all-reduce over it gives the right sums.
func TestPackageOpenMPI(t *testing.T) {
	dir := directory(t)
	program := filepath.Join(dir, "allreduce")
	if out, err := exec.Command("mpicc", "-O2", "-o", program, "testdata/allreduce.c").CombinedOutput(); err != nil {
		t.Fatalf("mpicc: %v\n%s", err, out)
	}
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []string{"2", "4"} {
		t.Run(ranks, func(t *testing.T) {
			t.Parallel()
			n := newNetwork(t)
			line := []string{
				"mpirun", "--oversubscribe", "-np", ranks, "--mca", "pml", "ucx", "--mca", "btl", "^openib",
				"-x", "UCX_TLS=rc_v,ud_v,self", "-x", "UCX_NET_DEVICES=urnic0:1",
			}
			out := n.start(t, append(line, interpose.runArgs("--transport ethernet", program)...)).wait()
			wantText(t, out, ranks+" ranks: all sums are right", 1)
		})
	}
}

// qperf's tests of reliable connections, one after the other, against one server.
func TestPackageQperf(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		n := newNetwork(t)
		server := n.start(t, m.run("--transport ethernet", "qperf"))
		server.listens(n, 19765)
		for test, figure := range map[string]string{
			"rc_bw": "bw", "rc_bi_bw": "bw", "rc_lat": "latency",
			"rc_rdma_read_bw": "bw", "rc_rdma_read_lat": "latency",
			"rc_rdma_write_bw": "bw", "rc_rdma_write_lat": "latency", "rc_rdma_write_poll_lat": "latency",
			"rc_compare_swap_mr": "msg_rate", "rc_fetch_add_mr": "msg_rate",
			"ver_rc_compare_swap": "msg_rate", "ver_rc_fetch_add": "msg_rate",
		} {
			out := n.start(t, m.run("--transport ethernet", "qperf -t 1 -v 127.0.0.1 "+test)).wait()
			if !regexp.MustCompile(`(?m)^ +` + figure + ` += +[1-9]`).MatchString(out) {
				t.Errorf("%s: no %s:\n%s", test, figure, tail(out))
			}
		}
	})
}
