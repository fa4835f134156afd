package rpcpeer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// The program that is called.
const (
	program = 100003
	version = 3
)

// callers is how many calls a client makes at a time, if it may.
const callers = 40

// Call connects to a server again and again, and makes calls of NULL, many at a time, as
// long as the connection lives. It carries out the server's calls in the reverse direction.
// It returns when the context ends.
func Call(ctx context.Context, dev *rnic.Device, address string) {
	for ctx.Err() == nil {
		c, err := rpcrdma.Dial(ctx, dev, address, rpcrdma.Config{Reverse: NewService()})
		if err != nil {
			continue // whoever listens takes one connection after the other
		}
		call(ctx, c)
		_ = c.Close() // it has ended
	}
}

func call(ctx context.Context, c *rpcrdma.Conn) {
	var xid atomic.Uint32
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for {
				r := &oncrpc.Request{XID: xid.Add(1), Call: new(xdr.Encoder), ReplyMost: 64}
				if err := (&oncrpc.Call{XID: r.XID, Program: program, Version: version}).Encode(r.Call); err != nil {
					return
				}
				m, err := c.Do(ctx, r)
				if _, lost := errors.AsType[*oncrpc.LostError](err); lost || ctx.Err() != nil {
					return
				}
				m.Release()
			}
		})
	}
	wg.Wait()
}
