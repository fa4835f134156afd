package fs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/dir"
	"urnic/ulp/rx/rpc"
)

// A Client asks a file server.
type Client struct{ c rpc.Client }

// NewClient returns a client whose calls begin begins: see rpc.Over. A server may call back
// the address from which it is asked before it answers: see package cb.
func NewClient(begin func(context.Context) (rpc.Call, error)) *Client {
	return &Client{rpc.Client{Begin: begin, Codes: Codes}}
}

// Time returns the server's clock.
func (c *Client) Time(ctx context.Context) (Clock, error) { return opTime.Call(ctx, &c.c, &rpc.Void{}) }

// Capabilities returns what the server can.
func (c *Client) Capabilities(ctx context.Context) ([]uint32, error) {
	w, err := opCapabilities.Call(ctx, &c.c, &rpc.Void{})
	return w.Words, err
}

// Volume returns the state of a volume.
func (c *Client) Volume(ctx context.Context, id uint32) (VolumeStatus, error) {
	return opVolumeStatus.Call(ctx, &c.c, new(rpc.Uint32(id)))
}

// Status returns the status of a file, and a promise to call back.
func (c *Client) Status(ctx context.Context, f afs.FID) (Promised, error) {
	return opStatus.Call(ctx, &c.c, &f)
}

// Statuses returns the status of at most 50 files. Those that can't be had have a Code.
func (c *Client) Statuses(ctx context.Context, files []afs.FID) ([]Status, error) {
	s, err := opInlineBulk.Call(ctx, &c.c, &FIDs{files})
	return s.Statuses, err
}

// ACL returns the rights to a directory as text.
func (c *Client) ACL(ctx context.Context, f afs.FID) (string, error) {
	a, err := opFetchACL.Call(ctx, &c.c, &f)
	return a.Text, err
}

var errLength = errors.New("fs: the server sends more than it was asked for")

// Fetch writes at most length bytes of a file from an offset on to w. It returns the file's
// status, and how many bytes it has written.
func (c *Client) Fetch(ctx context.Context, f afs.FID, offset, length int64, w io.Writer) (Promised, int64, error) {
	s, err := opFetch.Start(ctx, &c.c, &FetchArgs{f, offset, length})
	if err != nil {
		return Promised{}, 0, err
	}
	defer s.Close() //nolint:errcheck // after Finish it does nothing, and before the error is known
	var n [8]byte
	if _, err := io.ReadFull(s, n[:]); err != nil {
		return Promised{}, 0, err
	}
	have := int64(binary.BigEndian.Uint64(n[:]))
	if have < 0 || have > length {
		return Promised{}, 0, fmt.Errorf("%w: %d bytes in place of %d", errLength, have, length)
	}
	copied, err := io.CopyN(w, s, have)
	if err != nil {
		return Promised{}, copied, err
	}
	p, err := s.Finish()
	return p, copied, err
}

// Store writes length bytes from r to a file at an offset, and sets the file's length.
func (c *Client) Store(ctx context.Context, f afs.FID, offset, length, fileLength uint64, r io.Reader) (Status, error) {
	s, err := opStore.Start(ctx, &c.c, &StoreArgs{FID: f, Offset: offset, Length: length, FileLength: fileLength})
	if err != nil {
		return Status{}, err
	}
	defer s.Close() //nolint:errcheck // after Finish it does nothing, and before the error is known
	if _, err := io.CopyN(s, r, int64(length)); err != nil {
		return Status{}, err
	}
	changed, err := s.Finish()
	return changed.Status, err
}

const maxDir = 1023 * dir.PageLen

// ReadDir returns the entries of a directory.
func (c *Client) ReadDir(ctx context.Context, f afs.FID) ([]dir.Entry, error) {
	var p pages
	if _, _, err := c.Fetch(ctx, f, 0, maxDir, &p); err != nil {
		return nil, err
	}
	return dir.Decode(p)
}

// pages is a directory that is read.
type pages []byte

