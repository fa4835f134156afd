//go:build dropin

package dropintest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// perftest's programs meet at this port.
const perftestPort = 18515

// A measurement is a line of a perftest program's results.
type measurement struct {
	size, iterations int
	figures          []float64 // MB/s at best and on average, or microseconds
}

// measurements reads the lines of results.
func measurements(out string) (ms []measurement) {
	table := false
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "#bytes"):
			table = true
		case strings.HasPrefix(line, "---"):
			table = false
		case table && len(f) > 2:
			var m measurement
			var err error
			if m.size, err = strconv.Atoi(f[0]); err != nil {
				continue
			}
			if m.iterations, err = strconv.Atoi(f[1]); err != nil {
				continue
			}
			for _, s := range f[2:] {
				v, err := strconv.ParseFloat(s, 64)
				if err != nil {
					break
				}
				m.figures = append(m.figures, v)
			}
			ms = append(ms, m)
		}
	}
	return ms
}

// wantMeasurements checks what a client tells of its test.
func wantMeasurements(t *testing.T, out string, sizes []int, iterations int) {
	t.Helper()
	ms := measurements(out)
	if len(ms) != len(sizes) {
		t.Fatalf("%d sizes are measured; want %d:\n%s", len(ms), len(sizes), out)
	}
	for i, m := range ms {
		if m.size != sizes[i] || m.iterations != iterations {
			t.Errorf("%d octets %d times; want %d octets %d times", m.size, m.iterations, sizes[i], iterations)
		}
		// The last is messages a second, or a latency: MB/s of 2 octets may be 0.00.
		if len(m.figures) < 3 || m.figures[len(m.figures)-1] <= 0 {
			t.Errorf("%d octets: the figures are %v:\n%s", m.size, m.figures, out)
		}
	}
}

// allSizes are those of -a: to 8 MiB.
func allSizes(least int) (sizes []int) {
	for s := least; s <= 8<<20; s *= 2 {
		sizes = append(sizes, s)
	}
	return sizes
}

// A perftest is a way to run one of perftest's programs.
type perftest struct {
	flags string
	qps   int // their number, if more than one
	sizes []int
	n     int    // iterations for each size
	ways  string // names of the ways to connect, if not all
}

func (c perftest) String() string { return c.flags }

// The least that is sent in the tests of all sizes is 2 octets.
var (
	bandwidth = []perftest{
		{flags: "-s 65536", sizes: []int{65536}, n: 500},
		{flags: "-s 64 -b", sizes: []int{64}, n: 1000},
		{flags: "-a", sizes: allSizes(2), n: 5, ways: "rdma_cm, ethernet"},
		{flags: "-s 16384 -q 4", qps: 4, sizes: []int{16384}, n: 100},
		{flags: "-s 65536 -b -q 4", qps: 4, sizes: []int{65536}, n: 50},
	}
	// perftest has no events for Writes: see TestWhatPerftestRefuses.
	bandwidthByEvents = []perftest{
		{flags: "-s 16384 -e", sizes: []int{16384}, n: 500},
		{flags: "-s 65536 -b -e", sizes: []int{65536}, n: 50},
		{flags: "-s 65536 -b -q 4 -e", qps: 4, sizes: []int{65536}, n: 50},
	}
	latency = []perftest{
		{flags: "-s 64", sizes: []int{64}, n: 200},
		{flags: "-a", sizes: allSizes(2), n: 5, ways: "rdma_cm, ethernet"},
	}
	latencyByEvents = []perftest{{flags: "-s 64 -e", sizes: []int{64}, n: 200}}
	sharedReceives  = []perftest{{flags: "-s 4096 --use-srq", sizes: []int{4096}, n: 200}}
	sharedByAll     = []perftest{{flags: "-s 4096 --use-srq -q 4", qps: 4, sizes: []int{4096}, n: 100}}
	atomics         = []perftest{
		{flags: "-A FETCH_AND_ADD", sizes: []int{8}, n: 200},
		{flags: "-A CMP_AND_SWAP", sizes: []int{8}, n: 200},
		{flags: "-e", sizes: []int{8}, n: 200},
	}
	atomicBandwidth = []perftest{{flags: "-q 4", qps: 4, sizes: []int{8}, n: 100}, {flags: "-b", sizes: []int{8}, n: 200}}
	oldCalls        = []perftest{{flags: "-s 4096 --use_old_post_send", sizes: []int{4096}, n: 200, ways: "rdma_cm, ethernet"}}
	// By a GID of IPv6: see TestWhatPerftestRefuses.
	overIPv6 = []perftest{{flags: "-s 4096 --ipv6 -x 1", sizes: []int{4096}, n: 200, ways: "iwarp, ethernet"}}
)

func concat(lists ...[]perftest) (all []perftest) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

