package main

// main is never called: who loads the library calls what it exports.
func main() {}
