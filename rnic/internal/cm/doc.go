// Package cm is the part of connection management that is independent of verbs and of the
// lower layer: which connections may wait for their request ([Arrivals]), and how long a
// request waits for its answer ([Pending]).
package cm