var perftests = map[string][]perftest{
	"ib_send_bw":    concat(bandwidth, bandwidthByEvents, sharedReceives, sharedByAll, oldCalls),
	"ib_send_lat":   concat(latency, latencyByEvents, sharedReceives, oldCalls, overIPv6),
	"ib_write_bw":   concat(bandwidth, oldCalls, overIPv6),
	"ib_write_lat":  latency,
	"ib_read_bw":    concat(bandwidth, bandwidthByEvents, oldCalls),
	"ib_read_lat":   concat(latency, latencyByEvents),
	"ib_atomic_bw":  concat(atomics, atomicBandwidth),
	"ib_atomic_lat": atomics,
}

// A way is how queue pairs are connected, and by what kind of device.
type way struct{ name, run, flags string }

var ways = []way{
	{"rdma_cm", "", "-R"},
	{"rdma_cm to Ethernet", "--transport ethernet", "-R"},
	{"iwarp", "", ""},
	{"ethernet", "--transport ethernet", ""},
}

// serves reports whether perftest itself is up to a test. With an iWARP device,
// ib_send_bw grants credits by Writes. It counts on the server's getting the requests
// of several queue pairs in the order of the client's, which nobody promises, and
// waits for ever otherwise; so it does with events, as a credit is none; and without
// rdma_cm, it does not deregister the memory of the credits, and ends with an error:
// see TestSendBandwidthLeavesCredits. To save time, rdma_cm is tried with an Ethernet
// device only for what it can't do with an iWARP one.
func (w way) serves(program string, c perftest) bool {
	credits := program == "ib_send_bw"
	fails := c.qps > 1 || strings.HasSuffix(c.flags, "-e")
	switch w.name {
	case "rdma_cm":
		return !credits || !fails
	case "iwarp":
		return !credits
	case "rdma_cm to Ethernet":
		return credits && fails
	}
	return true
}

// chosen reports whether a test is to be run that way.
func (c perftest) chosen(w way) bool { return c.ways == "" || strings.Contains(c.ways+",", w.name+",") }

// testPerftest runs each test in each way that serves, with the modes in turn: all
// modes with all ways, and all programs with both, would be twice as many.
func testPerftest(t *testing.T, program string) {
	for i, c := range perftests[program] {
		t.Run(c.String(), func(t *testing.T) {
			for j, w := range ways {
				if !w.serves(program, c) || !c.chosen(w) {
					continue
				}
				m := []mode{interpose, replace}[(i+j)%2]
				t.Run(w.name+", "+string(m), func(t *testing.T) {
					runPerftest(t, m, w.run, fmt.Sprintf("%s %s -n %d %s", program, c.flags, c.n, w.flags), "127.0.0.1", c)
				})
			}
		})
	}
}

// perftestTries is how often perftest is run until it can tell the speed of the processor.
const perftestTries = 5

// noReport says that perftest can't tell the speed of the processor, as others use it, too. The other side
// ends in some way then.
func noReport(programs ...*program) bool {
	return slices.ContainsFunc(programs, func(p *program) bool { return strings.Contains(p.output(), "Can't produce a report") })
}

// runPerftest runs a program on both sides.
func runPerftest(t *testing.T, m mode, run, line, host string, c perftest) {
	t.Helper()
	for try := range perftestTries {
		n := newNetwork(t)
		server := n.start(t, m.run(run, line))
		server.listens(n, perftestPort)
		client := n.start(t, m.run(run, line+" "+host))
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the server, as the client saw its end: %v\n%s", server.err, server.output())
			}
		})
		server.ends()
		client.ends()
		if try+1 < perftestTries && noReport(client, server) {
			continue
		}
		out := client.wait(1)
		wantMeasurements(t, out, c.sizes, c.n*max(c.qps, 1))
		server.wait()
		client.wait()
		return
	}
}

func TestSendBandwidth(t *testing.T)   { testPerftest(t, "ib_send_bw") }
func TestSendLatency(t *testing.T)     { testPerftest(t, "ib_send_lat") }
func TestWriteBandwidth(t *testing.T)  { testPerftest(t, "ib_write_bw") }
func TestWriteLatency(t *testing.T)    { testPerftest(t, "ib_write_lat") }
func TestReadBandwidth(t *testing.T)   { testPerftest(t, "ib_read_bw") }
func TestReadLatency(t *testing.T)     { testPerftest(t, "ib_read_lat") }
func TestAtomicBandwidth(t *testing.T) { testPerftest(t, "ib_atomic_bw") }
func TestAtomicLatency(t *testing.T)   { testPerftest(t, "ib_atomic_lat") }

func TestMeasurementsAreRead(t *testing.T) {
	const out = `---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      500              2210.01            2100.93		   0.033615
---------------------------------------------------------------------------------------
`
	wantMeasurements(t, out, []int{65536}, 500)
}
