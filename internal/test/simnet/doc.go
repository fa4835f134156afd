// Package simnet is a network in memory: streams that behave like TCP
// connections, and that can be made to misbehave.
//
// [Pipe] joins two streams; a [Network] has addresses, listeners and dialling.
// [Faults] cut, stall, corrupt and delay what passes, and split reads and
// writes at places that a seed decides, so that a failure can be repeated. All
// waiting is on channels and timers: inside a testing/synctest bubble the
// network runs on its fake clock.
package simnet
