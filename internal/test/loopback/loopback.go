package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
)

const (
	// Networks are 127.firstNet.0.0 to 127.lastNet.255.0, each with 256 addresses.
	firstNet, lastNet = 16, 239

	// Ports are below those that the kernel gives to outgoing connections (32768 on Linux, 49152
	// elsewhere), and above most that services are registered for.
	firstPort, lastPort = 10000, 31999

	// tries is how often a network or a port that is taken gives way to another one.
	tries = 1000
)

// holderPort is the port of the sockets that reserve: the last address of a network and, for port
// 0xppqq, the address 127.254.pp.qq.
const holderPort = 9999

// A Net is a network of 256 loopback addresses that belongs to one test.
type Net struct{ a, b byte }

// Of returns a network that belongs to a test until that ends. Each call returns another one.
// The test fails if there is none.
func Of(tb testing.TB) Net {
	tb.Helper()
	n, hold, err := reserveNet()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = hold.Close() })
	return n
}

// Process returns a network that belongs to this process until it ends, for what has no test at
// hand, such as an example. It panics if there is none.
func Process() Net { return process() }

var process = sync.OnceValue(func() Net {
	n, hold, err := reserveNet()
	if err != nil {
		panic(err)
	}
	untilTheEnd(hold)
	return n
})

// held are the sockets of Process's network and of ProcessPort: one that nothing refers to would
// be closed.
var held struct {
	sync.Mutex
	sockets []*net.UDPConn
}

func untilTheEnd(c *net.UDPConn) {
	held.Lock()
	defer held.Unlock()
	held.sockets = append(held.sockets, c)
}

// Addr returns an address of the network, from 0 to 253: 127.x.y.i.
func (n Net) Addr(i byte) netip.Addr { return netip.AddrFrom4([4]byte{127, n.a, n.b, i}) }

func (n Net) holder() netip.AddrPort { return netip.AddrPortFrom(n.Addr(254), holderPort) }

func holder(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 254, byte(port >> 8), byte(port)}), holderPort)
}

// Port returns a port, of TCP and UDP, that is free at all loopback addresses and belongs to a
// test until that ends. Nobody listens there before the test does. The test fails if there is
// none.
func Port(tb testing.TB) uint16 {
	tb.Helper()
	port, hold, err := reservePort()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = hold.Close() })
	return port
}

// ProcessPort is Port for what has no test at hand, such as TestMain: the port belongs to this
// process until it ends.
func ProcessPort() (uint16, error) {
	port, hold, err := reservePort()
	if err != nil {
		return 0, err
	}
	untilTheEnd(hold)
	return port, nil
}

func reserveNet() (Net, *net.UDPConn, error) {
	for range tries {
		n := Net{byte(firstNet + rand.IntN(lastNet-firstNet+1)), byte(rand.IntN(256))}
		hold, err := listen(n.holder())
		if err == nil {
			return n, hold, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return Net{}, nil, err
		}
	}
	return Net{}, nil, fmt.Errorf("loopback: %d networks are all taken", tries)
}

func reservePort() (uint16, *net.UDPConn, error) {
	for range tries {
		port := uint16(firstPort + rand.IntN(lastPort-firstPort+1))
		hold, err := listen(holder(port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		if free(port) {
			return port, hold, nil
		}
		_ = hold.Close()
	}
	return 0, nil, fmt.Errorf("loopback: %d ports are all taken", tries)
}

func listen(at netip.AddrPort) (*net.UDPConn, error) {
	return net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
}

// free reports whether nobody has a socket at a port, at any address.
func free(port uint16) bool {
	at := &net.TCPAddr{Port: int(port)}
	for _, version := range []string{"4", "6"} {
		l, err := net.ListenTCP("tcp"+version, at)
		if err == nil {
			_ = l.Close()
		}
		c, errUDP := net.ListenUDP("udp"+version, &net.UDPAddr{Port: int(port)})
		if errUDP == nil {
			_ = c.Close()
		}
		if errors.Is(err, syscall.EADDRINUSE) || errors.Is(errUDP, syscall.EADDRINUSE) {
			return false // any other error says that the machine has no such addresses
		}
	}
	return true
}
