// Package rping is the ping-pong of rdma-core's rping, on urnic's verbs and
// compatible with it on the wire.
//
// One round: the client advertises a buffer with the ping data by a Send of 16
// bytes; the server fetches it by RDMA Read and says so by a Send; the client
// advertises a second buffer; the server puts the data there by RDMA Write and
// says so by a Send; the client compares the two.
//
//	client                                server
//	  Send (advert of the ping data)  ──►
//	                                  ◄── RDMA Read Request
//	  RDMA Read Response              ──►
//	                                  ◄── Send (go ahead)
//	  Send (advert of the sink)       ──►
//	                                  ◄── RDMA Write
//	                                  ◄── Send (done)
//
// [Client] and [Server] each serve one connected queue pair.
package rping
