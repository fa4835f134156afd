// Command target is what mutants are built as: the test service over the stack, and
// as little else as can be, so that it is built quickly.
//
// It prints the address at which it listens, and ends when its standard input does.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"urnic/conformance/service"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "target:", err)
		os.Exit(1)
	}
}

func run(stdin io.Reader, stdout io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // whatever ends it
		cancel()
	}()
	if _, err := fmt.Fprintln(stdout, l.Addr()); err != nil {
		return err
	}
	return service.Serve(ctx, l, service.Options{})
}
