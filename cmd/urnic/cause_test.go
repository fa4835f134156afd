package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"urnic/rnic"
)

// A start that fails says why once, in the words of this program. With --log-level debug it
// says besides what each layer has to say.
func TestAFailedStartStatesItsCauseOnce(t *testing.T) {
	nobody := "127.0.0.1:" + unusedPort
	l, err := peerDevice(t).Listen(t.Context(), "127.0.0.1:0")
	do(t, err)
	go func() {
		for {
			r, err := l.Accept(t.Context())
			if err != nil {
				return
			}
			_ = r.Reject(t.Context(), []byte("no"))
		}
	}()
	silent, _ := silent(t)
	refused, rejected, late := "nobody listens at "+nobody+" (connection refused): ", "what listens at "+l.Addr().String()+" rejects the connection", "no answer from "+silent+" within 100ms: "
	for _, tt := range []struct {
		args, want, layer string
	}{
		{"rping -c -a 127.0.0.1 -p " + unusedPort, refused, "*rnic.OpError"},
		{"rping -c -a 127.0.0.1 -p " + port(l.Addr()), rejected, "*mpa.RejectedError"},
		{"rping -c -a 127.0.0.1 --connect-timeout 100ms -p " + silent[len("127.0.0.1:"):], late, "*rnic.OpError"},
		{"perf client " + nobody, refused, "*net.OpError"},
		{"perf client --connect-timeout 100ms " + silent, late, "*rnic.OpError"},
		{"rpc call " + nobody + " nfs 3", refused, "*net.OpError"},
		{"rpc call " + nobody + " nfs 3 --rdma", refused, "*rnic.OpError"},
		{"rpc call " + l.Addr().String() + " nfs 3 --rdma", rejected, "*rnic.OpError"},
		{"rpc info " + nobody, refused, "*net.OpError"},
		{"nfs ls nfs://" + nobody + "/x?mountport=" + unusedPort, refused, "*net.OpError"},
		{"nfs ls nfs+rdma://" + nobody + "/x?mountport=" + unusedPort, refused, "*net.OpError"},
		{"nfs cat nfs://" + nobody + "/x", "nobody listens at " + nobody, "*nfs.MountServiceError"},
		{"conform --target " + nobody, "the target can't be reached at " + nobody + " (connection refused): ", "*net.OpError"},
		{"conform --profile urnic --target " + nobody, "the target can't be reached at " + nobody + " (connection refused): ", "*net.OpError"},
	} {
		for _, level := range []string{"error", "debug"} {
			args := append(strings.Fields(tt.args), "--log-level", level)
			status, _, errOut := urnic(t, nil, args...)
			first, more, _ := strings.Cut(errOut, "\n")
			want := statusFailed
			if strings.HasPrefix(tt.args, "conform ") {
				want = statusUntested
			}
			if status != want || !strings.HasPrefix(first, "urnic: "+tt.want) {
				t.Errorf("%v: status %d, %q", args, status, errOut)
			}
			wantOnce(t, first)
			if level == "debug" != strings.Contains(more, " msg=cause type="+tt.layer+" ") || level != "debug" && more != "" {
				t.Errorf("%v: then %q", args, more)
			}
		}
	}
}

// wantOnce checks that no part of a line is said twice, and none in the name of a layer.
func wantOnce(t *testing.T, line string) {
	t.Helper()
	var parts []string
	for p := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(":;()", r) }) {
		p = strings.TrimSpace(p)
		if len(p) < 4 { // the number of a port
			continue
		}
		if slices.Contains(parts, p) || slices.Contains([]string{"mpa", "rnic", "rdmap", "nfs", "oncrpc", "rpcrdma"}, p) && len(parts) > 1 {
			t.Errorf("%q is not for people in %q", p, line)
		}
		if !strings.HasPrefix(p, "127.0.0.1") {
			parts = append(parts, p)
		}
	}
}

// Advice does not hide what it is about.
func TestAdviceWrapsItsCause(t *testing.T) {
	cause := &rnic.OpError{Op: "connect", Object: "QP 1", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}, Err: syscall.ECONNREFUSED}}
	err := adviseDial(cause, "127.0.0.1:7", "", 0)
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, new(*rnic.OpError)) || strings.Contains(err.Error(), "QP 1") {
		t.Error(err)
	}
	joined := errors.Join(fmt.Errorf("one: %w", cause), io.EOF)
	if n := len(slices.Collect(chain(joined))); n != 6 {
		t.Errorf("the chain has %d links", n)
	}
	for range chain(joined) {
		break
	}
	if got := undialed(joined, "elsewhere"); got != "127.0.0.1:7" {
		t.Errorf("nobody listened at %s", got)
	}
	if got := undialed(io.EOF, "elsewhere"); got != "elsewhere" {
		t.Errorf("nobody listened at %s", got)
	}
}
