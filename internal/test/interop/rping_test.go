//go:build interop

package interop

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/loopback"
)

const rounds = 1000

// settle is how long our initiators wait before their first FPDU: siw is slow to
// turn a socket over from start-up to full operation, in an emulated guest above
// all, and does not notice what comes before.
const settle = 300 * time.Millisecond

// sizesToSIW are sizes of ping data of our client; rdma-core's own rping takes 27
// to 65,535.
var (
	sizesToSIW   = []int{16, 64, 1024, 4096, 16384, 65535}
	sizesFromSIW = []int{27, 64, 1024, 4096, 16384, 65535}
)

// wantRping checks the messages of so many rounds.
func wantRping(t testing.TB, s summary, n int) {
	t.Helper()
	if len(s.Connections) != 1 {
		t.Fatalf("%d connections", len(s.Connections))
	}
	for name, per := range map[string]int{"send": 4, "read-request": 1, "read-response": 1, "rdma-write": 1, "terminate": 0} {
		if got := s.Connections[0].Messages[name]; got != per*n {
			t.Errorf("%d messages %s; want %d", got, name, per*n)
		}
	}
}

func TestRpingOfOursAtSIWsServer(t *testing.T) {
	p := theGuest.start(t, fmt.Sprintf("rping -s -P -a 0.0.0.0 -p %d -S 65535 -v", portRping))
	theGuest.listens(t, portRping)
	defer p.end()
	for _, size := range sizesToSIW {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			withSIW(t, server, func(t testing.TB) { rpingClient(t, theGuest.address(portRping), size, rounds) })
		})
	}
	for _, policy := range []string{"prefer", "require", "off"} {
		t.Run("crc "+policy, func(t *testing.T) {
			withSIW(t, server, func(t testing.TB) {
				s := rpingClient(t, theGuest.address(portRping), 5001, 100, "--crc", policy)
				if want := policy != "off"; s.Connections[0].MPA.CRC != want {
					t.Errorf("CRCs are in use: %v; with --crc %s they should be: %v", !want, policy, want)
				}
			})
		})
	}
}

func TestRpingOfOursAtSIWsServerOverIPv6(t *testing.T) {
	p := theGuest.start(t, fmt.Sprintf("rping -s -P -a fec0::15 -p %d -S 65535 -v", portRping6))
	theGuest.listens(t, portRping6)
	defer p.end()
	withSIW(t, server, func(t testing.TB) { rpingClient(t, theGuest.address(portRping6), 1024, 100) })
}

func rpingArgs(t testing.TB, address string, size, n int, more ...string) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"rping", "-c", "-a", host, "-p", port, "-C", strconv.Itoa(n), "-S", strconv.Itoa(size), "-v", "-V", "--settle", settle.String(), "--pcap", recording(t)}
	return append(args, more...)
}

// rpingClient runs our client.
func rpingClient(t testing.TB, address string, size, n int, more ...string) summary {
	t.Helper()
	out, stderr, err := urnic(t.Context(), rpingArgs(t, address, size, n, more...)...)
	if err != nil {
		t.Fatalf("urnic rping: %v: %s", err, stderr)
	}
	if got := strings.Count(out, "ping data: rdma-ping-"); got != n {
		t.Errorf("%d rounds are shown; want %d", got, n)
	}
	s := checkRecording(t, recording(t), server)
	wantRping(t, s, n)
	return s
}

func TestRpingOfSIWAtOurServer(t *testing.T) {
	for _, size := range sizesFromSIW {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			withSIW(t, client, func(t testing.TB) { rpingServer(t, "127.0.0.1", hostOfGuest, size, rounds) })
		})
	}
	for _, policy := range []string{"prefer", "off"} {
		t.Run("crc "+policy, func(t *testing.T) {
			withSIW(t, client, func(t testing.TB) {
				s := rpingServer(t, "127.0.0.1", hostOfGuest, 5001, 100, "--crc", policy)
				if want := policy != "off"; s.Connections[0].MPA.CRC != want {
					t.Errorf("CRCs are in use: %v; want %v", !want, want)
				}
			})
		})
	}
	t.Run("IPv6", func(t *testing.T) {
		withSIW(t, client, func(t testing.TB) { rpingServer(t, "::1", hostOfIPv6, 1024, 100) })
	})
}

