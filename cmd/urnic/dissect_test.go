package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"urnic/internal/capture"
)

const golden = "../../internal/program/dissect/testdata/captures/"

// plain returns the bytes of a golden capture, decompressed.
func plain(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(golden + name + ".pcap.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDissectOutputs(t *testing.T) {
	file := golden + "rping-basic.pcap.gz"
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "connection 1: client 10.9.0.1:37913, server 10.9.0.2:7174\n"},
		{[]string{"--segments"}, "> segment 1 Send untagged last qn=0 msn=1 mo=0 len=16\n"},
		{[]string{"--json"}, `{"event":"startup","connection":1,"client":"10.9.0.1:37913"`},
		{[]string{"--ladder"}, "|-- Send msn=1 len=16 ---"},
		{[]string{"--summary"}, "read-response    3         3\n"},
		{[]string{"--summary", "--json"}, `{"format":"urnic-dissect-summary/1","connections":[{"file":"` + file + `","client":"10.9.0.1:37913"`},
		{[]string{"--connection", "1"}, "RDMA Write"},
	} {
		status, out, errOut := urnic(t, nil, append([]string{"dissect", file}, tc.args...)...)
		if status != 0 || errOut != "" || !strings.Contains(out, tc.want) {
			t.Errorf("%v: status %d, stderr %q, no %q in\n%s", tc.args, status, errOut, tc.want, out)
		}
	}
}

func TestDissectWritesAPage(t *testing.T) {
	page := t.TempDir() + "/page.html"
	ok(t, "dissect", "--html", page, golden+"nfs41.pcap.gz")
	b, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(b), "RPC-over-RDMA") {
		t.Errorf("the page is %.200s, %v", b, err)
	}
	for _, args := range [][]string{
		{"--html", page, golden + "nfs41.pcap.gz", golden + "nfs3.pcap.gz"},
		{"--html", page, "--json", golden + "nfs41.pcap.gz"},
		{"--html", page, golden + "absent.pcap.gz"},
	} {
		if status, out, errOut := urnic(t, nil, append([]string{"dissect"}, args...)...); status == 0 || out != "" || errOut == "" {
			t.Errorf("%q: status %d, %q, %q", args, status, out, errOut)
		}
	}
}

func TestDissectOfRPC(t *testing.T) {
	file := golden + "nfs41.pcap.gz"
	for _, tc := range []struct {
		args         []string
		want, unwant string
	}{
		{nil, "RDMA Write stag=0x9f1deb01 to=0x180454480976a000 len=100 (XID 18045448, Reply chunk)\n", "unknown"},
		{nil, "> call NFSv4 NULL xid=17045448 AUTH_NONE len=40\n", "unknown"},
		{[]string{"--rpc"}, "> RDMA_MSG xid=17045448 credits=128 inline=40\n", "Send msn"},
		{[]string{"--rpc", "--ladder"}, "|-- call NFSv4 NULL xid=17045448 AUTH_NONE len=40 -", "Send msn"},
		{[]string{"--rpc", "--json"}, `"ulp":{"type":"call","xid":"17045448","program":100003`, `"event":"message"`},
		{[]string{"--summary"}, "NFSv4 COMPOUND  63     63       0", "unanswered calls"},
		{[]string{"--summary", "--json"}, `"ulp":"RPC-over-RDMA","ulp_summary":{"calls":64,"replies":64,"unanswered":0`, "null"},
		{[]string{"--ulp", "none"}, "Send msn=1 len=68\n", "RDMA_MSG"},
		{[]string{"--ulp", "none", "--summary", "--json"}, `"ulp":"","ulp_summary":{}}`, "RPC-over-RDMA"},
	} {
		status, out, errOut := urnic(t, nil, append([]string{"dissect", file}, tc.args...)...)
		if status != 0 || errOut != "" || !strings.Contains(out, tc.want) || strings.Contains(out, tc.unwant) {
			t.Errorf("%v: status %d, stderr %q, no %q or %q in\n%.2000s", tc.args, status, errOut, tc.want, tc.unwant, out)
		}
	}
	// What is no RPC-over-RDMA is taken for it only if that is asked for.
	for ulp, want := range map[string]bool{ulpAuto: false, ulpRPC: true} {
		_, out, _ := urnic(t, nil, "dissect", "--ulp", ulp, golden+"rping-basic.pcap.gz")
		if strings.Contains(out, "VIOLATION of RFC 8166 §4.5 by the client") != want {
			t.Errorf("--ulp %s:\n%s", ulp, out)
		}
	}
}

