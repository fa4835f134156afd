package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urnic/internal/program/top"
	"urnic/rnic"
	"urnic/rnic/rnicinfo"
	"urnic/rnic/rnictest"
)

// shownPair is a connected pair of which top shows side A.
func shownPair(t *testing.T) *rnictest.Pair {
	t.Helper()
	p := rnictest.Connect(t)
	s, err := rnicinfo.Serve(p.A.Device, "a program in Go", "")
	if err != nil {
		t.Fatal(err)
	}
	s.Show(p.A.QP)
	t.Cleanup(func() { s.Close() })
	return p
}

// write writes n times.
func write(t *testing.T, p *rnictest.Pair, n int) {
	t.Helper()
	for range n {
		p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpWrite})
		rnictest.Want(t, p.A.SendCQ, 1)
	}
}

// A program in Go is shown with counters that move, and no more once it has ended.
func TestTopShowsAProgramInGo(t *testing.T) {
	ownRuntime(t)
	p := shownPair(t)
	write(t, p, 3)
	var r top.Round
	look := func() *top.Process {
		t.Helper()
		r = top.Round{}
		if err := json.Unmarshal([]byte(ok(t, "top", "--once", "--json", "--interval", "20ms")), &r); err != nil || len(r.Processes) != 1 || len(r.Unanswered) != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		return &r.Processes[0]
	}
	first := look()
	if first.PID != os.Getpid() || first.Command != "a program in Go" || len(first.Device.QPs) != 1 || first.Rates.Interval <= 0 {
		t.Errorf("%+v", first)
	}
	before := first.Device.QPs[0].Sent.Messages
	write(t, p, 2)
	if now := look().Device.QPs[0].Sent.Messages; now != before+2 || before < 3 {
		t.Errorf("%d messages, and then %d", before, now)
	}
	if text := ok(t, "top", "--once", "--interval", "20ms"); !strings.Contains(text, "  a program in Go\n") || !strings.Contains(text, " RTS ") {
		t.Error(text)
	}
	if text := ok(t, "top", "--prometheus"); !strings.Contains(text, `direction="sent",op="rdma-write"} 5`) {
		t.Error(text)
	}
}

func TestTopOfNothing(t *testing.T) {
	ownRuntime(t)
	if text := ok(t, "top", "--once", "--interval", "10ms"); !strings.HasSuffix(text, "   0 processes, 0 queue pairs\n") {
		t.Errorf("%q", text)
	}
}

// A directory that others can enter is refused: anybody could serve there.
func TestTopTrustsNoDirectoryOfOthers(t *testing.T) {
	ownRuntime(t)
	shownPair(t)
	dir := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "urnic")
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	args := []string{"top", "--once"}
	status, _, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "mode 0700")
}

// Metrics are served at loopback only, until the user ends that.
func TestTopServesMetrics(t *testing.T) {
	ownRuntime(t)
	write(t, shownPair(t), 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	done := make(chan int)
	go func() { done <- run(ctx, []string{"top", "--listen", ":0"}, nil, in, io.Discard) }()
	b := make([]byte, 200)
	n, err := out.Read(b)
	url, is := strings.CutPrefix(strings.TrimSpace(string(b[:n])), "Serving metrics at ")
	if err != nil || !is || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("%q, %v", b[:n], err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: hangGuard}
	get := func(url string) (int, string) {
		t.Helper()
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if status, text := get(url); status != http.StatusOK || !strings.Contains(text, `urnic_qp_state{pid="`) {
		t.Errorf("%d: %s", status, text)
	}
	if status, _ := get(strings.Replace(url, "/metrics", "/other", 1)); status != http.StatusNotFound {
		t.Errorf("another page: %d", status)
	}
	cancel()
	if status := await(t, done); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestTopFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"--interval 1ms":  {"--interval", "1ms"},
		"--timeout 0s":    {"--timeout", "0s"},
		"--rows 0":        {"--rows", "0"},
		`--listen "9464"`: {"--listen", "9464"},
		"--json":          {"--json", "--prometheus"},
		"unknown command": {"nonsense"},
	} {
		args = append([]string{"top"}, args...)
		status, _, errOut := urnic(t, nil, args...)
		if want == "unknown command" {
			want = "nonsense"
		}
		wantError(t, args, status, errOut, want)
	}
}
