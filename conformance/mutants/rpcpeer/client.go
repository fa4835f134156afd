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

// callers is how many calls of NULL a client makes at a time, if it may.
const callers = 40

// Lengths of what is read and written, in bytes: more than fits into a Send of 1024
// bytes, and no multiple of four.
const (
	readLen  = 3001
	writeLen = 2001
)

// Call connects to a server again and again, and makes calls, many at a time, as long as
// the connection lives: NULL; READ, by a Write chunk and by a Reply chunk; and WRITE, by a
// Read chunk and by a Long Call. It carries out the server's calls in the reverse
// direction. It returns when the context ends.
func Call(ctx context.Context, dev *rnic.Device, address string) {
	for ctx.Err() == nil {
		c, err := rpcrdma.Dial(ctx, dev, address, rpcrdma.Config{Reverse: NewService()})
		if err != nil {
			continue // whoever listens takes one connection after the other
		}
		callAll(ctx, c)
		_ = c.Close() // it has ended
	}
}

// callAll makes calls until the connection or the context ends. Until one is over, all are
// of NULL.
func callAll(ctx context.Context, c *rpcrdma.Conn) {
	var xid atomic.Uint32
	var wg sync.WaitGroup
	over, once := make(chan struct{}), sync.Once{}
	loop := func(next func(xid uint32) *oncrpc.Request) {
		for {
			m, err := c.Do(ctx, next(xid.Add(1)))
			once.Do(func() { close(over) })
			if _, lost := errors.AsType[*oncrpc.LostError](err); lost || ctx.Err() != nil {
				return
			}
			m.Release() // whatever it says
		}
	}
	for range callers {
		wg.Go(func() { loop(func(xid uint32) *oncrpc.Request { return request(xid, null) }) })
	}
	for _, whole := range []bool{false, true} {
		wg.Go(func() {
			<-over
			sink := make([]byte, readLen)
			loop(func(xid uint32) *oncrpc.Request { return reading(xid, sink, whole) })
		})
		wg.Go(func() {
			<-over
			data := make([]byte, writeLen)
			loop(func(xid uint32) *oncrpc.Request { return writing(xid, data, whole) })
		})
	}
	wg.Wait()
}

// resultsMost is how long results are without data, in bytes, and RPC's header.
const resultsMost = 256

// request returns a call without arguments.
func request(xid, procedure uint32) *oncrpc.Request {
	r := &oncrpc.Request{XID: xid, Call: new(xdr.Encoder), ReplyMost: resultsMost}
	// It fails for credentials only that are too long.
	_ = (&oncrpc.Call{XID: xid, Program: program, Version: version, Procedure: procedure}).Encode(r.Call)
	return r
}

// reading returns a READ into a sink, or, whole, one whose data come in the reply.
func reading(xid uint32, sink []byte, whole bool) *oncrpc.Request {
	r := request(xid, read)
	r.Call.String(Root)
	r.Call.Uint64(0)
	r.Call.Uint32(uint32(len(sink)))
	if whole {
		r.ReplyMost += len(sink)
	} else {
		r.Sinks = [][]byte{sink}
	}
	return r
}

// writing returns a WRITE; nothing of it is reduced if it is to be whole.
func writing(xid uint32, data []byte, whole bool) *oncrpc.Request {
	r := request(xid, write)
	r.Call.String(Root)
	r.Call.Uint64(0)
	r.Call.Uint32(uint32(len(data)))
	r.Call.Uint32(2) // FILE_SYNC
	r.Call.Bulk(data)
	r.Whole = whole
	return r
}
