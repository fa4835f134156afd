package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The contests, in the order of a round: what is compared stands together.
var contests = []*contest{
	perf("urnic write 1M, CRC off", "--op write --test bw --size 1048576 --depth 16 --crc off --baseline --baseline-best"),
	ucxTest("UCX tag_bw 1M", "tag_bw", 1<<20, 500),
	ucxTest("UCX tag_bw 1M, depth 16", "tag_bw", 1<<20, 500, "-O", "16"),
	iperfTest("iperf3 1M", 1<<20),

	perf("urnic write 1M", "--op write --test bw --size 1048576 --depth 16 --crc on --baseline --baseline-best"),
	ucxTest("UCX ucp_put_bw 1M", "ucp_put_bw", 1<<20, 200),
	ucxTest("UCX ucp_put_bw 1M, depth 16", "ucp_put_bw", 1<<20, 200, "-O", "16"),

	perf("urnic write 64K", "--op write --test bw --size 65536 --depth 16 --crc on --baseline"),

	perf("urnic write 64K, depth 128", "--op write --test bw --size 65536 --depth 128 --crc on"),
	perftestTest("ib_write_bw 64K", "ib_write_bw", 1<<16, 0),
	perfPair("urnic write 64K, depth 128, two processes", "--op write --test bw --size 65536 --depth 128 --crc on"),
	perf("urnic write 1M, depth 128", "--op write --test bw --size 1048576 --depth 128 --crc on"),
	perftestTest("ib_write_bw 1M", "ib_write_bw", 1<<20, 0),
	perfPair("urnic write 1M, depth 128, two processes", "--op write --test bw --size 1048576 --depth 128 --crc on"),

	perf("urnic read 1M", "--op read --test bw --size 1048576 --depth 16 --crc on --baseline --baseline-best"),
	ucxTest("UCX ucp_get 1M", "ucp_get", 1<<20, 100),
	ucxTest("UCX ucp_get 1M, depth 16", "ucp_get", 1<<20, 200, "-O", "16"),

	perf("urnic send 64 ping-pong, event", "--op send --test lat --size 64 --poll event --crc on --baseline"),
	perf("urnic send 64 ping-pong, busy", "--op send --test lat --size 64 --poll busy --crc on --baseline"),
	pingPongTest("libfabric ping-pong 64", 64, 5000),
	ucxTest("UCX tag_lat 64", "tag_lat", 64, 5000),

	perf("urnic send 64 ping-pong, busy, again", "--op send --test lat --size 64 --poll busy --crc on"),
	perftestTest("ib_send_lat 64", "ib_send_lat", 64, 5000),
	startTest("ibv_devices", "ibv_devices"),

	perf("urnic write 64", "--op write --test rate --size 64 --depth 256 --crc on --baseline"),
	ucxTest("UCX tag_bw 64", "tag_bw", 64, 50_000),
	perf("urnic send 64", "--op send --test rate --size 64 --depth 256 --crc on --baseline"),
	perf("urnic read 64", "--op read --test rate --size 64 --depth 256 --crc on"),

	perf("urnic send 1M ping-pong, busy", "--op send --test lat --size 1048576 --poll busy --crc on"),
	pingPongTest("libfabric ping-pong 1M", 1<<20, 200),

	perf("urnic 1 and 64 QPs", "--op write --test scale --size 65536 --depth 16 --qps 1,64 --crc on"),
	perf("urnic idle QPs", "--test idle --qps "+strconv.Itoa(idleQPs(openFiles()))),
	// So few that raw TCP has a port for each: it waits for old ones otherwise.
	perf("urnic connections, 4 at a time", "--test connect --qps 4 --iters 10000 --baseline"),
	perf("urnic connections, one at a time", "--test connect --qps 1 --iters 10000 --baseline"),
}

