// Package rpcbindtest runs tests that want a host of their own for rpcbind, which has just
// one port: in a process with namespaces of its own, beside the distribution's rpcbind if
// need be. There are such on Linux only.
//
//	func TestWithService(t *testing.T) {
//		if !rpcbindtest.Alone(t, "rpcbind") {
//			return
//		}
//		rpcbindtest.Start(t)
//	}
package rpcbindtest
