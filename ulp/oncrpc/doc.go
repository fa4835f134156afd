// Package oncrpc is version 2 of the Open Network Computing remote procedure call
// protocol, RFC 5531: messages, clients and servers, and TCP.
//
// A Client makes calls over connections to one server, of which it makes a new one when
// one is lost:
//
//	c := oncrpc.NewClient(oncrpc.OverTCP("server:2049", oncrpc.TCPConfig{}), oncrpc.ClientConfig{})
//	defer c.Close()
//	err := c.Call(ctx, &oncrpc.Invocation{
//		Program: 100003, Version: 3, Procedure: 1,
//		Args:    args.Encode,
//		Results: results.Decode, ResultsMost: 112,
//	})
//
// A Server carries out calls of programs, whatever transport they come by:
//
//	s := oncrpc.NewServer(oncrpc.ServerConfig{})
//	err := s.Register(&oncrpc.Program{Number: 100003, Name: "nfs", Versions: versions})
//	go s.ServeTCP(ctx, listener)
//	...
//	err = s.Shutdown(ctx)
//
// Transports are TCPConn and Server.ServeTCP here, and package ulp/rpcrdma. What they owe
// clients and servers is said at Conn and Service: they move streams of package xdr, and
// know by them where bulk data lies.
//
// Below that, a Call or a Reply is encoded in front of the procedure's own data, into the
// same stream, and decoded in front of it:
//
//	var e xdr.Encoder
//	err := (&oncrpc.Call{XID: 7, Program: 100003, Version: 3, Procedure: 6}).Encode(&e)
//	args.Encode(&e)
//	err = oncrpc.WriteRecord(conn, &e)
//
// # Calls that are sent again
//
// A call whose connection ends before its reply arrives is sent again, with its XID, on
// the next connection: it is unknown whether it was carried out. For procedures that must
// be carried out Once, a server keeps replies for a while, and answers a call that it
// knows with the same reply. It identifies calls by XID, procedure, the caller's host, and
// a checksum of the whole call.
//
// # What peers can do
//
// Peers are not trusted. Each record has a limit, for which memory is taken as bytes
// come; a connection has limits of calls and of bytes, held by calls and by replies that
// it does not take, and all connections have one together; one that sends nothing, or
// stops in a call, or takes nothing, is closed in time. A handler that panics is a call
// that has failed. See ServeTCPConfig, ServerConfig and TCPConfig.
package oncrpc
