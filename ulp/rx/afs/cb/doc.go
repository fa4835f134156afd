// Package cb is the interface that AFS's file servers call at their clients: to break a
// promise when a file has changed, and to learn who a client is.
//
// A program that asks a file server serves it at the address from which it asks, or its calls
// fail: OpenAFS's server calls a new client before it answers. [NewMux] is enough for that. A
// [Client] calls such a program.
package cb
