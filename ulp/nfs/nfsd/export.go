package nfsd

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// An Export is a filesystem that clients may mount.
type Export struct {
	// Path is what clients mount, such as "/srv/data": absolute, and without "." and
	// "..". File handles depend on it, so that it should stay what it is.
	Path string

	// FS is what they get. Who made it closes it, once the server is not used any more.
	// One whose files can't be given to their creators (vfs.Features.SetOwner) wants
	// SquashAll, with the owner of its files as the anonymous user.
	FS vfs.FS

	ReadOnly bool

	// Allowed are the addresses of clients; none stands for all addresses.
	Allowed []netip.Prefix

	Squash Squash

	// User is whom SquashOthers takes for who it is.
	User uint32

	// AnonUID and AnonGID are the anonymous user; 0 stands for Nobody.
	AnonUID, AnonGID uint32

	// Insecure takes calls of all connections, and believes each who it says it is of.
	// Without it, calls are taken from ports below 1024, which only the superuser of a
	// host can use; and of processes of this host, if Config.Identify finds out their
	// user, calls of that user. See Server.Admit.
	Insecure bool
}

// An export is one that was added.
type export struct {
	Export
	number   uint32
	features vfs.Features
	losses   vfs.LossCounter // nil: FS is none
}

// exports are all of them, by what they are found by. It is not changed.
type exports struct {
	paths   map[string]*export
	numbers map[uint32]*export
}

// ErrExport says that there can't be such an export.
var ErrExport = errors.New("nfsd: no such export is possible")

// AddExport lets a filesystem be mounted, at once. It returns ErrExport if the path is
// none, or taken, or too similar to that of another export.
func (s *Server) AddExport(e Export) error {
	switch {
	case e.FS == nil:
		return fmt.Errorf("%w: %q has no filesystem", ErrExport, e.Path)
	case !path.IsAbs(e.Path) || path.Clean(e.Path) != e.Path || len(e.Path) > nfs3.MaxMountPath || strings.ContainsRune(e.Path, 0):
		return fmt.Errorf("%w: %q is no absolute path, such as /srv/data, of at most %d bytes", ErrExport, e.Path, nfs3.MaxMountPath)
	}
	if e.AnonUID == 0 {
		e.AnonUID = Nobody
	}
	if e.AnonGID == 0 {
		e.AnonGID = Nobody
	}
	if e.Squash == SquashOthers && e.AnonUID == e.User {
		e.AnonUID-- // the others are not the user
	}
	e.Allowed = slices.Clone(e.Allowed)
	x := &export{Export: e, number: exportNumber(e.Path), features: e.FS.Features()}
	x.losses, _ = e.FS.(vfs.LossCounter)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.exports.Load()
	if other := old.numbers[x.number]; other != nil {
		return fmt.Errorf("%w: %q can't be distinguished from %q: choose another path", ErrExport, e.Path, other.Path)
	}
	next := &exports{paths: maps.Clone(old.paths), numbers: maps.Clone(old.numbers)}
	next.paths[e.Path], next.numbers[x.number] = x, x
	s.exports.Store(next)
	return nil
}

// RemoveExport takes an export away: its file handles become stale. It reports whether
// there was one. Calls that are being carried out still use the filesystem.
func (s *Server) RemoveExport(p string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.exports.Load()
	x := old.paths[p]
	if x == nil {
		return false
	}
	next := &exports{paths: maps.Clone(old.paths), numbers: maps.Clone(old.numbers)}
	delete(next.paths, p)
	delete(next.numbers, x.number)
	s.exports.Store(next)
	s.forget() // what has the path next may know nothing of what this one lost
	return true
}

// allows reports whether a client at that address may use the export.
func (x *export) allows(a netip.Addr) bool {
	if len(x.Allowed) == 0 {
		return true
	}
	return slices.ContainsFunc(x.Allowed, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (x *export) readOnly() bool { return x.ReadOnly || x.features.ReadOnly }

// addrOf returns the address of a client, or one that is in no prefix.
func addrOf(a net.Addr) netip.Addr { return addrPortOf(a).Addr().Unmap().WithZone("") }

func addrPortOf(a net.Addr) (ap netip.AddrPort) {
	switch t := a.(type) {
	case nil:
	case interface{ AddrPort() netip.AddrPort }: // *net.TCPAddr, without making a string
		ap = t.AddrPort()
	default:
		ap, _ = netip.ParseAddrPort(a.String())
	}
	return ap
}
