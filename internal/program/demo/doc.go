// Package demo exercises every verb between two emulated RNICs over loopback
// TCP and checks each byte that moves. It is what `urnic demo` runs, and a
// program to read for those who begin: each step is a small function.
package demo
