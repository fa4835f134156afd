package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"urnic/conformance"
	"urnic/conformance/wire"
	"urnic/internal/page/pagetest"
)

// conformTarget runs the test service with these flags, and returns its address.
func conformTarget(t *testing.T, flags ...string) string {
	t.Helper()
	server := start(t, append([]string{"conform", "serve", "--listen", "127.0.0.1:0"}, flags...)...)
	t.Cleanup(func() {
		server.interrupt()
		server.wait(t)
	})
	server.out.wait(t, "\n")
	_, address, _ := strings.Cut(strings.TrimSpace(server.out.String()), "listening at ")
	return address
}

func TestConformReportsInEveryForm(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	out := ok(t, "conform", "--target", conformTarget(t), "--profile", "urnic", "--only", "rfc5041-7.1",
		"--json", file("r.json"), "--junit", file("r.xml"), "--html", file("r.html"), "--pcap", file("pcap"))
	if !strings.HasPrefix(out, "PASS: none of ") || !strings.Contains(out, " 0 failed") || !strings.Contains(out, "RFC 5041") {
		t.Errorf("it prints %s", out)
	}
	var report conformance.Report
	b, err := os.ReadFile(file("r.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &report); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"outcome": "pass"`) {
		t.Errorf("the JSON report does not say that the target has passed: %.100s", b)
	}
	if report.Totals.Pass == 0 || report.Totals.All() != report.Totals.Pass {
		t.Errorf("the totals are %+v", report.Totals)
	}
	for _, res := range report.Results {
		if !strings.HasPrefix(res.Case, "rfc5041-7.1-") && !strings.Contains(strings.Join(res.Clauses, " "), "rfc5041-7.1-") {
			t.Errorf("%s was not asked for", res.Case)
		}
		if out := ok(t, "dissect", "--summary", res.Pcap); !strings.Contains(out, "MPA") {
			t.Errorf("the recording of %s has %s", res.Case, out)
		}
	}
	junit, err := os.ReadFile(file("r.xml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(junit, new(struct{ XMLName xml.Name })); err != nil {
		t.Errorf("JUnit: %v", err)
	}
	html, err := os.ReadFile(file("r.html"))
	if err != nil || !strings.Contains(pagetest.Whole(t, string(html)), report.Results[0].Case) {
		t.Errorf("HTML without %s: %v", report.Results[0].Case, err)
	}
}

func TestConformWritesJSONToStandardOutput(t *testing.T) {
	out := ok(t, "conform", "--target", conformTarget(t), "--profile", "urnic", "--only", "rfc5041-7.1-6", "--json", "-")
	var report conformance.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Totals.Pass == 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// deserter accepts connections as a Responder does, and goes at the first FPDU.
func deserter(t *testing.T) string {
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
	reply := wire.Frame{Key: wire.ReplyKey, Flags: wire.FlagC | wire.FlagS, Rev: 2, Private: wire.Enhanced{IRD: 1, ORD: 1}.Octets()}
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				b := make([]byte, wire.FrameLen+wire.EnhancedLen)
				if _, err := io.ReadFull(conn, b); err != nil {
					return
				}
				_, _ = conn.Write(reply.Octets())
				_, _ = conn.Read(b)
			})
		}
	})
	return l.Addr().String()
}

func TestConformTellsOfAFailure(t *testing.T) {
	args := []string{"conform", "--target", deserter(t), "--only", "rfc5041-7.1-6/stag-nobody-gave"}
	status, out, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "1 of 1 cases failed")
	if !strings.HasPrefix(out, "FAIL: 1 of 1 cases failed\n") {
		t.Errorf("it begins with %.100q", out)
	}
	for _, text := range []string{
		"FAIL", "rfc5041-7.1-6/stag-nobody-gave", "RFC 5041 §7.1, MUST", "an STag that nobody gave", // sent
		"a Terminate with 0x1100", "the connection was", "MPA Request", "1 failed",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("it does not print %q:\n%s", text, out)
		}
	}
}

