package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"urnic/internal/test/loopback"
)

// ownPort returns a port that nobody listens at and that belongs to the test.
func ownPort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(int(loopback.Port(t)))
}

// unusedPort is a port where nobody listens: the kernel gives out no port so low.
const unusedPort = "1"

// waitForListener waits until somebody listens, by a connection that says nothing.
func waitForListener(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(hangGuard); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody listens: %v", err)
		}
		time.Sleep(time.Millisecond) // nothing tells when a port begins to listen
	}
}

// serve starts a server, and returns it with its port once it listens.
func serve(t *testing.T, host string, args ...string) (server *process, port string) {
	t.Helper()
	port = ownPort(t)
	server = start(t, append([]string{"rping", "-s", "-a", host, "-p", port}, args...)...)
	waitForListener(t, net.JoinHostPort(host, port))
	return server, port
}

// loopbacks returns the loopback addresses of both families.
func loopbacks(t *testing.T) []string {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("this machine has no IPv6: %v", err)
		}
		t.Logf("IPv6 is left out, as this machine has none: %v", err)
		return []string{"127.0.0.1"}
	}
	l.Close()
	return []string{"127.0.0.1", "::1"}
}

func TestRpingClientAndServer(t *testing.T) {
	for _, host := range loopbacks(t) {
		for _, size := range []string{"16", "65536"} {
			t.Run(host+" size "+size, func(t *testing.T) {
				server, port := serve(t, host, "-v")
				out := ok(t, "rping", "-c", "-a", host, "-p", port, "-C", "5", "-S", size, "-v", "-V")
				server.end(t)
				octets, err := strconv.Atoi(size)
				if err != nil {
					t.Fatal(err)
				}
				for prefix, text := range map[string]string{"ping data: ": out, "server ping data: ": server.out.String()} {
					lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
					if len(lines) != 5 {
						t.Fatalf("%d lines %q for 5 rounds", len(lines), prefix)
					}
					for n, line := range lines { // the zero at the end is not shown
						if !strings.HasPrefix(line, fmt.Sprintf("%srdma-ping-%d: ", prefix, n)) || len(line) != len(prefix)+octets-1 {
							t.Errorf("round %d: %.60q of %d bytes", n, line, len(line))
						}
					}
				}
			})
		}
	}
}

func TestRpingSaysNothingWithoutVerbose(t *testing.T) {
	server, port := serve(t, "127.0.0.1")
	if out := ok(t, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "2"); out != "" {
		t.Errorf("the client says %q", out)
	}
	server.end(t)
	if out := server.out.String(); out != "" {
		t.Errorf("the server says %q", out)
	}
}

func TestRpingServerAtAllAddressesTakesBothFamilies(t *testing.T) {
	for _, host := range loopbacks(t) {
		port := ownPort(t)
		server := start(t, "rping", "-s", "-p", port)
		waitForListener(t, net.JoinHostPort(host, port))
		ok(t, "rping", "-c", "-a", host, "-p", port, "-C", "1", "-V")
		server.end(t)
	}
}

// A relay passes on what a client and a server say, and changes the ping data
// that come back.
func relay(t *testing.T, server string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", server)
		if err != nil {
			t.Error(err)
			c.Close()
			return
		}
		wg.Go(func() {
			_, _ = io.Copy(s, c)
			s.(*net.TCPConn).CloseWrite()
		})
		_, _ = io.Copy(&forger{w: c}, s)
		c.(*net.TCPConn).CloseWrite()
	})
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// A forger makes "rdma-pong" of "rdma-ping".
type forger struct {
	w    io.Writer
	tail string
}

func (f *forger) Write(b []byte) (int, error) {
	forged := make([]byte, len(b))
	for i, c := range b {
		if f.tail == "rdma-p" && c == 'i' {
			c = 'o'
		}
		forged[i] = c
		f.tail += string(c)
		f.tail = f.tail[max(0, len(f.tail)-len("rdma-p")):]
	}
	return f.w.Write(forged)
}

