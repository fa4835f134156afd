package oncrpc

import (
	"context"
	"errors"
	"net"

	"urnic/ulp/oncrpc/xdr"
)

// A Service carries out calls: Server is one. A transport calls Serve for each call that
// it has received, in a goroutine of its own.
type Service interface {
	// Serve carries out a call and writes the reply, header and all, into the encoder:
	// also if the call was refused, or has arguments that nobody can decode. The
	// reply's bulks, and nothing else, are eligible results (RFC 8166 §3.4.2). What they
	// are made of is left alone until the reply has been sent: it lies in
	// Exchange.Buffer, or was borrowed, or is nobody else's.
	//
	// ErrNoReply says that there is none, because the call is none that can be
	// answered, or its connection has ended. Any other error says that the connection
	// should end. The context is to end with the connection.
	Serve(ctx context.Context, x *Exchange, reply *xdr.Encoder) error
}

// ErrNoReply says that a call gets no reply.
var ErrNoReply = errors.New("oncrpc: the call gets no reply")

// An Exchange is a call that a transport has received, and what is known of who has sent
// it. The transport releases the message once the reply is on its way.
type Exchange struct {
	Call          *Message
	Netid         string // "tcp", "tcp6", "rdma" or "rdma6"
	Local, Remote net.Addr
	Peer          any    // what Admit has found out of the peer
	Account       string // whom the connection counts for; see Admission

	// Buffer returns n bytes for bulks of the reply, from where the transport likes
	// to send them. They may hold anything, and are the transport's again after the
	// reply. nil stands for memory of the heap.
	Buffer func(n int) []byte

	loans []Loan
}

// A Loan is memory that bulks of a reply are made of, and that somebody else owns.
type Loan interface {
	// Return says that it is not needed any more.
	Return()
}

// Borrow keeps a loan until the reply has been sent, or is not to be.
func (x *Exchange) Borrow(l Loan) { x.loans = append(x.loans, l) }

// Return returns what was borrowed. It is for transports, which call it when nothing reads
// the reply any more.
func (x *Exchange) Return() {
	for i, l := range x.loans {
		l.Return()
		x.loans[i] = nil
	}
	x.loans = x.loans[:0]
}

// Bulk returns n bytes for bulks of the reply; see Buffer.
func (x *Exchange) Bulk(n int) []byte {
	if x.Buffer == nil {
		return make([]byte, n)
	}
	return x.Buffer(n)
}
