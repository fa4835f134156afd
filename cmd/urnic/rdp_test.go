package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/loopback"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/rdpstream"
)

// rdpListening is what commands print that listen.
var rdpListening = regexp.MustCompile(`listening at RDP port (\d+) of (127\.0\.0\.1:\d+)\n`)

// startRDP starts a command that listens at a free port, and returns its address.
func startRDP(t *testing.T, args ...string) (p *process, address string) {
	t.Helper()
	p = start(t, append(append([]string{"rdp"}, args...), "127.0.0.1:0")...)
	p.out.wait(t, "\n")
	return p, rdpListening.FindStringSubmatch(p.out.String())[2]
}

// greeter is a peer of urnic rdp cat --stream that says hello and ends, at the address that it returns.
func greeter(t *testing.T) string {
	t.Helper()
	carrier, err := rdp.UDP(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	do(t, err)
	e, err := rdp.Open(t.Context(), rdp.Config{Carrier: carrier})
	do(t, err)
	l, err := rdpstream.Listen(e, rdpstream.Config{Port: rdpPort})
	do(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello\n")
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		do(t, l.Close(), e.Close())
		<-done
	})
	return e.LocalAddr().String()
}

// rdpContent writes a file with content, and returns both.
func rdpContent(t *testing.T, n int) (name string, content []byte) {
	t.Helper()
	content = make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	name = filepath.Join(t.TempDir(), "file")
	do(t, os.WriteFile(name, content, 0o600))
	return name, content
}

// lossy passes datagrams of one client on to a UDP address and back. It loses, repeats and reorders some, and returns its own
// address.
func lossy(t *testing.T, to string, loss float64) string {
	t.Helper()
	front, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	do(t, err)
	back, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
	do(t, err)
	client := make(chan netip.AddrPort, 1)
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		var known bool
		pass(1, loss, front.ReadFromUDPAddrPort, func(b []byte, from netip.AddrPort) {
			if !known {
				known = true
				client <- from
			}
			_, _ = back.Write(b) // nobody may listen yet
		})
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		var to netip.AddrPort
		pass(2, loss, back.ReadFromUDPAddrPort, func(b []byte, _ netip.AddrPort) {
			if !to.IsValid() {
				to = <-client
			}
			_, _ = front.WriteToUDPAddrPort(b, to)
		})
	}()
	t.Cleanup(func() {
		front.Close()
		back.Close()
		<-done
		<-done
	})
	return front.LocalAddr().String()
}

// pass passes datagrams on until the socket is closed.
func pass(seed uint64, loss float64, read func([]byte) (int, netip.AddrPort, error), write func([]byte, netip.AddrPort)) {
	r := rand.New(rand.NewPCG(908, seed))
	var late []byte
	for {
		b := make([]byte, 1<<16)
		n, from, err := read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || r.Float64() < loss {
			continue // an error is that nobody listens
		}
		if late == nil && r.Float64() < loss/2 {
			late = b[:n]
			continue
		}
		write(b[:n], from)
		if r.Float64() < loss/2 {
			write(b[:n], from)
		}
		if late != nil {
			write(late, from)
			late = nil
		}
	}
}

// Files of both versions and in both modes arrive whole, also through a network that loses segments, and urnic dissect finds
// no broken rule.
func TestRDPFiles(t *testing.T) {
	ownRuntime(t)
	for _, version := range []string{"1", "2"} {
		for _, mode := range []string{"", "--unsequenced"} {
			for _, loss := range []float64{0, 0.15} {
				from, content := rdpContent(t, 300_000)
				dir := t.TempDir()
				to, record := filepath.Join(dir, "copy"), filepath.Join(t.TempDir(), "recv.pcapng")
				recv, address := startRDP(t, "recv", "-o", to, "-v", "--pcap", record)
				if loss > 0 {
					address = lossy(t, address, loss)
				}
				args := []string{"rdp", "send", "--version", version, "--max-segment", "1472", "--json", from, address}
				if mode != "" {
					args = append(args, mode)
				}
				if loss == 0 {
					args = append(args, "--congestion", "reno")
				}
				var sent rdpFile
				if err := json.Unmarshal([]byte(ok(t, args...)), &sent); err != nil || sent.From != from || sent.To != address || sent.Port != 7 || sent.Bytes != 300_000 ||
					sent.Sequenced != (mode == "") || sent.Segments < 200 || loss == 0 && *sent.Resent != 0 {
					t.Errorf("version %s %s, loss %v: %+v, %v", version, mode, loss, sent, err)
				}
				recv.end(t)
				if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, content) {
					t.Errorf("version %s %s, loss %v: the file has %d bytes, %v", version, mode, loss, len(got), err)
				}
				if out := recv.out.String(); !strings.Contains(out, " -> "+to+": 300000 bytes in ") {
					t.Errorf("it prints %q", out)
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
					t.Errorf("what is left is %v, %v", left, err)
				}
				if out := ok(t, "dissect", "--strict", "--summary", record); !strings.Contains(out, "version "+version+", ports ") {
					t.Errorf("what was dissected:\n%s", out)
				}
			}
		}
	}
}

