package vl

import (
	"context"
	"encoding/binary"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// A Client asks a location server.
type Client struct{ c rpc.Client }

// NewClient returns a client whose calls begin begins: see rpc.Over.
func NewClient(begin func(context.Context) (rpc.Call, error)) *Client {
	return &Client{rpc.Client{Begin: begin, Codes: Codes}}
}

// Probe returns nil if the server answers.
func (c *Client) Probe(ctx context.Context) error {
	_, err := opProbe.Call(ctx, &c.c, &rpc.Void{})
	return err
}

// ByName returns the entry of a volume's name, which may also be the name of its read-only
// or backup volume, or the number of one of them.
func (c *Client) ByName(ctx context.Context, name string) (Entry, error) {
	return opByName.Call(ctx, &c.c, new(Name(name)))
}

// ByID returns the entry that has this volume ID, as that of the given type or of any.
func (c *Client) ByID(ctx context.Context, id uint32, typ int32) (Entry, error) {
	return opByID.Call(ctx, &c.c, &Volume{id, typ})
}

// ByNameWithUUIDs is ByName. The sites have the UUIDs of their servers, or the addresses of
// those that have none.
func (c *Client) ByNameWithUUIDs(ctx context.Context, name string) (Entry, error) {
	e, err := opByNameU.Call(ctx, &c.c, new(Name(name)))
	return e.withAddrs(), err
}

// ByIDWithUUIDs is ByID. The sites have the UUIDs of their servers, or the addresses of those
// that have none.
func (c *Client) ByIDWithUUIDs(ctx context.Context, id uint32, typ int32) (Entry, error) {
	e, err := opByIDU.Call(ctx, &c.c, &Volume{id, typ})
	return e.withAddrs(), err
}

// withAddrs takes the addresses of sites without UUID from where they stand.
func (e *UEntry) withAddrs() Entry {
	for i := range e.Sites {
		if s := &e.Sites[i]; s.Flags&SiteUUID == 0 {
			s.Server, s.UUID = afs.Addr(binary.BigEndian.Uint32(s.UUID[:4])), afs.UUID{}
		}
	}
	return e.Entry
}

// List returns all entries with these attributes, and with names that match a regular
// expression, if it is not empty.
func (c *Client) List(ctx context.Context, a Attributes, name string) ([]Entry, error) {
	var all []Entry
	for start := int32(0); ; {
		part, err := opListAttributes.Call(ctx, &c.c, &ListArgs{a, name, start})
		if err != nil {
			return all, err
		}
		if all = append(all, part.Entries...); len(all) > maxListedByClient {
			return nil, ErrSizeExceeded
		}
		if part.Next <= start { // -1 at the end; a server that does not continue has ended, too
			return all, nil
		}
		start = part.Next
	}
}

const maxListedByClient = 1 << 20 // entries

// Create adds an entry.
func (c *Client) Create(ctx context.Context, e *Entry) error {
	_, err := opCreate.Call(ctx, &c.c, e)
	return err
}

// Replace replaces the entry with this volume ID, and ends those parts of its lock that unlock
// has.
func (c *Client) Replace(ctx context.Context, id uint32, typ int32, e *Entry, unlock int32) error {
	_, err := opReplace.Call(ctx, &c.c, &ReplaceArgs{Volume{id, typ}, *e, unlock})
	return err
}

// Delete removes the entry with this volume ID.
func (c *Client) Delete(ctx context.Context, id uint32, typ int32) error {
	_, err := opDelete.Call(ctx, &c.c, &Volume{id, typ})
	return err
}

// NewID reserves n volume IDs and returns the first one.
func (c *Client) NewID(ctx context.Context, n uint32) (uint32, error) {
	id, err := opNewID.Call(ctx, &c.c, new(rpc.Uint32(n)))
	return uint32(id), err
}

// Lock locks an entry for an operation: Move, Release, Clone, Delete or Dump.
func (c *Client) Lock(ctx context.Context, id uint32, typ int32, operation uint32) error {
	_, err := opLock.Call(ctx, &c.c, &LockArgs{Volume{id, typ}, int32(operation)})
	return err
}

// Unlock ends those parts of an entry's lock that what has, see UnlockAll.
func (c *Client) Unlock(ctx context.Context, id uint32, typ, what int32) error {
	_, err := opUnlock.Call(ctx, &c.c, &LockArgs{Volume{id, typ}, what})
	return err
}

// Addrs returns an address of each server.
func (c *Client) Addrs(ctx context.Context) ([]afs.Addr, error) {
	a, err := opAddrs.Call(ctx, &c.c, &AddrsArgs{})
	return a.Addrs, err
}

// Server returns the server with this key.
func (c *Client) Server(ctx context.Context, k ServerKey) (Server, error) {
	return opAddrsU.Call(ctx, &c.c, &k)
}

// Register gives the server with this UUID these addresses.
func (c *Client) Register(ctx context.Context, r Registration) error {
	_, err := opRegister.Call(ctx, &c.c, &r)
	return err
}

// ChangeAddr replaces an address of a server by another one.
func (c *Client) ChangeAddr(ctx context.Context, from, to afs.Addr) error {
	_, err := opChangeAddr.Call(ctx, &c.c, &AddrChange{from, to})
	return err
}

// Stats returns the server's counters.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	return opStats.Call(ctx, &c.c, &rpc.Void{})
}
