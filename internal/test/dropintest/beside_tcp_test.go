//go:build dropin && measure

package dropintest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// How fast programs are on the drop-in library beside what they use here without it, TCP: by turns, in rounds. "make bench-packages" runs it.
// The medians are of the ratios of the rounds; above 1 the library is faster.
func TestBesideTCP(t *testing.T) {
	const rounds = 5
	pingpong := compiled(t, "pingpong.c", "mpicc.openmpi")
	for _, m := range []struct {
		name    string
		latency bool // less is better
		run     func(t *testing.T, library bool) float64
	}{
		{"UCX tag_bw, 64 KiB, MB/s", false, ucx("tag_bw", 65536, 3000)},
		{"UCX tag_bw, 1 MiB, MB/s", false, ucx("tag_bw", 1<<20, 400)},
		{"UCX tag_lat, 8 bytes, us", true, ucx("tag_lat", 8, 5000)},
		{"Open MPI ping-pong, 8 bytes, us", true, openMPI(pingpong, 8, 3000)},
		{"Open MPI ping-pong, 64 KiB, us", true, openMPI(pingpong, 65536, 1000)},
		{"Open MPI ping-pong, 1 MiB, us", true, openMPI(pingpong, 1<<20, 100)},
	} {
		t.Run(m.name, func(t *testing.T) {
			var ours, tcp, ratios []float64
			for range rounds {
				a, b := m.run(t, true), m.run(t, false)
				ours, tcp = append(ours, a), append(tcp, b)
				if m.latency {
					a, b = b, a
				}
				ratios = append(ratios, a/b)
			}
			for _, of := range [][]float64{ours, tcp, ratios} {
				slices.Sort(of)
			}
			fmt.Printf("| %s | %.1f | %.1f | %.2f (%.2f to %.2f) |\n", m.name, ours[rounds/2], tcp[rounds/2], ratios[rounds/2], ratios[0], ratios[rounds-1])
		})
	}
}

// ucx returns what measures by ucx_perftest.
func ucx(test string, size, iterations int) func(*testing.T, bool) float64 {
	return func(t *testing.T, library bool) float64 {
		t.Helper()
		const port = 13337
		n, line, env := newNetwork(t), fmt.Sprintf("ucx_perftest -p %d -t %s -s %d -n %d -w 100", port, test, size, iterations), "UCX_TLS=tcp"
		server, client := strings.Fields(line), strings.Fields(line+" 127.0.0.1")
		if library {
			env = "UCX_TLS=rc_v,ud_v"
			server, client = interpose.runArgs("--transport ethernet", server...), interpose.runArgs("--transport ethernet", client...)
		}
		s := n.start(t, server, env)
		s.listens(n, port)
		out := n.start(t, client, env).wait()
		s.ends()
		fields := regexp.MustCompile(`(?m)^Final: .*$`).FindString(out)
		column := 5 // overall bandwidth
		if strings.HasSuffix(test, "lat") {
			column = 3
		}
		return number(t, strings.Fields(fields), column, out)
	}
}

// openMPI returns what measures by our ping-pong.
func openMPI(program string, size, iterations int) func(*testing.T, bool) float64 {
	return func(t *testing.T, library bool) float64 {
		t.Helper()
		line := strings.Fields("mpirun.openmpi --oversubscribe -np 2 --mca pml")
		what := []string{program, strconv.Itoa(size), strconv.Itoa(iterations)}
		if library {
			line = append(line, "ucx", "--mca", "btl", "^openib", "-x", "UCX_TLS=rc_v,ud_v,self", "-x", "UCX_NET_DEVICES=urnic0:1")
			what = interpose.runArgs("--transport ethernet", what...)
		} else {
			line = append(line, "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
		}
		out := newNetwork(t).start(t, append(line, what...)).wait()
		return number(t, strings.Fields(regexp.MustCompile(`half of a round trip: .*`).FindString(out)), 5, out)
	}
}

// number returns the number in a column.
func number(t *testing.T, fields []string, column int, out string) float64 {
	t.Helper()
	if len(fields) <= column {
		t.Fatalf("no figure:\n%s", out)
	}
	v, err := strconv.ParseFloat(fields[column], 64)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	return v
}
