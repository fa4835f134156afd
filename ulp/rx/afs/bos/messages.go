package bos

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

const maxString = 256 // bytes of a string

// String is a name.
type String string

// XDR encodes or decodes s.
func (s *String) XDR(x *rpc.XDR) { x.String((*string)(s), maxString) }

// States of a process: what it is, and what it should be.
const (
	Down int32 = iota
	Running
	ShuttingDown
	StartingUp
)

// CreateArgs are the arguments of CreateBnode.
type CreateArgs struct {
	Type, Name string
	Parameters [6]string // the commands, then a notifier
}

// XDR encodes or decodes a.
func (a *CreateArgs) XDR(x *rpc.XDR) {
	x.String(&a.Type, maxString)
	x.String(&a.Name, maxString)
	for i := range a.Parameters {
		x.String(&a.Parameters[i], maxString)
	}
}

// Named is the name of a process and a number: a state, or the index of a parameter.
type Named struct {
	Name   string
	Number int32
}

// XDR encodes or decodes n.
func (n *Named) XDR(x *rpc.XDR) {
	x.String(&n.Name, maxString)
	x.Int32(&n.Number)
}

// State is a state and words that describe it further.
type State struct {
	Number int32
	Text   string
}

// XDR encodes or decodes s.
func (s *State) XDR(x *rpc.XDR) {
	x.Int32(&s.Number)
	x.String(&s.Text, maxString)
}

// Flags of an Info.
const (
	HasCore       int32 = 1
	TooManyErrors int32 = 2
	BadAccess     int32 = 4 // the modes of directories are wrong
)

// Info is what an overseer reports about a process.
type Info struct {
	Type        string
	Goal        int32 // until the overseer is started again
	FileGoal    int32 // from then on
	Started     afs.Time
	Starts      int32
	LastExit    afs.Time
	LastError   afs.Time
	ErrorCode   int32
	ErrorSignal int32
	Flags       int32
}

// XDR encodes or decodes i.
func (i *Info) XDR(x *rpc.XDR) {
	x.String(&i.Type, maxString)
	x.Int32(&i.Goal)
	x.Int32(&i.FileGoal)
	i.Started.XDR(x)
	x.Int32(&i.Starts)
	i.LastExit.XDR(x)
	i.LastError.XDR(x)
	x.Int32(&i.ErrorCode)
	x.Int32(&i.ErrorSignal)
	x.Int32(&i.Flags)
	x.Skip(8)
}

// Strings are four strings, of which the first names an error.
type Strings struct {
	Error string
	Spare [3]string
}

// XDR encodes or decodes s.
func (s *Strings) XDR(x *rpc.XDR) {
	x.String(&s.Error, maxString)
	for i := range s.Spare {
		x.String(&s.Spare[i], maxString)
	}
}

// Key is a key of the machine. Key itself is zero, except over encrypted connections.
type Key struct {
	Version  int32
	Key      [8]int8
	Changed  afs.Time
	Micros   int32
	Checksum uint32
}

// XDR encodes or decodes k.
func (k *Key) XDR(x *rpc.XDR) {
	x.Int32(&k.Version)
	for i := range k.Key {
		x.Char(&k.Key[i])
	}
	k.Changed.XDR(x)
	x.Int32(&k.Micros)
	x.Uint32(&k.Checksum)
	x.Skip(1)
}

// Dates are when a file and its older copies were made.
type Dates struct{ New, Backup, Old afs.Time }

// XDR encodes or decodes d.
func (d *Dates) XDR(x *rpc.XDR) {
	d.New.XDR(x)
	d.Backup.XDR(x)
	d.Old.XDR(x)
}

// Parts of a RestartTime that count.
const (
	AtHour   int32 = 0x01
	AtMinute int32 = 0x02
	AtSecond int32 = 0x04
	AtDay    int32 = 0x08
	Never    int32 = 0x10
	Now      int32 = 0x20
)

// RestartTime is when something is done again and again.
type RestartTime struct {
	Mask                      int32
	Hour, Minute, Second, Day int16 // Sunday is day 0
}

// XDR encodes or decodes r.
func (r *RestartTime) XDR(x *rpc.XDR) {
	x.Int32(&r.Mask)
	x.Int16(&r.Hour)
	x.Int16(&r.Minute)
	x.Int16(&r.Second)
	x.Int16(&r.Day)
}
