// Package bos is the interface of AFS's basic overseer server, which runs the server processes
// of a machine: which there are, how they are, and what the machine's cell, administrators and
// keys are.
//
// [NewMux] serves a [Machine], which is in memory: nothing is run.
package bos