// The server of rping is tested as it comes, with whatever size.
func TestConformJudgesRpingAsItComes(t *testing.T) {
	for _, size := range [][]string{nil, {"-S", "100"}} {
		server, port := serve(t, "127.0.0.1", append([]string{"-P"}, size...)...)
		out := ok(t, "conform", "--target", "127.0.0.1:"+port, "--profile", "rping", "--strict", "--only", "rfc5041-7.1-9,rfc5040-7.2-12")
		server.interrupt()
		server.wait(t)
		if !strings.HasPrefix(out, "PASS: ") || !strings.Contains(out, " 0 failed, 0 inconclusive") {
			t.Errorf("with %q: %s", size, out)
		}
	}
}

func TestConformLists(t *testing.T) {
	out := ok(t, "conform", "--list", "--only", "rfc5041-7.1-6")
	if !strings.Contains(out, "rfc5041-7.1-6/stag-nobody-gave\n") || strings.Contains(out, "rfc5041-7.1-9/") || !strings.Contains(out, "RFC 7306") {
		t.Errorf("it lists %s", out)
	}
}

func TestConformRefusesWhatItCannotDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	for _, test := range []struct {
		text string
		args []string
	}{
		{"--target HOST:PORT", nil},
		{"--target HOST:PORT", []string{"--profile", "urnic", "--listen", "127.0.0.1:0"}},
		{"must be one of raw, rping, urnic, rpcrdma", []string{"--profile", "siw", "--target", nobody}},
		{"give HOST:PORT", []string{"--target", "127.0.0.1"}},
		{"give HOST:PORT", []string{"--listen", "127.0.0.1"}},
		{"--timeout 0s", []string{"--target", nobody, "--timeout", "0"}},
		{"--log-level loud: must be one of debug, info, warn, error", []string{"--target", nobody, "--log-level", "loud"}},
		{"--settle -1s", []string{"--target", nobody, "--settle", "-1s"}},
		{"--rping-size -1", []string{"--target", nobody, "--profile", "rping", "--rping-size", "-1"}},
		{"for --profile rping", []string{"--target", nobody, "--rping-size", "100"}},
		{"--jobs -1", []string{"--target", nobody, "--jobs", "-1"}},
		{"--list shows their IDs", []string{"--target", nobody, "--only", "rfc9999"}},
		{"start the endpoint there first", []string{"--target", nobody}},
		{"urnic conform serve", []string{"--target", nobody, "--profile", "urnic"}},
		{"takes no arguments", []string{"--list", "all"}},
	} {
		args := append([]string{"conform"}, test.args...)
		status, _, errOut := urnic(t, nil, args...)
		wantErrorStatus(t, args, 2, status, errOut, test.text)
	}
}

// The cases of RPC-over-RDMA are run against urnic nfsd, in an export of it.
func TestConformJudgesAnNFSServer(t *testing.T) {
	s := startNFSD(t, "--memory", "--squash", "none", "--insecure") // the tester calls as root, whoever it is
	defer s.stop(t)
	out := ok(t, "conform", "--target", s.RDMA, "--profile", "rpcrdma", "--export", "/memory", "--mount", s.TCP,
		"--only", "rfc8166-3.4,rfc8166-3.5,rfc8797")
	if !strings.Contains(out, " 0 failed, 0 inconclusive") {
		t.Errorf("it prints %s", out)
	}
	if list := ok(t, "conform", "--list", "--only", "rfc8797"); !strings.Contains(list, "profile rpcrdma;") {
		t.Errorf("it lists %s", list)
	}
	for name, args := range map[string][]string{
		"cases of other profiles": {"--target", s.RDMA, "--profile", "rpcrdma", "--only", "rfc5041"},
		"an export elsewhere":     {"--target", s.RDMA, "--export", "/memory"},
		"no handle":               {"--target", s.RDMA, "--profile", "rpcrdma", "--handle", "0g"},
	} {
		if status, out, _ := urnic(t, nil, append([]string{"conform"}, args...)...); status == 0 {
			t.Errorf("%s is taken: %s", name, out)
		}
	}
}
