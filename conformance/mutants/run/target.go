package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// A target is a mutant that runs.
type target struct {
	address string // of the test service
	rpc     string // of the server of RPC-over-RDMA
	stdin   io.WriteCloser
	stderr  bytes.Buffer
	ended   chan struct{} // closed when it has
	err     error         // how, to be read after that
}

// farewell is how long a target may take to end: one with a fault may not be able
// to.
const farewell = 3 * time.Second

// startTarget starts a binary with arguments and waits until it listens. The context ends it.
func startTarget(ctx context.Context, binary string, args ...string) (*target, error) {
	t := &target{ended: make(chan struct{})}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stderr = &t.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.stdin = stdin
	cmd.Cancel = stdin.Close // with which it ends by itself
	cmd.WaitDelay = farewell // or is killed
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		t.err = cmd.Wait()
		close(t.ended)
	}()
	t.address, t.rpc, _ = strings.Cut(strings.TrimSpace(line), " ")
	if readErr != nil {
		_ = stdin.Close() // it has ended, or is about to
		<-t.ended
		return nil, fmt.Errorf("it does not start: %w: %s", t.err, t.lastWords())
	}
	return t, nil
}

// call has the target's client of RPC-over-RDMA connect to an address.
func (t *target) call(address string) error {
	_, err := fmt.Fprintln(t.stdin, address)
	return err
}

// stop ends the target. It returns an error if it had ended before, by a crash.
func (t *target) stop(kill context.CancelFunc) error {
	select {
	case <-t.ended:
		return fmt.Errorf("it has crashed: %w: %s", t.err, t.lastWords())
	default:
	}
	kill()
	<-t.ended
	return nil
}

// lastWords returns the first line of what the target has said of its end.
func (t *target) lastWords() string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.stderr.String()), "\n")
	return first
}
