package rds

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"urnic/ulp/rds/machine"
)

// A Transport carries connections of a node: [TCP] or [IWARP].
type Transport interface {
	// Name is what rds info shows.
	Name() string

	carrier() machine.Carrier
	// memory returns memory for a message that is to be sent.
	memory(n int) (*buffer, error)
	// open begins to accept connections, for the node's carrier with an index.
	open(ctx context.Context, n *Node, index int) error
	// dial makes a connection.
	dial(ctx context.Context, d dialling) (link, error)
	// close ends what open has begun, and waits for it.
	close() error
	// inUse returns what is set while the transport is a node's; nil for a transport that is nil.
	inUse() *atomic.Bool
}

// errTransportInUse says that a transport can't be given to a node.
var errTransportInUse = errors.New("rds: the transport is that of another node, or given twice: make one for each")

// claim takes transports for a node. release gives them back.
func claim(transports []Transport) error {
	for i, t := range transports {
		var err error
		switch {
		case t == nil || t.inUse() == nil:
			err = fmt.Errorf("rds: configuration: transport %d is nil", i)
		case !t.inUse().CompareAndSwap(false, true):
			err = errTransportInUse
		}
		if err != nil {
			release(transports[:i])
			return err
		}
	}
	return nil
}

func release(transports []Transport) {
	for _, t := range transports {
		t.inUse().Store(false)
	}
}

func (t *TCP) inUse() *atomic.Bool {
	if t == nil {
		return nil
	}
	return &t.used
}

func (t *IWARP) inUse() *atomic.Bool {
	if t == nil {
		return nil
	}
	return &t.used
}

// dialing says what connection is to be made.
type dialling struct {
	peer netip.Addr
	tos  uint8
	path int
	// paths is how many there are.
	paths int
}

// A link is one connection of a transport.
type link interface {
	// params are what the two ends have told each other.
	params() machine.Params
	// attach says which link of which path it is. Nothing is sent or received before.
	attach(n *Node, p *machine.Path, id machine.Link)
	// serve receives until the link ends, and returns why. When it returns, nothing of the link is used any more.
	serve() error
	// flush sends what there is to be sent. It does not wait, and is called without the node's lock.
	flush()
	// resume continues with a segment for which there was no memory.
	resume()
	// replaced says, before abort is called, that the peer has ended the connection, and may have said why.
	replaced()
	// abort ends the link soon; it does not wait.
	abort()
}
