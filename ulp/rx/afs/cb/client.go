package cb

import (
	"context"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// A Client calls a program that uses file servers.
type Client struct{ c rpc.Client }

// NewClient returns a client whose calls begin begins: see rpc.Over.
func NewClient(begin func(context.Context) (rpc.Call, error)) *Client {
	return &Client{rpc.Client{Begin: begin, Codes: Codes}}
}

// Probe returns nil if the program answers.
func (c *Client) Probe(ctx context.Context) error {
	_, err := opProbe.Call(ctx, &c.c, &rpc.Void{})
	return err
}

// ProbeUUID returns nil if the program answers and has this UUID.
func (c *Client) ProbeUUID(ctx context.Context, u afs.UUID) error {
	_, err := opProbeUUID.Call(ctx, &c.c, &u)
	return err
}

// Break reports that files have changed: at most 50.
func (c *Client) Break(ctx context.Context, files []afs.FID) error {
	a := afs.Callbacks{FIDs: files}
	for range files {
		a.Callbacks = append(a.Callbacks, afs.Callback{Version: 1, Type: afs.CallbackDropped})
	}
	_, err := opCallBack.Call(ctx, &c.c, &a)
	return err
}

// Init reports that the file server with a UUID has no promises any more.
func (c *Client) Init(ctx context.Context, server afs.UUID) error {
	_, err := opInit3.Call(ctx, &c.c, &server)
	return err
}

// About returns who the program is.
func (c *Client) About(ctx context.Context) (About, error) {
	return opAbout.Call(ctx, &c.c, &rpc.Void{})
}

// Cell returns the cell with an index, and its database servers.
func (c *Client) Cell(ctx context.Context, i int32) (Cell, error) {
	return opCell.Call(ctx, &c.c, new(rpc.Int32(i)))
}

// LocalCell returns the name of the program's cell.
func (c *Client) LocalCell(ctx context.Context) (string, error) {
	name, err := opLocalCell.Call(ctx, &c.c, &rpc.Void{})
	return string(name), err
}

// XStats returns a collection of statistics.
func (c *Client) XStats(ctx context.Context, collection int32) (afs.XStats, error) {
	return opXStats.Call(ctx, &c.c, &afs.XStatsArgs{Version: xstatsVersion, Collection: collection})
}

const xstatsVersion = 2
