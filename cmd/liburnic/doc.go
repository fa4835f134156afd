// Command liburnic is the Go half of the drop-in library, liburnic-engine.so: package
// dropin, exported to C. Build it with
//
//	make liburnic
//
// or, without the changes to Go's runtime that the script build describes, with
//
//	go build -buildmode=c-shared -o liburnic-engine.so ./cmd/liburnic
//
// The other half is C, in the directory shim: liburnic.so, which programs see. It loads
// the engine when a program first asks for a device. The files shim/view*.c alone are
// liburnic-sysfs.so, which shows programs in mode replace the device in sysfs. The header engine.h is the contract
// between the two; tests holds programs in C that call each exported symbol.
package main
