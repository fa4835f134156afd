package fs

import (
	"context"
	"encoding/binary"
	"io"
	"math"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// What a server here can, as its Capabilities: errors in AFS's own numbers, and files of more
// than 2 GiB.
const (
	canTranslate uint32 = 1
	can64        uint32 = 2
)

// NewMux serves a Server's volumes.
func NewMux(s *Server) *rpc.Mux {
	m := rpc.NewMux("fs")
	s.handleReads(m)
	s.handleChanges(m)
	s.handleStats(m)
	return m
}

func (s *Server) handleReads(m *rpc.Mux) {
	counted(m, s, opStatus, func(ctx context.Context, f *afs.FID) (Promised, error) {
		p, _, err := s.promised(ctx, *f, LookUp)
		return p, err
	})
	counted(m, s, opFetchACL, s.acl)
	counted(m, s, opBulk, func(ctx context.Context, f *FIDs) (Statuses, error) { return s.statuses(ctx, f.FIDs, false) })
	counted(m, s, opInlineBulk, func(ctx context.Context, f *FIDs) (Statuses, error) { return s.statuses(ctx, f.FIDs, true) })
	counted(m, s, opVolumeStatus, s.volumeStatus)
	counted(m, s, opRootVolume, func(context.Context, *rpc.Void) (String, error) { return "root.afs", nil })
	counted(m, s, opTime, s.clock)
	counted(m, s, opCapabilities, func(context.Context, *rpc.Void) (afs.Capabilities, error) {
		return afs.Capabilities{Words: []uint32{canTranslate | can64}}, nil
	})
	counted(m, s, opGiveUp, s.giveUp)
	counted(m, s, opGiveUpAll, s.giveUpAll)
	opFetch.HandleStream(m, func(ctx context.Context, a *FetchArgs, data io.ReadWriter) (Promised, error) {
		return s.fetch(ctx, a, 8, data)
	})
	opFetchOld.HandleStream(m, func(ctx context.Context, a *OldFetchArgs, data io.ReadWriter) (Promised, error) {
		return s.fetch(ctx, &FetchArgs{a.FID, int64(a.Offset), int64(a.Length)}, 4, data)
	})
}

// fetch sends how long the data is, in so many bytes, and the data.
func (s *Server) fetch(ctx context.Context, a *FetchArgs, lengthLen int, w io.Writer) (p Promised, err error) {
	defer func() { s.stats.count(opFetchOld.Opcode, err) }()
	if a.Offset < 0 || a.Length < 0 {
		return Promised{}, ErrInvalid
	}
	p, data, err := s.promised(ctx, a.FID, Read)
	if err != nil {
		return Promised{}, err
	}
	data = data[min(a.Offset, int64(len(data))):]
	data = data[:min(a.Length, int64(len(data)))]
	if lengthLen == 4 {
		data = data[:min(len(data), math.MaxInt32)]
	}
	length := binary.BigEndian.AppendUint64(nil, uint64(len(data)))
	if _, err := w.Write(length[8-lengthLen:]); err != nil {
		return Promised{}, err
	}
	if len(data) > 0 {
		if _, err := w.Write(data); err != nil {
			return Promised{}, err
		}
	}
	s.stats.fetched(len(data))
	return p, nil
}

func (s *Server) handleChanges(m *rpc.Mux) {
	counted(m, s, opCreate, func(ctx context.Context, a *CreateArgs) (Created, error) {
		return s.newFile(ctx, a, File, fileMode, nil)
	})
	counted(m, s, opMakeDir, func(ctx context.Context, a *CreateArgs) (Created, error) {
		return s.newFile(ctx, a, Directory, dirMode, nil)
	})
	counted(m, s, opSymlink, s.symlink)
	counted(m, s, opLink, s.link)
	counted(m, s, opRemove, func(ctx context.Context, a *NameArgs) (Changed, error) { return s.removeName(ctx, a, false) })
	counted(m, s, opRemoveDir, func(ctx context.Context, a *NameArgs) (Changed, error) { return s.removeName(ctx, a, true) })
	counted(m, s, opRename, s.rename)
	counted(m, s, opStoreStatus, s.storeStatus)
	counted(m, s, opSetLock, s.lock)
	counted(m, s, opExtendLock, s.extendLock)
	counted(m, s, opReleaseLock, s.unlock)
	opStore.HandleStream(m, s.receive)
	opStoreOld.HandleStream(m, func(ctx context.Context, a *OldStoreArgs, data io.ReadWriter) (Changed, error) {
		return s.receive(ctx, &StoreArgs{a.FID, a.Status, uint64(a.Offset), uint64(a.Length), uint64(a.FileLength)}, data)
	})
}

// receive reads data and puts it into a file.
func (s *Server) receive(ctx context.Context, a *StoreArgs, r io.ReadWriter) (c Changed, err error) {
	defer func() { s.stats.count(opStoreOld.Opcode, err) }()
	if err := s.checkStore(ctx, a); err != nil {
		return Changed{}, err
	}
	if err := s.announce(a.Length); err != nil {
		return Changed{}, err
	}
	defer s.received(a.Length)
	data, err := io.ReadAll(io.LimitReader(r, int64(a.Length)))
	if err != nil {
		return Changed{}, err
	}
	if uint64(len(data)) < a.Length {
		return Changed{}, ErrInvalid
	}
	s.stats.stored(len(data))
	return s.store(ctx, a, data)
}

const maxReceiving = 256 << 20 // bytes that all calls together announce

// announce reserves room for data that a client will send.
func (s *Server) announce(n uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > maxReceiving-s.receiving {
		return afs.ErrBusy
	}
	s.receiving += n
	return nil
}

// received gives the room back.
func (s *Server) received(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receiving -= n
}
