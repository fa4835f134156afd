// Command benchrx measures Rx over UDP beside OpenAFS's library, by turns, and prints the table of
// docs/rx.md: for each case the median of the rounds, and of the ratios made in each round.
// Client and server are processes of their own on loopback: urnic rx perf, and rxr of
// internal/test/interop/lab/rx.
//
//	benchrx -urnic bin/urnic -rxr DIR/rxr [-rounds 5] [-only CASE] [-brief]
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A key that both programs have. With it, both make their tickets themselves.
const (
	kvno = "2"
	key  = "0123456789abcdef"
)

// A trial is a case that is measured.
type trial struct {
	name     string
	level    string // of rxkad; empty: none
	mode     string // of rxr: null, put, get
	parallel int
	mib      int     // of a stream
	seconds  float64 // of null calls
}

var trials = []trial{
	{name: "null calls, one at a time", mode: "null", parallel: 1},
	{name: "null calls, four at a time", mode: "null", parallel: 4},
	{name: "null calls, crypt", mode: "null", level: "crypt", parallel: 1},
	{name: "client to server", mode: "put", parallel: 1, mib: 256},
	{name: "server to client", mode: "get", parallel: 1, mib: 256},
	{name: "client to server, clear", mode: "put", level: "clear", parallel: 1, mib: 256},
	{name: "client to server, auth", mode: "put", level: "auth", parallel: 1, mib: 128},
	{name: "server to client, auth", mode: "get", level: "auth", parallel: 1, mib: 128},
	{name: "client to server, crypt", mode: "put", level: "crypt", parallel: 1, mib: 32},
	{name: "server to client, crypt", mode: "get", level: "crypt", parallel: 1, mib: 32},
}

// A figure is what a run of one side gave: calls or bytes a second, and latencies in µs.
type figure struct{ rate, p50, p99 float64 }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "benchrx:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	urnic := flag.String("urnic", "bin/urnic", "the program urnic")
	rxr := flag.String("rxr", "", "the program rxr")
	rounds := flag.Int("rounds", 5, "rounds, of which the median counts")
	only := flag.String("only", "", "only the cases whose name contains this")
	brief := flag.Bool("brief", false, "measure for a moment only: whether it works, not how fast")
	flag.Parse()
	if *rxr == "" || *rounds < 1 {
		return errors.New("-rxr is wanted, and one round at least")
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	ours := side{address: "127.0.0.1:" + port, client: func(t trial, addr string) *exec.Cmd {
		return exec.CommandContext(ctx, *urnic, ourArgs(t, addr)...)
	}, parse: parseOurs}
	if err := ours.serve(exec.CommandContext(ctx, *urnic, "rx", "perf", "server", "--listen", ours.address, "--key", kvno+":"+key)); err != nil {
		return err
	}
	defer ours.end()
	if port, err = freePort(); err != nil {
		return err
	}
	theirs := side{address: "127.0.0.1:" + port, client: func(t trial, addr string) *exec.Cmd {
		return exec.CommandContext(ctx, *rxr, theirArgs(t, addr)...)
	}, parse: parseTheirs}
	if err := theirs.serve(exec.CommandContext(ctx, *rxr, "server", "-a", "127.0.0.1", "-p", port)); err != nil {
		return err
	}
	defer theirs.end()

	fmt.Println("| case | urnic | OpenAFS | ratio (range) |\n| --- | --- | --- | --- |")
	for _, t := range trials {
		if !strings.Contains(t.name, *only) {
			continue
		}
		if *brief {
			t.seconds, t.mib = 0.1, max(1, t.mib/32)
		} else {
			t.seconds = 2
		}
		var a, b []figure
		for range *rounds {
			f, err := ours.measure(t)
			if err != nil {
				return fmt.Errorf("%s: urnic: %w", t.name, err)
			}
			g, err := theirs.measure(t)
			if err != nil {
				return fmt.Errorf("%s: OpenAFS: %w", t.name, err)
			}
			a, b = append(a, f), append(b, g)
		}
		fmt.Println(row(t, a, b))
	}
	return nil
}

// A side is one of the two implementations.
type side struct {
	address string
	server  *exec.Cmd
	client  func(t trial, addr string) *exec.Cmd
	parse   func(t trial, out string) (figure, error)
}

