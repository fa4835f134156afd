package vol

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

const maxString = 1024 // bytes of a name as an argument

// CreateArgs are the arguments of CreateVolume.
type CreateArgs struct {
	Partition int32
	Name      string
	Type      int32
	Parent    uint32
	ID        uint32 // 0 lets the server choose
}

// XDR encodes or decodes a.
func (a *CreateArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.Partition)
	x.String(&a.Name, maxString)
	x.Int32(&a.Type)
	x.Uint32(&a.Parent)
	x.Uint32(&a.ID)
}

// Created is a new volume and its transaction.
type Created struct {
	ID          uint32
	Transaction int32
}

// XDR encodes or decodes c.
func (c *Created) XDR(x *rpc.XDR) {
	x.Uint32(&c.ID)
	x.Int32(&c.Transaction)
}

// BeginArgs are the arguments of TransCreate.
type BeginArgs struct {
	Volume    uint32
	Partition int32
	Access    int32
}

// XDR encodes or decodes a.
func (a *BeginArgs) XDR(x *rpc.XDR) {
	x.Uint32(&a.Volume)
	x.Int32(&a.Partition)
	x.Int32(&a.Access)
}

// A Cookie names a volume that is restored.
type Cookie struct {
	Name          string
	Type          int32
	Clone, Parent uint32
}

// XDR encodes or decodes c.
func (c *Cookie) XDR(x *rpc.XDR) {
	x.Text(&c.Name, maxName)
	x.Int32(&c.Type)
	x.Uint32(&c.Clone)
	x.Uint32(&c.Parent)
}

// RestoreArgs are the arguments of Restore. The dump follows.
type RestoreArgs struct {
	Transaction, Flags int32
	Cookie             Cookie
}

// XDR encodes or decodes a.
func (a *RestoreArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.Transaction)
	x.Int32(&a.Flags)
	a.Cookie.XDR(x)
}

// Numbered are a transaction and a number: flags or a time.
type Numbered struct {
	Transaction int32
	Number      uint32
}

// XDR encodes or decodes n.
func (n *Numbered) XDR(x *rpc.XDR) {
	x.Int32(&n.Transaction)
	x.Uint32(&n.Number)
}

// Place is a partition and a volume on it, or how much to report its volumes.
type Place struct {
	Partition int32
	Volume    uint32
}

// XDR encodes or decodes p.
func (p *Place) XDR(x *rpc.XDR) {
	x.Int32(&p.Partition)
	x.Uint32(&p.Volume)
}

// CloneArgs are the arguments of Clone.
type CloneArgs struct {
	Transaction int32
	Purge       uint32 // a volume that is deleted, or 0
	Type        int32
	Name        string
	ID          uint32 // 0 lets the server choose
}

// XDR encodes or decodes a.
func (a *CloneArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.Transaction)
	x.Uint32(&a.Purge)
	x.Int32(&a.Type)
	x.String(&a.Name, maxString)
	x.Uint32(&a.ID)
}

// IDsArgs are the arguments of SetIdsTypes.
type IDsArgs struct {
	Transaction              int32
	Name                     string
	Type                     int32
	Parent, CloneID, Backups uint32
}

// XDR encodes or decodes a.
func (a *IDsArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.Transaction)
	x.String(&a.Name, maxString)
	x.Int32(&a.Type)
	x.Uint32(&a.Parent)
	x.Uint32(&a.CloneID)
	x.Uint32(&a.Backups)
}

// InfoArgs are the arguments of SetInfo: see Unchanged.
type InfoArgs struct {
	Transaction int32
	Info        Info
}

// XDR encodes or decodes a.
func (a *InfoArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.Transaction)
	a.Info.XDR(x)
}

// SignalArgs are the arguments of SignalRestore.
type SignalArgs struct {
	Name           string
	Type           int32
	Parent, Cloned uint32
}

// XDR encodes or decodes a.
func (a *SignalArgs) XDR(x *rpc.XDR) {
	x.String(&a.Name, maxString)
	x.Int32(&a.Type)
	x.Uint32(&a.Parent)
	x.Uint32(&a.Cloned)
}

// String is a name.
type String string

// XDR encodes or decodes s.
func (s *String) XDR(x *rpc.XDR) { x.String((*string)(s), maxString) }

// Size is the size of a dump in bytes.
type Size uint64

// XDR encodes or decodes s.
func (s *Size) XDR(x *rpc.XDR) { x.Uint64((*uint64)(s)) }

// A TransactionInfo is a transaction in a list of all.
type TransactionInfo struct {
	ID           int32
	Used, Began  afs.Time
	Code         int32 // of an error
	Volume       uint32
	Partition    int32
	Access       int16 // see Begin
	VolumeFlags  int8
	Flags        int8 // 1 if it will be ended
	Procedure    string
	CallValid    int32 // 1 if what follows has a meaning
	ReadNext     int32 // sequence numbers of packets
	TransmitNext int32
	LastSend     int32
	LastReceive  int32
}

const (
	maxProcedure       = 30
	transactionInfoLen = 4 * (14 + maxProcedure)
	maxTransactions    = 1 << 14 // in a list
)

// XDR encodes or decodes t.
func (t *TransactionInfo) XDR(x *rpc.XDR) {
	x.Int32(&t.ID)
	t.Used.XDR(x)
	t.Began.XDR(x)
	x.Int32(&t.Code)
	x.Uint32(&t.Volume)
	x.Int32(&t.Partition)
	x.Int16(&t.Access)
	x.Char(&t.VolumeFlags)
	x.Char(&t.Flags)
	x.Text(&t.Procedure, maxProcedure)
	x.Int32(&t.CallValid)
	x.Int32(&t.ReadNext)
	x.Int32(&t.TransmitNext)
	x.Int32(&t.LastSend)
	x.Int32(&t.LastReceive)
}

// TransactionInfos is a list of transactions.
type TransactionInfos struct{ Infos []TransactionInfo }

// XDR encodes or decodes t.
func (t *TransactionInfos) XDR(x *rpc.XDR) {
	rpc.Slice(x, &t.Infos, maxTransactions, transactionInfoLen)
}
