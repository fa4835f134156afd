package fs

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// A Config says how a Server serves its volumes.
type Config struct {
	// Admin says who has all rights. Nobody has if it is nil.
	Admin afs.Admin

	// Break tells a client that files have changed: see package cb. If it is nil, clients
	// are promised nothing about volumes that can change.
	Break func(ctx context.Context, client netip.AddrPort, files []afs.FID)

	// Now is the clock: time.Now if it is nil.
	Now func() time.Time
}

// A Server has volumes in memory. Its methods may be called at the same time.
type Server struct {
	Config
	mu       sync.Mutex
	volumes  map[uint32]*volume
	promises promises
	stats    statistics

	receiving uint64 // bytes that calls have announced
}

// NewServer returns a Server without volumes.
func NewServer(c Config) *Server {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{Config: c, volumes: make(map[uint32]*volume), promises: promises{files: make(map[afs.FID]map[netip.AddrPort]time.Time)}}
	s.stats.start = afs.TimeOf(c.Now())
	return s
}

func (s *Server) time() afs.Time { return afs.TimeOf(s.Now()) }

// AddVolume adds an empty volume.
func (s *Server) AddVolume(c VolumeConfig) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ID == 0 || s.volumes[c.ID] != nil {
		return fmt.Errorf("fs: volume %d: %w", c.ID, afs.ErrVolumeExists)
	}
	s.volumes[c.ID] = newVolume(c, s.time())
	return nil
}

// Put adds a file to a volume, and the directories of its path. The Server keeps data.
func (s *Server) Put(volume uint32, path string, data []byte) (afs.FID, error) {
	return s.put(volume, path, File, fileMode, data)
}

// PutLink adds a symbolic link to a volume, and the directories of its path.
func (s *Server) PutLink(volume uint32, path, target string) (afs.FID, error) {
	return s.put(volume, path, Symlink, linkMode, []byte(target))
}

// PutMount adds a mount point of another volume, and the directories of its path.
func (s *Server) PutMount(volume uint32, path, mounted string) (afs.FID, error) {
	return s.put(volume, path, Symlink, fileMode, []byte("#"+mounted+"."))
}

func (s *Server) put(id uint32, path string, typ, mode uint32, data []byte) (afs.FID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.volumes[id]
	if v == nil {
		return afs.FID{}, afs.ErrNoVolume
	}
	dirs, name := split(path)
	d, err := v.at(dirs, s.time())
	if err != nil {
		return afs.FID{}, err
	}
	n, err := v.makeFile(d, name, typ, mode, data, s.time())
	if err != nil {
		return afs.FID{}, err
	}
	return n.fid, nil
}

// find returns a file and its volume, if the caller has rights to it.
func (s *Server) find(ctx context.Context, f afs.FID, rights uint32) (*volume, *vnode, error) {
	v := s.volumes[f.Volume]
	if v == nil {
		return nil, nil, afs.ErrNoVolume
	}
	n := v.files[f.Vnode]
	if n == nil || n.fid.Unique != f.Unique {
		return nil, nil, afs.ErrNoVnode
	}
	if rights&^ReadOnly != 0 && v.ReadOnly {
		return nil, nil, ErrReadOnly
	}
	if s.rights(ctx, v)&rights != rights {
		return nil, nil, ErrAccess
	}
	return v, n, nil
}

// rights are those of a caller.
func (s *Server) rights(ctx context.Context, v *volume) uint32 {
	r := v.Rights
	if s.Admin.Allows(ctx) {
		r = All
	}
	if v.ReadOnly {
		r &= ReadOnly
	}
	return r
}

// status is a file's status for a caller.
func (s *Server) status(ctx context.Context, v *volume, n *vnode) Status {
	st := n.status
	st.CallerAccess, st.AnonymousAccess = s.rights(ctx, v), v.Rights
	st.Length = uint64(len(n.content()))
	if n.lockUntil <= s.time() {
		st.Locks = 0
	}
	return st
}

// sync is what a server reports about a volume with each answer.
func (v *volume) sync() Sync { return Sync{[6]uint32{uint32(v.made)}} }

func (s *Server) promised(ctx context.Context, f afs.FID, rights uint32) (Promised, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, n, err := s.find(ctx, f, rights)
	if err != nil {
		return Promised{}, nil, err
	}
	return Promised{s.status(ctx, v, n), s.promise(ctx, v, f), v.sync()}, n.content(), nil
}

func (s *Server) acl(ctx context.Context, f *afs.FID) (ACL, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, n, err := s.find(ctx, *f, LookUp)
	if err != nil {
		return ACL{}, err
	}
	text := fmt.Sprintf("2\n0\nsystem:administrators\t%d\nsystem:anyuser\t%d\n", All, v.Rights)
	return ACL{text, Changed{s.status(ctx, v, n), v.sync()}}, nil
}

// statuses returns the status of many files. An error ends the call, or stands in place of the
// file's status.
func (s *Server) statuses(ctx context.Context, files []afs.FID, inline bool) (Statuses, error) {
	var all Statuses
	for _, f := range files {
		p, _, err := s.promised(ctx, f, LookUp)
		if err != nil && !inline {
			return Statuses{}, err
		}
		if err != nil {
			code, _ := rpc.AbortCode(err)
			p = Promised{Status: Status{Code: code}}
		} else {
			all.Sync = p.Sync
		}
		all.Statuses = append(all.Statuses, p.Status)
		all.Callbacks = append(all.Callbacks, p.Callback)
	}
	return all, nil
}

func (s *Server) volumeStatus(_ context.Context, id *rpc.Uint32) (VolumeStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.volumes[uint32(*id)]
	if v == nil {
		return VolumeStatus{}, afs.ErrNoVolume
	}
	return v.volumeStatus(), nil
}

// Volumes returns the volumes, by their IDs.
func (s *Server) Volumes() []VolumeStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []VolumeStatus
	for _, v := range s.volumes {
		all = append(all, v.volumeStatus())
	}
	slices.SortFunc(all, func(a, b VolumeStatus) int { return int(int64(a.ID) - int64(b.ID)) })
	return all
}
