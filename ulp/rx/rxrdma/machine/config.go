package machine

import (
	"time"

	"urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
)

// Time is a moment, as the duration since the connection's beginning.
type Time = time.Duration

// never is later than any other moment.
const never = Time(1<<63 - 1)

const (
	defaultDead = 12 * time.Second
	// pings is how many pings there are in the dead time: Rx's keepalive is a sixth of it.
	pings = 6
	// releaseWait is how long a call that has failed waits for the peer to give up memory
	// that it may still write to.
	releaseWait = 2 * time.Second
)

// Config says what a connection is like.
type Config struct {
	// Client says that this side begins the calls.
	Client bool

	// Own and Peer are what the two sides have said of themselves. Channels are the same in
	// both.
	Own, Peer wire.Private

	// LeastBulk is how many bytes are worth an RDMA Write.
	LeastBulk int

	// ClientSecurity or ServerSecurity is this side's, or nil.
	ClientSecurity secure.ClientConn
	ServerSecurity secure.ServerConn

	// Start is the time of day at the connection's beginning.
	Start time.Time

	// DeadTime, IdleDead and HardDead are as in rx.DialConfig and rx.Service.
	DeadTime, IdleDead, HardDead time.Duration

	// Host is the owner.
	Host Host
}

// A Host is what the owner does for a connection. Its methods must not call the
// connection.
type Host interface {
	// Buffer returns memory to send a part from, of Own.Receive bytes, or nil.
	Buffer() *Buffer
	// Release gives a buffer back that was not sent.
	Release(b *Buffer)
	// Free says that a receive can be posted again.
	Free(slot int)
	// Begun says that the client has begun a call.
	Begun(k *Call)
	// Readable and Writable say that those who wait for a call should try again.
	Readable(k *Call)
	Writable(k *Call)
	// Failed says that a call has failed.
	Failed(k *Call)
	// Vacant says that a channel is free.
	Vacant()
}

// A Buffer is memory to send from.
type Buffer struct {
	Mem []byte
	Ref any // the owner's
}

// A Place is an RDMA Write of a part into memory that the peer has offered.
type Place struct {
	STag uint32
	TO   uint64
	Len  int
	Ref  any  // the owner's
	Over bool // it has been carried out, or never will be

	call *Call
}

// Out is what is to be sent: a Write if there is Place, and then a Send.
type Out struct {
	Msg    wire.Message
	Buffer *Buffer // the message lies in its first Len bytes; nil: Msg is all
	Len    int
	Place  *Place

	call *Call // whose part, offer or demand it is: it is dropped if that fails
}
