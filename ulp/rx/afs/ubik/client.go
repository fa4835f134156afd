package ubik

import (
	"context"
	"errors"

	"urnic/ulp/rx/rpc"
)

// The operations of the service for votes, and of the one for data.
var (
	opDebugOld      = rpc.NewOp[rpc.Void, OldState](10001, "DebugOld")
	opPeerOld       = rpc.NewOp[rpc.Int32, OldPeer](10002, "SDebugOld")
	opDebug         = rpc.NewOp[rpc.Void, State](10004, "Debug")
	opPeer          = rpc.NewOp[rpc.Int32, Peer](10005, "SDebug")
	opDebugExtended = rpc.NewOp[rpc.Void, ExtendedState](10006, "XDebug")
	opPeerExtended  = rpc.NewOp[rpc.Int32, ExtendedPeer](10007, "XSDebug")

	opGetVersion = rpc.NewOp[rpc.Void, Version](20004, "GetVersion")
	opProbe      = rpc.NewOp[rpc.Void, rpc.Void](20010, "Probe")
)

// Operations describes the operations.
func Operations() []rpc.Description {
	return rpc.Describe(opDebugOld, opPeerOld, opDebug, opPeer, opDebugExtended, opPeerExtended, opGetVersion, opProbe)
}

// A Client asks a server of a replicated database.
type Client struct{ vote rpc.Client }

// NewClient returns a client whose calls begin begins, on a connection for service 50.
func NewClient(begin func(context.Context) (rpc.Call, error)) *Client {
	return &Client{rpc.Client{Begin: begin, Codes: Codes}}
}

// State returns the server's state. It asks in the old way if the server knows no other.
func (c *Client) State(ctx context.Context) (ExtendedState, error) {
	s, err := opDebugExtended.Call(ctx, &c.vote, &rpc.Void{})
	if !errors.Is(err, rpc.ErrOpcode) {
		return s, err
	}
	plain, err := opDebug.Call(ctx, &c.vote, &rpc.Void{})
	if !errors.Is(err, rpc.ErrOpcode) {
		return ExtendedState{State: plain}, err
	}
	old, err := opDebugOld.Call(ctx, &c.vote, &rpc.Void{})
	return ExtendedState{State: old.State}, err
}

// maxPeers is how many other servers a database has at most, with some to spare.
const maxPeers = 64

// Peers returns what the server knows of the others.
func (c *Client) Peers(ctx context.Context) ([]ExtendedPeer, error) {
	var all []ExtendedPeer
	for i := range int32(maxPeers) {
		p, err := opPeerExtended.Call(ctx, &c.vote, new(rpc.Int32(i)))
		if code, ok := rpc.AbortCode(err); ok && code > 0 { // behind the last
			break
		}
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}