// rpingServer runs our server for rdma-core's client.
func rpingServer(t testing.TB, listen, host string, size, n int, more ...string) summary {
	t.Helper()
	// When all is over, one thread of rping closes the event channel that another
	// one waits at; if that finds out first, it exits with -1. What counts is how
	// many rounds it has verified.
	return serveRping(t, listen, n, func(port int) {
		theGuest.run(t, fmt.Sprintf("rping -c -a %s -p %d -C %d -S %d -v -V >/tmp/rping.out; s=$?; [ $s = 0 -o $s = 255 ] && grep -c 'ping data: rdma-ping-' /tmp/rping.out | grep -qx %d", host, port, n, size, n))
	}, more...)
}

// serveRping runs our server for one client.
func serveRping(t testing.TB, listen string, n int, ping func(port int), more ...string) summary {
	t.Helper()
	port := int(loopback.Port(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	type result struct {
		out, stderr string
		err         error
	}
	done, over := make(chan result, 1), make(chan struct{})
	defer func() { // the recording is complete then
		cancel()
		<-over
	}()
	go func() {
		defer close(over)
		args := append([]string{"rping", "-s", "-a", listen, "-p", strconv.Itoa(port), "-S", "65536", "-v", "--pcap", recording(t)}, more...)
		out, stderr, err := urnic(ctx, args...)
		done <- result{out, stderr, err}
	}()
	waitFor(t, port)
	ping(port)
	r := <-done
	if r.err != nil {
		t.Fatalf("urnic rping: %v: %s", r.err, r.stderr)
	}
	if got := strings.Count(r.out, "server ping data: "); got != n {
		t.Errorf("%d rounds are shown; want %d", got, n)
	}
	s := checkRecording(t, recording(t), client)
	wantRping(t, s, n)
	return s
}

// rdma-core's rping takes 27 to 65,535 octets; peerops plays it for any number.
func TestRpingOfTheLeastAndTheMost(t *testing.T) {
	for _, size := range []int{16, 65536} {
		t.Run("from siw "+strconv.Itoa(size), func(t *testing.T) {
			withSIW(t, client, func(t testing.TB) {
				serveRping(t, "127.0.0.1", rounds, func(port int) {
					out := theGuest.run(t, fmt.Sprintf("peerops client -a %s -p %d rping %d %d", hostOfGuest, port, size, rounds))
					wantRounds(t, out)
				})
			})
		})
		t.Run("to siw "+strconv.Itoa(size), func(t *testing.T) {
			withSIW(t, server, func(t testing.TB) {
				p := theGuest.start(t, fmt.Sprintf("peerops server -a 10.0.2.15 -p %d -d none rping", portOps))
				p.expect("listening")
				rpingClient(t, theGuest.address(portOps), size, rounds)
				wantRounds(t, p.wait())
			})
		})
	}
}

func wantRounds(t testing.TB, out string) {
	t.Helper()
	if want := fmt.Sprintf("check op=rping result=ok rounds=%d", rounds); !strings.Contains(out, want) {
		t.Errorf("peerops does not say %q:\n%s", want, out)
	}
}

func TestPersistentServerServesManyClientsOfSIW(t *testing.T) {
	withSIW(t, client, func(t testing.TB) {
		port := int(loopback.Port(t))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, stderr, err := urnic(ctx, "rping", "-s", "-P", "-a", "127.0.0.1", "-p", strconv.Itoa(port), "--pcap", recording(t))
			if err != nil {
				err = fmt.Errorf("%w: %s", err, stderr)
			}
			done <- err
		}()
		waitFor(t, port)
		theGuest.run(t, fmt.Sprintf("for i in 1 2 3 4; do rping -c -a %s -p %d -C 20 -V & done; wait", hostOfGuest, port))
		cancel() // as Ctrl-C does
		if err := <-done; err != nil {
			t.Errorf("urnic rping: %v", err)
		}
		s := checkRecording(t, recording(t), client)
		if len(s.Connections) != 4 {
			t.Errorf("%d connections; want 4", len(s.Connections))
		}
	})
}
