package oncrpc

import (
	"context"
	"fmt"

	"urnic/ulp/oncrpc/xdr"
)

// A Conn carries calls to one server over one connection, many at a time: package
// ulp/rpcrdma makes those of RDMA, DialTCP those of TCP. Clients use one through a
// Client, which makes a new one when it is lost.
type Conn interface {
	// Do sends a call and returns the reply that has its XID. Once it has returned,
	// whatever it returns, the transport neither reads nor writes memory of the
	// request any more, and no peer can.
	//
	// It returns a *LostError if the connection ended before there was a reply: the
	// call may be sent again, with its XID, on the next connection. Any other error is
	// about this call alone and is final, that of the context among them. The reply is
	// to be released.
	Do(ctx context.Context, r *Request) (*Message, error)

	// Limit returns how many calls may be in flight, more of which wait in Do. It
	// changes while the connection lives.
	Limit() int

	// Done is closed once the connection is of no use.
	Done() <-chan struct{}

	// Close ends the connection, and what is in flight with a *LostError.
	Close() error
}

// A Request is a call on its way.
type Request struct {
	XID uint32

	// Call is the header and the arguments. Its bulks, and nothing else, are what the
	// upper layer's binding takes for eligible to direct data placement (RFC 8166
	// §3.4.2).
	Call *xdr.Encoder

	// ReplyMost is the length of the longest reply that may come, in bytes, the
	// headers of RFC 5531 counted and the results for Sinks not. A transport may need
	// it to provide memory for the reply; one that is longer fails.
	ReplyMost int

	// Sinks are where eligible results go, each as long as the result may be, in the
	// order of the results. A transport that can't place them there leaves them in the
	// reply. If it offers the server to place them, and the server leaves one in the
	// reply all the same, that can't be decoded: Decoder.Bulk fails with xdr.ErrUnmoved
	// (RFC 8166 §6.1).
	Sinks [][]byte

	// Whole forbids that anything is taken out of the messages: the upper layer
	// protects them by RPCSEC_GSS's integrity or privacy (RFC 8166 §8.2.2.3).
	Whole bool
}

// A Message is what a transport has received.
type Message struct {
	Stream []byte      // without what was moved
	Moved  []xdr.Moved // what was moved outside of it, or had a place there
	Free   func()      // gives memory back to the transport; may be nil
}

// Decoder returns a decoder of the message, which is valid until Release.
func (m *Message) Decoder() *xdr.Decoder { return xdr.NewDecoder(m.Stream, m.Moved...) }

// Release gives the memory of the message back to the transport. Nothing that was decoded
// from it may be used any more, but what lies in the request's Sinks.
func (m *Message) Release() {
	if m != nil && m.Free != nil {
		free := m.Free
		m.Stream, m.Moved, m.Free = nil, nil, nil
		free()
	}
}

// A LostError says that the connection ended before there was a reply, so that nobody
// knows whether the call was carried out.
type LostError struct {
	Err error // why it ended
}

func (e *LostError) Error() string {
	return fmt.Sprintf("oncrpc: the connection ended before the reply came: %v", e.Err)
}

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// A resentError says that a call was sent several times, and what came of the last one.
type resentError struct {
	times int
	lost  *LostError
}

func (e *resentError) Error() string {
	return fmt.Sprintf("oncrpc: the call was sent %d times, and the connection ended each time before the reply came, at last: %v", e.times, e.lost.Err)
}

// Unwrap returns the error of the last one.
func (e *resentError) Unwrap() error { return e.lost }
