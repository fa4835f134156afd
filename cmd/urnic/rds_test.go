package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urnic/rnic"
	"urnic/ulp/rds"
	"urnic/ulp/rds/rdsinfo"
)

// ownRuntime gives a test a directory of its own for the sockets of nodes.
func ownRuntime(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
}

const rdsPort = "26393"

// rdsPeer opens a node at 127.0.77.131.
func rdsPeer(t *testing.T, transport string) *rds.Node {
	t.Helper()
	var tr rds.Transport = &rds.TCP{Port: 26393}
	if transport == "iwarp" {
		dev, err := rnic.Open(rnic.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		tr = &rds.IWARP{Device: dev, Address: "127.0.77.131:" + rdsPort, PeerAddress: func(a netip.Addr) string { return net.JoinHostPort(a.String(), rdsPort) }}
	}
	n, err := rds.Open(t.Context(), rds.Config{Addr: netip.MustParseAddr("127.0.77.131"), Transports: []rds.Transport{tr}})
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
			rdsPeer(t, transport)
			file := filepath.Join(t.TempDir(), "ping.pcapng")
			args := []string{"rds", "ping", "-c", "3", "-i", "1ms", "--source", "127.0.77.132", "--transport", transport, "--transport-port", rdsPort}
			lines := strings.Split(ok(t, append(args, "--pcap", file, "127.0.77.131")...), "\n")
			if len(lines) != 6 || !strings.HasPrefix(lines[0], "   1: ") || !strings.HasSuffix(lines[2], " usec") ||
				lines[3] != "--- 127.0.77.131 rds ping statistics ---" || !strings.HasPrefix(lines[4], "3 pings, 3 answers, min/mean/p50/p99/max = ") {
				t.Errorf("it prints %q", lines)
			}
			if info, err := os.Stat(file); err != nil || info.Size() < 1000 {
				t.Errorf("the recording: %v, %v", info, err)
			}
			ok(t, "dissect", file)
			out := ok(t, append(args, "--json", "127.0.77.131")...)
			d := json.NewDecoder(strings.NewReader(out))
			for number := 1; number <= 3; number++ {
				var answer struct {
					Address      string
					Number, Usec int
				}
				if err := d.Decode(&answer); err != nil || answer.Address != "127.0.77.131" || answer.Number != number || answer.Usec < 0 {
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
	rdsPeer(t, "iwarp")
	status, out, errOut := urnic(t, nil, "rds", "ping", "-c", "1", "--timeout", "100ms", "--source", "127.0.77.132", "--transport", "iwarp", "--transport-port", rdsPort, "127.0.77.131", "127.0.77.139")
	if status != 1 || !strings.Contains(out, "127.0.77.131    1: ") || !strings.Contains(out, "--- 127.0.77.139 rds ping statistics ---\n1 ping, 0 answers\n") ||
		!strings.Contains(errOut, "127.0.77.139 has answered none of 1 ping") || !strings.Contains(errOut, "refused") {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errOut)
	}
}

// Without -c, pings end with an interrupt, which is a success.
func TestRDSPingUntilInterrupted(t *testing.T) {
	ownRuntime(t)
	rdsPeer(t, "tcp")
	p := start(t, "rds", "ping", "-i", "1ms", "--source", "127.0.77.132", "--transport-port", rdsPort, "127.0.77.131")
	p.out.wait(t, "   3: ")
	p.interrupt()
	p.end(t)
	p.out.wait(t, "rds ping statistics")
}

func TestRDSStress(t *testing.T) {
	for _, transport := range []string{"tcp", "iwarp"} {
		t.Run(transport, func(t *testing.T) {
			ownRuntime(t)
			port := freePort(t, "127.0.77.133")
			common := []string{"-p", port, "--transport", transport, "--transport-port", rdsPort}
			passive := start(t, append([]string{"rds", "stress", "-r", "127.0.77.133"}, common...)...)
			passive.out.wait(t, "waiting for incoming connection")
			out := ok(t, append([]string{"rds", "stress", "-r", "127.0.77.134", "-s", "127.0.77.133", "-t", "2", "-d", "3", "-q", "3K", "-v", "--requests", "500", "--json"}, common...)...)
			passive.end(t)
			var report rdsStressReport
			d := json.NewDecoder(strings.NewReader(withoutFormat(t, out)))
			d.DisallowUnknownFields()
			if err := d.Decode(&report); err != nil {
				t.Fatal(err)
			}
			if r := report; r.Role != "active" || r.Local != "127.0.77.134" || r.Peer != "127.0.77.133" || r.Transport != transport || r.Tasks != 2 || r.Depth != 3 ||
				r.RequestSize != 3072 || !r.Verify || r.RequestsSent < 400 || r.AcksReceived < 400 || r.BytesSent < 400*3072 || r.RTT == nil || r.RTT.P50 <= 0 ||
				r.Unanswered != 0 || r.Error != "" {
				t.Errorf("%s", out)
			}
			// What ends with the run is not lost. Over iwarp, requests that cross at the beginning may cost a connection.
			if got := passive.out.String(); transport == "tcp" && (report.Losses != 0 || strings.Contains(got, "lost and made again")) {
				t.Errorf("%d connections were lost; the passive side prints %s", report.Losses, got)
			}
			if got := passive.out.String(); !strings.Contains(got, "accepted connection from 127.0.77.134") || !strings.Contains(got, "(average)\nrtt us: min ") {
				t.Errorf("the passive side prints %s", got)
			}
		})
	}
}

// Without -T, the active side ends with an interrupt, in order, and so does the passive one.
func TestRDSStressUntilInterrupted(t *testing.T) {
	ownRuntime(t)
	port := freePort(t, "127.0.77.133")
	passive := start(t, "rds", "stress", "-r", "127.0.77.133", "-p", port, "--transport-port", rdsPort)
	passive.out.wait(t, "waiting for incoming connection")
	active := start(t, "rds", "stress", "-s", "127.0.77.133", "-r", "127.0.77.134", "-p", port, "--transport-port", rdsPort, "-v", "--show-params", "--show-histogram")
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
	n := rdsPeer(t, "iwarp")
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
	if err := a.SendTo(t.Context(), make([]byte, 10), rds.Addr{Host: netip.MustParseAddr("127.0.77.139"), Port: 9}); err != nil {
		t.Fatal(err)
	}
	out := ok(t, "rds", "info")
	for _, want := range []string{
		"RDS node 127.0.77.131 over iwarp, process ", "\nSockets:\n", "\n4000  ", "\nConnections:\n", "\n127.0.77.139  iwarp", "\nSend queue:\n",
		"127.0.77.131:4000  127.0.77.139:9  0    10", "\nRetransmit queue:\n", "\nReceive queue:\n", "\n127.0.77.131:4000  127.0.77.131:4000  0    1000",
		"\nCongested ports:\nNode          Ports\n127.0.77.131  4000\n", "\nMemory:\n", "messages to be sent or acknowledged", "\nCounters:\n", "\nsent ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if out := ok(t, "rds", "info", "-k", "127.0.77.131"); !strings.Contains(out, "\nSockets:\n") || strings.Contains(out, "Counters") || strings.Contains(out, "Connections") {
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
	s, err := rdsinfo.Serve(rdsPeer(t, "tcp"), "")
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
	status, out, errOut := urnic(t, nil, "rds", "info", "--timeout", "50ms")
	if status != 1 || !strings.Contains(out, "RDS node 127.0.77.131") || !strings.Contains(errOut, "rds-2-0.sock is no socket") ||
		!strings.Contains(errOut, "rds-3-0.sock: its process has not answered within 50ms: it may be stopped") {
		t.Errorf("status %d, stderr %q, stdout\n%s", status, errOut, out)
	}
	status, _, errOut = urnic(t, nil, "rds", "info", "--timeout", "50ms", "127.0.77.138")
	if status != 1 || !strings.Contains(errOut, "no process of this user has a node 127.0.77.138") {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
}

func TestRDSUsageErrors(t *testing.T) {
	ownRuntime(t)
	rdsPeer(t, "tcp")
	for args, want := range map[string]string{
		"ping":                                                        "give the address of a node",
		"ping 127.0.77.131:4000":                                      "give the address without a port: 127.0.77.131",
		"ping 127.0.77.131 127.0.77.131":                              "are one address: give it once",
		"ping -c -1 127.0.77.131":                                     "-c -1: must be 0 or more",
		"ping -i 0s 127.0.77.131":                                     "-i 0s: must be more than 0",
		"ping --source x 127.0.77.131":                                "--source x: give an IP address of this machine",
		"ping --source ::1 127.0.77.131":                              "give two IPv4 addresses or two of IPv6",
		"ping --source 192.0.2.77 127.0.77.131":                       "192.0.2.77 is no address of this machine",
		"ping --transport udp 127.0.77.131":                           "--transport udp: must be tcp or iwarp",
		"ping --transport-port 70000 127.0.77.131":                    "--transport-port 70000: must be 1 to 65535",
		"ping --paths 9 127.0.77.131":                                 "--paths 9: must be 1 to 8",
		"ping --trace 127.0.77.131":                                   "give --transport iwarp",
		"ping --json --pcap - 127.0.77.131":                           "would both go to standard output",
		"info node":                                                   "give the address of a node, or the path of a socket",
		"info --timeout 0s":                                           "--timeout 0s",
		"info ./nothing":                                              "there is no such socket",
		"stress x":                                                    "takes no arguments",
		"stress -q 100":                                               "only the active side sets --req-bytes",
		"stress -p 0":                                                 "-p 0: must be 1 to 65534",
		"stress -s 127.0.77.131 -q 10":                                "requests of 10 bytes: they can have 63 to 1048576",
		"stress -s 127.0.77.131 -a 2M":                                "acks of 2097152 bytes",
		"stress -s 127.0.77.131 -q x":                                 "-q x: must be a number of bytes",
		"stress -s 127.0.77.131 -t 0":                                 "-t 0: must be 1 to 256",
		"stress -s 127.0.77.131 -t 256 -d 65535":                      "depth 65535",
		"stress -s 127.0.77.131 -D 4096":                              "there is no RDMA over TCP",
		"stress -s 127.0.77.131 -M 3":                                 "-M 3: must be 0 to 2",
		"stress -s 127.0.77.131 -r ::1":                               "give two IPv4 addresses or two of IPv6",
		"stress -s 127.0.77.131 -p 1 -r 127.0.77.132":                 "nobody listens at port 1 of 127.0.77.131",
		"stress -s 127.0.77.131 --rdma-use-once 1 --rdma-cache-mrs 1": "give only one of --rdma-use-once and --rdma-cache-mrs",
		"ping --transport-port " + rdsPort + " --source 127.0.77.131 127.0.77.132": "another node has 127.0.77.131 already",
	} {
		status, out, errOut := urnic(t, nil, append([]string{"rds"}, strings.Fields(args)...)...)
		if status != 1 || out != "" && !strings.HasPrefix(args, "stress -s 127.0.77.131 -p 1") || !strings.Contains(errOut, want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("urnic rds %s: status %d, stdout %q, stderr %q; want %q", args, status, out, errOut, want)
		}
	}
}

// A control connection of something else is refused, with what is wrong.
func TestRDSStressOfAStranger(t *testing.T) {
	ownRuntime(t)
	port := freePort(t, "127.0.77.133")
	passive := start(t, "rds", "stress", "-r", "127.0.77.133", "-p", port, "--transport-port", rdsPort)
	passive.out.wait(t, "waiting for incoming connection")
	conn, err := net.Dial("tcp", "127.0.77.133:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10)); err != nil {
		t.Fatal(err)
	}
	<-passive.done
	if passive.status != 1 || !strings.Contains(passive.errOut.String(), "tasks: there can be 1 to 256") {
		t.Errorf("status %d, stderr %q", passive.status, passive.errOut.String())
	}
}
