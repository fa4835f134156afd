//go:build interop

package interop

import (
	"io"
	"net"
	"testing"
)

// A door is a port of this machine by which one of a guest is reached, while it is open. QEMU's
// own ports take connections also while the guest boots, which then sees them late: of one that
// has been given up meanwhile siw takes the end for that of its listener, which is gone then.
type door struct {
	address  string // of the door, also while it is shut
	to       string
	listener net.Listener
}

// openDoor opens a door to an address, until the test ends.
func openDoor(t *testing.T, to string) *door {
	t.Helper()
	d := &door{address: "127.0.0.1:0", to: to}
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.shut() }) // it may be
	return d
}

func (d *door) open() (err error) {
	if d.listener, err = net.Listen("tcp", d.address); err != nil {
		return err
	}
	d.address = d.listener.Addr().String()
	go func(l net.Listener) {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it is shut
			}
			go d.lead(conn.(*net.TCPConn))
		}
	}(d.listener)
	return nil
}

// shut lets nobody in any more. Who is in stays.
func (d *door) shut() error { return d.listener.Close() }

// lead passes on what comes from either side, until both have ended.
func (d *door) lead(in *net.TCPConn) {
	defer func() { _ = in.Close() }()
	conn, err := net.Dial("tcp", d.to)
	if err != nil {
		return // it sees its connection end
	}
	out := conn.(*net.TCPConn)
	defer func() { _ = out.Close() }()
	back := make(chan struct{})
	go func() {
		defer close(back)
		pass(in, out)
	}()
	pass(out, in)
	<-back
}

// pass passes on what one side sends, and its end. A connection that breaks has ended on both.
func pass(to, from *net.TCPConn) {
	_, _ = io.Copy(to, from)
	_ = to.CloseWrite()
}