// The conventions are those that other programs can have: a program on ulp/rdp that follows them sends and receives.
func TestRDPConventions(t *testing.T) {
	ctx := t.Context()
	ownRuntime(t)
	carrier, err := rdp.UDP(ctx, netip.MustParseAddrPort("127.0.0.1:0"))
	do(t, err)
	e, err := rdp.Open(ctx, rdp.Config{Carrier: carrier})
	do(t, err)
	defer e.Close()
	to := filepath.Join(t.TempDir(), "copy")
	recv, address := startRDP(t, "recv", "-o", to, "--port", "1200")
	c, err := e.Dial(ctx, rdp.DialConfig{Host: netip.MustParseAddrPort(address), Port: 1200})
	do(t, err)
	_, err = c.SendAll(ctx, []byte("\x00\x00\x00\x00\x00\x00\x00\x03DEF"), []byte("\x00\x00\x00\x00\x00\x00\x00\x00ABC"))
	do(t, err, c.Flush(ctx), c.Close())
	recv.end(t)
	if got, err := os.ReadFile(to); string(got) != "ABCDEF" {
		t.Errorf("received %q, %v", got, err)
	}
	l, err := e.Listen(rdp.ListenConfig{Port: 7})
	do(t, err)
	file := filepath.Join(t.TempDir(), "file")
	do(t, os.WriteFile(file, []byte("hello"), 0o600))
	for _, tt := range []struct{ flag, want string }{{"--unsequenced=false", "hello"}, {"--unsequenced", "\x00\x00\x00\x00\x00\x00\x00\x00hello"}} {
		send := start(t, "rdp", "send", "--version", "1", tt.flag, file, e.LocalAddr().String())
		c, err := l.Accept(ctx)
		do(t, err)
		if msg, err := c.Receive(ctx); err != nil || string(msg.Data) != tt.want {
			t.Errorf("sent %q, %v", msg.Data, err)
		}
		if _, err := c.Receive(ctx); !errors.Is(err, machine.ErrReset) || c.Status().Short {
			t.Errorf("then: %v", err)
		}
		send.end(t)
	}
}

// Several files have a connection each, and recv -d numbers them, past those that are there.
func TestRDPManyFiles(t *testing.T) {
	ownRuntime(t)
	dir, from := t.TempDir(), t.TempDir()
	do(t, os.WriteFile(filepath.Join(dir, "0002"), []byte("old"), 0o600))
	names := []string{"a", "b", "empty", "c"}
	for i := range names {
		content := names[i]
		if content == "empty" {
			content = ""
		}
		names[i] = filepath.Join(from, names[i])
		do(t, os.WriteFile(names[i], []byte(content), 0o600))
	}
	recv, address := startRDP(t, "recv", "-d", dir, "-n", "4")
	if out := ok(t, slices.Concat([]string{"rdp", "send", "-v"}, names, []string{address})...); strings.Count(out, " -> "+address) != 4 {
		t.Errorf("it prints %q", out)
	}
	recv.end(t)
	var all []string
	left, err := os.ReadDir(dir)
	do(t, err)
	for _, f := range left {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		do(t, err)
		all = append(all, f.Name()+"="+string(b))
	}
	slices.Sort(all)
	if got := strings.Join(all, " "); len(all) != 5 || !strings.Contains(got, "0002=old") || !strings.HasPrefix(got, "0001=") || !strings.Contains(got, "0005=") {
		t.Errorf("there are %s", got)
	}
	for _, content := range []string{"=a", "=b", "=c"} {
		if n := strings.Count(strings.Join(all, " ")+" ", content+" "); n != 1 {
			t.Errorf("%s is there %d times: %v", content, n, all)
		}
	}
	// It serves until it is told to end, which is a success. A sender that fails is logged.
	recv, address = startRDP(t, "recv", "-d", dir)
	send := start(t, "rdp", "send", "-", address)
	send.wait(t) // its input is empty
	recv.out.wait(t, "-> 0006: 0 bytes")
	recv.interrupt()
	recv.end(t)
}

