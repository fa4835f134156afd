package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
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

// Ports that reservePort gives are not those that the kernel gives to outgoing connections.
const firstPort, lastPort = 10000, 31999

// reservePort returns a port at which nobody listens, and what gives it back. The port is reserved as by the tests of urnic
// (internal/test/loopback, which this module can't import): by a UDP socket that nobody sends to, at 127.254.H.L:9999 for port
// H*256+L.
func reservePort() (port int, release func(), err error) {
	for range 1000 {
		port = firstPort + rand.IntN(lastPort-firstPort+1)
		hold, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 254, byte(port>>8), byte(port)), Port: 9999})
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err == nil {
			return port, func() { _ = hold.Close() }, l.Close()
		}
		_ = hold.Close()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return 0, nil, err
		}
	}
	return 0, nil, errors.New("1000 ports are all taken")
}
