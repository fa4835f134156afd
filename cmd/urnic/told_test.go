package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-multierror"

	"urnic/rnic"
)

// Of an error of a command that was interrupted, nothing is told but what is marked.
func TestWhatIsToldOfAnInterruptedCommand(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	full := alwaysTell(&os.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		err           error
		want          string // of an interrupted command
		status, serve int
	}{
		{context.Canceled, "interrupted", 130, 0},
		{reset, "interrupted", 130, 0},
		{&rnic.OpError{Op: "receive", Object: "QP 1", Err: reset}, "interrupted", 130, 0},
		{errors.Join(reset, context.Canceled), "interrupted", 130, 0},
		{advise(reset, "the peer has gone"), "interrupted", 130, 0},
		{full, "interrupted: write f: no space left on device", 130, 1},
		{errors.Join(reset, fmt.Errorf("--pcap: %w", full)), "interrupted: --pcap: write f: no space left on device", 130, 1},
		{errors.Join(full, context.Canceled), "interrupted: write f: no space left on device", 130, 1},
		{fmt.Errorf("both: %w", errors.Join(reset, full)), "interrupted: write f: no space left on device", 130, 1},
		{advise(full, "the disk is full"), "interrupted: the disk is full", 130, 1},
		{multierror.Append(reset, full, alwaysTell(errors.New("and more"))), "interrupted: write f: no space left on device; and more", 130, 1},
		{&statusError{errors.New("has failed"), 3}, "has failed", 3, 1},
		{errors.Join(reset, &statusError{reset, 3}), text(reset), 3, 1},
		{&statusError{context.Canceled, 3}, "interrupted", 130, 0},
		{unlessEnded(t.Context(), reset), "interrupted: " + text(reset), 130, 1},
		{unlessEnded(ended, reset), "interrupted", 130, 0},
	} {
		if got := reason(ended, tt.err); got != tt.want {
			t.Errorf("%q: %q; want %q", text(tt.err), got, tt.want)
		}
		if got := reason(t.Context(), tt.err); got != text(tt.err) {
			t.Errorf("%q: %q, without an interruption", text(tt.err), got)
		}
		failed := served(t.Context(), tt.err)
		if got := reason(ended, failed); !interrupted(ended, tt.err) && got != text(tt.err) {
			t.Errorf("%q: %q of a server that failed before it was interrupted", text(tt.err), got)
		}
		got := served(ended, tt.err)
		own, is := errors.AsType[*statusError](got)
		if is != (tt.serve != 0) || is && own.status != tt.serve || is == (got == nil) {
			t.Errorf("%q: %v of a server", text(tt.err), got)
		}
	}
	if served(ended, nil) != nil || reason(ended, nil) != "" || alwaysTell(nil) != nil {
		t.Error("an error without one")
	}
}

// A failing reader ends the context, and fails as a connection does that this has reset.
type failing struct{ interrupt context.CancelFunc }

func (f failing) Read([]byte) (int, error) {
	f.interrupt()
	return 0, syscall.ECONNRESET
}

// An error that an interruption has caused is not told, whether the command has looked at its
// context or not. A log says more.
func TestWhatAnInterruptionCausesIsNotTold(t *testing.T) {
	s := startNFSD(t, "--memory", "--squash", "none")
	defer s.stop(t)
	url := s.urls("/memory/f")["tcp"]
	for _, tt := range []struct{ args, want string }{
		{"dissect -", "urnic: interrupted\n"},
		{"dissect --json -", "urnic: interrupted\n"},
		{"nfs put - " + url, "urnic: interrupted: /memory/f is incomplete on the server\n"},
		{"nfs put --log-level debug - " + url, "urnic: interrupted: /memory/f is incomplete on the server\n"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var out, errOut bytes.Buffer
		status := run(ctx, strings.Fields(tt.args), failing{cancel}, &out, &errOut)
		told, more, _ := strings.Cut(errOut.String(), " level=DEBUG ")
		debug := strings.Contains(tt.args, "debug")
		if debug {
			told = told[:strings.Index(told, "\n")+1]
		}
		if status != statusInterrupted || told != tt.want || debug != strings.Contains(more, "msg=cause") {
			t.Errorf("%s: status %d, stderr %q", tt.args, status, errOut.String())
		}
	}
}

// Output that was lost is told of although the command was interrupted.
func TestLostOutputIsToldOfAnInterruptedCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := newFull()

	go func() {
		<-out.tried
		cancel()
	}()
	var errOut bytes.Buffer
	status := run(ctx, []string{"perf", "local", "--duration", "1h"}, nil, out, &errOut)
	if status != statusInterrupted || errOut.String() != "urnic: interrupted: part of standard output was lost: no space left on device\n" {
		t.Errorf("status %d, stderr %q", status, errOut.String())
	}
}

// So is a recording that has holes.
func TestLostRecordingIsToldOfAnInterruptedCommand(t *testing.T) {
	f, err := createRecording(filepath.Join(t.TempDir(), "x.pcapng"))
	do(t, err)
	dev, err := rnic.Open(rnic.Config{Record: f})
	do(t, err, f.Close())
	l, err := dev.Listen(t.Context(), "127.0.0.1:0")
	do(t, err)
	c, err := net.Dial("tcp", l.Addr().String())
	do(t, err)
	_, err = c.Write(make([]byte, 20)) // no Request: it is closed
	do(t, err)
	_, err = io.Copy(io.Discard, c)
	do(t, err, c.Close())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := toTell(ended, dev.Close()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the device says %v", err)
	}
}
