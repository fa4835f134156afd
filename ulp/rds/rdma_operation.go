package rds

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"urnic/rnic"
	"urnic/stag"
	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// MaxLocal is how many buffers an operation can have.
const MaxLocal = 16

// Why operations are refused, or fail.
var (
	// ErrNotSupported says that the transport, or the peer, has no such operation.
	ErrNotSupported = machine.ErrNotSupported
	// ErrOperation says that an operation can't be meant.
	ErrOperation = errors.New("rds: an operation moves 0 bytes to 1 MiB in at most 16 buffers, within 64 bits of offsets, and is used once")
	// ErrSilent says that a message is silent and not empty.
	ErrSilent = errors.New("rds: a silent operation has no message: neither data nor a cookie can go with it")
	// ErrUnknownOutcome says that a connection was lost before an operation was known to be done.
	ErrUnknownOutcome = machine.ErrOperation
	// ErrUnanswered says that the peer has not answered a Read or an atomic in time.
	ErrUnanswered = errors.New("rds: the peer has not answered the RDMA operation in time")
)

// A Status says how an operation has ended. The numbers are Linux's.
type Status uint8

// The statuses.
const (
	Success     Status = iota // a Read or an atomic is answered; a Write is done, and the peer has what came behind it
	RemoteError               // the peer has refused it: the cookie, the range, or the operation
	Canceled                  // the socket was closed
	Dropped                   // a connection was lost, or the peer did not answer: it may be done or not
	OtherError                // it could not be carried out
)

