package ubik

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

const (
	maxAddrs    = 256 // addresses in a State
	maxAltAddrs = 255 // further addresses in a Peer
)

// A Version is the version of a database, or the number of a transaction.
type Version struct {
	Epoch   afs.Time // when the sync site was elected
	Counter int32
}

// XDR encodes or decodes v.
func (v *Version) XDR(x *rpc.XDR) {
	v.Epoch.XDR(x)
	x.Int32(&v.Counter)
}

// A State is what a server knows of the database and of the election.
type State struct {
	Now afs.Time

	LastYesTime  afs.Time // when this server last voted for a sync site
	LastYesHost  afs.Addr // for whom
	LastYesState int32    // whether that one was the sync site
	LastYesClaim afs.Time // when that vote began

	LowestHost afs.Addr // that this server would vote for
	LowestTime afs.Time
	SyncHost   afs.Addr // the sync site that was last heard of
	SyncTime   afs.Time

	SyncVersion     Version
	SyncTransaction Version

	IsSyncSite    int32
	SyncSiteUntil afs.Time
	Servers       int32 // that take part in the vote

	LockedPages      int32
	WriteLockedPages int32
	LocalVersion     Version
	ActiveWrite      int32
	TransactionCount int32
	AnyReadLocks     int32
	AnyWriteLocks    int32
	RecoveryState    int32 // see RecoveryComplete
	InTransaction    int32
	InWrite          int32
	EpochTime        afs.Time // when this server started

	Addrs []afs.Addr // of this server
}

// RecoveryComplete is the RecoveryState of a sync site whose servers all have its version.
const RecoveryComplete = 0x1f

// XDR encodes or decodes s.
func (s *State) XDR(x *rpc.XDR) {
	s.old(x)
	addrs(x, &s.Addrs, maxAddrs)
}

// old encodes or decodes what servers before AFS 3.5 send.
func (s *State) old(x *rpc.XDR) {
	s.Now.XDR(x)
	s.LastYesTime.XDR(x)
	s.LastYesHost.XDR(x)
	x.Int32(&s.LastYesState)
	s.LastYesClaim.XDR(x)
	s.LowestHost.XDR(x)
	s.LowestTime.XDR(x)
	s.SyncHost.XDR(x)
	s.SyncTime.XDR(x)
	s.SyncVersion.XDR(x)
	s.SyncTransaction.XDR(x)
	x.Int32(&s.IsSyncSite)
	s.SyncSiteUntil.XDR(x)
	x.Int32(&s.Servers)
	x.Int32(&s.LockedPages)
	x.Int32(&s.WriteLockedPages)
	s.LocalVersion.XDR(x)
	for _, v := range []*int32{
		&s.ActiveWrite, &s.TransactionCount, &s.AnyReadLocks, &s.AnyWriteLocks, &s.RecoveryState, &s.InTransaction, &s.InWrite,
	} {
		x.Int32(v)
	}
	s.EpochTime.XDR(x)
}

// A Peer is what the sync site knows of another server.
type Peer struct {
	Addr            afs.Addr
	LastVoteTime    afs.Time
	LastBeaconSent  afs.Time
	LastVote        int32 // whether it was yes
	RemoteVersion   Version
	Current         int32 // whether its database has the current version
	BeaconSinceDown int32
	Up              int32
	Others          []afs.Addr // its other addresses
}

// XDR encodes or decodes p.
func (p *Peer) XDR(x *rpc.XDR) {
	p.old(x)
	addrs(x, &p.Others, maxAltAddrs)
}

func (p *Peer) old(x *rpc.XDR) {
	p.Addr.XDR(x)
	p.LastVoteTime.XDR(x)
	p.LastBeaconSent.XDR(x)
	x.Int32(&p.LastVote)
	p.RemoteVersion.XDR(x)
	x.Int32(&p.Current)
	x.Int32(&p.BeaconSinceDown)
	x.Int32(&p.Up)
}

// addrs is an array of n addresses, of which the first are in a and the others 0.
func addrs(x *rpc.XDR, a *[]afs.Addr, n int) {
	if len(*a) > n && !x.Decoding() {
		x.Fail("addresses", rpc.ErrLong)
		return
	}
	var all [maxAddrs]afs.Addr
	if !x.Decoding() {
		copy(all[:], *a)
	}
	rpc.Uint32Array(x, all[:n])
	if !x.Decoding() {
		return
	}
	*a = nil
	for _, v := range all[:n] {
		if v == 0 { // no address follows
			break
		}
		*a = append(*a, v)
	}
}

// An OldState is a State without addresses.
type OldState struct{ State }

// XDR encodes or decodes s.
func (s *OldState) XDR(x *rpc.XDR) { s.old(x) }

// An OldPeer is a Peer without other addresses.
type OldPeer struct{ Peer }

// XDR encodes or decodes p.
func (p *OldPeer) XDR(x *rpc.XDR) { p.old(x) }

// An ExtendedState also says whether the server is a clone, which can't become sync site.
type ExtendedState struct {
	State
	Clone bool
}

// XDR encodes or decodes s.
func (s *ExtendedState) XDR(x *rpc.XDR) {
	s.State.XDR(x)
	x.Bool(&s.Clone)
}

// An ExtendedPeer also says whether the server is a clone.
type ExtendedPeer struct {
	Peer
	Clone bool
}

// XDR encodes or decodes p.
func (p *ExtendedPeer) XDR(x *rpc.XDR) {
	p.Peer.XDR(x)
	x.Bool(&p.Clone)
}