func TestDissectOfRDS(t *testing.T) {
	const captures = "../../ulp/rds/rdsflow/testdata/captures/"
	for _, tc := range []struct {
		file         string
		args         []string
		want, unwant string
	}{
		{"iwarp-rdma", nil, "< RDMA Write stag=0x4b187800 to=0x40 len=1000 (RDMA_DEST of message 1)\n", "VIOLATION"},
		{"iwarp-basic", nil, "> RDS data seq=7 ack=6 len=12288 5000>4000 fragments=3\n", "RDS fragment"},
		{"iwarp-basic", []string{"--segments"}, "RDS fragment at 8192 of data seq=7 ", "VIOLATION"},
		{"iwarp-basic", []string{"--rds"}, "> RDS data seq=1 ", "Send with SE"},
		{"iwarp-congestion", []string{"--rds", "--ladder"}, "CONG_BITMAP fragments=2 --|", "Send with SE"},
		{"iwarp-v6", nil, "> RDS private data fd09::1>fd09::2 version 3.1 ", "VIOLATION"},
		{"iwarp-duel", nil, "< RDS reject 01000000\n", "RFC 8166"},
		{"rds-tcp-ping", nil, "> RDS pong seq=2 ack=0 len=0 0>1 NPATHS=8 after 1.309ms\n", "VIOLATION"},
		{"rds-tcp-large", []string{"--json"}, `"event":"rds","connection":2,`, "null"},
		{"rds-tcp-large", []string{"--json"}, `"kind":"data","sequence":1,"ack":0,"length":65536,"source_port":`, "violation\""},
		{"rds-tcp-large", []string{"--summary", "--json"}, `"transport":"TCP","ulp":"RDS","ulp_summary":{"client":{"data":`, "null"},
		{"rds-tcp-large", []string{"--summary", "--json", "--strict"}, `"verdict":"ok",`, "null"},
		{"rds-tcp-large", []string{"--summary"}, "none: TCP", "iWARP"},
		{"rxe-rdma", []string{"--summary", "--strict"}, "none: RoCEv2", "iWARP"},
		{"rxe-rdma", nil, "< RoCE Read Request key=0x00000501 va=0x40 len=20000 (RDMA_DEST of message 5)\n", "VIOLATION"},
		{"iwarp-basic", []string{"--ulp", "rds"}, "RDS data", "VIOLATION"},
		{"iwarp-basic", []string{"--ulp", "none"}, "Send with SE", "RDS"},
	} {
		status, out, errOut := urnic(t, nil, append([]string{"dissect", captures + tc.file + ".pcap.gz"}, tc.args...)...)
		if status != 0 || errOut != "" || !strings.Contains(out, tc.want) || strings.Contains(out, tc.unwant) {
			t.Errorf("%s %v: status %d, stderr %q, no %q or %q in\n%.2000s", tc.file, tc.args, status, errOut, tc.want, tc.unwant, out)
		}
	}
}

