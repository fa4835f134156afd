// Package secure is what Rx asks of a security class: the interfaces between the protocol
// machine and what challenges, answers and protects.
//
// The security index of a connection names its class. Index 0 is null security, which
// needs no code: a nil [Client] or [Server]. Package rxkad is index 2.
//
// A client makes a [Client] of each set of credentials, and a server a [Server] of its
// keys. The machine asks them for one [ClientConn] or [ServerConn] for each connection.
// Those carry out no I/O and keep no time of their own.
package secure
