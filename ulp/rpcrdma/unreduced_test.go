package rpcrdma_test

import (
	"context"
	"errors"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// RFC 8166 §6.1: "A Responder does not reduce a DDP-eligible result data item into an
// available Write chunk. The Requester MUST terminate the pending RPC transaction and report
// an appropriate permanent error to the RPC consumer." What is no such item may leave its
// chunk unused (§4.3.2.2), and "The Requester MUST NOT assume that the memory regions backing
// a Write chunk have not been modified" then.
func TestResultsThatAreNotInTheirChunksAreRefused(t *testing.T) {
	r, conn := rawServe(t, rawPrivate, rpcrdma.Config{})
	r.serveCall(start(t.Context(), conn, nil), nil) // grants more than one call
	dials := 0
	client := oncrpc.NewClient(func(context.Context) (oncrpc.Conn, error) {
		if dials++; dials > 1 {
			return nil, errors.New("there is one connection only")
		}
		return conn, nil
	}, oncrpc.ClientConfig{Dials: 1})
	defer func() { _ = client.Close() }()
	bulks := func(data ...string) func(e *xdr.Encoder) {
		return func(e *xdr.Encoder) {
			for _, p := range data {
				e.Bulk([]byte(p))
			}
		}
	}
	for name, c := range map[string]struct {
		results func(e *xdr.Encoder)
		failed  error                   // what the responder says instead
		placed  []int                   // how many bytes are in each chunk
		change  func(h *rpcrdma.Header) // of the reply
		long    bool                    // the stream is in the Reply chunk
		want    error
	}{
		"in the stream":                        {results: bulks("data"), placed: []int{0, 0}, want: xdr.ErrUnmoved},
		"the second is in the stream":          {results: bulks("some", "data"), placed: []int{4, 0}, want: xdr.ErrUnmoved},
		"the first is in the stream":           {results: bulks("some", "data"), placed: []int{0, 4}, want: xdr.ErrUnmoved},
		"in a long reply":                      {results: bulks("data"), placed: []int{0, 0}, long: true, want: xdr.ErrUnmoved},
		"in the stream, without a Write list":  {results: bulks("data"), placed: []int{0, 0}, change: noWriteList, want: xdr.ErrUnmoved},
		"in the chunks":                        {results: bulks("some", "data"), placed: []int{4, 4}},
		"of no octets":                         {results: bulks("", ""), placed: []int{0, 0}},
		"of no octets, and one":                {results: bulks("", "data"), placed: []int{0, 4}},
		"of no octets, without a Write list":   {results: bulks("", ""), placed: []int{0, 0}, change: noWriteList},
		"no item that is eligible":             {results: bulks(), placed: []int{0, 0}},
		"no item, in a long reply":             {results: bulks(), placed: []int{0, 0}, long: true},
		"no results, as the call was rejected": {failed: &oncrpc.AcceptedError{Stat: oncrpc.SystemError}, placed: []int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			sinks := [][]byte{make([]byte, 5000), make([]byte, 5000)}
			over := make(chan error, 1)
			go func() {
				over <- client.Call(t.Context(), &oncrpc.Invocation{
					Program: 0x20000000, Version: 1, Procedure: procRead, Sinks: sinks, ResultsMost: 5000,
					Results: func(d *xdr.Decoder) error {
						for d.Left() > 0 && d.Err() == nil {
							if p := d.Bulk(5000); len(p) > 0 && &p[0] != &sinks[0][0] && &p[0] != &sinks[1][0] {
								t.Errorf("%q lies in no sink", p)
							}
						}
						return d.Err()
					},
				})
			}()
			h, _, _ := r.recv()
			other := start(t.Context(), conn, nil)
			otherCall, _, _ := r.recv()
			for i := range sinks { // that may be done to a chunk that stays unused
				r.place(h.Write[i][0], []byte("some"))
			}
			var e xdr.Encoder
			if err := (&oncrpc.Reply{XID: h.XID, Err: c.failed}).Encode(&e); err != nil {
				t.Fatal(err)
			}
			if c.results != nil {
				c.results(&e)
			}
			stream := e.Reduced(nil, func(i int, _ xdr.Bulk) bool { return c.placed[i] > 0 })
			reply := header(h.XID, func(reply *rpcrdma.Header) {
				reply.HasReply, reply.Write, reply.Reply = true, unused(h.Write...), unused(h.Reply)[0]
				for i, n := range c.placed {
					reply.Write[i][0].Length = uint32(n)
				}
				if c.change != nil {
					c.change(reply)
				}
				if c.long {
					r.place(h.Reply[0], stream)
					reply.Proc, reply.Reply[0].Length, stream = rpcrdma.NoMsg, uint32(len(stream)), nil
				}
			})
			r.send(append(octets(reply), stream...))
			switch err := <-over; {
			case c.failed != nil:
				var got *oncrpc.AcceptedError
				if !errors.As(err, &got) || got.Stat != oncrpc.SystemError {
					t.Errorf("got %v; want %v", err, c.failed)
				}
			case !errors.Is(err, c.want):
				t.Errorf("got %v; want %v", err, c.want)
			}
			// Others continue, as does the connection.
			other.waits(t)
			r.reply(otherCall.XID, 8)
			if <-other.over; other.err != nil {
				t.Error("another call:", other.err)
			}
			r.serveCall(start(t.Context(), conn, nil), nil)
			r.silent()
		})
	}
}

func noWriteList(h *rpcrdma.Header) { h.Write = nil }
