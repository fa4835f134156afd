package fs

import (
	"context"
	"net/netip"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

const (
	promiseTime = time.Hour
	maxPromises = 100000
	breakTime   = 10 * time.Second // for a client to answer
)

// promises are who is notified when a file changes, and until when.
type promises struct {
	files map[afs.FID]map[netip.AddrPort]time.Time
	n     int
}

// forget removes promises that have expired.
func (p *promises) forget(now time.Time) {
	for f, clients := range p.files {
		for c, until := range clients {
			if !until.After(now) {
				p.giveUp(f, c)
			}
		}
	}
}

// giveUp removes a promise.
func (p *promises) giveUp(f afs.FID, c netip.AddrPort) {
	clients := p.files[f]
	if _, ok := clients[c]; !ok {
		return
	}
	delete(clients, c)
	p.n--
	if len(clients) == 0 {
		delete(p.files, f)
	}
}

// promise makes the caller a promise, unless there are too many or nobody could keep it.
func (s *Server) promise(ctx context.Context, v *volume, f afs.FID) afs.Callback {
	none := afs.Callback{Version: callbackVersion, Type: afs.CallbackDropped}
	given := afs.Callback{Version: callbackVersion, Expires: uint32(promiseTime / time.Second), Type: afs.CallbackShared}
	if v.ReadOnly { // it does not change
		return given
	}
	client, now := rpc.Peer(ctx), s.Now()
	if s.Break == nil || !client.IsValid() {
		return none
	}
	if s.promises.n >= maxPromises {
		s.promises.forget(now)
	}
	if s.promises.n >= maxPromises {
		return none
	}
	clients := s.promises.files[f]
	if clients == nil {
		clients = make(map[netip.AddrPort]time.Time)
		s.promises.files[f] = clients
	}
	if _, ok := clients[client]; !ok {
		s.promises.n++
	}
	clients[client] = now.Add(promiseTime)
	return given
}

// broken returns who must be notified that files have changed, besides the caller who does it.
func (s *Server) broken(ctx context.Context, files ...afs.FID) map[netip.AddrPort][]afs.FID {
	tell := make(map[netip.AddrPort][]afs.FID)
	caller, now := rpc.Peer(ctx), s.Now()
	for _, f := range files {
		for client, until := range s.promises.files[f] {
			if client == caller {
				continue
			}
			if until.After(now) {
				tell[client] = append(tell[client], f)
			}
			s.promises.giveUp(f, client)
		}
	}
	return tell
}

// tell calls clients back. The change is answered when they know, or have not answered for
// some time.
func (s *Server) tell(ctx context.Context, clients map[netip.AddrPort][]afs.FID) {
	if s.Break == nil || len(clients) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, breakTime)
	defer cancel()
	for client, files := range clients {
		s.Break(ctx, client, files)
	}
}

func (s *Server) giveUp(ctx context.Context, c *afs.Callbacks) (rpc.Void, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range c.FIDs {
		s.promises.giveUp(f, rpc.Peer(ctx))
	}
	return rpc.Void{}, nil
}

func (s *Server) giveUpAll(ctx context.Context, _ *rpc.Void) (rpc.Void, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.promises.files {
		s.promises.giveUp(f, rpc.Peer(ctx))
	}
	return rpc.Void{}, nil
}
