// Liburnic-engine.so is the Go half of the drop-in library: package dropin, exported
// to C. Build it with
//
//	go build -buildmode=c-shared -o liburnic-engine.so ./cmd/liburnic
//
// The other half is C, in cmd/liburnic/shim: liburnic.so, which programs see.
// engine.h is the contract between them.
package main

func main() {}
