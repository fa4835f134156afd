package loopback

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
)

// What is reserved can't be reserved a second time, and can once its test has ended.
func TestNothingIsGivenTwice(t *testing.T) {
	var lent Net
	var port uint16
	t.Run("while the test runs", func(t *testing.T) {
		lent, port = Of(t), Port(t)
		for _, at := range []netip.AddrPort{lent.holder(), holder(port)} {
			if c, err := listen(at); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("%v: %v, %v; want that it is in use", at, c, err)
			}
		}
		if n := Of(t); n == lent {
			t.Errorf("network %v given twice", n.Addr(0))
		}
	})
	for _, at := range []netip.AddrPort{lent.holder(), holder(port)} {
		c, err := listen(at)
		if err != nil {
			t.Fatalf("after the test: %v", err)
		}
		_ = c.Close()
	}
}

func TestProcessHasOneNetwork(t *testing.T) {
	first, again, other := Process(), Process(), Of(t)
	if first != again || first == other {
		t.Errorf("networks %v, %v, %v", first, again, other)
	}
}

func TestReservedPortIsFree(t *testing.T) {
	port := Port(t)
	for _, host := range []string{"127.0.0.1", Of(t).Addr(1).String()} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if free(port) {
			t.Errorf("port %d is said to be free while somebody listens at %s", port, host)
		}
	}
}

func TestPortOfADatagramSocketIsNotFree(t *testing.T) {
	port := Port(t)
	c, err := listen(netip.AddrPortFrom(Of(t).Addr(1), port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if free(port) {
		t.Error("said to be free")
	}
}

func TestPortOfTheProcessIsHeld(t *testing.T) {
	port, err := ProcessPort()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := listen(holder(port)); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v, %v; want that it is in use", c, err)
	}
}
