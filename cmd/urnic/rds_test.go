package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/loopback"
	"urnic/rnic"
	"urnic/ulp/rds"
	"urnic/ulp/rds/rdsinfo"
)

// ownRuntime gives a test a directory of its own for the sockets of nodes.
func ownRuntime(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
}

// An rdsNet is where a test has nodes: addresses that nobody else uses, and their port.
type rdsNet struct{ peer, own, passive, active, none, port string }

func rdsNetOf(t *testing.T) rdsNet {
	t.Helper()
	n := loopback.Of(t)
	addr := func(i byte) string { return n.Addr(i).String() }
	return rdsNet{peer: addr(131), own: addr(132), passive: addr(133), active: addr(134), none: addr(139), port: ownPort(t)}
}

// rdsPeer opens the node that commands are to talk to.
func rdsPeer(t *testing.T, at rdsNet, transport string) *rds.Node {
	t.Helper()
	port, err := strconv.ParseUint(at.port, 10, 16)
	do(t, err)
	var tr rds.Transport = &rds.TCP{Port: uint16(port)}
	if transport == "iwarp" {
		dev, err := rnic.Open(rnic.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		tr = &rds.IWARP{Device: dev, Address: net.JoinHostPort(at.peer, at.port), PeerAddress: func(a netip.Addr) string { return net.JoinHostPort(a.String(), at.port) }}
	}
	n, err := rds.Open(t.Context(), rds.Config{Addr: netip.MustParseAddr(at.peer), Transports: []rds.Transport{tr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func TestRDSPing(t *testing.T) {
	for _, transport := range []string{"tcp", "iwarp"} {
		t.Run(transport, func(t *testing.T) {
			ownRuntime(t)
			at := rdsNetOf(t)
			rdsPeer(t, at, transport)
			file := filepath.Join(t.TempDir(), "ping.pcapng")
			args := []string{"rds", "ping", "-c", "3", "-i", "1ms", "--source", at.own, "--transport", transport, "--transport-port", at.port}
			lines := strings.Split(ok(t, append(args, "--pcap", file, at.peer)...), "\n")
			if len(lines) != 6 || !strings.HasPrefix(lines[0], "   1: ") || !strings.HasSuffix(lines[2], " usec") ||
				lines[3] != "--- "+at.peer+" rds ping statistics ---" || !strings.HasPrefix(lines[4], "3 pings, 3 answers, min/mean/p50/p99/max = ") {
				t.Errorf("it prints %q", lines)
			}
			if info, err := os.Stat(file); err != nil || info.Size() < 1000 {
				t.Errorf("the recording: %v, %v", info, err)
			}
			ok(t, "dissect", file)
			out := ok(t, append(args, "--json", at.peer)...)
			d := json.NewDecoder(strings.NewReader(out))
			for number := 1; number <= 3; number++ {
				var answer struct {
					Address      string
					Number, Usec int
				}
				if err := d.Decode(&answer); err != nil || answer.Address != at.peer || answer.Number != number || answer.Usec < 0 {
					t.Errorf("%+v, %v in %s", answer, err, out)
				}
			}
			var sum rdsPingSum
			if err := d.Decode(&sum); err != nil || sum.Pings != 3 || sum.Answers != 3 || sum.Usec == nil || sum.Usec.Min > sum.Usec.Max || sum.Error != "" {
				t.Errorf("%+v, %v in %s", sum, err, out)
			}
		})
	}
}

// An address that answers and one where nothing is: the answers are shown, and the status says
// that one is missing, and why.
func TestRDSPingOfANodeThatIsNotThere(t *testing.T) {
	ownRuntime(t)
	at := rdsNetOf(t)
	rdsPeer(t, at, "iwarp")
	// One has to answer, and the other to refuse, while the answer of the other is waited for.
	inTime(t, func(wait string) (good bool, said string) {
		status, out, errOut := urnic(t, nil, "rds", "ping", "-c", "1", "--timeout", wait, "--source", at.own, "--transport", "iwarp", "--transport-port", at.port, at.peer, at.none)
		said = fmt.Sprintf("status %d, stdout %q, stderr %q", status, out, errOut)
		if status != 1 || !strings.Contains(out, "--- "+at.none+" rds ping statistics ---\n1 ping, 0 answers\n") || !strings.Contains(errOut, at.none+" has answered none of 1 ping") {
			t.Error(said)
		}
		return strings.Contains(out, at.peer+"    1: ") && strings.Contains(errOut, "refused") && !strings.Contains(errOut, at.peer+" has answered"), said
	})
}

// inTime tries something that takes a time, with a longer one each time: it may be too short on a
// machine that does other things, but not always.
func inTime(t *testing.T, try func(time string) (good bool, said string)) {
	t.Helper()
	for d := 100 * time.Millisecond; ; d *= 2 {
		good, said := try(d.String())
		if good {
			return
		}
		if d > hangGuard {
			t.Fatalf("with %v: %s", d, said)
		}
	}
}

// Without -c, pings end with an interrupt, which is a success.
func TestRDSPingUntilInterrupted(t *testing.T) {
	ownRuntime(t)
	at := rdsNetOf(t)
	rdsPeer(t, at, "tcp")
	p := start(t, "rds", "ping", "-i", "1ms", "--source", at.own, "--transport-port", at.port, at.peer)
	p.out.wait(t, "   3: ")
	p.interrupt()
	p.end(t)
	p.out.wait(t, "rds ping statistics")
}

func TestRDSStress(t *testing.T) {
	for _, transport := range []string{"tcp", "iwarp"} {
		t.Run(transport, func(t *testing.T) {
			ownRuntime(t)
			at, port := rdsNetOf(t), ownPort(t)
			common := []string{"-p", port, "--transport", transport, "--transport-port", at.port}
			passive := start(t, append([]string{"rds", "stress", "-r", at.passive}, common...)...)
			passive.out.wait(t, "waiting for incoming connection")
			out := ok(t, append([]string{"rds", "stress", "-r", at.active, "-s", at.passive, "-t", "2", "-d", "3", "-q", "3K", "-v", "--requests", "500", "--json"}, common...)...)
			passive.end(t)
			var report rdsStressReport
			d := json.NewDecoder(strings.NewReader(withoutFormat(t, out)))
			d.DisallowUnknownFields()
			if err := d.Decode(&report); err != nil {
				t.Fatal(err)
			}
			if r := report; r.Role != "active" || r.Local != at.active || r.Peer != at.passive || r.Transport != transport || r.Tasks != 2 || r.Depth != 3 ||
				r.RequestSize != 3072 || !r.Verify || r.RequestsSent < 400 || r.AcksReceived < 400 || r.BytesSent < 400*3072 || r.RTT == nil || r.RTT.P50 <= 0 ||
				r.Unanswered != 0 || r.Error != "" {
				t.Errorf("%s", out)
			}
			// What ends with the run is not lost, nor what its beginning costs.
			if got := passive.out.String(); report.Losses != 0 || strings.Contains(got, "lost and made again") {
				t.Errorf("%d connections were lost; the passive side prints %s", report.Losses, got)
			}
			if got := passive.out.String(); !strings.Contains(got, "accepted connection from "+at.active) || !strings.Contains(got, "(average)\nrtt us: min ") {
				t.Errorf("the passive side prints %s", got)
			}
		})
	}
}

// Without -T, the active side ends with an interrupt, in order, and so does the passive one.
func TestRDSStressUntilInterrupted(t *testing.T) {
	ownRuntime(t)
	at, port := rdsNetOf(t), ownPort(t)
	passive := start(t, "rds", "stress", "-r", at.passive, "-p", port, "--transport-port", at.port)
	passive.out.wait(t, "waiting for incoming connection")
	active := start(t, "rds", "stress", "-s", at.passive, "-r", at.active, "-p", port, "--transport-port", at.port, "-v", "--show-params", "--show-histogram")
	active.out.wait(t, "rtt us")
	active.interrupt()
	active.end(t)
	passive.end(t)
	if out := active.out.String(); !strings.Contains(out, "Options:\n  Tasks      1\n  Req size   1024\n  ACK size   63\n  RDMA size  0\n  RDMA opts  use_fence\n") {
		t.Errorf("it prints %s", out)
	}
}

func TestRDSInfo(t *testing.T) {
	ownRuntime(t)
	at := rdsNetOf(t)
	n := rdsPeer(t, at, "iwarp")
	s, err := rdsinfo.Serve(n, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := n.Bind(4000, rds.ReceiveBuffer(500))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.SendTo(t.Context(), make([]byte, 1000), a.Addr()); err != nil {
		t.Fatal(err)
	}
	if err := a.SendTo(t.Context(), make([]byte, 10), rds.Addr{Host: netip.MustParseAddr(at.none), Port: 9}); err != nil {
		t.Fatal(err)
	}
	out := ok(t, "rds", "info")
	for _, want := range []string{
		"RDS node " + at.peer + " over iwarp, process ", "\nSockets:\n", "\n4000  ", "\nConnections:\n", "\n" + at.none + "  iwarp", "\nSend queue:\n",
		at.peer + ":4000  " + at.none + ":9  0    10", "\nRetransmit queue:\n", "\nReceive queue:\n", "\n" + at.peer + ":4000  " + at.peer + ":4000  0    1000",
		fmt.Sprintf("\nCongested ports:\n%-*s  Ports\n%s  4000\n", len(at.peer), "Node", at.peer), "\nMemory:\n", "messages to be sent or acknowledged", "\nCounters:\n", "\nsent ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if out := ok(t, "rds", "info", "-k", at.peer); !strings.Contains(out, "\nSockets:\n") || strings.Contains(out, "Counters") || strings.Contains(out, "Connections") {
		t.Errorf("-k shows %s", out)
	}
	var r rdsinfo.Report
	if err := json.Unmarshal([]byte(ok(t, "rds", "info", "--json", s.Path())), &r); err != nil || r.PID != os.Getpid() || r.Node.Addr != n.Addr() ||
		len(r.Node.Sockets) != 1 || r.Node.Receive.Total != 1 || r.Node.Send.Total != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What can't be shown is named, each with its reason, and the rest is shown.
func TestRDSInfoOfWhatIsNoNode(t *testing.T) {
	ownRuntime(t)
	if status, out, errOut := urnic(t, nil, "rds", "info"); status != 0 || out != "" || !strings.Contains(errOut, "no process of this user shows a node") {
		t.Errorf("without a node: status %d, %q, %q", status, out, errOut)
	}
	at := rdsNetOf(t)
	s, err := rdsinfo.Serve(rdsPeer(t, at, "tcp"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.WriteFile(filepath.Join(rdsinfo.Dir(), "rds-2-0.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hung, err := net.Listen("unix", filepath.Join(rdsinfo.Dir(), "rds-3-0.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	inTime(t, func(wait string) (good bool, said string) { // which the live one has to answer
		status, out, errOut := urnic(t, nil, "rds", "info", "--timeout", wait)
		said = fmt.Sprintf("status %d, stderr %q, stdout\n%s", status, errOut, out)
		if status != 1 || !strings.Contains(errOut, "rds-2-0.sock is no socket") || !strings.Contains(errOut, "rds-3-0.sock: its process has not answered within "+wait+": it may be stopped") {
			t.Error(said)
		}
		return strings.Contains(out, "RDS node "+at.peer) && strings.Count(errOut, "has not answered") == 1, said
	})
	status, _, errOut := urnic(t, nil, "rds", "info", "--timeout", "50ms", at.none)
	if status != 1 || !strings.Contains(errOut, "no process of this user has a node "+at.none) {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
}

func TestRDSUsageErrors(t *testing.T) {
	ownRuntime(t)
	at := rdsNetOf(t)
	rdsPeer(t, at, "tcp")
	for args, want := range map[string]string{
		"ping":                                        "give the address of a node",
		"ping " + at.peer + ":4000":                   "give the address without a port: " + at.peer,
		"ping " + at.peer + " " + at.peer:             "are one address: give it once",
		"node":                                        "give one address of this machine",
		"node " + at.peer + " " + at.own:              "give one address of this machine",
		"node 192.0.2.77":                             "192.0.2.77 is no address of this machine",
		"node --json --pcap - " + at.own:              "would both go to standard output",
		"node --allow x " + at.own:                    "--allow x: give an address, addresses such as 192.0.2.0/24, or all",
		"ping --allow 192.0.2.0/24 " + at.peer:        "--allow does not include " + at.peer + ": add --allow " + at.peer,
		"ping -i x " + at.peer:                        "--interval x: give a number of seconds, or a time with its unit",
		"ping -c -1 " + at.peer:                       "-c -1: must be 0 or more",
		"ping -i 0s " + at.peer:                       "-i 0s: must be more than 0",
		"ping --source x " + at.peer:                  "--source x: give an IP address of this machine",
		"ping --source ::1 " + at.peer:                "give two IPv4 addresses or two of IPv6",
		"ping --source 192.0.2.77 " + at.peer:         "192.0.2.77 is no address of this machine",
		"ping --transport udp " + at.peer:             "--transport udp: must be tcp or iwarp",
		"ping --transport-port 70000 " + at.peer:      "--transport-port 70000: must be 1 to 65535",
		"ping --paths 9 " + at.peer:                   "--paths 9: must be 1 to 8",
		"ping --trace " + at.peer:                     "give --transport iwarp",
		"ping --json --pcap - " + at.peer:             "would both go to standard output",
		"info node":                                   "give the address of a node, or the path of a socket",
		"info --timeout 0s":                           "--timeout 0s",
		"info ./nothing":                              "there is no such socket",
		"stress x":                                    "takes no arguments",
		"stress -q 100":                               "only the active side sets --req-bytes",
		"stress -p 0":                                 "-p 0: must be 1 to 65534",
		"stress -s " + at.peer + " -q 10":             "requests of 10 bytes: they can have 63 to 1048576",
		"stress -s " + at.peer + " -a 2M":             "acks of 2097152 bytes",
		"stress -s " + at.peer + " -q x":              "-q x: must be a number of bytes",
		"stress -s " + at.peer + " -t 0":              "-t 0: must be 1 to 256",
		"stress -s " + at.peer + " -t 256 -d 65535":   "depth 65535",
		"stress -s " + at.peer + " -D 4096":           "there is no RDMA over TCP",
		"stress -s " + at.peer + " -M 3":              "-M 3: must be 0 to 2",
		"stress -s " + at.peer + " -r ::1":            "give two IPv4 addresses or two of IPv6",
		"stress -s " + at.peer + " -p 1 -r " + at.own: "nobody listens at port 1 of " + at.peer,

		"stress -s " + at.peer + " --allow ::1":                                    "--allow does not include " + at.peer,
		"stress -s " + at.peer + " --rdma-use-notify 2":                            "--rdma-use-notify 2: must be 0 to 1",
		"stress --json --show-perfdata":                                            "give only one of --json and --show-perfdata",
		"stress --json --show-outliers 1":                                          "give only one of --json and --show-outliers",
		"stress -s " + at.peer + " --rdma-use-once 1 --rdma-cache-mrs 1":           "give only one of --rdma-use-once and --rdma-cache-mrs",
		"ping --transport-port " + at.port + " --source " + at.peer + " " + at.own: "another node has " + at.peer + " already",
	} {
		status, out, errOut := urnic(t, nil, append([]string{"rds"}, strings.Fields(args)...)...)
		if status != 1 || out != "" && !strings.HasPrefix(args, "stress -s "+at.peer+" -p 1") || !strings.Contains(errOut, want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("urnic rds %s: status %d, stdout %q, stderr %q; want %q", args, status, out, errOut, want)
		}
	}
}

// A control connection of something else is refused, with what is wrong.
func TestRDSStressOfAStranger(t *testing.T) {
	ownRuntime(t)
	at, port := rdsNetOf(t), ownPort(t)
	passive := start(t, "rds", "stress", "-r", at.passive, "-p", port, "--transport-port", at.port)
	passive.out.wait(t, "waiting for incoming connection")
	conn, err := net.Dial("tcp", at.passive+":"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10)); err != nil {
		t.Fatal(err)
	}
	passive.wait(t)
	if passive.status != 1 || !strings.Contains(passive.errOut.String(), "tasks: there can be 1 to 256") {
		t.Errorf("status %d, stderr %q", passive.status, passive.errOut.String())
	}
}
