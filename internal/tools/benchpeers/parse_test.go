package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded returns what a program has printed when it ran.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// near compares figures that were rounded to a few digits on their way.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.005*math.Abs(want) }

func check(t *testing.T, got, want reading) {
	t.Helper()
	for _, m := range []metric{bandwidth, messageRate, latency, {"seconds", func(r reading) float64 { return r.Seconds }, ratioText}} {
		if !near(m.of(got), m.of(want)) {
			t.Errorf("%s is %v; want %v", m.name, m.of(got), m.of(want))
		}
	}
}

func TestUCXBandwidthIsInUnitsOf1048576Octets(t *testing.T) {
	for file, want := range map[string]reading{
		"ucx_tag_bw_1m.csv": {BytesPerSecond: 1964.50 * 1048576, MessagesPerSecond: 1965, Seconds: 3000 * 509.035e-6},
		"ucx_put_bw_1m.csv": {BytesPerSecond: 571.74 * 1048576, MessagesPerSecond: 572, Seconds: 1000 * 1749.042e-6},
		"ucx_get_1m.csv":    {BytesPerSecond: 599.21 * 1048576, MessagesPerSecond: 599, Seconds: 500 * 1668.854e-6},
		"ucx_tag_bw_64.csv": {BytesPerSecond: 47.86 * 1048576, MessagesPerSecond: 784136, Seconds: 200000 * 1.275e-6},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := parseUCX(recorded(t, file), false)
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, want)
			size := 1 << 20
			if strings.Contains(file, "_64") {
				size = 64
			}
			if !near(got.BytesPerSecond, got.MessagesPerSecond*float64(size)) {
				t.Errorf("%v bytes and %v messages of %d a second", got.BytesPerSecond, got.MessagesPerSecond, size)
			}
		})
	}
}

// The run took 7 seconds for 100,000 exchanges: so its 35 µs are half a round
// trip.
func TestUCXLatencyIsHalfARoundTrip(t *testing.T) {
	got, err := parseUCX(recorded(t, "ucx_tag_lat_64.csv"), true)
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, reading{LatencyNS: 34923, BytesPerSecond: 1.75 * 1048576, MessagesPerSecond: 28635, Seconds: 2 * 100_000 * 34.923e-6})
}

func TestPingPongLatencyIsHalfARoundTrip(t *testing.T) {
	for file, tt := range map[string]struct {
		iterations int
		want       reading
	}{
		"fi_pingpong_64.txt":      {20_000, reading{LatencyNS: 4530, BytesPerSecond: 14.14e6, MessagesPerSecond: 1e6 / 4.53, Seconds: 0.18}},
		"fi_pingpong_1048576.txt": {2_000, reading{LatencyNS: 211_960, BytesPerSecond: 4947.06e6, MessagesPerSecond: 1e6 / 211.96, Seconds: 0.85}},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := parsePingPong(recorded(t, file), tt.iterations)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Seconds-tt.want.Seconds) > 0.01 { // it prints two decimals
				t.Errorf("%v seconds; want %v", got.Seconds, tt.want.Seconds)
			}
			tt.want.Seconds = got.Seconds
			check(t, got, tt.want)
		})
	}
}

func TestPingPongThatLostMessagesIsAnError(t *testing.T) {
	out := strings.Replace(string(recorded(t, "fi_pingpong_64.txt")), "=20k", "-19k", 1)
	if r, err := parsePingPong([]byte(out), 20_000); err == nil || !strings.Contains(err.Error(), "lost messages") {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestIperfCountsWhatTheServerReceived(t *testing.T) {
	got, err := parseIperf(recorded(t, "iperf3.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := reading{BytesPerSecond: 48926191392.904922 / 8, Seconds: 1.000779}
	check(t, got, want)
}

func TestIperfsErrorIsTold(t *testing.T) {
	_, err := parseIperf(recorded(t, "iperf3_refused.json"))
	if err == nil || !strings.Contains(err.Error(), "unable to connect to server: Connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestOutputWithoutFiguresIsAnError(t *testing.T) {
	parsers := map[string]func([]byte) error{
		"UCX":       func(b []byte) error { _, err := parseUCX(b, false); return err },
		"libfabric": func(b []byte) error { _, err := parsePingPong(b, 1); return err },
		"iperf3":    func(b []byte) error { _, err := parseIperf(b); return err },
		"urnic":     func(b []byte) error { _, err := parsePerf(b); return err },
	}
	outputs := map[string][]string{
		"UCX": {
			"iterations,overall_lat\n", "iterations,overall_lat,overall_bw,overall_mr\n10,x,1,1\n",
			"iterations,overall_lat,overall_bw,overall_mr\n10,1,0,0\n", "iterations,overall_lat\n10,1\n", "iterations,a\n1,2,3\n",
		},
		"libfabric": {"bytes #sent\n64\n", "bytes #ack MB/sec usec/xfer\n64 =1 x 1\n", "bytes #ack MB/sec usec/xfer\n64 =1 0.00 0.00\n", "bytes\n"},
		"iperf3":    {"{}", `{"end":{"sum_received":{"bytes":0,"bits_per_second":0}}}`},
		"urnic":     {"{}", `{"results":[]}`, `{"results":[{"qps":1}],"error":"too many open files"}`},
	}
	for name, parse := range parsers {
		for _, out := range append(outputs[name], "", "\n", "Connection refused\n") {
			if err := parse([]byte(out)); err == nil {
				t.Errorf("%s: %q is no error", name, out)
			}
		}
	}
}

func TestPerftestBandwidthIsInUnitsOf1048576Octets(t *testing.T) {
	got, err := parsePerftest(recorded(t, "ib_write_bw_4096.txt"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, reading{BytesPerSecond: 18.92 * 1048576, MessagesPerSecond: 4845, Seconds: 100. / 4845})
}

func TestPerftestLatencyIsHalfARoundTrip(t *testing.T) {
	got, err := parsePerftest(recorded(t, "ib_send_lat_4096.txt"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, reading{LatencyNS: 67530, Seconds: 200 * 67.53e-6})
	if !near(got.MedianNS, 56990) {
		t.Errorf("the median is %v ns", got.MedianNS)
	}
}

func TestPerftestThatTellsNothing(t *testing.T) {
	for _, out := range []string{"", "no device", " #bytes #iterations", " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 64 x 0 0 0\n", " #bytes t_typical[usec]\n 64\n"} {
		if got, err := parsePerftest([]byte(out)); err == nil {
			t.Errorf("%q gives %+v", out, got)
		}
	}
}

func TestVersionsOfThePeersAreFound(t *testing.T) {
	for _, tt := range []struct {
		program *program
		file    string
		want    string
	}{{ucx, "ucx_info.txt", "1.13.1"}, {libfabric, "fi_info.txt", "1.17.0"}, {iperf, "iperf3_version.txt", "3.12"}, {perftest, "dpkg_perftest.txt", "4.5+0.17-1"}, {rdmacore, "dpkg_ibverbs_utils.txt", "44.0-2"}} {
		if got := tt.program.find(recorded(t, tt.file)); got != tt.want {
			t.Errorf("%s: %q; want %q", tt.program.name, got, tt.want)
		}
		if got := tt.program.find([]byte("command not found")); got != "" {
			t.Errorf("%s: %q of nothing", tt.program.name, got)
		}
	}
}
