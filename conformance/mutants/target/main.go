// Command target is what mutants are built as: the test service over the stack, a server
// and a client of RPC-over-RDMA, and as little else as can be, so that it is built quickly.
//
// With -llp rdp the RNIC of the test service is on RDP; the others are on TCP all the same.
//
// It prints the addresses at which service and server listen. The client connects to the
// address that is the first line of its standard input; it ends when that does.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"urnic/conformance/mutants/rpcpeer"
	"urnic/conformance/service/server"
	"urnic/rnic"
	"urnic/ulp/rdp/rdpllp"
	"urnic/ulp/rpcrdma"
)

func main() {
	llp := flag.String("llp", "tcp", "what the test service's RNIC is on: tcp or rdp")
	flag.Parse()
	if err := run(*llp, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "target:", err)
		os.Exit(1)
	}
}

func run(llp string, stdin io.Reader, stdout io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		return err
	}
	rl, err := dev.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, dev.Close())
	}
	var options server.Options
	if llp == "rdp" {
		options.Device.LowerLayer = rdpllp.New(rdpllp.Config{})
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = rpcrdma.Serve(ctx, rl, rpcpeer.NewService(), rpcrdma.Config{}) }) // the tester sees how it fares
	go func() {
		in := bufio.NewReader(stdin)
		line, err := in.ReadString('\n')
		if address := strings.TrimSpace(line); err == nil {
			wg.Go(func() { rpcpeer.Call(ctx, dev, address) })
		}
		_, _ = io.Copy(io.Discard, in) // whatever ends it
		cancel()
	}()
	if _, err := fmt.Fprintln(stdout, l.Addr(), rl.Addr()); err != nil {
		return err
	}
	err = server.Serve(ctx, l, options)
	wg.Wait()
	return errors.Join(err, dev.Close())
}
