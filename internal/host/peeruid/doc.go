// Package peeruid says which user of this host owns the other end of a TCP
// connection.
//
// TCP carries no credentials. But if both ends are sockets of this host, the
// kernel knows who created the other one. The package asks it, by a sock_diag
// query, or by /proc/net/tcp where there is no sock_diag.
//
// The answer is the user that created the socket. A set-uid program that hands
// a socket to somebody, and a proxy that connects for others, answer for them.
// Only sockets of the caller's own network namespace are found: what runs in
// another one, such as a container, has no user here.
//
// Ask once, when a connection has been accepted, and keep the answer. A peer
// that has closed its socket has no owner any more.
package peeruid
