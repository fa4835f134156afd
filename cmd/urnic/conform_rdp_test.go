package main

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"urnic/conformance"
	"urnic/conformance/rdpconn"
)

func TestConformOverRDP(t *testing.T) {
	dir := t.TempDir()
	out := ok(t, "conform", "--llp", "rdp", "--target", conformTarget(t, "--llp", "rdp"), "--profile", "urnic", "--strict",
		"--only", "rfc5041-5.3,rfc5041-7.1-6,rfc5044", "--pcap", dir, "--json", "-")
	var report conformance.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.LLP != conformance.RDP || report.Totals.Pass == 0 || report.Totals.Pass != report.Totals.All() {
		t.Errorf("%s: %+v", report.LLP, report.Totals)
	}
	order := false
	for _, r := range report.Results {
		if strings.HasPrefix(r.Case, "rfc5044") {
			t.Errorf("%s is run over RDP", r.Case)
		}
		if r.Case != "rfc5041-5.3-4/sends-in-reverse" {
			continue
		}
		order = true
		if out := ok(t, "dissect", "--strict", "--summary", r.Pcap); !strings.Contains(out, "RDP") {
			t.Errorf("the recording has %s", out)
		}
	}
	if !order {
		t.Error("no case changes the order of segments")
	}
}

// The server of rping is tested over RDP too, as it comes.
func TestConformJudgesRpingOverRDP(t *testing.T) {
	port := ownPort(t)
	address := net.JoinHostPort("127.0.0.1", port)
	server := start(t, "rping", "-s", "-a", "127.0.0.1", "-p", port, "-P", "--llp", "rdp")
	for end := time.Now().Add(hangGuard); ; time.Sleep(time.Millisecond) {
		c, err := rdpconn.Dial(t.Context(), address, rdpconn.Options{})
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nobody listens: %v", err)
		}
	}
	out := ok(t, "conform", "--llp", "rdp", "--target", address, "--profile", "rping", "--strict", "--only", "rfc5041-7.1-9")
	server.interrupt()
	server.wait(t)
	if !strings.HasPrefix(out, "PASS: ") || !strings.Contains(out, "profile rping over RDP") {
		t.Errorf("it prints %s", out)
	}
}

func TestConformListsTheCasesOfALowerLayer(t *testing.T) {
	const order, mpa = "rfc5041-5.3-4/sends-in-reverse", "rfc5041-3-5/octet-by-octet"
	for llp, want := range map[string]string{"tcp": mpa, "rdp": order} {
		out := ok(t, "conform", "--list", "--llp", llp, "--only", "rfc5041")
		for _, id := range []string{order, mpa} {
			if strings.Contains(out, id+"\n") != (id == want) {
				t.Errorf("--llp %s lists %s, or does not", llp, id)
			}
		}
	}
}

func TestConformOverRDPRefusesWhatItCannotDo(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.LocalAddr().String()
	l.Close()
	for _, test := range []struct {
		text string
		args []string
	}{
		{"--llp udp: must be tcp or rdp", []string{"--llp", "udp", "--target", nobody}},
		{"over TCP alone", []string{"--llp", "rdp", "--target", nobody, "--profile", "rpcrdma"}},
		{"do not run with the profile urnic over DDP over RDP", []string{"--llp", "rdp", "--target", nobody, "--profile", "urnic", "--only", "rfc6581"}},
		{"start the endpoint there first", []string{"--llp", "rdp", "--target", nobody}},
		{"give --llp tcp, or start `urnic conform serve --llp rdp`", []string{"--llp", "rdp", "--target", conformTarget(t), "--profile", "urnic"}},
		{"give --llp rdp, or start `urnic conform serve --llp tcp`", []string{"--target", conformTarget(t, "--llp", "rdp"), "--profile", "urnic"}},
	} {
		args := append([]string{"conform"}, test.args...)
		status, _, errOut := urnic(t, nil, args...)
		wantErrorStatus(t, args, 2, status, errOut, test.text)
	}
	args := []string{"conform", "serve", "--llp", "udp"}
	status, _, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "--llp udp: must be tcp or rdp")
}
