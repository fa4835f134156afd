package vfs

import (
	"context"
	"slices"
)

// A Caller is the user that a call is made for, as the server takes them: after it has
// replaced those that it does not believe.
type Caller struct {
	UID, GID uint32
	Groups   []uint32 // besides GID
}

// In reports whether the caller is in a group.
func (c *Caller) In(gid uint32) bool {
	return c.GID == gid || slices.Contains(c.Groups, gid)
}

// WithCaller returns a context for calls of an FS that are made for c. An FS that sets
// Features.Callers carries them out with the rights of c, and no more; others ignore it.
// A context without a caller stands for the process itself.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return &callerContext{ctx, c}
}

// CallerOf returns the caller of a context, or nil. Nobody may change it.
func CallerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}

type callerKey struct{}

// A callerContext is context.WithValue in one allocation.
type callerContext struct {
	context.Context
	caller Caller
}

func (c *callerContext) Value(key any) any {
	if key == (callerKey{}) {
		return &c.caller
	}
	return c.Context.Value(key)
}

// An Access is a set of what a caller may do with a file.
type Access uint8

// What a caller may do, as the mode of a file and its access control list say.
const (
	AccessExec  Access = 1 // of a directory: search it
	AccessWrite Access = 2
	AccessRead  Access = 4
)

// A Checker is an FS that sets Features.Callers.
type Checker interface {
	// Access returns which of want the caller of the context may do. It changes nothing.
	Access(ctx context.Context, h Handle, want Access) (Access, error)
}