var statusNames = [...]string{"success", "remote error", "canceled", "dropped", "other error"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// An OperationError says why an operation has failed.
type OperationError struct {
	Op     string // such as "RDMA Write"
	Status Status
	Err    error
}

func (e *OperationError) Error() string {
	return fmt.Sprintf("rds: %s: %v: %v", e.Op, e.Status, e.Err)
}

// Unwrap returns the cause.
func (e *OperationError) Unwrap() error { return e.Err }

// An Operation is an RDMA operation on memory of the receiver of a message, which is
// carried out before the message is delivered. It is for one message: see With.
//
// Its buffers belong to the node from the call of Send until Done is closed: those of a Write
// must not be changed, those of a Read not be used.
type Operation struct {
	op     rnic.Opcode
	remote rnic.Remote
	local  [][]byte
	atomic rnic.Atomic
	bad    bool

	used     atomic.Bool
	done     chan struct{}
	err      error  // valid when done is closed
	original uint64 // the same

	// Under the node's lock.
	posted  bool // the RNIC has the buffers
	settled bool // how it ends is known
	link    *iwarpLink
}

func newOperation(op rnic.Opcode, cookie wire.Cookie, offset uint64, local [][]byte) *Operation {
	o := &Operation{
		op: op, local: local, done: make(chan struct{}),
		remote: rnic.Remote{STag: stag.STag(cookie.RKey()), TO: uint64(cookie.Offset()) + offset},
	}
	n := uint64(0)
	for _, b := range local {
		n += uint64(len(b))
	}
	o.bad = len(local) > MaxLocal || n > MaxRegion || o.remote.TO < offset || o.remote.TO+n < n
	return o
}

// Write writes buffers, one behind the other, to the memory that a cookie names, from an offset
// on. It is done before the message is delivered.
func Write(cookie wire.Cookie, offset uint64, local ...[]byte) *Operation {
	return newOperation(rnic.OpWrite, cookie, offset, local)
}

// Read reads from the memory that a cookie names, from an offset on, until the buffers
// are full. The message is sent when the data are there, and so is what the socket sends to the same
// port behind it.
func Read(cookie wire.Cookie, offset uint64, local ...[]byte) *Operation {
	return newOperation(rnic.OpRead, cookie, offset, local)
}

// FetchAdd adds to 8 bytes of memory, which hold a number in the byte order of the
// receiver's machine. mask has the top bit of each field of the number; 0 is one field of 64 bits.
// The message is sent when the answer is there.
func FetchAdd(cookie wire.Cookie, offset, add, mask uint64) *Operation {
	o := newOperation(rnic.OpFetchAdd, cookie, offset, nil)
	o.atomic = rnic.Atomic{Add: add, AddMask: mask}
	return o
}

// CmpSwap sets 8 bytes of memory to swap if they hold compare. The masks say which bits are compared
// and set; 0 stands for all. The message is sent when the answer is there.
func CmpSwap(cookie wire.Cookie, offset, compare, swap, compareMask, swapMask uint64) *Operation {
	o := newOperation(rnic.OpCmpSwap, cookie, offset, nil)
	o.atomic = rnic.Atomic{Compare: compare, Swap: swap, CompareMask: compareMask, SwapMask: swapMask}
	return o
}

// With carries an operation out before the message, which tells the receiver the R_Key
// (Message.RKey) unless the operation is an atomic, as in Linux. Send returns ErrNotSupported
// over a transport without RDMA and to the node itself, and ErrOperation if the operation can't be meant.
func With(op *Operation) SendOption { return func(o *sendOptions) { o.op = op } }

// Silent sends no message behind the operation: the receiver does not learn of it.
func Silent() SendOption { return func(o *sendOptions) { o.silent = true } }

// Done is closed when the operation has ended, and its buffers are the caller's again. It is never
// closed if Send has refused the message.
func (o *Operation) Done() <-chan struct{} { return o.done }

// Wait waits for the end of the operation. The error is nil, that of the context, or an
// *OperationError.
func (o *Operation) Wait(ctx context.Context) error {
	if ctx == nil {
		return ErrNoContext
	}
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Status reports how the operation has ended. Done must be closed.
func (o *Operation) Status() Status {
	if e, ok := errors.AsType[*OperationError](o.err); ok {
		return e.Status
	}
	return Success
}

// Original returns what the memory held before an atomic that has succeeded. Done must
// be closed.
func (o *Operation) Original() uint64 { return o.original }

// isAtomic reports whether the operation must not be done twice.
func (o *Operation) isAtomic() bool { return o.op == rnic.OpFetchAdd || o.op == rnic.OpCmpSwap }

// prepare makes what the machine wants for a message with the operation.
func (o *sendOptions) prepare(msg *Message) error {
	if o.op == nil {
		if o.silent {
			return ErrSilent
		}
		return nil
	}
	switch {
	case o.silent && (len(msg.Data) > 0 || msg.Cookie != 0):
		return ErrSilent
	case o.op.bad || o.op.done == nil || !o.op.used.CompareAndSwap(false, true):
		return ErrOperation
	}
	o.Op = &machine.Operation{Arg: o.op, Answered: o.op.op != rnic.OpWrite, Once: o.op.isAtomic(), Silent: o.silent}
	if !o.op.isAtomic() {
		o.Extensions.Has |= 1 << wire.ExtRDMA
		o.Extensions.RKey = uint32(o.op.remote.STag)
	}
	return nil
}

// settle says how the operation ends. The node is locked.
func (o *Operation) settle(err error) {
	o.settled = true
	if o.link != nil {
		o.link.settled()
	}
	if err != nil {
		o.err = &OperationError{Op: o.op.String(), Status: statusOf(err), Err: err}
	}
	o.finish()
}

// finish reports that the operation has ended, if it has and the RNIC has given the
// buffers back. The node is locked.
func (o *Operation) finish() {
	if o.settled && !o.posted {
		o.link, o.local = nil, nil
		close(o.done)
	}
}

// statusOf returns what an error is in Linux's terms.
func statusOf(err error) Status {
	var unreachable *machine.Unreachable
	switch {
	case errors.Is(err, errRefused):
		return RemoteError
	case errors.Is(err, machine.ErrSocketClosed):
		return Canceled
	case errors.Is(err, ErrUnknownOutcome), errors.Is(err, ErrUnanswered), errors.Is(err, machine.ErrPeerRestarted), errors.As(err, &unreachable):
		return Dropped
	}
	return OtherError
}

// aligned reports whether a buffer begins at a multiple of 8 bytes.
func aligned(b []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 == 0 }
