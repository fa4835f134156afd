// Package rds is Reliable Datagram Sockets, version 3.1: datagrams of up to 1 MiB between
// ports of nodes, delivered once and in order for each pair of sockets, across the loss of
// connections. Its peers are Linux's rds_tcp and rds_rdma, and itself; docs/rds.md has the
// wire, and where Linux differs.
//
// A [Node] has an address. It keeps one connection to each peer node, makes it when it is
// first needed, and makes it again whenever it is lost. A [Socket] is bound to a port of a
// node, and sends to any port of any node; it is a net.PacketConn, too.
//
//	node, err := rds.Open(ctx, rds.Config{Addr: addr, Transports: []rds.Transport{&rds.TCP{}}})
//	socket, err := node.Bind(4000)
//	err = socket.SendTo(ctx, data, rds.Addr{Host: peer, Port: 4000})
//	n, from, err := socket.RecvFrom(ctx, buf)
//
// A message that a call has accepted is delivered, however long the peer can't be reached,
// unless an [Event] says that it is lost: because the peer has restarted, or the socket was
// closed. Delivered means that it is in the queue of the peer's socket, or that the peer
// has no such socket.
//
// Over iWARP, a socket can open memory to a peer by an [MR]. The peer's program carries out an
// [Operation] on it with the MR's cookie, which a message has brought, and before a message
// that says so. Neither needs the other's program meanwhile.
//
// The protocol itself is package machine, which has no I/O. This package runs it: what is
// carried out here is dialing, reading, writing, and waking those that wait. All connections
// of a node share one lock, which is not held during a system call.
package rds
