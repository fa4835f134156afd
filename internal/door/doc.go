// Package door is the way of the drop-in library to what package rnic does for it alone.
//
// Programs in C that come to urnic through libibverbs and librdmacm were written for hardware,
// mostly for InfiniBand's, and count on more than the verbs of iWARP promise: that a message
// waits for a receive, that a queue pair which is reset forgets its completions, that the
// state SQD exists. No program in Go needs that, so it is not in the API of rnic, whose users
// would have to read past it. The drop-in library is no part of rnic either, and Go lets it
// import nothing of rnic/internal. So rnic leaves its half in internal/door/latch, and this
// package gives it types: policies to be set on attributes before an object is created, and
// operations that are methods of rnic in all but name.
//
// Only internal/dropin, cmd/liburnic and tests may import it, which a lint rule holds.
package door
