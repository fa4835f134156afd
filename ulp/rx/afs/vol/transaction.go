package vol

import (
	"context"
	"io"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// What a transaction does with its volume meanwhile.
const (
	Offline        int32 = 1 // nobody uses it
	Busy           int32 = 2 // others are asked to try again
	ReadOnlyAccess int32 = 8 // it does not change
)

// Flags of a volume in a transaction.
const (
	DeleteOnSalvage uint32 = 1
	OutOfService    uint32 = 2
	Deleted         uint32 = 4
)

// A Transaction is a client's hold on a volume. The server ends it when it was not used for
// some minutes.
type Transaction struct {
	c  *rpc.Client
	ID int32
}

// Begin begins a transaction with a volume: see Offline.
func (c *Client) Begin(ctx context.Context, volume uint32, partition, access int32) (*Transaction, error) {
	id, err := opBegin.Call(ctx, &c.c, &BeginArgs{volume, partition, access})
	if err != nil {
		return nil, err
	}
	return &Transaction{&c.c, int32(id)}, nil
}

// Create makes a volume and begins a transaction with it. The volume is on-line when the
// transaction has set its flags to 0 and has ended.
func (c *Client) Create(ctx context.Context, a CreateArgs) (*Transaction, uint32, error) {
	v, err := opCreate.Call(ctx, &c.c, &a)
	if err != nil {
		return nil, 0, err
	}
	return &Transaction{&c.c, v.Transaction}, v.ID, nil
}

// Attach returns a transaction that has begun before, by its ID.
func (c *Client) Attach(id int32) *Transaction { return &Transaction{&c.c, id} }

// End ends the transaction and returns the code of an error that it met.
func (t *Transaction) End(ctx context.Context) error {
	code, err := opEnd.Call(ctx, t.c, new(rpc.Int32(t.ID)))
	if err != nil || code == 0 {
		return err
	}
	known := Codes.Find(int32(code))
	if known == nil {
		known = &rpc.Code{Number: int32(code)}
	}
	return known
}

const copySize = 64 << 10 // bytes that are copied at once

// Dump writes the volume as a stream to w and returns how many bytes. Since may limit it to
// what has changed since then.
func (t *Transaction) Dump(ctx context.Context, since afs.Time, w io.Writer) (int64, error) {
	s, err := opDump.Start(ctx, t.c, &Numbered{t.ID, uint32(since)})
	if err != nil {
		return 0, err
	}
	defer s.Close() //nolint:errcheck // after Finish it does nothing, and before the error is known
	n, err := io.CopyBuffer(w, reader{s}, make([]byte, copySize))
	if err != nil {
		return n, err
	}
	_, err = s.Finish()
	return n, err
}

// Restore replaces the volume by a dump from r and returns how many bytes that had.
func (t *Transaction) Restore(ctx context.Context, c Cookie, r io.Reader) (int64, error) {
	s, err := opRestore.Start(ctx, t.c, &RestoreArgs{Transaction: t.ID, Cookie: c})
	if err != nil {
		return 0, err
	}
	defer s.Close() //nolint:errcheck // after Finish it does nothing, and before the error is known
	n, err := io.CopyBuffer(writer{s}, r, make([]byte, copySize))
	if err != nil {
		return n, err
	}
	_, err = s.Finish()
	return n, err
}

// reader and writer hide other methods, so that io.CopyBuffer uses its buffer.
type (
	reader struct{ io.Reader }
	writer struct{ io.Writer }
)

// Size returns how many bytes a dump has.
func (t *Transaction) Size(ctx context.Context, since afs.Time) (uint64, error) {
	n, err := opSize.Call(ctx, t.c, &Numbered{t.ID, uint32(since)})
	return uint64(n), err
}

// Delete removes the volume.
func (t *Transaction) Delete(ctx context.Context) error {
	_, err := opDelete.Call(ctx, t.c, new(rpc.Int32(t.ID)))
	return err
}

// Clone copies the volume to one with another ID, which it returns.
func (t *Transaction) Clone(ctx context.Context, a CloneArgs) (uint32, error) {
	a.Transaction = t.ID
	id, err := opClone.Call(ctx, t.c, &a)
	return uint32(id), err
}

// ReClone copies the volume over one of its clones.
func (t *Transaction) ReClone(ctx context.Context, clone uint32) error {
	_, err := opReClone.Call(ctx, t.c, &Numbered{t.ID, clone})
	return err
}

// Flags returns the volume's flags.
func (t *Transaction) Flags(ctx context.Context) (uint32, error) {
	f, err := opGetFlags.Call(ctx, t.c, new(rpc.Int32(t.ID)))
	return uint32(f), err
}

// SetFlags sets the volume's flags: see DeleteOnSalvage.
func (t *Transaction) SetFlags(ctx context.Context, flags uint32) error {
	_, err := opSetFlags.Call(ctx, t.c, &Numbered{t.ID, flags})
	return err
}

// Name returns the volume's name.
func (t *Transaction) Name(ctx context.Context) (string, error) {
	name, err := opName.Call(ctx, t.c, new(rpc.Int32(t.ID)))
	return string(name), err
}

// Status returns the volume's state.
func (t *Transaction) Status(ctx context.Context) (Status, error) {
	return opStatus.Call(ctx, t.c, new(rpc.Int32(t.ID)))
}

// SetIDs sets the volume's name, type, and the IDs of those that belong to it.
func (t *Transaction) SetIDs(ctx context.Context, a IDsArgs) error {
	a.Transaction = t.ID
	_, err := opSetIDs.Call(ctx, t.c, &a)
	return err
}

// SetDate sets the time at which the volume was created.
func (t *Transaction) SetDate(ctx context.Context, created afs.Time) error {
	_, err := opSetDate.Call(ctx, t.c, &Numbered{t.ID, uint32(created)})
	return err
}

// SetInfo sets the quotas, the uses and the times that differ from those of Unchanged.
func (t *Transaction) SetInfo(ctx context.Context, i Info) error {
	_, err := opSetInfo.Call(ctx, t.c, &InfoArgs{t.ID, i})
	return err
}