func (p *pages) Write(b []byte) (int, error) {
	*p = append(*p, b...)
	return len(b), nil
}

// SetStatus changes the status of a file.
func (c *Client) SetStatus(ctx context.Context, f afs.FID, s StoreStatus) (Status, error) {
	changed, err := opStoreStatus.Call(ctx, &c.c, &StatusArgs{f, s})
	return changed.Status, err
}

// Create makes an empty file.
func (c *Client) Create(ctx context.Context, d afs.FID, name string, s StoreStatus) (Created, error) {
	return opCreate.Call(ctx, &c.c, &CreateArgs{NameArgs{d, name}, s})
}

// MakeDir makes a directory.
func (c *Client) MakeDir(ctx context.Context, d afs.FID, name string, s StoreStatus) (Created, error) {
	return opMakeDir.Call(ctx, &c.c, &CreateArgs{NameArgs{d, name}, s})
}

// Symlink makes a symbolic link.
func (c *Client) Symlink(ctx context.Context, d afs.FID, name, target string, s StoreStatus) (Made, error) {
	return opSymlink.Call(ctx, &c.c, &SymlinkArgs{NameArgs{d, name}, target, s})
}

// Link gives a file of the same directory another name.
func (c *Client) Link(ctx context.Context, d afs.FID, name string, f afs.FID) error {
	_, err := opLink.Call(ctx, &c.c, &LinkArgs{NameArgs{d, name}, f})
	return err
}

// Remove removes a name of a file or a symbolic link.
func (c *Client) Remove(ctx context.Context, d afs.FID, name string) error {
	_, err := opRemove.Call(ctx, &c.c, &NameArgs{d, name})
	return err
}

// RemoveDir removes an empty directory.
func (c *Client) RemoveDir(ctx context.Context, d afs.FID, name string) error {
	_, err := opRemoveDir.Call(ctx, &c.c, &NameArgs{d, name})
	return err
}

// Rename moves a file or a directory.
func (c *Client) Rename(ctx context.Context, from afs.FID, name string, to afs.FID, newName string) error {
	_, err := opRename.Call(ctx, &c.c, &RenameArgs{NameArgs{from, name}, NameArgs{to, newName}})
	return err
}

// Lock locks a file: see LockRead.
func (c *Client) Lock(ctx context.Context, f afs.FID, typ int32) error {
	_, err := opSetLock.Call(ctx, &c.c, &LockArgs{f, typ})
	return err
}

// Unlock ends a lock.
func (c *Client) Unlock(ctx context.Context, f afs.FID) error {
	_, err := opReleaseLock.Call(ctx, &c.c, &f)
	return err
}

// GiveUp tells the server that it need not call back for these files.
func (c *Client) GiveUp(ctx context.Context, files []afs.FID) error {
	_, err := opGiveUp.Call(ctx, &c.c, &afs.Callbacks{FIDs: files, Callbacks: make([]afs.Callback, len(files))})
	return err
}

// GiveUpAll is GiveUp for all files.
func (c *Client) GiveUpAll(ctx context.Context) error {
	_, err := opGiveUpAll.Call(ctx, &c.c, &rpc.Void{})
	return err
}

// XStats returns a collection of statistics.
func (c *Client) XStats(ctx context.Context, collection int32) (afs.XStats, error) {
	return opXStats.Call(ctx, &c.c, &afs.XStatsArgs{Version: xstatsVersion, Collection: collection})
}

// Statistics returns the server's counters in 32 bits.
func (c *Client) Statistics(ctx context.Context) (Statistics, error) {
	return opViceStats.Call(ctx, &c.c, &rpc.Void{})
}

// Counters returns at most so many counters in 64 bits.
func (c *Client) Counters(ctx context.Context, n int32) ([]uint64, error) {
	s, err := opStatistics.Call(ctx, &c.c, new(rpc.Int32(n)))
	return s.Counters, err
}

const xstatsVersion = 2
