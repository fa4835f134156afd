package main

import (
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxdebug"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxref"
	"urnic/ulp/rx/rxudp"
	"urnic/ulp/rx/secure"
)

// rxPerfServer starts a server, and returns its port.
func rxPerfServer(t *testing.T, args ...string) (p *process, port string) {
	t.Helper()
	p = start(t, append([]string{"rx", "perf", "server", "--listen", "127.0.0.1:0"}, args...)...)
	p.out.wait(t, "\n")
	m := regexp.MustCompile(`^listening at 127\.0\.0\.1:(\d+) over (udp|rdma)\n$`).FindStringSubmatch(p.out.String())
	if m == nil {
		t.Fatalf("the server says %q", p.out.String())
	}
	return p, m[1]
}

// rxRef serves the reference service, with rxkad's DES key 2:0123456789abcdef as well.
func rxRef(t *testing.T) (address string) {
	t.Helper()
	keys := new(rxkad.Keyring)
	if err := keys.AddDES(2, rxkad.Key{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}); err != nil {
		t.Fatal(err)
	}
	security, err := rxkad.NewServer(rxkad.ServerConfig{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	e, err := rxudp.Open(t.Context(), rxudp.Config{
		Addr:     netip.MustParseAddrPort("127.0.0.1:0"),
		Version:  "a test \x1b[31m",
		Services: []rx.Service{{ID: rxref.ID, Handler: rxref.Handler(), Security: []secure.Server{security}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.Addr().String()
}

func TestRXDebug(t *testing.T) {
	address := rxRef(t)
	host, port, _ := net.SplitHostPort(address)
	ok(t, "rx", "call", address, "2077", "1")
	file := filepath.Join(t.TempDir(), "debug.pcapng")
	out := ok(t, "rx", "debug", host, port, "--pcap", file)
	for _, want := range []string{"Rx server " + address + ", debug protocol S\n", `Version: a test \x1b[31m` + "\n", "Calls: ", " 1 carried out, ", "Connections that do something: 0\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "Statistics") || strings.Contains(out, "Peers:") {
		t.Errorf("it shows too much:\n%s", out)
	}
	if info, err := os.Stat(file); err != nil || info.Size() < 500 {
		t.Errorf("the recording: %v, %v", info, err)
	}
	if out := ok(t, "rx", "debug", host, port, "--version"); out != "Rx server "+address+"\nVersion: a test \\x1b[31m\n" {
		t.Errorf("--version shows %q", out)
	}
	out = ok(t, "rx", "debug", host, port, "--stats", "--all", "--peers")
	for _, want := range []string{"\nStatistics:\n", "\nConnections: 1\n127.0.0.1:", "server side", "call 1, ", "\nPeers: "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	var r rxdebug.Report
	decodeOne(t, ok(t, "rx", "debug", host, port, "--json", "--all", "--peers", "--version", "--stats"), &r)
	if *r.Version != "a test \x1b[31m" || r.Protocol != "S" || len(r.Conns) != 1 || len(r.Peers) == 0 || r.Stats == nil || r.Conns[0].Calls[0].Number != 1 {
		t.Errorf("%+v", r)
	}
}

// A list without end, and a server that never answers: what came is shown, and the status is 1.
func TestRXDebugOfAServerThatDoesNotAnswer(t *testing.T) {
	address := rxRef(t)
	host, port, _ := net.SplitHostPort(address)
	for range 3 {
		ok(t, "rx", "call", address, "2077", "1")
	}
	status, out, errOut := urnic(t, nil, "rx", "debug", host, port, "--all", "--max", "2")
	if status != 1 || !strings.Contains(out, "Connections: 2\n") || !strings.Contains(errOut, "does not end after 2 entries: allow more with --max") {
		t.Errorf("status %d, %q, %q", status, errOut, out)
	}
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	port = strconv.Itoa(silent.LocalAddr().(*net.UDPAddr).Port)
	status, out, errOut = urnic(t, nil, "rx", "debug", host, port, "--timeout", "20ms")
	if status != 1 || out != "" || !strings.Contains(errOut, "has not answered within 20ms: check address and port") {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
	status, out, errOut = urnic(t, nil, "rx", "debug", host, port, "--timeout", "20ms", "--json")
	var r struct{ Server, Error string }
	if err := json.Unmarshal([]byte(out), &r); status != 1 || err != nil || r.Error == "" || !strings.Contains(errOut, r.Error) {
		t.Errorf("status %d, %v, %q, %q", status, err, out, errOut)
	}
	// It is interrupted while it waits.
	p := start(t, "rx", "debug", host, port, "--timeout", "1h")
	if _, _, err := silent.ReadFrom(make([]byte, 1)); err != nil { // of the runs before
		t.Fatal(err)
	}
	p.interrupt()
	p.wait(t)
	if p.status != 130 || p.errOut.String() != "urnic: interrupted\n" {
		t.Errorf("status %d, %q", p.status, p.errOut.String())
	}
}

func TestRXCall(t *testing.T) {
	address := rxRef(t)
	echo := []string{"rx", "call", address, "2077", "2", "opaque:0102030405"}
	out := ok(t, echo...)
	if !strings.HasPrefix(out, "00000000  00 00 00 05 01 02 03 04  05 00 00 00              |............|\n12 bytes in ") {
		t.Errorf("it prints %q", out)
	}
	if out := ok(t, append(echo, "--results", "opaque")...); out != "0102030405\n" {
		t.Errorf("--results: %q", out)
	}
	if out := ok(t, append(echo, "--results", "int,rest")...); out != "5\n0102030405000000\n" {
		t.Errorf("--results: %q", out)
	}
	var r rxCallReport
	decodeOne(t, ok(t, append(echo, "--json", "--results", "uint,rest")...), &r)
	if r.Server != address || r.Service != 2077 || r.Opcode != 2 || r.Transport != "udp" || r.Security != "null" || r.Sent != 16 || r.Received != 12 ||
		r.Seconds <= 0 || *r.Reply != "000000050102030405000000" || len(r.Results) != 2 || r.Results[0] != 5.0 {
		t.Errorf("%+v", r)
	}
	args := append(echo, "--results", "int")
	status, out, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "the reply has 8 bytes more than --results says: add rest")
	if out != "5\n" {
		t.Errorf("before that it prints %q", out)
	}
	if out := ok(t, "rx", "call", address, "2077", "1"); !strings.HasPrefix(out, "0 bytes in ") {
		t.Errorf("a null call prints %q", out)
	}
}

// Data goes in and out of any length, from files and from standard input.
func TestRXCallStreams(t *testing.T) {
	address := rxRef(t)
	const n = 3 << 20
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*31 + i/256)
	}
	in, out := temp(t, data), filepath.Join(t.TempDir(), "out")
	how := []string{"uhyper:" + strconv.Itoa(n), "uint:0", "uint:0", "int:0", "uint:0"}
	put := append([]string{"rx", "call", address, "2077", "3"}, how...)
	seen := "3145728\n0\n"
	if got := ok(t, append(put, "--in", in, "--results", "uhyper,uhyper,rest")...); !strings.HasPrefix(got, seen) {
		t.Errorf("the server has seen %q", got)
	}
	status, got, errOut := urnic(t, strings.NewReader(string(data)), append(put, "--in", "-", "--results", "uhyper,uhyper,rest")...)
	if status != 0 || errOut != "" || !strings.HasPrefix(got, seen) {
		t.Errorf("status %d, %q, the server has seen %q", status, errOut, got)
	}
	get := append([]string{"rx", "call", address, "2077", "4"}, how...)
	ok(t, append(get, "--out", out)...)
	if b, err := os.ReadFile(out); err != nil || len(b) != n+20 || string(b[:n]) != string(data) {
		t.Errorf("%d bytes came, %v", len(b), err)
	}
	if got := ok(t, append(get, "--out", "-")...); len(got) != n+20 || got[:n] != string(data) {
		t.Errorf("%d bytes came to standard output", len(got))
	}
	status, _, errOut = urnic(t, nil, get...)
	if status != 1 || !strings.Contains(errOut, "more than 1 MiB: write it into a file with --out") {
		t.Errorf("status %d, %q", status, errOut)
	}
}

// With a key, the server sees who calls, at each level.
func TestRXCallWithATicket(t *testing.T) {
	address := rxRef(t)
	keyFile := temp(t, []byte{0, 0, 0, 1, 0, 0, 0, 2, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef})
	who := []string{"rx", "call", address, "2077", "7", "--results", "int,int,uint,int,string,string,string"}
	for i, level := range []string{"clear", "auth", "crypt"} {
		lines := strings.Split(ok(t, append(who, "--keyfile", keyFile, "--level", level, "--user", "me.admin@example.org")...), "\n")
		if len(lines) != 8 || lines[0] != "2" || lines[1] != strconv.Itoa(i) || lines[3] != "2" || lines[4] != "me" || lines[5] != "admin" || lines[6] != "example.org" {
			t.Errorf("%s: %q", level, lines)
		}
	}
	lines := strings.Split(ok(t, append(who, "--key", "2:0123456789abcdef")...), "\n")
	if lines[1] != "2" || lines[4] != "afs" || lines[6] != "" {
		t.Errorf("without --level and --user: %q", lines)
	}
	lines = strings.Split(ok(t, who...), "\n")
	if lines[0] != "0" || lines[1] != "-1" {
		t.Errorf("without a key: %q", lines)
	}
	for key, want := range map[string]string{
		"3:0123456789abcdef": "does not accept the ticket, RXKADUNKNOWNKEY (19270408): give the service's own key",
		"2:fedcba9876543210": "does not accept the ticket, RXKADBADTICKET (19270407)",
	} {
		status, out, errOut := urnic(t, nil, append(who, "--key", key)...)
		if status != 1 || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %q, %q", key, status, errOut, out)
		}
	}
}

func TestRXCallThatFails(t *testing.T) {
	address := rxRef(t)
	nobody, err := net.ListenPacket("udp", "127.0.0.1:0") // who never answers
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	for args, want := range map[string]string{
		address + " 2077 5 int:4711":                         "has aborted the call: ",
		address + " 2077 99":                                 "service 2077 at " + address + " does not know the operation, RXGEN_OPCODE (-455)",
		address + " 2077 2 int:5":                            "can't decode the request, RXGEN_SS_UNMARSHAL (-453)",
		address + " 9 1":                                     "it has no service 9, or not with this security",
		address + " 2077 1 --results int":                    "the reply has no int at its place",
		nobody.LocalAddr().String() + " 7 1 --timeout 100ms": "does not answer, RX_CALL_DEAD (-1): check address and port",
		address + " 2077 1 --in /nothing":                    "--in: the data can't be read",
		address + " 2077 1 --out /nothing/there":             "--out: the reply can't be written",
		address + " 2077 1 --in /":                           "is a directory",
	} {
		status, out, errOut := urnic(t, nil, append([]string{"rx", "call"}, strings.Fields(args)...)...)
		if status != 1 || out != "" || !strings.Contains(errOut, want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want %q", args, status, out, errOut, want)
		}
	}
	p := start(t, "rx", "call", nobody.LocalAddr().String(), "7", "1", "--timeout", "1h")
	for range 2 { // also of the run before
		if _, _, err := nobody.ReadFrom(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	p.interrupt()
	p.wait(t)
	if p.status != 130 || p.errOut.String() != "urnic: interrupted\n" {
		t.Errorf("status %d, %q", p.status, p.errOut.String())
	}
}

func TestRXPerf(t *testing.T) {
	server, port := rxPerfServer(t, "--key", "2:0123456789abcdef")
	client := []string{"rx", "perf", "client", "127.0.0.1:" + port}
	out := ok(t, append(client, "--calls", "20")...)
	lines := strings.Split(out, "\n")
	if len(lines) != 4 || lines[0] != "rpc of 4 bytes, replies of 4 to 127.0.0.1:"+port+" over udp, security null: 1 connection with 1 call at a time" ||
		strings.Fields(lines[2])[1] != "20" {
		t.Errorf("it prints %q", lines)
	}
	for _, mode := range []string{"send", "receive", "rpc"} {
		out := ok(t, append(client, "--mode", mode, "--calls", "4", "--bytes", "100K", "--rounds", "3", "--parallel", "2", "--conns", "2", "--baseline", "--json", "--key", "2:0123456789abcdef", "--level", "auth")...)
		var r rxPerfReport
		decodeOne(t, out, &r)
		rpc := mode == "rpc"
		if r.Mode != mode || r.Bytes != 102400 || r.Rounds != 3 || len(r.Samples) != 3 || r.Calls != 4 || r.Security != "auth" || r.Parallel != 2 || r.Conns != 2 ||
			r.Latency == nil || r.BytesPerSecond < 4*102400/r.Seconds*0.999 || r.CallsPerSecond <= 0 || r.Ratio <= 0 || r.Error != "" ||
			r.Baseline == nil || r.Baseline.Size != 16384 || r.Baseline.Datagrams == 0 || (r.Baseline.Latency != nil) != rpc || len(r.Baseline.Samples) != 3 {
			t.Errorf("%s", out)
		}
	}
	server.interrupt()
	server.end(t)
}

// All modes run over an RNIC too, and what was recorded breaks no rule.
func TestRXPerfOverRDMA(t *testing.T) {
	server, port := rxPerfServer(t, "--transport", "rdma", "--key", "2:0123456789abcdef")
	client := []string{"rx", "perf", "client", "127.0.0.1:" + port, "--transport", "rdma", "--calls", "4", "--bytes", "300K", "--json"}
	for _, mode := range []string{"send", "receive", "rpc"} {
		for _, security := range [][]string{nil, {"--key", "2:0123456789abcdef", "--level", "crypt"}} {
			file := filepath.Join(t.TempDir(), "perf.pcapng")
			var r rxPerfReport
			decodeOne(t, ok(t, slices.Concat(client, security, []string{"--mode", mode, "--pcap", file})...), &r)
			if r.Transport != "rdma" || r.Mode != mode || r.Calls != 4 || r.Error != "" {
				t.Errorf("%+v", r)
			}
			if out := ok(t, "dissect", "--strict", "--ulp", "rx", file); !strings.Contains(out, "RX private data") {
				t.Errorf("dissect does not find Rx in %s:\n%.2000s", mode, out)
			}
		}
	}
	server.interrupt()
	server.end(t)
	args := []string{"rx", "call", "127.0.0.1:" + port, "147", "1", "--transport", "rdma"}
	status, _, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "nobody listens at 127.0.0.1:"+port)
}

// A server that wants rxkad refuses others.
func TestRXPerfServerThatWantsALevel(t *testing.T) {
	_, port := rxPerfServer(t, "--key", "2:0123456789abcdef", "--level", "auth")
	client := []string{"rx", "perf", "client", "127.0.0.1:" + port, "--calls", "1"}
	status, _, errOut := urnic(t, nil, client...)
	wantError(t, client, status, errOut, "refuses the connection")
	client = append(client, "--key", "2:0123456789abcdef", "--level", "clear")
	status, _, errOut = urnic(t, nil, client...)
	wantError(t, client, status, errOut, "wants a higher level of security, RXKADLEVELFAIL (19270402): give another --level")
	client[len(client)-1] = "crypt"
	ok(t, client...)
}

func TestRXPerfIsInterrupted(t *testing.T) {
	_, port := rxPerfServer(t)
	server := "127.0.0.1:" + port
	p := start(t, "rx", "perf", "client", server, "--time", "1h", "--json")
	for { // until calls are made
		var r rxdebug.Report
		decodeOne(t, ok(t, "rx", "debug", "127.0.0.1", port, "--stats", "--json"), &r)
		if r.Basic.CallsExecuted > 3 {
			break
		}
	}
	p.interrupt()
	p.wait(t)
	if p.status != 130 || p.errOut.String() != "urnic: interrupted\n" {
		t.Errorf("status %d, %q", p.status, p.errOut.String())
	}
}

// A server without a baseline, as rxperf of OpenAFS, is measured without it.
func TestRXPerfOfAnotherServer(t *testing.T) {
	address := rxRef(t)
	args := []string{"rx", "perf", "client", address, "--calls", "1"}
	status, _, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "it has no service 147")
}

func TestRXUsageErrors(t *testing.T) {
	_, port := rxPerfServer(t)
	noKeys, garbage := temp(t, make([]byte, 4)), temp(t, []byte("garbage"))
	for args, want := range map[string]string{
		"debug":                                                  "give `urnic rx debug HOST PORT`",
		"debug 127.0.0.1 0":                                      "give a port by its number",
		"debug 127.0.0.1 70000":                                  "give a port by its number",
		"debug 127.0.0.1 7000 --timeout 0s":                      "--timeout 0s",
		"debug 127.0.0.1 7000 --max 0":                           "--max 0",
		"debug 127.0.0.1 7000 --json --pcap -":                   "would both go to standard output",
		"debug 127.0.0.1 7000 --log-level x":                     "--log-level x",
		"call 127.0.0.1 1 1":                                     "give HOST:PORT",
		"call 127.0.0.1:7000 1":                                  "give `urnic rx call HOST:PORT SERVICE OPCODE [ARGUMENT...]`",
		"call 127.0.0.1:7000 0 1":                                "0 is no service",
		"call 127.0.0.1:7000 65536 1":                            "65536 is no service",
		"call 127.0.0.1:7000 1 x":                                "x is no opcode",
		"call 127.0.0.1:7000 1 1 5":                              "give an argument as TYPE:VALUE",
		"call 127.0.0.1:7000 1 1 float:5":                        "there are the types int, uint",
		"call 127.0.0.1:7000 1 1 int:5000000000":                 "give a whole number of 32 bits",
		"call 127.0.0.1:7000 1 1 uint:-1":                        "from 0 on",
		"call 127.0.0.1:7000 1 1 hyper:x":                        "64 bits with a sign",
		"call 127.0.0.1:7000 1 1 uhyper:-1":                      "64 bits from 0 on",
		"call 127.0.0.1:7000 1 1 bool:2":                         "give true or false",
		"call 127.0.0.1:7000 1 1 hex:abc":                        "two for each byte",
		"call 127.0.0.1:7000 1 1 --results x":                    "there is no type \"x\"",
		"call 127.0.0.1:7000 1 1 --results int --out f":          "give only one of --out and --results",
		"call 127.0.0.1:7000 1 1 --json --pcap -":                "would both go to standard output",
		"call 127.0.0.1:7000 1 1 --timeout 0s":                   "--timeout 0s",
		"call 127.0.0.1:7000 1 1 --transport tcp":                "--transport tcp",
		"call 127.0.0.1:7000 1 1 --trace":                        "--trace shows RDMA messages, and there are none over UDP",
		"call 127.0.0.1:7000 1 1 --level auth":                   "--level auth needs a key of the service",
		"call 127.0.0.1:7000 1 1 --level high":                   "must be one of clear, auth, crypt",
		"call 127.0.0.1:7000 1 1 --key 2":                        "0 bytes: a key has 8",
		"call 127.0.0.1:7000 1 1 --key x:1032547698badcfe":       "give VERSION:HEX",
		"call 127.0.0.1:7000 1 1 --key 2:01":                     "1 byte: a key has 8",
		"call 127.0.0.1:7000 1 1 --key 256:1032547698badcfe":     "--key: ",
		"call 127.0.0.1:7000 1 1 --keyfile /nothing":             "the keys can't be read",
		"call 127.0.0.1:7000 1 1 --keyfile " + garbage:           "not in the form",
		"call 127.0.0.1:7000 1 1 --keyfileext " + garbage:        "not in the form",
		"call 127.0.0.1:7000 1 1 --keyfile " + noKeys:            "the files have no usable key",
		"perf server x":                                          "takes no arguments",
		"perf server --listen x":                                 "--listen x: give ADDRESS:PORT",
		"perf server --listen 127.0.0.1:" + port:                 "another program listens at port " + port,
		"perf server --listen 192.0.2.77:7009":                   "192.0.2.77 is no address of this machine",
		"perf client":                                            "give `urnic rx perf client HOST:PORT`",
		"perf client 127.0.0.1":                                  "give HOST:PORT",
		"perf client 127.0.0.1:7009 --mode file":                 "must be one of send, receive, rpc",
		"perf client 127.0.0.1:7009 --calls 1 --time 1s":         "give only one of --calls and --time",
		"perf client 127.0.0.1:7009 --calls 0":                   "give --time or --calls more than 0",
		"perf client 127.0.0.1:7009 --rounds 0":                  "--rounds 0",
		"perf client 127.0.0.1:7009 --parallel 0":                "--parallel 0",
		"perf client 127.0.0.1:7009 --conns 0":                   "--conns 0",
		"perf client 127.0.0.1:7009 --conns 100000":              "there can be 65536 in all",
		"perf client 127.0.0.1:7009 --mode send --reply-bytes 1": "leave --reply-bytes out",
		"perf client 127.0.0.1:7009 --datagram 100":              "--datagram is for send and receive",
		"perf client 127.0.0.1:7009 --mode send --datagram 9":    "--datagram 9: must be 24 to 16384",
		"perf client 127.0.0.1:7009 --bytes 3G":                  "--bytes 3G: must be a number of bytes",
		"perf client 127.0.0.1:7009 --chunk 0":                   "--chunk 0",
		"perf client 127.0.0.1:7009 --json --pcap -":             "would both go to standard output",
	} {
		status, out, errOut := urnic(t, nil, append([]string{"rx"}, strings.Fields(args)...)...)
		if status != 1 || out != "" || !strings.Contains(errOut, want) || strings.Count(errOut, "\n") != 1 || strings.Contains(errOut, "1032547698badcfe") {
			t.Errorf("urnic rx %s: status %d, stdout %q, stderr %q; want %q", args, status, out, errOut, want)
		}
	}
}

// The arguments of calls, in XDR.
func TestRXArguments(t *testing.T) {
	for arg, want := range map[string]string{
		"int:-1": "\xff\xff\xff\xff", "uint:0x10": "\x00\x00\x00\x10", "hyper:-2": "\xff\xff\xff\xff\xff\xff\xff\xfe", "uhyper:3": "\x00\x00\x00\x00\x00\x00\x00\x03",
		"bool:true": "\x00\x00\x00\x01", "bool:false": "\x00\x00\x00\x00", "string:": "\x00\x00\x00\x00", "string:a:b": "\x00\x00\x00\x03a:b\x00",
		"string:abcd": "\x00\x00\x00\x04abcd", "opaque:0102030405": "\x00\x00\x00\x05\x01\x02\x03\x04\x05\x00\x00\x00", "hex:01": "\x01", "hex:": "",
	} {
		if got, err := rxArgument([]byte("x"), arg); err != nil || string(got) != "x"+want {
			t.Errorf("%s is %q, %v; want %q", arg, got, err, want)
		}
	}
}
