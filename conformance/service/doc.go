// Package service is the protocol of the test service, and its client. Over a control
// connection, the client makes another program do with an RNIC what a conformance
// case needs of its target. docs/conform-service.md specifies the protocol, so that
// makers of other RNICs can implement it too. Nothing in it depends on Go.
//
// One TCP connection is one session. It has its own device. When the connection ends,
// all that the session has opened is closed. The client sends a request as a line of
// JSON and waits for the answer, also a line:
//
//	{"id":1,"op":"listen","args":{"private_data":"0102"}}
//	{"id":1,"result":{"listener":1,"address":"127.0.0.1:40123"}}
//
// [Dial] returns a [Client], which has a method for each operation. Package server,
// below this one, is the server over package rnic. The tester links only the client,
// and so no code of the stack that it tests.
package service