// What is not whole does not get the file's name, whether the sender gives up or is interrupted, and what had that name before stays.
func TestRDPUnfinishedFiles(t *testing.T) {
	ownRuntime(t)
	dir := t.TempDir()
	to := filepath.Join(dir, "copy")
	for _, mode := range []string{"--unsequenced=false", "--unsequenced"} {
		do(t, os.WriteFile(to, []byte("old"), 0o600))
		recv, address := startRDP(t, "recv", "-o", to)
		r, w := io.Pipe()
		p := startWith(t, r, "rdp", "send", mode, "-", address)
		_, err := w.Write(make([]byte, 100_000))
		do(t, err)
		statusShows(t, "recv", " messages ")
		p.interrupt()
		p.wait(t)
		w.Close()
		if p.status != 130 || p.errOut.String() != "urnic: interrupted\n" {
			t.Errorf("the sender: status %d, stderr %q", p.status, p.errOut.String())
		}
		recv.wait(t)
		wantError(t, recv.args, recv.status, recv.errOut.String(), "ended the connection after", "in the middle of the file")
		if b, err := os.ReadFile(to); string(b) != "old" {
			t.Errorf("the file is %d bytes, %v", len(b), err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("what is left is %v, %v", left, err)
		}
	}
	// The receiver is interrupted: the sender knows.
	recv, address := startRDP(t, "recv", "-o", to)
	r, w := io.Pipe()
	p := startWith(t, r, "rdp", "send", "-", address)
	_, err := w.Write([]byte("begun"))
	do(t, err)
	statusShows(t, "recv", " messages 1")
	recv.interrupt()
	recv.wait(t)
	p.wait(t)
	w.Close()
	if recv.status != 130 || recv.errOut.String() != "urnic: interrupted\n" {
		t.Errorf("status %d, stderr %q", recv.status, recv.errOut.String())
	}
	wantError(t, p.args, p.status, p.errOut.String(), "closed the connection before it had the whole file")
	if b, err := os.ReadFile(to); string(b) != "old" {
		t.Errorf("the file is %q, %v", b, err)
	}
	// Nobody has come yet.
	recv, _ = startRDP(t, "recv", "-o", to)
	recv.interrupt()
	if recv.wait(t); recv.status != 130 {
		t.Errorf("status %d", recv.status)
	}
}

// statusShows waits until urnic rdp status shows texts of a command.
func statusShows(t *testing.T, command string, texts ...string) {
	t.Helper()
	began := time.Now()
	for {
		_, out, _ := urnic(t, nil, "rdp", "status", "--counters")
		for part := range strings.SplitSeq(out, "\n\n") {
			found := strings.Contains(part, "(urnic rdp "+command+")")
			for _, text := range texts {
				found = found && strings.Contains(part, text)
			}
			if found {
				return
			}
		}
		if time.Since(began) > hangGuard {
			t.Fatalf("never shown: %v of %s in\n%s", texts, command, out)
		}
	}
}

// listening waits until a command listens that does not say so.
func listening(t *testing.T, command string) {
	t.Helper()
	statusShows(t, command, "Listening at port 7")
}

// A sender that vanishes leaves open whether that was all: what has come is kept under another name.
func TestRDPVanishedSender(t *testing.T) {
	dir := t.TempDir()
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := rdp.NewNetwork(1, rdp.Faults{Delay: time.Millisecond})
			var ends [2]*rdp.Endpoint
			for i := range ends {
				carrier, err := n.Carrier(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 10908))
				do(t, err)
				ends[i], err = rdp.Open(t.Context(), rdp.Config{Carrier: carrier})
				do(t, err)
				defer ends[i].Close()
			}
			l, err := ends[1].Listen(rdp.ListenConfig{Port: 7, Params: rdp.Params{Keepalive: time.Second}})
			do(t, err)
			from, err := ends[0].Dial(t.Context(), rdp.DialConfig{Host: ends[1].LocalAddr(), Port: 7, Params: rdp.Params{Sequenced: true}})
			do(t, err)
			c, err := l.Accept(t.Context())
			do(t, err, from.Send(t.Context(), []byte("all?")), from.Flush(t.Context()))
			n.SetFaults(rdp.Faults{Loss: 1})
			var out output
			r := &rdpReceiver{rdpRecvOptions: &rdpRecvOptions{output: filepath.Join(dir, "copy")}, out: &lines{w: &out}, quiet: true, stderr: io.Discard}
			err = r.one(t.Context(), c, io.Discard)
			name := "copy.part"
			if again {
				name += "-2"
			}
			if err == nil || !strings.Contains(err.Error(), "does not answer any more, after 4 bytes, and the file may be incomplete: it is in "+filepath.Join(dir, name)) {
				t.Error(err)
			}
			if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != "all?" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("what is left is %v, %v", left, err)
	}
}