func TestDissectOfRx(t *testing.T) {
	const (
		captures = "../../ulp/rx/rxflow/testdata/captures/"
		aes      = "1:00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0"
		des      = "2:0123456789abcdef"
	)
	key, err := hex.DecodeString(aes[2:])
	if err != nil {
		t.Fatal(err)
	}
	ext := temp(t, append([]byte{0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 18, 0, 0, 0, 32}, key...))
	old := temp(t, []byte{0, 0, 0, 1, 0, 0, 0, 2, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef})
	for _, tc := range []struct {
		file         string
		args         []string
		want, unwant string
	}{
		{"pts-listmax-noauth", nil, "> RX data 0/1 seq=1 serial=1 LAST-PACKET len=4 pt.ListMax\n", "VIOLATION"},
		{"pts-listmax-noauth", []string{"--rx"}, "> RX call 0/1 service=73 pt.ListMax: request 4 bytes in 1 packet; reply 8 bytes in 1 packet; ", "RX data"},
		{"pts-listmax-noauth", []string{"--ladder"}, "|<---------------- RX data 0/1 seq=1 serial=1 LAST-PACKET len=8 --|", "VIOLATION"},
		{"pts-listmax-noauth", []string{"--json"}, `"event":"rx-call","connection":1,`, "null"},
		{"pts-listmax-noauth", []string{"--summary", "--strict"}, "none: UDP", "iWARP"},
		{"pts-listmax-noauth", []string{"--summary", "--json", "--strict"}, `"transport":"UDP","ulp":"Rx","ulp_summary":{"kind":"connection"`, "null"},
		{"pts-listmax-noauth", []string{"--ulp", "rx", "--summary", "--json", "--strict"}, `"verdict":"ok"`, "null"},
		{"jumbo-lo64k-vos-dump-300k", nil, "(4 in a jumbogram)", "VIOLATION"},
		{"rxrpc-client-null", []string{"--strict"}, "(3 in a jumbogram)", "VIOLATION"}, // in IP fragments
		{"probe-types", nil, "VIOLATION of draft §9.1 by the client: type 14 is not defined", "VIOLATION of draft §9.1 by the server"},
		{"rx-version", nil, "< RX version 0/101 serial=0 LAST-PACKET len=65 \"OpenAFS 1.8.", "VIOLATION"},
		{"rxr-levels", []string{"--rx"}, "RX call 0/1 service=2077: request ", "operation"},
		{"rxr-levels", []string{"--rx-key", aes, "--rx-key", des, "--rx"}, "RX call 0/1 service=2077 operation 1: request 4 bytes", "service=2077:"},
		{"rxr-levels", []string{"--rx-keyfile", ext, "--rx-keyfile", old}, "> RX response serial=2 len=96 rxref@rx.test, level crypt, key version 2\n", "keys do not open"},
		{"rxr-levels", []string{"--rx-keyfile", old}, "which the keys do not open: rxkad: unknown key", "VIOLATION"},
		{"vos-dump-100k-crypt", []string{"--rx-keyfile", ext, "--summary"}, "afs, level crypt, key version 1", "VIOLATION"},
		{"probe-truncated", []string{"--rx-port", "7002,7003"}, "VIOLATION of draft §9.1 by the client: header too short: 27 bytes", "by the server"},
		{"probe-truncated", []string{"--ulp", "none"}, "", "RX"},
	} {
		status, out, errOut := urnic(t, nil, append([]string{"dissect", captures + tc.file + ".pcap.gz"}, tc.args...)...)
		if none := strings.Contains(errOut, "no iWARP connection"); status != 0 || errOut != "" && !none || !strings.Contains(out, tc.want) || strings.Contains(out, tc.unwant) {
			t.Errorf("%s %v: status %d, stderr %q, no %q or %q in\n%.2000s", tc.file, tc.args, status, errOut, tc.want, tc.unwant, out)
		}
	}
}