// serve starts a server and waits until it says something.
func (s *side) serve(cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	s.server = cmd
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		s.end()
		return fmt.Errorf("%s: %q: %w", cmd, line, err)
	}
	return nil
}

func (s *side) end() {
	s.server.Process.Kill() //nolint:errcheck // it may have ended
	s.server.Wait()         //nolint:errcheck // by that signal
}

func (s *side) measure(t trial) (figure, error) {
	cmd := s.client(t, s.address)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return figure{}, fmt.Errorf("%s: %w", cmd, err)
	}
	return s.parse(t, string(out))
}

func ourArgs(t trial, addr string) []string {
	args := []string{"rx", "perf", "client", addr, "--json", "--parallel", strconv.Itoa(t.parallel)}
	switch t.mode {
	case "null":
		args = append(args, "--mode", "rpc", "--bytes", "4", "--time", fmt.Sprintf("%gs", t.seconds))
	case "put":
		args = append(args, "--mode", "send", "--calls", "1", "--bytes", fmt.Sprintf("%dM", t.mib))
	default:
		args = append(args, "--mode", "receive", "--calls", "1", "--bytes", fmt.Sprintf("%dM", t.mib))
	}
	if t.level != "" {
		args = append(args, "--key", kvno+":"+key, "--level", t.level)
	}
	return args
}

func theirArgs(t trial, addr string) []string {
	host, port, _ := strings.Cut(addr, ":")
	args := []string{"client", "-a", host, "-p", port}
	if t.level != "" {
		args = append(args, "-sec", t.level, "-old")
	}
	args = append(args, "perf", t.mode)
	if t.mode == "null" {
		return append(args, fmt.Sprint(t.seconds), strconv.Itoa(t.parallel))
	}
	return append(args, strconv.Itoa(t.mib))
}

func parseOurs(t trial, out string) (figure, error) {
	var r struct {
		BytesPerSecond float64            `json:"bytes_per_second"`
		CallsPerSecond float64            `json:"calls_per_second"`
		Latency        map[string]float64 `json:"latency_ns"`
		Error          string
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return figure{}, fmt.Errorf("%q: %w", out, err)
	}
	if r.Error != "" {
		return figure{}, errors.New(r.Error)
	}
	f := figure{rate: r.BytesPerSecond / 1e6, p50: r.Latency["p50"] / 1e3, p99: r.Latency["p99"] / 1e3}
	if t.mode == "null" {
		f.rate = r.CallsPerSecond
	}
	return f, f.check(out)
}

var theirValue = regexp.MustCompile(`(MB/s|calls/s|p50|p99)=([0-9.]+)`)

func parseTheirs(_ trial, out string) (figure, error) {
	var f figure
	for _, m := range theirValue.FindAllStringSubmatch(out, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return f, fmt.Errorf("%q: %w", out, err)
		}
		switch m[1] {
		case "p50":
			f.p50 = v
		case "p99":
			f.p99 = v
		default:
			f.rate = v
		}
	}
	return f, f.check(out)
}

func (f figure) check(out string) error {
	if f.rate <= 0 {
		return fmt.Errorf("%q has no figure", out)
	}
	return nil
}

// row is a line of the table.
func row(t trial, a, b []figure) string {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i].rate / b[i].rate
	}
	slices.Sort(ratios)
	show := func(f []figure) string {
		rate := median(f, func(f figure) float64 { return f.rate })
		if t.mode != "null" {
			return fmt.Sprintf("%.0f MB/s", rate)
		}
		return fmt.Sprintf("%.0f/s, p50 %.0f µs, p99 %.0f µs", rate,
			median(f, func(f figure) float64 { return f.p50 }), median(f, func(f figure) float64 { return f.p99 }))
	}
	return fmt.Sprintf("| %s | %s | %s | %.2f (%.2f to %.2f) |", t.name, show(a), show(b), ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
}

func median(f []figure, of func(figure) float64) float64 {
	v := make([]float64, len(f))
	for i := range f {
		v[i] = of(f[i])
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// freePort returns a UDP port of 127.0.0.1 that is free.
func freePort() (string, error) {
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // nothing was written
	_, port, err := net.SplitHostPort(c.LocalAddr().String())
	return port, err
}