func TestRpingValidationFindsChangedData(t *testing.T) {
	for _, validate := range []bool{false, true} {
		server, port := serve(t, "127.0.0.1", "--crc", "off")
		args := []string{"rping", "-c", "-a", "127.0.0.1", "-p", relay(t, "127.0.0.1:"+port), "-C", "1", "--crc", "off", "-v"}
		if validate {
			args = append(args, "-V")
		}
		status, out, errOut := urnic(t, nil, args...)
		if !validate {
			if status != 0 || errOut != "" || !strings.HasPrefix(out, "ping data: rdma-pong-0: ") {
				t.Errorf("without -V: status %d, stderr %q, stdout %q", status, errOut, out)
			}
		} else {
			wantError(t, args, status, errOut, "round 0: byte 6 was sent as 0x69 and came back as 0x6f")
		}
		server.end(t)
	}
}

func TestRpingPersistentServerServesClientsAtOnce(t *testing.T) {
	server, port := serve(t, "127.0.0.1", "-P")
	client := []string{"rping", "-c", "-a", "127.0.0.1", "-p", port, "-V"}
	endless := start(t, append(client, "-v")...)
	endless.out.wait(t, "rdma-ping-1: ")
	other := start(t, append(client, "-C", "5")...)
	other.end(t)
	select {
	case <-endless.done:
		t.Error("the first client ended")
	default:
	}
	endless.interrupt() // as it is meant to end without -C
	endless.end(t)
	ok(t, append(client, "-C", "1")...)
	server.interrupt()
	server.end(t)
}

func TestRpingPersistentServerOutlivesABadClient(t *testing.T) {
	server, port := serve(t, "127.0.0.1", "-P", "-S", "100")
	args := []string{"rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "1"}
	tooLarge := append(args, "-S", "200")
	status, _, errOut := urnic(t, nil, tooLarge...)
	wantError(t, tooLarge, status, errOut, "round 0: ")
	server.errOut.wait(t, "\n")
	wantError(t, nil, 1, server.errOut.String(), "urnic: client 127.0.0.1:", "the client's data have 200 bytes", "start the server with a larger size")
	ok(t, args...)
	server.interrupt()
	server.wait(t)
	if server.status != 0 {
		t.Errorf("status %d", server.status)
	}
}

func TestRpingThatIsInterruptedBeforeItsEndFails(t *testing.T) {
	server, port := serve(t, "127.0.0.1", "-P")
	client := start(t, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "2000000000", "-v")
	client.out.wait(t, "rdma-ping-0: ")
	client.interrupt()
	client.wait(t)
	wantErrorStatus(t, client.args, statusInterrupted, client.status, client.errOut.String(), "interrupted")
	server.interrupt()
	server.end(t)
	once, _ := serve(t, "127.0.0.1")
	once.interrupt()
	once.end(t) // as a server that is told to
}

// A dissection is what urnic dissect --summary --json says of one connection.
type dissection struct {
	Client, Server string
	MPA            struct {
		Revision      int
		CRC           bool
		MarkersClient bool `json:"markers_client"`
		MarkersServer bool `json:"markers_server"`
		Enhanced      bool
		IRD, ORD      int
	}
	Messages map[string]int
}

// dissected returns what a recording with one connection holds, which must keep
// all rules.
func dissected(t *testing.T, args []string, stdin io.Reader) dissection {
	t.Helper()
	status, out, errOut := urnic(t, stdin, append([]string{"dissect", "--strict", "--summary", "--json"}, args...)...)
	if status != 0 || errOut != "" {
		t.Fatalf("dissect: status %d, stderr %q\n%s", status, errOut, out)
	}
	var all struct{ Connections []dissection }
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all.Connections) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	return all.Connections[0]
}