func TestDissectOfRDP(t *testing.T) {
	const captures = "../../ulp/rdp/rdpflow/testdata/"
	for _, tc := range []struct {
		file         string
		args         []string
		want, unwant string
	}{
		{"v1-sequenced-loss", nil, "> RDP SYN seq=721775291 max=32 size=1400 sequenced v1 70>7\n", "VIOLATION"},
		{"v1-sequenced-loss", []string{"--rdp"}, "> RDP open after ", "RDP data"},
		{"v1-sequenced-loss", []string{"--rdp", "--rdp-complete"}, "> RDP closed by the client after ", "VIOLATION"},
		{"v1-sequenced-loss", []string{"--ladder"}, "|-- RDP RST seq=721775366 -", "VIOLATION"},
		{"v1-sequenced-loss", []string{"--json"}, `"event":"rdp-open","connection":1,`, "null"},
		{"v2-unsequenced-loss-reorder", []string{"--json"}, `"ulp":{"type":"NUL","version":2,"flags":"ACK,NUL","source_port":40000,`, "null"},
		{"v2-unsequenced-loss-reorder", []string{"--summary", "--strict"}, "none: UDP", "iWARP"},
		{"v2-unsequenced-loss-reorder", []string{"--summary", "--strict"}, "by kind: 1 ACK, 6 NUL, 2 RST, 1 SYN, 58 data\n", "iWARP"},
		{"v2-unsequenced-loss-reorder", []string{"--summary", "--json", "--strict"}, `"transport":"UDP","ulp":"RDP","ulp_summary":{"kind":"connection","version":2,`, "null"},
		{"v2-unsequenced-loss-reorder", []string{"--ulp", "rdp", "--rdp-port", "9,10"}, "RDP EACK seq=2750691627 ack=1237843076 eacks=", "VIOLATION"},
		{"v2-unsequenced-loss-reorder", []string{"--ulp", "none"}, "", "RDP"},
	} {
		status, out, errOut := urnic(t, nil, append([]string{"dissect", captures + tc.file + ".pcap"}, tc.args...)...)
		if none := strings.Contains(errOut, "no iWARP connection"); status != 0 || errOut != "" && !none || !strings.Contains(out, tc.want) || strings.Contains(out, tc.unwant) {
			t.Errorf("%s %v: status %d, stderr %q, no %q or %q in\n%.2000s", tc.file, tc.args, status, errOut, tc.want, tc.unwant, out)
		}
	}
}

func TestDissectReadsStandardInput(t *testing.T) {
	b := plain(t, "rping-basic")
	status, out, errOut := urnic(t, bytes.NewReader(b), "dissect", "--summary", "-")
	if status != 0 || errOut != "" || !strings.Contains(out, "-:\n#") {
		t.Errorf("status %d, stderr %q\n%s", status, errOut, out)
	}
}

func TestDissectOfStandardInputIsLive(t *testing.T) {
	b := plain(t, "rping-crc")
	in, feed := io.Pipe()
	var out, errOut output
	done := make(chan int)
	go func() { done <- run(t.Context(), []string{"dissect", "-"}, in, &out, &errOut) }()
	if _, err := feed.Write(b[:len(b)/2]); err != nil {
		t.Fatal(err)
	}
	out.wait(t, "RDMA Read Request") // before there is more
	if _, err := feed.Write(b[len(b)/2:]); err != nil {
		t.Fatal(err)
	}
	feed.Close()
	if status := await(t, done); status != 0 || errOut.String() != "" {
		t.Errorf("status %d, stderr %q", status, errOut.String())
	}
}

func TestDissectReadsSeveralFiles(t *testing.T) {
	status, out, errOut := urnic(t, nil, "dissect", "--summary", "--json", golden+"ucmatose.pcap.gz", golden+"reject.pcap.gz")
	var got struct {
		Connections []struct {
			File string
			MPA  struct{ Rejected bool }
		}
	}
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&got); err != nil || d.More() {
		t.Fatalf("not one object: %v\n%s", err, out)
	}
	if status != 0 || errOut != "" || len(got.Connections) != 3 || !got.Connections[2].MPA.Rejected || got.Connections[0].File != golden+"ucmatose.pcap.gz" {
		t.Errorf("status %d, stderr %q, %+v", status, errOut, got)
	}
}

