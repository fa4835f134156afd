//go:build dropin

package dropintest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// wantLines wants each of some regular expressions to match a line.
func wantLines(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !regexp.MustCompile(`(?m)^\s*` + l + `\s*$`).MatchString(out) {
			t.Errorf("there is no line %s:\n%s", l, tail(out))
		}
	}
}

// infiniband-diags: ibstat reads sysfs in C, and leaves out devices that say to be RNICs, as
// libibumad does on any host.
func TestIbstat(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		n := newNetwork(t)
		wantLines(t, n.start(t, m.run("--transport ethernet --device mlx5_0", "ibstat")).wait(),
			`CA 'mlx5_0'`, `CA type: urnic`, `Number of ports: 1`, `Port 1:`, `State: Active`, `Physical state: LinkUp`, `Rate: 40`, `Link layer: Ethernet`)
		wantText(t, n.start(t, m.run("--transport ethernet", "ibstat -l")).wait(), "urnic0", 1)
		if out := n.start(t, m.run("--transport iwarp", "ibstat -l")).wait(); out != "" {
			t.Errorf("ibstat lists an RNIC: %s", out)
		}
	})
}

// ibstatus is a shell script, which reads sysfs by test, cd, echo * and cat.
func TestIbstatus(t *testing.T) {
	for _, transport := range []string{"iwarp", "ethernet"} {
		t.Run(transport, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				wantLines(t, newNetwork(t).start(t, m.run("--transport "+transport, "ibstatus")).wait(),
					`Infiniband device 'urnic0' port 1 status:`, `default gid:\s+0000:0000:0000:0000:0000:ffff:7f00:0001`,
					`state:\s+4: ACTIVE`, `phys state:\s+5: LinkUp`, `rate:\s+40 Gb/sec \(4X QDR\)`, `link_layer:\s+Ethernet`)
			})
		})
	}
}

// UCX looks for the device's file in /dev/infiniband. No root has made one.
func TestUCXFindsTheDevice(t *testing.T) {
	t.Parallel()
	out := newNetwork(t).start(t, interpose.run("--transport ethernet", "ucx_info -d")).wait()
	wantLines(t, out, `# Memory domain: urnic0`, `#\s+Transport: rc_verbs`, `#\s+Device: urnic0:1`)
	out = newNetwork(t).start(t, interpose.run("--transport ethernet --sysfs off", "ucx_info -d")).wait()
	wantText(t, out, "Memory domain: urnic0", 0)
}

// What the view shows is what the verbs say.
func TestViewIsWhatVerbsSay(t *testing.T) {
	for _, transport := range []string{"iwarp", "ethernet"} {
		t.Run(transport, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				host := twoHosts(t)[0]
				verbs := host.start(t, m.run("--transport "+transport, "ibv_devinfo -v")).wait()
				gids := host.start(t, m.runArgs("--transport "+transport, "sh", "-c", `cd /sys/class/infiniband/urnic0
					cat node_guid fw_ver node_type; cat ports/1/gids/* ports/1/gid_attrs/types/*; ls /dev/infiniband`)).wait()
				for _, what := range []string{"node_guid", "fw_ver"} {
					found := regexp.MustCompile(what + `:\s+(\S+)`).FindStringSubmatch(verbs)
					if found == nil || !strings.Contains(gids, found[1]+"\n") {
						t.Errorf("%s: %q; the view has\n%s", what, found, gids)
					}
				}
				for _, address := range []string{"ffff:c000:0201", "ffff:7f00:0001"} {
					wantText(t, gids, address, 1)
				}
				want := map[string][2]string{"iwarp": {"4: RNIC", "IB/RoCE v1"}, "ethernet": {"1: CA", "RoCE v2"}}[transport]
				wantText(t, gids, want[0], 1)
				wantText(t, gids, want[1], strings.Count(verbs, "GID["))
				wantText(t, gids, "uverbs0", 1)
			})
		})
	}
}

