package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// errServerEnded says that a server has ended before it listened.
var errServerEnded = errors.New("the server has ended before it listened")

// waitListening waits until a socket listens at a port. It does not connect,
// which a server that serves one client would take for the client.
func waitListening(ctx context.Context, port int, ended <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, grace, fmt.Errorf("nothing listens at port %d after %v", port, grace))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		is, err := listens(port)
		if is || err != nil {
			return err
		}
		select {
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("%w: %w", errServerEnded, err)
			}
			return errServerEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// listens reports whether a socket of this machine listens at a port.
func listens(port int) (bool, error) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) && name != "/proc/net/tcp" {
			continue // no IPv6
		}
		if err != nil {
			return false, fmt.Errorf("to see when a server listens: %w", err)
		}
		if listed(string(table), port) {
			return true, nil
		}
	}
	return false, nil
}

// listed looks for a listener in a table of the kernel's: its second word is
// address:port in hexadecimal, its fourth the state.
func listed(table string, port int) bool {
	const listen = "0A"
	for line := range strings.SplitSeq(table, "\n") {
		words := strings.Fields(line)
		if len(words) < 4 || words[3] != listen {
			continue
		}
		_, digits, _ := strings.Cut(words[1], ":")
		if p, err := strconv.ParseUint(digits, 16, 16); err == nil && int(p) == port {
			return true
		}
	}
	return false
}

// freePort returns a port at which nobody listens.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
