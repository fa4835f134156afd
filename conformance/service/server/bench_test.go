package server

import (
	"net"
	"testing"

	"urnic/conformance/service"
)

// BenchmarkSession is what a case costs: a session with memory, and a connection
// to it.
func BenchmarkSession(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	served := make(chan error, 1)
	go func() { served <- Serve(b.Context(), l, Options{}) }()
	for b.Loop() {
		c := must(service.Dial(b.Context(), l.Addr().String()))(b)
		listener := must(c.Listen(b.Context(), service.ListenArgs{Recvs: service.Recvs(64)}))(b)
		must(c.Register(b.Context(), service.RegisterArgs{Length: 4096, Access: []string{service.LocalWrite, service.RemoteWrite}}))(b)
		qp := must(c.Connect(b.Context(), service.ConnectArgs{Address: listener.Address}))(b)
		must(c.Connected(b.Context(), qp.QP, patience))(b)
		must(c.Accepted(b.Context(), listener.Listener, patience))(b)
		check(b, c.Close())
	}
	l.Close()
	<-served // that the listener was closed
}
