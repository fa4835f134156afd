package rpcbind_test

import (
	"context"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// answering returns what connects to a server that answers all calls with the same
// results.
func answering(results []byte) oncrpc.Dial {
	return func(context.Context) (oncrpc.Conn, error) { return answers(results), nil }
}

type answers []byte

func (a answers) Do(_ context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
	var e xdr.Encoder
	err := (&oncrpc.Reply{XID: r.XID}).Encode(&e)
	return &oncrpc.Message{Stream: append(e.AppendTo(nil), a...)}, err
}

func (a answers) Limit() int            { return 1 }
func (a answers) Done() <-chan struct{} { return nil }
func (a answers) Close() error          { return nil }
