package rxref

import (
	"context"
	"fmt"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rpc"
)

// A Client calls the service. Its methods may be called at the same time. Their errors are
// those of package rpc, or a [*DamagedError].
type Client struct{ rpc rpc.Client }

// NewClient returns a client that makes its calls on a connection.
func NewClient(conn rx.Conn) *Client { return newClient(rpc.Over(conn.Begin)) }

func newClient(begin func(context.Context) (rpc.Call, error)) *Client {
	return &Client{rpc.Client{Begin: begin, Codes: codes}}
}

// A DamagedError says that data has not arrived as it was sent.
type DamagedError struct {
	Operation    string
	Length       uint64 // bytes that it should have been
	Server, Mine Seen   // what each side has moved
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("rxref: %s of %d bytes: the server has moved %d, %d of them bad, and the client %d, %d of them bad",
		e.Operation, e.Length, e.Server.Length, e.Server.Bad, e.Mine.Length, e.Mine.Bad)
}

// Null does nothing.
func (c *Client) Null(ctx context.Context) error {
	_, err := opNull.Call(ctx, &c.rpc, &rpc.Void{})
	return err
}

// Echo sends up to 1 MiB and returns what comes back.
func (c *Client) Echo(ctx context.Context, data []byte) ([]byte, error) {
	return opEcho.Call(ctx, &c.rpc, (*echoed)(&data))
}

// Fail has the server abort the call with a code, unless that is 0.
func (c *Client) Fail(ctx context.Context, code int32) error {
	_, err := opFail.Call(ctx, &c.rpc, (*rpc.Int32)(&code))
	return err
}

// Slow has the server answer after a number of whole milliseconds.
func (c *Client) Slow(ctx context.Context, d time.Duration) error {
	ms := rpc.Uint32(d.Milliseconds())
	_, err := opSlow.Call(ctx, &c.rpc, &ms)
	return err
}

// WhoAmI returns who the server takes the client for.
func (c *Client) WhoAmI(ctx context.Context) (Identity, error) {
	return opWhoAmI.Call(ctx, &c.rpc, &rpc.Void{})
}

// Put sends a stream.
func (c *Client) Put(ctx context.Context, how How) (Seen, error) {
	return c.stream(ctx, opPut, how, true, false)
}

// Get receives a stream.
func (c *Client) Get(ctx context.Context, how How) (Seen, error) {
	return c.stream(ctx, opGet, how, false, true)
}

// Both sends a stream, and receives one that is as long. The server stops and fails in the
// first one only.
func (c *Client) Both(ctx context.Context, how How) (Seen, error) {
	return c.stream(ctx, opBoth, how, true, true)
}

func (c *Client) stream(ctx context.Context, op *rpc.Op[How, Seen], how How, put, get bool) (Seen, error) {
	s, err := op.Start(ctx, &c.rpc, &how)
	if err != nil {
		return Seen{}, err
	}
	defer s.Close() //nolint:errcheck // the first error is the one that tells
	all := How{Length: how.Length}
	mine := Seen{Length: how.Length}
	if put {
		if err := all.give(ctx, s, new(Seen)); err != nil {
			return Seen{}, err
		}
	}
	if get {
		mine = Seen{}
		if err := all.take(ctx, s, &mine); err != nil {
			return Seen{}, err
		}
	}
	seen, err := s.Finish()
	if err != nil {
		return Seen{}, err
	}
	if seen.Length != how.Length || mine.Length != how.Length || seen.Bad+mine.Bad > 0 {
		return seen, &DamagedError{op.Name, how.Length, seen, mine}
	}
	return seen, nil
}

// Quit begins to receive a stream or, if put is set, to send one, and gives up after so many
// bytes: the call is aborted with code -6.
func (c *Client) Quit(ctx context.Context, how How, put bool, after uint64) error {
	op := opGet
	if put {
		op = opPut
	}
	s, err := op.Start(ctx, &c.rpc, &how)
	if err != nil {
		return err
	}
	part := How{Length: min(after, how.Length)}
	if put {
		err = part.give(ctx, s, new(Seen))
	} else {
		err = part.take(ctx, s, new(Seen))
	}
	if e := s.Close(); err == nil {
		err = e
	}
	return err
}
