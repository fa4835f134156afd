// Package rxrelay passes Rx calls through to another server: it is a server and a client at
// once, and knows nothing of the services.
//
//	rx.Service{ID: 52, Handler: rxrelay.To(conn)}
//
// The request is passed on as it comes, and so is the reply: neither is held whole. A code by
// which one side aborts the call reaches the other one. Both sides may have different
// transports and security classes.
//
// A server that calls its client back, as AFS's file server does, calls the relay's endpoint.
// That needs a service there, which relays to the client: see [New] and rx.ServerCall.Peer.
package rxrelay
