//go:build dropin

package dropintest

import (
	"strconv"
	"strings"
	"testing"
)

// The programs for datagrams and unreliable connections want a device that says to be an
// Ethernet RDMA device.
func TestDatagramPingpong(t *testing.T) {
	for _, line := range []string{
		"ibv_ud_pingpong -g 0", "ibv_ud_pingpong", "ibv_ud_pingpong -g 1 -e", "ibv_ud_pingpong -g 0 -c -s 4096", "ibv_ud_pingpong -g 0 -s 1 -r 10",
		"ibv_uc_pingpong -g 0 -c", "ibv_uc_pingpong", "ibv_uc_pingpong -g 1 -e", "ibv_uc_pingpong -g 0 -s 300000 -n 50 -r 10",
	} {
		t.Run(line, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				server := n.start(t, m.run("--transport ethernet", line))
				server.listens(n, pingpongPort)
				pingpongs(t, server, n.start(t, m.run("--transport ethernet", line+" 127.0.0.1")))
			})
		})
	}
}

func pingpongs(t *testing.T, programs ...*program) {
	t.Helper()
	for _, p := range programs {
		out := p.wait()
		wantText(t, out, " iters in ", 1)
		wantText(t, out, "invalid data", 0)
	}
}

// Between hosts, messages of 4096 bytes are cut for an MTU of 1500.
func TestDatagramPingpongBetweenHosts(t *testing.T) {
	for _, line := range []string{"ibv_ud_pingpong -c -g 0 -s 4096", "ibv_ud_pingpong -g 1", "ibv_uc_pingpong -c -g 0 -s 30000"} {
		t.Run(line, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				hosts := twoHosts(t)
				server := hosts[0].start(t, m.run("--transport ethernet", line))
				server.listens(hosts[0], pingpongPort)
				pingpongs(t, server, hosts[1].start(t, m.run("--transport ethernet", line+" 192.0.2.1")))
			})
		})
	}
}

func TestDatagramPerftest(t *testing.T) {
	var sizes []int
	for s := 2; s <= 4096; s *= 2 {
		sizes = append(sizes, s)
	}
	all := map[string][]perftest{
		"ib_send_bw": {
			{flags: "-c UD", sizes: []int{4096}, n: 1000},
			{flags: "-c UD -s 64 -b", sizes: []int{64}, n: 1000},
			{flags: "-c UD -s 1024 -e", sizes: []int{1024}, n: 500},
			{flags: "-c UD -a", sizes: sizes, n: 50},
			{flags: "-c UD -s 1024 -q 4", qps: 4, sizes: []int{1024}, n: 100},
			{flags: "-c UD -s 1024 --use_old_post_send", sizes: []int{1024}, n: 500},
			{flags: "-c UC", sizes: []int{65536}, n: 500},
			{flags: "-c UC -q 4", qps: 4, sizes: []int{65536}, n: 300},
			{flags: "-c UD -s 1024 --use-srq", sizes: []int{1024}, n: 500},
			{flags: "-c UD -s 1024 --use-srq -q 4", qps: 4, sizes: []int{1024}, n: 100},
			{flags: "-c UC -s 4096 --use-srq", sizes: []int{4096}, n: 500},
		},
		"ib_write_bw": {
			{flags: "-c UC", sizes: []int{65536}, n: 500},
			{flags: "-c UC -s 64 -b", sizes: []int{64}, n: 500},
		},
		"ib_write_lat": {
			{flags: "-c UC", sizes: []int{2}, n: 200},
			{flags: "-c UC -s 65536", sizes: []int{65536}, n: 100},
		},
		"ib_send_lat": {
			{flags: "-c UD", sizes: []int{2}, n: 200},
			{flags: "-c UD -s 4096 -e", sizes: []int{4096}, n: 200},
			{flags: "-c UC -s 64", sizes: []int{64}, n: 200},
			{flags: "-c UD -s 64 --use-srq", sizes: []int{64}, n: 200},
		},
	}
	for program, tests := range all {
		for i, c := range tests {
			t.Run(program+" "+c.String(), func(t *testing.T) {
				m := []mode{interpose, replace}[i%2]
				line := strings.Join([]string{program, c.flags, "-n", strconv.Itoa(c.n)}, " ")
				runPerftest(t, m, "--transport ethernet", line, "127.0.0.1", c)
			})
		}
	}
}