// perf is a contest of urnic's own, which is told a time unless the flags say how
// much it does. Idle QPs have none: that run is over when all are connected.
func perf(name, flags string) *contest {
	return &contest{
		name: name, by: urnic,
		argv: func(at setting) []string {
			argv := append([]string{"perf", "local"}, strings.Fields(flags)...)
			if !slices.Contains(argv, "--iters") && !slices.Contains(argv, "idle") {
				argv = append(argv, "--duration", at.duration.String())
			}
			if slices.Contains(argv, "--baseline") {
				argv = append(argv, tryFor(at.try)...)
			}
			return append(argv, "--rounds", "1", "--json")
		},
		parse: func(out []byte, _ setting) ([]reading, error) { return parsePerf(out) },
	}
}

// tryFor are the flags for how long the sizes of calls of a baseline are tried.
func tryFor(d time.Duration) []string {
	if d == 0 {
		return nil
	}
	return []string{"--baseline-try", d.String()}
}

// perfPair is a contest of urnic's own between two processes.
func perfPair(name, flags string) *contest {
	c := perf(name, flags)
	local, address := c.argv, func(at setting) string { return "127.0.0.1:" + strconv.Itoa(at.port) }
	c.server = func(at setting) []string { return []string{"perf", "server", "--listen", address(at)} }
	c.argv = func(at setting) []string { return append([]string{"perf", "client", address(at)}, local(at)[2:]...) }
	c.stays = true
	return c
}

// ucxTest is a test of ucx_perftest over TCP on loopback and nothing else: it
// would use shared memory.
func ucxTest(name, test string, size, first int, more ...string) *contest {
	return &contest{
		name: name, by: ucx, first: first,
		env:    []string{"UCX_TLS=tcp", "UCX_NET_DEVICES=lo"},
		server: func(at setting) []string { return []string{"-p", strconv.Itoa(at.port)} },
		argv: func(at setting) []string {
			argv := []string{
				"127.0.0.1", "-p", strconv.Itoa(at.port), "-t", test, "-s", strconv.Itoa(size),
				"-n", strconv.Itoa(at.iterations), "-w", warmUp(at.iterations), "-f", "-v",
			}
			return append(argv, more...)
		},
		parse: one(func(out []byte, _ setting) (reading, error) { return parseUCX(out, strings.HasSuffix(test, "_lat")) }),
	}
}

// pingPongTest is a ping-pong of fi_pingpong over connected endpoints of the
// provider for TCP.
func pingPongTest(name string, size, first int) *contest {
	argv := func(at setting, more ...string) []string {
		return append([]string{"-p", "tcp", "-e", "msg", "-S", strconv.Itoa(size), "-I", strconv.Itoa(at.iterations)}, more...)
	}
	return &contest{
		name: name, by: libfabric, first: first,
		server: func(at setting) []string { return argv(at, "-B", strconv.Itoa(at.port)) },
		argv:   func(at setting) []string { return argv(at, "-P", strconv.Itoa(at.port), "127.0.0.1") },
		parse:  one(func(out []byte, at setting) (reading, error) { return parsePingPong(out, at.iterations) }),
	}
}

// iperfTest is one stream of iperf3 with calls of that size.
func iperfTest(name string, size int) *contest {
	return &contest{
		name: name, by: iperf,
		server: func(at setting) []string { return []string{"-s", "-1", "-p", strconv.Itoa(at.port)} },
		argv: func(at setting) []string {
			return []string{
				"-c", "127.0.0.1", "-p", strconv.Itoa(at.port), "-l", strconv.Itoa(size),
				"-t", fmt.Sprint(max(1, int(at.duration.Round(1e9).Seconds()))), "-J",
			}
		},
		parse: one(func(out []byte, _ setting) (reading, error) { return parseIperf(out) }),
	}
}

// one makes a list of what a parser returns.
func one(parse func([]byte, setting) (reading, error)) func([]byte, setting) ([]reading, error) {
	return func(out []byte, at setting) ([]reading, error) {
		r, err := parse(out, at)
		return []reading{r}, err
	}
}
