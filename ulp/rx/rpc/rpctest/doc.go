// Package rpctest has calls in memory: an interface's clients and handlers can be tested with
// each other without endpoints.
//
//	client := &rpc.Client{Begin: rpctest.Serve(mux)}
//
// They conform to Rx's rules: the reply follows the request, an abort by either side ends both
// directions with its code, and a writer waits for a slow reader.
package rpctest