// What precedes the damage counts, and is written.
func TestDissectOfADamagedCapture(t *testing.T) {
	b := plain(t, "rping-basic")
	name := temp(t, b[:len(b)/2])
	for _, args := range [][]string{{}, {"--summary"}, {"--summary", "--json"}} {
		status, out, errOut := urnic(t, nil, append([]string{"dissect", name, golden + "reject.pcap.gz"}, args...)...)
		if status != 1 || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, name+": the capture is cut short (after packet") {
			t.Errorf("%v: status %d, stderr %q", args, status, errOut)
		}
		if !strings.Contains(out, "10.9.0.1:37913") || !strings.Contains(out, "10.9.0.1:37482") {
			t.Errorf("%v: what can be read is missing:\n%s", args, out)
		}
	}
}

func TestDissectErrors(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"dissect"}, "no capture: give FILE"},
		{[]string{"dissect", "missing.pcap"}, "urnic: missing.pcap: open missing.pcap: no such file"},
		{[]string{"dissect", "dissect_test.go"}, "no capture: it begins with"},
		{[]string{"dissect", "--ladder", "--json", "x"}, "give only one of --ladder and --json"},
		{[]string{"dissect", "--ladder", "--summary", "x"}, "give only one of --ladder and --summary"},
		{[]string{"dissect", "--summary", "--segments", "x"}, "give only one of --summary and --segments"},
		{[]string{"dissect", "--summary", "--connection", "1", "x"}, "give only one of --summary and --connection"},
		{[]string{"dissect", "--ulp", "x", "x"}, "--ulp x: there are auto, rpcrdma, rds, rx, rdp and none"},
		{[]string{"dissect", "--rx-port", "70000", "x"}, "--rx-port 70000: give a port from 1 to 65535"},
		{[]string{"dissect", "--rdp-port", "0", "x"}, "--rdp-port 0: give a port from 1 to 65535"},
		{[]string{"dissect", "--rx-keyfile", "missing", "x"}, "--rx-keyfile: the keys can't be read: open missing: "},
		{[]string{"dissect", "--rx-keyfile", "dissect_test.go", "x"}, "--rx-keyfile dissect_test.go: rxkad: not in the form of a file of keys"},
		{[]string{"dissect", "--rx-key", "1:xyz", "x"}, "--rx-key: give VERSION:HEX"},
		{[]string{"dissect", "--connection", "x", "x"}, "--connection x: give a whole number"},
		{[]string{"dissect", "--json=perhaps", "x"}, "--json perhaps: give true or false"},
	} {
		status, _, errOut := urnic(t, nil, tc.args...)
		if status != 1 || !strings.Contains(errOut, tc.want) || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "urnic: ") {
			t.Errorf("%v: status %d, stderr %q", tc.args, status, errOut)
		}
	}
}

func TestStrictFailsWithViolations(t *testing.T) {
	for name, want := range map[string]int{"rping-basic": 0, "send-server-first": 1} {
		status, out, errOut := urnic(t, nil, "dissect", "--strict", "--summary", golden+name+".pcap.gz")
		if status != want || (errOut == "") != (want == 0) || out == "" {
			t.Errorf("%s: status %d, stderr %q", name, status, errOut)
		}
		if status, _, _ := urnic(t, nil, "dissect", golden+name+".pcap.gz"); status != 0 {
			t.Errorf("%s without --strict: status %d", name, status)
		}
	}
}

