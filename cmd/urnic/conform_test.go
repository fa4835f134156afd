package main

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"urnic/conformance/service"
)

func TestConformServeServesSessionsUntilItIsInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "served.pcapng")
	server := start(t, "conform", "serve", "--listen", "127.0.0.1:0", "--json", "--pcap", file, "--trace")
	server.out.wait(t, "\n")
	var ready struct {
		Listening string `json:"listening"`
		Protocol  int    `json:"protocol"`
	}
	if err := json.Unmarshal([]byte(server.out.String()), &ready); err != nil || ready.Protocol != service.Version {
		t.Fatalf("it says %q: %v", server.out.String(), err)
	}
	a, err := service.Dial(t.Context(), ready.Listening)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := service.Dial(t.Context(), ready.Listening)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l, err := b.Listen(t.Context(), service.ListenArgs{Recvs: service.Recvs(5)})
	if err != nil {
		t.Fatal(err)
	}
	qp, err := a.Connect(t.Context(), service.ConnectArgs{Address: l.Address})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Post(t.Context(), qp.QP, service.Post{Op: service.OpSend, Data: []byte("hello")}); err != nil {
		t.Fatal(err)
	}
	accepted, err := b.Accepted(t.Context(), l.Listener, hangGuard)
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Completion(t.Context(), accepted.QP, service.RecvQueue, hangGuard)
	if err != nil || string(c.Data) != "hello" {
		t.Fatalf("completion %+v, %v", c, err)
	}
	if _, err := a.Connected(t.Context(), qp.QP, hangGuard); err != nil {
		t.Fatal(err)
	}
	if err := a.Disconnect(t.Context(), qp.QP, hangGuard); err != nil {
		t.Fatal(err)
	}
	server.interrupt()
	server.wait(t)
	if err := server.errOut.String(); server.status != 0 || !strings.Contains(err, "Send") {
		t.Errorf("status %d, stderr %q", server.status, err)
	}
	if out := ok(t, "dissect", "--strict", "--summary", file); !strings.Contains(out, "send") {
		t.Errorf("the recording has %s", out)
	}
}

func TestConformServeRefusesWhatItCannotDo(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, test := range []struct {
		text string
		args []string
	}{
		{"give ADDRESS:PORT", []string{"--listen", "127.0.0.1"}},
		{"give another port with --listen", []string{"--listen", busy.Addr().String()}},
		{"no address of this machine", []string{"--listen", "192.0.2.1:7176"}},
		{"--max-sessions 0", []string{"--max-sessions", "0"}},
		{"--json and --pcap -", []string{"--json", "--pcap", "-"}},
		{"--log-level loud", []string{"--log-level", "loud"}},
		{"the recording can't be written", []string{"--pcap", filepath.Join(t.TempDir(), "no", "file")}},
	} {
		args := append([]string{"conform", "serve"}, test.args...)
		status, _, errOut := urnic(t, nil, args...)
		wantError(t, args, status, errOut, test.text)
	}
}