// Without -o, the file goes to standard output, and nothing else does.
func TestRDPRecvToStdout(t *testing.T) {
	from, content := rdpContent(t, 50_000)
	ownRuntime(t)
	port := ownPort(t)
	for _, mode := range []string{"--unsequenced=false", "--unsequenced"} {
		recv := start(t, "rdp", "recv", "-v", "127.0.0.1:"+port)
		recv.errOut.wait(t, "listening at ")
		ok(t, "rdp", "send", mode, from, "127.0.0.1:"+port)
		recv.wait(t)
		if recv.status != 0 || recv.out.String() != string(content) || !strings.Contains(recv.errOut.String(), " -> -: 50000 bytes") {
			t.Errorf("status %d, %d bytes, stderr %q", recv.status, len(recv.out.String()), recv.errOut.String())
		}
	}
}

// A link is followed, permissions are kept, and what is no regular file is written to.
func TestRDPRecvReplaces(t *testing.T) {
	ownRuntime(t)
	from, content := rdpContent(t, 1000)
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	do(t, os.WriteFile(file, []byte("old"), 0o640), os.Symlink("file", link))
	for _, to := range []string{link, os.DevNull} {
		recv, address := startRDP(t, "recv", "-o", to)
		ok(t, "rdp", "send", "--linger", "0", from, address)
		recv.end(t)
	}
	info, err := os.Lstat(link)
	do(t, err)
	if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, content) || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("%d bytes, %v, %v", len(b), err, info.Mode())
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// pingSummary is the summary of three pings that were answered. On a machine that is busy, one may be sent again.
var pingSummary = regexp.MustCompile(`^3 pings, 3 answers, ([0-9]+ sent again, )?min/mean/p50/p99/max = `)

func TestRDPErrors(t *testing.T) {
	ownRuntime(t)
	dir := t.TempDir()
	recv, address := startRDP(t, "recv", "-d", dir)
	_, port, err := net.SplitHostPort(address)
	do(t, err)
	file, _ := rdpContent(t, 10)
	for args, want := range map[string]string{
		"send":                                "give `urnic rdp send FILE... HOST[:UDPPORT]`",
		"send FILE":                           "give `urnic rdp send",
		"send nothing 127.0.0.1":              "no such file",
		"send DIR 127.0.0.1":                  "is a directory: send its files",
		"send FILE 127.0.0.1:1":               "nobody listens at RDP port 7 of 127.0.0.1:1: start `urnic rdp recv`",
		"send --port 8 FILE ADDRESS":          "nobody listens at RDP port 8",
		"send --version 3 FILE ADDRESS":       "--version 3: must be 1 or 2",
		"send --version 0 FILE ADDRESS":       "--version 0: must be 1 or 2",
		"send --version 1 -p 256 FILE x":      "--port 256: version 1 has the ports 1 to 255",
		"send --port 0 FILE ADDRESS":          "--port 0: must be 1 to 65535",
		"send --window 70000 FILE ADDRESS":    "--window 70000",
		"send --max-segment 46 FILE ADDRESS":  "--max-segment 46: must be 47 to 65535",
		"send --congestion bbr FILE ADDRESS":  "--congestion bbr: must be one of none, reno, cubic",
		"send --keepalive -1s FILE ADDRESS":   "--keepalive -1s",
		"send --linger -1s FILE ADDRESS":      "--linger -1s",
		"send --carrier tcp FILE ADDRESS":     "--carrier tcp: must be udp or ip",
		"send --carrier ip FILE ADDRESS":      "over IP there are no UDP ports",
		"send --connect-timeout 0s FILE x":    "--connect-timeout 0s",
		"send --json --pcap - FILE ADDRESS":   "would both go to standard output",
		"send FILE 127.0.0.1:x":               "give a port by its number",
		"send --connect-timeout 1ms FILE SIL": "within 1ms: check the address",
		"recv a b":                            "give `urnic rdp recv [ADDRESS]`",
		"recv name":                           "give an IP address of this machine",
		"recv 127.0.0.1:x":                    "give the UDP port by its number",
		"recv 127.0.0.1:PORT":                 "another program has UDP port",
		"recv 192.0.2.77":                     "is no address of this machine",
		"recv --carrier ip":                   "give the IP address of this machine",
		"recv --carrier ip 127.0.0.1:9":       "over IP there are no UDP ports",
		"recv -o DIR":                         "that is a directory",
		"recv -o DIR/no/file":                 "no such file or directory",
		"recv -d DIR/no":                      "no such file or directory",
		"recv -d FILE":                        "that is no directory",
		"recv -d DIR -o FILE":                 "give only one of -o and -d",
		"recv -n 1 -o FILE":                   "-n is for -d",
		"recv -n -1 -d DIR":                   "-n -1: must be 0 or more",
		"recv --json":                         "would both go to standard output",
		"recv --pcap -":                       "would both go to standard output",
		"cat":                                 "give `urnic rdp cat HOST[:UDPPORT] | -l [ADDRESS]`",
		"cat --pcap - ADDRESS":                "would both go to standard output",
		"cat --stream --unsequenced ADDRESS":  "give only one of --stream and --unsequenced",
		"cat 127.0.0.1:1":                     "nobody listens",
		"cat --stream 127.0.0.1:1":            "nobody listens",
		"ping":                                "give `urnic rdp ping HOST[:UDPPORT]`",
		"ping 127.0.0.1:1":                    "nobody listens",
		"ping -c -1 ADDRESS":                  "-c -1",
		"ping -i 0s ADDRESS":                  "-i 0s: must be more than 0",
		"ping --timeout 0s ADDRESS":           "--timeout 0s",
		"ping --json --pcap - ADDRESS":        "would both go to standard output",
		"status --timeout 0s":                 "--timeout 0s",
	} {
		silent, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
		do(t, err)
		line := strings.NewReplacer("FILE", file, "DIR", dir, "ADDRESS", address, "PORT", port, "SIL", silent.LocalAddr().String()).Replace(args)
		if strings.HasSuffix(args, "]") {
			line = args
		}
		status, out, errOut := urnic(t, nil, append([]string{"rdp"}, strings.Fields(line)...)...)
		if status != 1 || out != "" || !strings.Contains(errOut, want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("urnic rdp %s: status %d, stdout %q, stderr %q; want %q", args, status, out, errOut, want)
		}
		silent.Close()
	}
	recv.interrupt()
	recv.end(t)
}

