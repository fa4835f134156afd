package vol

import (
	"context"
	"io"
	"math"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// A Config says how a Store is served.
type Config struct {
	// Admin says who may have transactions. Nobody may if it is nil.
	Admin afs.Admin
}

type server struct {
	*Store
	Config
}

// NewMux serves a Store.
func NewMux(store *Store, c Config) *rpc.Mux {
	s := &server{store, c}
	m := rpc.NewMux("vol")
	s.handleLists(m)
	s.handleTransactions(m)
	return m
}

// handleLists adds the operations for anybody.
func (s *server) handleLists(m *rpc.Mux) {
	opPartitions.Handle(m, func(context.Context, *rpc.Void) (Partitions, error) { return Partitions{s.Partitions()}, nil })
	opPartitionsOld.Handle(m, func(context.Context, *rpc.Void) (OldPartitions, error) { return s.oldPartitions(), nil })
	opPartition.Handle(m, func(_ context.Context, a *String) (Partition, error) { return s.Partition(string(*a)) })
	opPartitionOld.Handle(m, func(_ context.Context, a *String) (OldPartition, error) {
		p, err := s.Partition(string(*a))
		return OldPartition{p.Name, p.Device, p.LockFD, narrow(p.Usable), narrow(p.Free), narrow(p.Size)}, err
	})
	opList.Handle(m, s.list)
	opListX.Handle(m, func(ctx context.Context, a *Place) (XInfos, error) { return extended(s.list(ctx, a)) })
	opListOne.Handle(m, s.listOne)
	opListOneX.Handle(m, func(ctx context.Context, a *Place) (XInfos, error) { return extended(s.listOne(ctx, a)) })
	opMonitor.Handle(m, func(context.Context, *rpc.Void) (TransactionInfos, error) {
		return TransactionInfos{s.Transactions()}, nil
	})
}

// handleTransactions adds the operations for administrators.
func (s *server) handleTransactions(m *rpc.Mux) {
	opSignal.Handle(m, admin(s, func(*SignalArgs) (rpc.Void, error) { return rpc.Void{}, nil }))
	opNuke.Handle(m, admin(s, func(a *Place) (rpc.Void, error) { return rpc.Void{}, s.Nuke(a.Partition, a.Volume) }))
	opCreate.Handle(m, admin(s, func(a *CreateArgs) (Created, error) { return s.Create(*a) }))
	opBegin.Handle(m, admin(s, func(a *BeginArgs) (rpc.Int32, error) { return as[rpc.Int32](s.Begin(a.Volume, a.Partition, a.Access)) }))
	opEnd.Handle(m, admin(s, func(a *rpc.Int32) (rpc.Int32, error) { return as[rpc.Int32](s.End(int32(*a))) }))
	opDelete.Handle(m, admin(s, func(a *rpc.Int32) (rpc.Void, error) { return rpc.Void{}, s.Delete(int32(*a)) }))
	opClone.Handle(m, admin(s, func(a *CloneArgs) (rpc.Uint32, error) { return as[rpc.Uint32](s.Clone(*a)) }))
	opReClone.Handle(m, admin(s, func(a *Numbered) (rpc.Void, error) { return rpc.Void{}, s.ReClone(a.Transaction, a.Number) }))
	opSetFlags.Handle(m, admin(s, func(a *Numbered) (rpc.Void, error) { return rpc.Void{}, s.SetFlags(a.Transaction, a.Number) }))
	opGetFlags.Handle(m, admin(s, func(a *rpc.Int32) (rpc.Int32, error) { return as[rpc.Int32](s.Flags(int32(*a))) }))
	opName.Handle(m, admin(s, func(a *rpc.Int32) (String, error) {
		name, err := s.Name(int32(*a))
		return String(name), err
	}))
	opStatus.Handle(m, admin(s, func(a *rpc.Int32) (Status, error) { return s.Status(int32(*a)) }))
	opSetIDs.Handle(m, admin(s, func(a *IDsArgs) (rpc.Void, error) { return rpc.Void{}, s.SetIDs(*a) }))
	opSetDate.Handle(m, admin(s, func(a *Numbered) (rpc.Void, error) { return rpc.Void{}, s.SetDate(a.Transaction, afs.Time(a.Number)) }))
	opSetInfo.Handle(m, admin(s, func(a *InfoArgs) (rpc.Void, error) { return rpc.Void{}, s.SetInfo(*a) }))
	opSize.Handle(m, admin(s, func(a *Numbered) (Size, error) { return as[Size](s.Size(a.Transaction)) }))
	opDump.HandleStream(m, func(ctx context.Context, a *Numbered, data io.ReadWriter) (rpc.Void, error) {
		if !s.Admin.Allows(ctx) {
			return rpc.Void{}, ErrAccess
		}
		return rpc.Void{}, s.Dump(a.Transaction, data)
	})
	opRestore.HandleStream(m, func(ctx context.Context, a *RestoreArgs, data io.ReadWriter) (rpc.Void, error) {
		if !s.Admin.Allows(ctx) {
			return rpc.Void{}, ErrAccess
		}
		return rpc.Void{}, s.Restore(*a, data)
	})
}

// admin is the handler of an operation that is for administrators only.
func admin[A, R any](s *server, f func(*A) (R, error)) func(context.Context, *A) (R, error) {
	return func(ctx context.Context, a *A) (R, error) {
		if !s.Admin.Allows(ctx) {
			var none R
			return none, ErrAccess
		}
		return f(a)
	}
}

type number interface {
	~int32 | ~uint32 | ~uint64
}

// as converts a result.
func as[To, From number](v From, err error) (To, error) { return To(v), err }

// narrow is a size for an OldPartition.
func narrow(n int64) int32 { return int32(min(n, math.MaxInt32)) }

func (s *server) oldPartitions() OldPartitions {
	var o OldPartitions
	for i := range o.Numbers {
		o.Numbers[i] = -1
	}
	for i, n := range s.Partitions() {
		if i < len(o.Numbers) {
			o.Numbers[i] = n
		}
	}
	return o
}

// list lists volumes, with their IDs only if the place has no flag in place of a volume.
func (s *server) list(_ context.Context, a *Place) (Infos, error) {
	all, err := s.List(a.Partition)
	if a.Volume == 0 {
		for i := range all {
			all[i] = Info{ID: all[i].ID}
		}
	}
	return Infos{all}, err
}

func (s *server) listOne(_ context.Context, a *Place) (Infos, error) {
	i, err := s.Volume(a.Partition, a.Volume)
	return Infos{[]Info{i}}, err
}

// extended adds counters, all of which are 0.
func extended(l Infos, err error) (XInfos, error) {
	x := XInfos{make([]XInfo, len(l.Infos))}
	for i := range l.Infos {
		x.Infos[i].Info = l.Infos[i]
	}
	return x, err
}
