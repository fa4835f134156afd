// Package rxperf is the load generator of Rx. It speaks the protocol of rxperf, the program
// of OpenAFS, which can be the peer on either side.
//
//	endpoint, err := rxudp.Open(ctx, rxudp.Config{Addr: addr, Services: []rx.Service{rxperf.Service()}})
//
//	result, err := rxperf.Run(ctx, endpoint, server, rx.DialConfig{}, rxperf.Options{
//		Command: rxperf.RPC, Send: 4, Receive: 4, Calls: 10000,
//	})
//
// Both need nothing of an endpoint but that it is one, so they run over UDP and over an
// RNIC. Package rawudp measures UDP without Rx between the same two sides.
//
// # The protocol
//
// It is service 147, at UDP port 7009. A request begins with four words, which are big-endian
// as all of them are:
//
//	 0 version(4)     3
//	 4 command(4)     0 send, 1 receive, 3 rpc, 4 file
//	 8 read size(4)   of the calls that the server reads with, in bytes
//	12 write size(4)  of those that it writes with
//
// What follows differs by the command:
//
//	command  then                                    the reply
//	send     bytes(4), so many bytes                 the word 00004711
//	receive  bytes(4)                                so many bytes, 00004711
//	rpc      bytes(4), reply(4), so many bytes       so many bytes as reply, 00004711
//	file     n(4), n words, what they say            what they say
//
// The words of a file are how many words of data go each way: 0 turns the direction, which
// is to the server at first. Its reply has no word at the end.
//
// A server of OpenAFS aborts with -1 whatever is wrong with a request; this one with the codes
// of the RPC layer.
package rxperf