// recorded returns a recording of a conversation that is not iWARP.
func recorded(t *testing.T, play func(s *capture.Stream)) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := capture.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	play(w.Stream(netip.MustParseAddrPort("192.0.2.1:1000"), netip.MustParseAddrPort("192.0.2.2:80"), true))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCaptureWithoutIWARPIsSaidToBeSo(t *testing.T) {
	file := recorded(t, func(s *capture.Stream) { s.Sent([]byte("GET / HTTP/1.1\r\n\r\n")) })
	status, out, errOut := urnic(t, bytes.NewReader(file), "dissect", "--summary", "--json", "-")
	if status != 0 || !strings.HasPrefix(out, `{"format":"urnic-dissect-summary/1","connections":[],`) || !strings.Contains(out, `"verdict":"no-iwarp"`) || errOut != "-: no iWARP connection in 4 packets, 1 TCP connection\n" {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errOut)
	}
}

func TestWhatCouldNotBeFollowedIsSaid(t *testing.T) {
	b := plain(t, "rping-basic")
	const header = 24
	// Without the handshake and the start-up frames there is nothing to know it by.
	at, packet := header, 0
	for ; packet < 6; packet++ {
		at += 16 + int(b[at+8]) + int(b[at+9])<<8
	}
	midway := append(append([]byte(nil), b[:header]...), b[at:]...)
	_, _, errOut := urnic(t, bytes.NewReader(midway), "dissect", "-")
	if !strings.Contains(errOut, "no iWARP connection") || !strings.Contains(errOut, "the start of 1 of them was not captured") {
		t.Errorf("in mid-stream: %q", errOut)
	}
	unknown := append([]byte(nil), b...)
	unknown[20] = 147
	if _, _, errOut = urnic(t, bytes.NewReader(unknown), "dissect", "-"); !strings.Contains(errOut, "packets of an unknown link type") {
		t.Errorf("of an unknown link type: %q", errOut)
	}
	fragment := append([]byte(nil), b...)
	fragment[header+16+14+6] |= 0x20
	if _, _, errOut = urnic(t, bytes.NewReader(fragment), "dissect", "-"); !strings.Contains(errOut, "1 IP fragment ") {
		t.Errorf("with a fragment: %q", errOut)
	}
}

// What was not checked is said in text, in JSON and by the exit status alike.
func TestStrictFailsIfNotAllWasChecked(t *testing.T) {
	b := plain(t, "rping-basic")
	const header = 24
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(b)) }
	for name, tc := range map[string]struct {
		file    []byte
		verdict string
		want    string
	}{
		"whole":    {b, "ok", ""},
		"no iWARP": {recorded(t, func(s *capture.Stream) { s.Sent([]byte("GET /")) }), "no-iwarp", "no iWARP connection in 4 packets, 1 TCP connection"},
		"empty":    {b[:header], "no-iwarp", "no iWARP connection in 0 packets"},
		"fragment": {edit(func(b []byte) []byte { b[header+16+14+6] |= 0x20; return b }), "incomplete", "1 IP fragment not reassembled"},
		"EtherType": {
			edit(func(b []byte) []byte { copy(b[header+16+12:], []byte{0x88, 0xE5}); return b }), "incomplete",
			"1 packet could not be decoded: EtherType 0x88e5",
		},
		"snap length": {snapped(b, 100), "incomplete", "captured only in part"},
		"hole":        {edit(func(b []byte) []byte { return dropped(b, 12) }), "incomplete", "bytes of iWARP connections could not be decoded"},
	} {
		for _, args := range [][]string{{}, {"--summary"}, {"--json"}, {"--summary", "--json"}, {"--ladder"}} {
			status, out, errOut := urnic(t, bytes.NewReader(tc.file), append([]string{"dissect", "-"}, args...)...)
			if status != 0 || !strings.Contains(errOut, tc.want) || (errOut == "") != (tc.want == "") {
				t.Errorf("%s %v: status %d, stderr %q", name, args, status, errOut)
			}
			if len(args) > 0 && args[len(args)-1] == "--json" && !strings.Contains(out, `"verdict":"`+tc.verdict+`"`) {
				t.Errorf("%s %v: no verdict %s in %s", name, args, tc.verdict, out)
			}
			status, strict, strictErr := urnic(t, bytes.NewReader(tc.file), append([]string{"dissect", "--strict", "-"}, args...)...)
			if (status == 0) != (tc.verdict == "ok") || out != strict || strings.Count(strictErr, tc.want) > 1 && tc.want != "" || !strings.Contains(strictErr, tc.want) {
				t.Errorf("%s %v --strict: status %d, stderr %q", name, args, status, strictErr)
			}
		}
	}
}