// The progress of a file is shown when it takes long.
func TestRDPProgress(t *testing.T) {
	var terminal output
	onTerminal(t, &terminal)
	r := &rdpReceiver{rdpRecvOptions: &rdpRecvOptions{output: "copy"}, stderr: &terminal}
	synctest.Test(t, func(t *testing.T) {
		n, err := r.progressing(func(p *progress) (int64, error) {
			w := progressWriterAt{nothing{}, p}
			for i := range int64(30) {
				time.Sleep(100 * time.Millisecond)
				if _, err := w.WriteAt(make([]byte, 1000), i*1000); err != nil {
					t.Error(err)
				}
			}
			if got := screen(terminal.String()); !strings.Contains(got, "copy") || !strings.Contains(got, "kB") {
				t.Errorf("after 3 s: %q", got)
			}
			return 30_000, nil
		})
		if n != 30_000 || err != nil || screen(terminal.String()) != "" {
			t.Errorf("%d, %v, what is left: %q", n, err, screen(terminal.String()))
		}
	})
}

type nothing struct{}

func (nothing) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }

// Over IP, too, where the process may.
func TestRDPOverIP(t *testing.T) {
	ownRuntime(t)
	network := loopback.Of(t)
	sender, receiver := network.Addr(1).String(), network.Addr(2).String()
	if _, _, errOut := urnic(t, nil, "rdp", "ping", "--carrier", "ip", "-c", "1", "--timeout", "1ms", sender); strings.Contains(errOut, "CAP_NET_RAW") && os.Getenv("CI") == "" {
		t.Skipf("the process may not open raw sockets: %s", errOut)
	}
	from, content := rdpContent(t, 100_000)
	to := filepath.Join(t.TempDir(), "copy")
	record := filepath.Join(t.TempDir(), "ip.pcapng")
	recv := start(t, "rdp", "recv", "--carrier", "ip", "-o", to, receiver)
	recv.out.wait(t, "\n")
	if out := recv.out.String(); out != "listening at RDP port 7 of "+receiver+"\n" {
		t.Errorf("it prints %q", out)
	}
	ok(t, "rdp", "send", "--carrier", "ip", "--pcap", record, from, receiver)
	recv.end(t)
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if out := ok(t, "dissect", "--strict", "--summary", record); !strings.Contains(out, "RDP") {
		t.Errorf("what was dissected:\n%s", out)
	}
}
