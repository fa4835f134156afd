package server

import (
	"net"
	"testing"

	"urnic/conformance/service"
	"urnic/internal/test/ownnet"
)

// The server connects to the host alone that asks it to, and to any if it is told to: what
// is listened at here belongs to another host as far as addresses tell.
func TestConnectReachesNoOtherHost(t *testing.T) {
	const other = "192.0.2.1"
	ownnet.Run(t, func(t *testing.T) {
		b := dial(t, serving(t, Options{}))
		own := must(b.Listen(t.Context(), service.ListenArgs{}))(t)
		l, err := net.Listen("tcp", other+":0")
		check(t, err)
		defer l.Close()
		came := make(chan net.Conn, 1)
		go func() {
			defer close(came)
			if c, err := l.Accept(); err == nil {
				came <- c
			}
		}()
		a := dial(t, serving(t, Options{}))
		_, err = a.Connect(t.Context(), service.ConnectArgs{Address: l.Addr().String()})
		refused(t, err, service.CodeForbidden)
		qp := must(a.Connect(t.Context(), service.ConnectArgs{Address: own.Address}))(t).QP
		must(a.Connected(t.Context(), qp, patience))(t) // had it called the other, that would be there by now
		select {
		case c := <-came:
			t.Fatalf("%v has come", c.RemoteAddr())
		default:
		}
		anywhere := dial(t, serving(t, Options{ConnectAnywhere: true}))
		must(anywhere.Connect(t.Context(), service.ConnectArgs{Address: l.Addr().String()}))(t)
		c, is := <-came
		if !is {
			t.Fatal("nobody has come")
		}
		check(t, c.Close())
	}, other)
}