// each calls f with each packet's header and data of a classic capture.
func each(b []byte, f func(head, data []byte)) {
	for at := 24; at < len(b); {
		n := int(b[at+8]) | int(b[at+9])<<8
		f(b[at:at+16], b[at+16:at+16+n])
		at += 16 + n
	}
}

// snapped returns a classic capture of which n bytes of each packet were kept.
func snapped(b []byte, n int) []byte {
	out := bytes.Clone(b[:24])
	each(b, func(head, data []byte) {
		keep := min(n, len(data))
		head = bytes.Clone(head)
		head[8], head[9] = byte(keep), byte(keep>>8)
		out = append(append(out, head...), data[:keep]...)
	})
	return out
}

// dropped returns a classic capture without the packet of a number.
func dropped(b []byte, number int) []byte {
	out, n := bytes.Clone(b[:24]), 0
	each(b, func(head, data []byte) {
		if n++; n != number {
			out = append(append(out, head...), data...)
		}
	})
	return out
}

func TestConnectionThatDoesNotExist(t *testing.T) {
	none := temp(t, recorded(t, func(s *capture.Stream) { s.Sent([]byte("GET /")) }))
	one, two := golden+"rping-basic.pcap.gz", golden+"ucmatose.pcap.gz"
	for _, tc := range []struct {
		args []string
		want string // of stderr; none if the status is 0
	}{
		{[]string{"--connection", "9", one}, "urnic: --connection 9: there is only 1 iWARP connection in the capture\n"},
		{[]string{"--connection", "9", "--json", one}, "urnic: --connection 9: there is only 1 iWARP connection in the capture\n"},
		{[]string{"--connection", "9", "--strict", "--ladder", one, golden + "rping-crc.pcap.gz"}, "urnic: --connection 9: there is only 1 iWARP connection in each of the captures\n"},
		{[]string{"--connection", "1", none}, "urnic: --connection 1: there is no iWARP connection in the capture\n"},
		{[]string{"--connection", "-1", one}, "urnic: --connection -1: connections are numbered from 1; 0 shows all\n"},
		{[]string{"--connection", "2", one, two}, ""},
		{[]string{"--connection", "1", one}, ""},
	} {
		status, _, errOut := urnic(t, nil, append([]string{"dissect"}, tc.args...)...)
		if (status == 0) != (tc.want == "") || !strings.HasSuffix(errOut, tc.want) {
			t.Errorf("%v: status %d, stderr %q", tc.args, status, errOut)
		}
	}
}

// failingWriter fails at once.
type failingWriter struct{}

var errFull = errors.New("no space left on device")

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, args := range [][]string{{}, {"--summary"}, {"--summary", "--json"}} {
		var errOut bytes.Buffer
		if status := run(t.Context(), append([]string{"dissect", golden + "nfs41.pcap.gz"}, args...), nil, failingWriter{}, &errOut); status != 1 {
			t.Errorf("%v: status %d", args, status)
		}
		if !strings.Contains(errOut.String(), errFull.Error()) || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%v: stderr %q", args, errOut.String())
		}
	}
}

func TestInterruptEndsDissect(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	if status := run(ctx, []string{"dissect", golden + "nfs3.pcap.gz", "missing.pcap"}, nil, &out, &errOut); status != statusInterrupted || errOut.String() != "urnic: interrupted\n" {
		t.Errorf("status %d, stderr %q", status, errOut.String())
	}
}
