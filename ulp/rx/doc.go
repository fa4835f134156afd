// Package rx is Rx, the remote procedure call protocol of AFS: calls that are a stream of
// bytes to a server and a stream back, over UDP with OpenAFS and Linux as peers, or over
// the verbs of an RNIC. docs/rx.md has the protocol, and where its peers differ.
//
// An [Endpoint] is a UDP socket (package rxudp) or the listener of an RNIC (package rxrdma).
// It makes connections to services, and serves those that it was opened with. What is
// written here runs on both.
//
// A client makes a connection and begins calls on it. Up to four run at the same time:
//
//	e, err := rxudp.Open(ctx, rxudp.Config{})
//	conn, err := e.Dial(ctx, addr, service, rx.DialConfig{})
//	call, err := conn.Begin(ctx)
//	_, err = call.Write(request)
//	err = call.CloseWrite()
//	reply, err := io.ReadAll(call)
//	err = call.Close()
//
// A server has services, each with a [Handler]:
//
//	rxudp.Open(ctx, rxudp.Config{Addr: addr, Services: []rx.Service{{ID: 2077, Handler: handler}}})
//
// Operations with typed arguments are in package rpc, whose Mux is a Handler, and the
// interfaces of AFS below package afs. Security classes are in package secure, and the one
// that AFS uses in rxkad.
//
// The protocol over UDP is package machine, which has no I/O.
package rx
