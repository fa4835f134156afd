package profile

import (
	"net"
	"testing"
	"time"

	"urnic/conformance"
)

// Of several connections that wait, those before the last one have been given up.
func TestRawAcceptsTheNewestConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var last net.Conn
	for range 3 {
		if last, err = net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer last.Close()
	}
	session, err := NewRaw("", l.(*net.TCPListener), time.Minute).Begin(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := session.Accept(t.Context(), conformance.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.RemoteAddr().String() != last.LocalAddr().String() {
		t.Errorf("accepted %v; want %v", c.RemoteAddr(), last.LocalAddr())
	}
}