func TestRpingSettlesWhatItsFlagsSay(t *testing.T) {
	for _, tc := range []struct {
		name           string
		server, client []string
		check          func(d dissection) bool
	}{
		{"default", nil, nil, func(d dissection) bool {
			return d.MPA.CRC && d.MPA.Revision == 2 && d.MPA.Enhanced && d.MPA.IRD == 1 && d.MPA.ORD == 1 && !d.MPA.MarkersClient && !d.MPA.MarkersServer
		}},
		{"crc off", []string{"--crc", "off"}, []string{"--crc", "off"}, func(d dissection) bool { return !d.MPA.CRC }},
		{"crc off at the server", []string{"--crc", "off"}, nil, func(d dissection) bool { return d.MPA.CRC }},
		{"crc require at the client", []string{"--crc", "off"}, []string{"--crc", "require"}, func(d dissection) bool { return d.MPA.CRC }},
		{"crc require", []string{"--crc", "require"}, []string{"--crc", "require"}, func(d dissection) bool { return d.MPA.CRC }},
		{"markers of the client", nil, []string{"--markers"}, func(d dissection) bool { return d.MPA.MarkersClient && !d.MPA.MarkersServer }},
		{"markers of both", []string{"--markers"}, []string{"--markers"}, func(d dissection) bool { return d.MPA.MarkersClient && d.MPA.MarkersServer }},
		{"revision 1", nil, []string{"--mpa-revision", "1"}, func(d dissection) bool { return d.MPA.Revision == 1 && !d.MPA.Enhanced }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server, port := serve(t, "127.0.0.1", tc.server...)
			name := filepath.Join(t.TempDir(), "rping.pcapng")
			ok(t, append([]string{"rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "3", "-S", "5000", "-V", "--pcap", name}, tc.client...)...)
			server.end(t)
			d := dissected(t, []string{name}, nil)
			if !tc.check(d) {
				t.Errorf("%+v", d.MPA)
			}
			if d.Server != "127.0.0.1:"+port || d.Messages["rdma-write"] != 3 || d.Messages["read-response"] != 3 || d.Messages["send"] != 12 {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestRpingClientConnectsFromItsSourceAddress(t *testing.T) {
	source := "127.0.0.1"
	if runtime.GOOS == "linux" { // where all of 127/8 is this machine
		source = "127.0.0.3"
	}
	server, port := serve(t, "127.0.0.1")
	name := filepath.Join(t.TempDir(), "rping.pcapng")
	ok(t, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-I", source, "-C", "1", "--pcap", name)
	server.end(t)
	if d := dissected(t, []string{name}, nil); !strings.HasPrefix(d.Client, source+":") {
		t.Errorf("it connected from %s; want %s", d.Client, source)
	}
}

func TestRpingRecordsToStandardOutput(t *testing.T) {
	server, port := serve(t, "127.0.0.1")
	status, recording, text := urnic(t, nil, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "1", "-v", "--pcap", "-")
	server.end(t)
	if status != 0 || !strings.HasPrefix(text, "ping data: rdma-ping-0: ") {
		t.Errorf("status %d, stderr %q", status, text)
	}
	if d := dissected(t, []string{"-"}, strings.NewReader(recording)); d.Messages["rdma-write"] != 1 {
		t.Errorf("%+v", d)
	}
}

func TestRpingDebugTracesToStandardError(t *testing.T) {
	server, port := serve(t, "127.0.0.1")
	status, out, errOut := urnic(t, nil, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "1", "-d", "-q")
	server.end(t)
	if status != 0 || out != "" || !strings.Contains(errOut, "Read Request") || !strings.Contains(errOut, "level=INFO") {
		t.Errorf("status %d, stdout %q, stderr:\n%s", status, out, errOut)
	}
}

// A rpingResult is what rping --json promises.
type rpingResult struct {
	Role, Peer, Error  string
	Rounds, Size       int
	Seconds            float64
	Sent               int `json:"octets_sent"`
	Received           int `json:"octets_received"`
	Revision, IRD, ORD int
	CRC, Enhanced      bool
	MarkersSent        bool `json:"markers_sent"`
	MarkersReceived    bool `json:"markers_received"`
}

func TestRpingJSONTellsOfTheConnection(t *testing.T) {
	server, port := serve(t, "127.0.0.1", "--json", "--markers")
	began := time.Now()
	out := ok(t, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "7", "-S", "1000", "--json")
	server.end(t)
	longest := time.Since(began).Seconds()
	var c, s rpingResult
	decodeOne(t, out, &c)
	decodeOne(t, server.out.String(), &s)
	// A round: two advertisements of 16 bytes, the data by a Read Response, and
	// by a Write; a Read Request of 28 bytes, and two Sends of 16.
	const toServer, toClient = 7 * (2*16 + 1000), 7 * (28 + 2*16 + 1000)
	for _, r := range []*rpingResult{&c, &s} {
		if r.Seconds <= 0 || r.Seconds > longest {
			t.Errorf("%s: %v seconds; both took %v", r.Role, r.Seconds, longest)
		}
		r.Seconds = 0
	}
	if !strings.HasPrefix(s.Peer, "127.0.0.1:") || s.Peer == c.Peer {
		t.Errorf("the server's peer is %s", s.Peer)
	}
	s.Peer = ""
	if want := (rpingResult{
		Role: "client", Peer: "127.0.0.1:" + port, Rounds: 7, Size: 1000, Sent: toServer, Received: toClient,
		Revision: 2, IRD: 1, ORD: 1, CRC: true, Enhanced: true, MarkersSent: true,
	}); c != want {
		t.Errorf("client: %+v\nwant    %+v", c, want)
	}
	if want := (rpingResult{
		Role: "server", Rounds: 7, Size: 1000, Sent: toClient, Received: toServer,
		Revision: 2, IRD: 1, ORD: 1, CRC: true, Enhanced: true, MarkersReceived: true,
	}); s != want {
		t.Errorf("server: %+v\nwant    %+v", s, want)
	}
}

func TestRpingJSONTellsOfAFailure(t *testing.T) {
	args := []string{"rping", "-c", "-a", "127.0.0.1", "-p", unusedPort, "--json"}
	status, out, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "nobody listens")
	var r rpingResult
	decodeOne(t, out, &r)
	if r.Peer != "127.0.0.1:"+unusedPort || r.Rounds != 0 || r.Revision != 0 || errOut != "urnic: "+r.Error+"\n" {
		t.Errorf("%s", out)
	}
}

func TestRpingJSONOfAPersistentServerHasALineForEachClient(t *testing.T) {
	server, port := serve(t, "127.0.0.1", "-P", "--json", "-S", "100")
	for _, size := range []string{"20", "100", "101"} {
		urnic(t, nil, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "2", "-S", size)
	}
	server.errOut.wait(t, "larger size")
	server.interrupt()
	server.wait(t)
	lines := strings.SplitAfter(server.out.String(), "\n")
	if server.status != 0 || len(lines) != 4 {
		t.Fatalf("status %d, stdout %q", server.status, lines)
	}
	bySize := map[int]rpingResult{}
	for _, line := range lines[:3] {
		var r rpingResult
		decodeOne(t, line, &r)
		bySize[r.Size] = r
	}
	if bySize[20].Rounds != 2 || bySize[100].Rounds != 2 || bySize[20].Error != "" || bySize[0].Rounds != 0 || !strings.Contains(bySize[0].Error, "larger size") {
		t.Errorf("%+v", bySize)
	}
}

func TestRpingJSONThatCannotBeWrittenIsAnError(t *testing.T) {
	server, port := serve(t, "127.0.0.1")
	var errOut output
	args := []string{"rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "1", "--json"}
	wantError(t, args, run(t.Context(), args, nil, failingWriter{}, &errOut), errOut.String(), errFull.Error())
	server.end(t)
}

func TestRpingErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, used, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args string
		want []string
	}{
		{"", []string{"give -s to be the server, or -c -a ADDRESS"}},
		{"-s -c -a 127.0.0.1", []string{"give only one of -s and -c"}},
		{"-c", []string{"give -a ADDRESS"}},
		{"-s -S 15", []string{"-S 15: must be 16 to 65536"}},
		{"-c -a 127.0.0.1 -S 65537", []string{"-S 65537: must be 16 to 65536"}},
		{"-c -a 127.0.0.1 -S 0", []string{"-S 0: must be 16 to 65536"}},
		{"-c -a 127.0.0.1 -S large", []string{"--size large: give a whole number"}},
		{"-c -a 127.0.0.1 -C -1", []string{"-C -1: must be 0 or more"}},
		{"-s -p 70000", []string{"-p 70000: must be 1 to 65535"}},
		{"-s -p 0", []string{"-p 0: must be 1 to 65535"}},
		{"-c -a 127.0.0.1 -p -1", []string{"-p -1: must be 1 to 65535"}},
		{"-c -a 127.0.0.1 -p " + unusedPort, []string{"nobody listens at 127.0.0.1:" + unusedPort, "start `urnic rping -s -p " + unusedPort + "` there first"}},
		{"-c -a nobody.invalid", []string{`there is no address for the name "nobody.invalid"`, "give an IP address with -a"}},
		{"-s -a nobody.invalid", []string{`there is no address for the name "nobody.invalid"`}},
		{"-c -a 127.0.0.1:7174", []string{"give the port with -p: -a 127.0.0.1 -p 7174"}},
		{"-c -a fe80::1", []string{"give fe80::1%INTERFACE"}},
		{"-s -a 192.0.2.1", []string{"192.0.2.1 is no address of this machine", "-a"}},
		{"-c -a 127.0.0.1 -I somewhere", []string{"-I somewhere: give an IP address"}},
		{"-c -a 127.0.0.1 -I 192.0.2.1", []string{"-I 192.0.2.1: that is no address of this machine"}},
		{"-c -a 127.0.0.1 -I ::1", []string{"-I ::1: 127.0.0.1:7174 can't be reached from it"}},
		{"-s --crc maybe", []string{"--crc maybe: must be one of prefer, require, off"}},
		{"-s --log-level loud", []string{"--log-level loud: must be one of debug, info, warn, error"}},
		{"-s --mpa-revision 3", []string{"--mpa-revision 3: must be 1, 2, or 0"}},
		{"-s --mpa-revision -1", []string{"--mpa-revision -1: must be 1, 2, or 0"}},
		{"-s --mpa-revision 257", []string{"--mpa-revision 257: must be 1, 2, or 0"}},
		{"-s --mulpdu 127", []string{"--mulpdu 127: must be 128 to 64768"}},
		{"-s --mulpdu 64769", []string{"--mulpdu 64769: must be 128 to 64768"}},
		{"-s --settle -1s", []string{"--settle -1s: must be 0 or more"}},
		{"-c -a 127.0.0.1 --connect-timeout 0", []string{"--connect-timeout 0s: must be more than 0"}},
		{"-c -a 127.0.0.1 --connect-timeout 10", []string{"--connect-timeout 10: give a time with its unit"}},
		{"-s -a 127.0.0.1 -p " + used, []string{"another program listens at port " + used, "-p"}},
		{"-s --json -v", []string{"give only one of --verbose and --json"}},
		{"-s --json --pcap -", []string{"--json and --pcap - would both go to standard output"}},
		{"-s --pcap missing/x", []string{"--pcap: the recording can't be written"}},
	} {
		args := append([]string{"rping"}, strings.Fields(tc.args)...)
		// What should fail but does not is a server that waits.
		ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
		var out, errOut output
		status := run(ctx, args, nil, &out, &errOut)
		cancel()
		wantError(t, args, status, errOut.String(), tc.want...)
		if out.String() != "" {
			t.Errorf("%v: %q is on stdout", args, out.String())
		}
	}
}

// What listens but never answers is not waited for longer than was said.
func TestRpingClientGivesUpAfterItsTimeout(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, port, err := net.SplitHostPort(silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// The time may be over before there is a connection, or while the answer is waited for.
	for _, limit := range []string{"1ns", "50ms"} {
		args := []string{"rping", "-c", "-a", "127.0.0.1", "-p", port, "--connect-timeout", limit}
		status, _, errOut := urnic(t, nil, args...)
		wantError(t, args, status, errOut, "no answer from 127.0.0.1:"+port+" within "+limit, "--connect-timeout")
	}
}
