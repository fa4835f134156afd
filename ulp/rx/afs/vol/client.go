package vol

import (
	"context"
	"errors"

	"urnic/ulp/rx/rpc"
)

// A Client asks a volume server.
type Client struct{ c rpc.Client }

// NewClient returns a client whose calls begin begins: see rpc.Over.
func NewClient(begin func(context.Context) (rpc.Call, error)) *Client {
	return &Client{rpc.Client{Begin: begin, Codes: Codes}}
}

// Partitions returns the server's partitions. It asks in the old way if the server knows no
// other.
func (c *Client) Partitions(ctx context.Context) ([]int32, error) {
	p, err := opPartitions.Call(ctx, &c.c, &rpc.Void{})
	if !errors.Is(err, rpc.ErrOpcode) {
		return p.Numbers, err
	}
	old, err := opPartitionsOld.Call(ctx, &c.c, &rpc.Void{})
	if err != nil {
		return nil, err
	}
	var all []int32
	for _, n := range old.Numbers {
		if n >= 0 {
			all = append(all, n)
		}
	}
	return all, nil
}

// Partition returns a partition's size and what is free. It asks in the old way if the server
// knows no other.
func (c *Client) Partition(ctx context.Context, partition int32) (Partition, error) {
	name := String(PartitionName(partition))
	p, err := opPartition.Call(ctx, &c.c, &name)
	if !errors.Is(err, rpc.ErrOpcode) {
		return p, err
	}
	old, err := opPartitionOld.Call(ctx, &c.c, &name)
	return Partition{old.Name, old.Device, old.LockFD, int64(old.Usable), int64(old.Free), int64(old.Size)}, err
}

const everything = 1 // more of a volume than its ID

// List returns the volumes on a partition.
func (c *Client) List(ctx context.Context, partition int32) ([]Info, error) {
	l, err := opList.Call(ctx, &c.c, &Place{partition, everything})
	return l.Infos, err
}

// ListIDs is List with nothing of the volumes but their IDs, which is faster.
func (c *Client) ListIDs(ctx context.Context, partition int32) ([]uint32, error) {
	l, err := opList.Call(ctx, &c.c, &Place{partition, 0})
	ids := make([]uint32, len(l.Infos))
	for i := range l.Infos {
		ids[i] = l.Infos[i].ID
	}
	return ids, err
}

// ListExtended is List with counters.
func (c *Client) ListExtended(ctx context.Context, partition int32) ([]XInfo, error) {
	l, err := opListX.Call(ctx, &c.c, &Place{partition, everything})
	return l.Infos, err
}

// Volume returns a volume on a partition.
func (c *Client) Volume(ctx context.Context, partition int32, id uint32) (Info, error) {
	l, err := opListOne.Call(ctx, &c.c, &Place{partition, id})
	if err != nil || len(l.Infos) == 0 {
		return Info{}, errors.Join(err, missing(err))
	}
	return l.Infos[0], nil
}

// VolumeExtended is Volume with counters.
func (c *Client) VolumeExtended(ctx context.Context, partition int32, id uint32) (XInfo, error) {
	l, err := opListOneX.Call(ctx, &c.c, &Place{partition, id})
	if err != nil || len(l.Infos) == 0 {
		return XInfo{}, errors.Join(err, missing(err))
	}
	return l.Infos[0], nil
}

// missing is the error for an empty list of volumes, unless there was another one.
func missing(err error) error {
	if err != nil {
		return nil
	}
	return ErrNoSuchVolume
}

// Transactions returns the server's transactions.
func (c *Client) Transactions(ctx context.Context) ([]TransactionInfo, error) {
	l, err := opMonitor.Call(ctx, &c.c, &rpc.Void{})
	return l.Infos, err
}

// SignalRestore announces a volume that will be restored.
func (c *Client) SignalRestore(ctx context.Context, a SignalArgs) error {
	_, err := opSignal.Call(ctx, &c.c, &a)
	return err
}

// Nuke removes a volume without looking at its content.
func (c *Client) Nuke(ctx context.Context, partition int32, id uint32) error {
	_, err := opNuke.Call(ctx, &c.c, &Place{partition, id})
	return err
}
