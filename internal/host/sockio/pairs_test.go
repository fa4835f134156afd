package sockio

import (
	"net"
	"os"
	"testing"
	"testing/synctest"

	"urnic/internal/test/hang"
)

// A kind is a way to make the two ends of a connection.
type kind struct {
	name     string
	memory   bool // runs in a bubble
	halfOpen bool // can be half closed
	open     func(t *testing.T) (a, b net.Conn)
}

var kinds = []kind{
	{"tcp4", false, true, func(t *testing.T) (a, b net.Conn) { return dialTCP(t, "127.0.0.1:0") }},
	{"tcp6", false, true, func(t *testing.T) (a, b net.Conn) { return dialTCP(t, "[::1]:0") }},
	{"goroutine over tcp", false, true, func(t *testing.T) (a, b net.Conn) {
		a, b = dialTCP(t, "127.0.0.1:0")
		return hidden{a.(*net.TCPConn)}, hidden{b.(*net.TCPConn)}
	}},
	{"goroutine over pipe", true, false, func(*testing.T) (a, b net.Conn) { return net.Pipe() }},
}

// hidden is a TCP connection that New does not know as one.
type hidden struct{ *net.TCPConn }

// dialTCP connects two sockets over loopback.
func dialTCP(t testing.TB, address string) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("no loopback at %s: %v", address, err)
	}
	defer l.Close()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return dialled.(*net.TCPConn), accepted.(*net.TCPConn)
}

// eachKind runs f with the two ends of a stream of each kind.
func eachKind(t *testing.T, f func(t *testing.T, k kind, a, b Stream)) {
	t.Helper()
	for _, k := range kinds {
		run := func(t *testing.T) {
			ac, bc := k.open(t)
			if !k.memory { // a bubble notices by itself
				defer hang.Guard(t, func() {
					_ = ac.Close()
					_ = bc.Close()
				})()
			}
			a, b := New(ac), New(bc)
			defer func() {
				_ = a.Abort()
				_ = b.Abort()
			}()
			f(t, k, a, b)
		}
		t.Run(k.name, func(t *testing.T) {
			if k.memory {
				synctest.Test(t, run)
				return
			}
			run(t)
		})
	}
}

// pattern returns n octets that tell their place, from the given one on.
func pattern(from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		at := from + i
		b[i] = byte(at ^ at>>8 ^ at>>16)
	}
	return b
}
