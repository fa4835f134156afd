package stag

import (
	"fmt"
	"strings"

	"urnic/pd"
)

// Access is a set of rights to memory.
type Access uint8

// The rights. Reading locally is always allowed.
const (
	LocalWrite   Access = 1 << iota // receives, and the sinks of RDMA Reads and atomics
	RemoteRead                      // RDMA Read of a peer
	RemoteWrite                     // RDMA Write of a peer; requires LocalWrite too
	RemoteAtomic                    // atomic operations of a peer; requires LocalWrite too
	BindWindow                      // memory windows may be bound to the region
	// RemoteInvalidate lets a peer invalidate the STag by Send with
	// Invalidate, if no other stream can use it (RFC 5040 §8.1.1 rule 7).
	RemoteInvalidate

	allAccess    = LocalWrite | remoteAccess | BindWindow | RemoteInvalidate
	remoteAccess = RemoteRead | RemoteWrite | RemoteAtomic
)

// writes reports whether an access that needs these rights changes memory.
func (a Access) writes() bool { return a&(LocalWrite|RemoteWrite|RemoteAtomic) != 0 }

// String lists the rights.
func (a Access) String() string {
	var names []string
	for _, r := range []struct {
		bit  Access
		name string
	}{
		{LocalWrite, "local write"},
		{RemoteRead, "remote read"},
		{RemoteWrite, "remote write"},
		{RemoteAtomic, "remote atomic"},
		{BindWindow, "bind window"},
		{RemoteInvalidate, "remote invalidate"},
	} {
		if a&r.bit != 0 {
			names = append(names, r.name)
		}
	}
	if rest := a &^ allAccess; rest != 0 {
		names = append(names, fmt.Sprintf("unknown 0x%x", uint8(rest)))
	}
	if len(names) == 0 {
		return "local read"
	}
	return strings.Join(names, ", ")
}

// check refuses invalid combinations: a consumer exposes memory only to the
// extent that it may use it itself (RFC 5041 §8.3 rule 4).
func (a Access) check() error {
	switch {
	case a&^allAccess != 0:
		return &RegisterError{Rule: "access rights", Reason: "unknown rights: " + a.String()}
	case a&(RemoteWrite|RemoteAtomic) != 0 && a&LocalWrite == 0:
		return &RegisterError{Rule: "access rights", Reason: "remote write and remote atomic access want local write access too"}
	}
	return nil
}

// A Stream names one stream of a device. The zero Stream names none.
type Stream uint32

// A Scope is the set of streams that use or may use an STag: all of one
// protection domain, or only one of them (RFC 5041 §8.2). Stream is zero for
// all of them.
type Scope struct {
	Domain *pd.Domain
	Stream Stream
}

// admits reports whether an STag of scope s may be used by user.
func (s Scope) admits(user Scope) bool {
	return s.Domain == user.Domain && (s.Stream == 0 || s.Stream == user.Stream)
}
