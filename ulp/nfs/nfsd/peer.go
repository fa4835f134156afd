package nfsd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
)

// A Peer is what this host knows of who is at the other end of a connection.
type Peer struct {
	// Local says that it is a process of this host.
	Local bool

	// Known says that the user of that process is known: UID, in the groups Groups.
	Known  bool
	UID    uint32
	Groups []uint32 // the first is the user's own
}

// ErrPeer says that no calls are taken of a peer.
var ErrPeer = errors.New("nfsd: no export is for this host")

// reserved is the first port that programs without privileges may use.
const reserved = 1024

// A trust says what calls of a connection may claim.
type trust uint8

const (
	// trustNothing: it could be anybody. Only an Export that is Insecure takes its calls.
	trustNothing trust = iota

	// trustClaims: the superuser of its host has made the connection, so its calls are
	// those of whom they say.
	trustClaims

	// trustUser: a process of this host has made it: its calls can be those of its user.
	trustUser

	// trustNobody: a process of this host has made it, and its user can't be known
	// here: its calls are those of the anonymous user.
	trustNobody
)

// A peer is who is at the other end of a connection, as Admit has found out.
type peer struct {
	trust trust
	Peer
}

// Those of whom nothing but the port counts.
var (
	strangers  = &peer{}
	privileged = &peer{trust: trustClaims}
)

// Admit decides about a connection of a transport, which should ask it by its
// configuration: oncrpc.ServeTCPConfig.Admit, rpcrdma.Config.Admit. It refuses peers that
// no export allows. Of others it finds out what their calls may claim; without it, that
// depends on the port alone.
func (s *Server) Admit(local, remote net.Addr) (oncrpc.Admission, error) {
	if !s.Allows(remote) {
		return oncrpc.Admission{}, fmt.Errorf("%w: %v", ErrPeer, addrOf(remote))
	}
	p := byPort(remote)
	if s.identify == nil {
		return oncrpc.Admission{Peer: p}, nil
	}
	who, err := s.identify(local, remote)
	switch {
	case err != nil:
		s.log.Info("nfsd: who has made a connection can't be found out", "client", remote, "error", err)
		p = strangers
	case !who.Local:
	case !who.Known:
		p = &peer{trustNobody, who}
	case who.UID == 0:
		p = &peer{trustClaims, who}
	default:
		p = &peer{trustUser, who}
	}
	a := oncrpc.Admission{Peer: p}
	if p.Known {
		a.Account = fmt.Sprintf("user %d of this host", p.UID)
	}
	return a, nil
}

// Allows reports whether any export allows a client's address. Listeners can ask it before
// anything is read; Admit does.
func (s *Server) Allows(remote net.Addr) bool { return s.exports.Load().allow(addrOf(remote)) }

// byPort judges a peer by its port: on most systems only the superuser may use the low ones.
func byPort(remote net.Addr) *peer {
	if port := addrPortOf(remote).Port(); port > 0 && port < reserved {
		return privileged
	}
	return strangers
}

// peerOf returns who has made a call.
func peerOf(x *oncrpc.Exchange) *peer {
	if p, ok := x.Peer.(*peer); ok {
		return p
	}
	return byPort(x.Remote)
}

// claim returns whose call it is: what its credential says, as far as the peer can be
// trusted with that; nil stands for the anonymous user. It returns nfs3.ErrAcces if the
// peer can't have made such a call.
func (x *export) claim(c *call) (*oncrpc.Sys, error) {
	if x.Insecure {
		return c.sys, nil
	}
	switch c.peer.trust {
	case trustClaims:
		return c.sys, nil
	case trustNobody:
		return nil, nil
	case trustUser:
		if c.sys == nil {
			return nil, nil
		}
		if c.sys.UID != c.peer.UID {
			return nil, nfs3.ErrAcces
		}
		return c.peer.limit(c.sys, x.AnonGID), nil
	case trustNothing:
	}
	return nil, nfs3.ErrAcces
}

// limit returns a credential without the groups that the peer's user is not in.
func (p *peer) limit(sys *oncrpc.Sys, anon uint32) *oncrpc.Sys {
	in := func(gid uint32) bool { return slices.Contains(p.Groups, gid) }
	if in(sys.GID) && !slices.ContainsFunc(sys.Groups, func(g uint32) bool { return !in(g) }) {
		return sys
	}
	own := *sys
	if !in(own.GID) {
		if own.GID = anon; len(p.Groups) > 0 {
			own.GID = p.Groups[0]
		}
	}
	own.Groups = slices.DeleteFunc(slices.Clone(sys.Groups), func(g uint32) bool { return !in(g) })
	return &own
}

// allow reports whether any export allows an address.
func (e *exports) allow(a netip.Addr) bool {
	for _, x := range e.paths {
		if x.allows(a) {
			return true
		}
	}
	return false
}