// Two devices of two hosts, each with two ports: what sysfs shows of them is what runs.
func TestSeveralDevices(t *testing.T) {
	const flags = "--transport ethernet --device mlx5_0 --devices "
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		hosts := twoHosts(t)
		server := hosts[0].start(t, m.run(flags+"192.0.2.1,127.0.0.1+2001:db8::1", "ibv_rc_pingpong -d mlx5_1 -i 2 -g 0 -n 50"))
		server.listens(hosts[0], pingpongPort)
		client := hosts[1].start(t, m.run(flags+"2", "ibv_rc_pingpong -d mlx5_1 -g 0 -n 50 192.0.2.1"))
		for p, own := range map[*program]string{client: "2001:db8::2", server: "2001:db8::1"} {
			out := p.wait()
			wantText(t, out, "50 iters in ", 1)
			wantLines(t, out, `local address: .* GID `+own)
		}
		out := hosts[0].start(t, m.run(flags+"192.0.2.1,127.0.0.1+2001:db8::1", "ibstatus")).wait()
		wantText(t, out, "Infiniband device 'mlx5_0' port 1 status:", 1)
		wantText(t, out, "Infiniband device 'mlx5_1' port 2 status:", 1)
		wantText(t, out, "state:\t\t 4: ACTIVE", 3)
		out = hosts[0].start(t, m.runArgs(flags+"192.0.2.1,127.0.0.1", "sh", "-c",
			"ls /sys/class/net/wire/device/infiniband; cat /sys/class/infiniband_verbs/uverbs1/ibdev; ls -l /dev/infiniband")).wait()
		wantLines(t, out, "mlx5_0", "mlx5_1", `crw-rw-rw- 1 .* 231, 193 .* uverbs1`)
		wantText(t, out, "mlx5_0", 1)
	})
}

// The tree lies where one wants it, and the program sees it from there.
func TestViewInADirectoryOfOnesOwn(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		dir := filepath.Join(directory(t), "sys")
		out := newNetwork(t).start(t, m.run("--sysfs "+dir, "cat /sys/class/infiniband/urnic0/hca_type")).wait()
		wantText(t, out, "urnic", 1)
		if b, err := os.ReadFile(filepath.Join(dir, "class/infiniband/urnic0/hca_type")); err != nil || string(b) != "urnic\n" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// A program that can be told where sysfs is needs no library.
func TestNodeExporterReadsTheTree(t *testing.T) {
	const address = "127.0.0.1:9100"
	dir := filepath.Join(directory(t), "sys")
	n := newNetwork(t)
	n.start(t, urnicCommand("sysfs", "--device", "mlx5_0", dir)).wait()
	const size, times = 65536, 500
	line := interpose.run("--device mlx5_0 --sysfs "+dir, fmt.Sprintf("ib_write_bw -R -s %d -n %d", size, times))
	server := n.start(t, line)
	server.listens(n, perftestPort)
	n.start(t, append(line, "127.0.0.1")).ends() // perftest may be unable to tell a speed
	server.ends()
	p := n.start(t, []string{
		"prometheus-node-exporter", "--path.sysfs", dir, "--collector.disable-defaults", "--collector.infiniband",
		"--web.listen-address", address,
	})
	p.listens(n, 9100)
	var conn net.Conn
	var err error
	n.do(func() { conn, err = net.DialTimeout("tcp", address, patience) })
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET /metrics HTTP/1.0\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, string(metrics), `node_infiniband_info\{board_id="urnic",device="mlx5_0",.*\} 1`,
		`node_infiniband_state_id\{device="mlx5_0",port="1"\} 4`, `node_infiniband_rate_bytes_per_second\{device="mlx5_0",port="1"\} 5e\+09`,
		`node_scrape_collector_success\{collector="infiniband"\} 1`)
	for _, name := range []string{"received", "transmitted"} {
		found := regexp.MustCompile(`node_infiniband_port_data_` + name + `_bytes_total\{device="mlx5_0",port="1"\} (\S+)`).FindStringSubmatch(string(metrics))
		if found == nil {
			t.Errorf("there is no count of the bytes %s:\n%s", name, tail(string(metrics)))
			continue
		}
		if v, err := strconv.ParseFloat(found[1], 64); err != nil || v < size*times || v > 1.1*size*times {
			t.Errorf("%s: %s bytes; want a little more than %d", name, found[1], size*times)
		}
	}
	n.start(t, urnicCommand("sysfs", "--remove", dir)).wait()
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is still there", dir)
	}
}
