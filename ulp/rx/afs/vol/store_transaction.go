package vol

import (
	"io"
	"math"
	"slices"
	"time"

	"urnic/ulp/rx/afs"
)

// A transaction is a client's hold on a volume.
type transaction struct {
	id        int32
	at        place
	access    int32
	flags     uint32
	began     time.Time
	used      time.Time
	procedure string
	code      int32
	calls     int // that use it now
}

// begin begins a transaction with a volume that exists.
func (s *Store) begin(at place, access int32, procedure string) (int32, error) {
	now := s.now()
	for id, t := range s.transactions {
		if t.calls == 0 && now.Sub(t.used) > idleTime {
			delete(s.transactions, id)
		}
	}
	if s.busy(at) {
		return 0, ErrVolumeBusy
	}
	if len(s.transactions) >= maxTogether {
		return 0, ErrMemory
	}
	s.last = max(1, (s.last+1)&math.MaxInt32)
	for s.transactions[s.last] != nil {
		s.last = max(1, (s.last+1)&math.MaxInt32)
	}
	s.transactions[s.last] = &transaction{id: s.last, at: at, access: access, began: now, used: now, procedure: procedure}
	return s.last, nil
}

// busy reports whether a volume has a transaction.
func (s *Store) busy(at place) bool {
	for _, t := range s.transactions {
		if t.at == at {
			return true
		}
	}
	return false
}

// Begin begins a transaction.
func (s *Store) Begin(id uint32, partition, access int32) (int32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.partitions, partition) {
		return 0, ErrIllegalPartition
	}
	at := place{partition, id}
	if s.volumes[at] == nil {
		return 0, afs.ErrNoVolume
	}
	return s.begin(at, access, "TransCreate")
}

// Create makes a volume and begins a transaction.
func (s *Store) Create(a CreateArgs) (Created, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !validName(a.Name):
		return Created{}, ErrBadName
	case a.Type < ReadWrite || a.Type > Backup:
		return Created{}, ErrBadOperation
	case !slices.Contains(s.partitions, a.Partition):
		return Created{}, ErrIllegalPartition
	case len(s.volumes) >= maxVolumes:
		return Created{}, afs.ErrDiskFull
	}
	id := s.newID(a.ID)
	at := place{a.Partition, id}
	if s.volumes[at] != nil {
		return Created{}, afs.ErrVolumeExists
	}
	t, err := s.begin(at, Offline, "CreateVolume")
	if err != nil {
		return Created{}, err
	}
	i := Info{Name: a.Name, ID: id, Type: a.Type, ParentID: a.Parent, Quota: defaultQuota, Status: OK}
	if i.ParentID == 0 {
		i.ParentID = id
	}
	i.Created = afs.TimeOf(s.now())
	i.Copied, i.Updated = i.Created, i.Created
	s.volumes[at] = &volume{Info: i}
	s.transactions[t].flags = DeleteOnSalvage
	return Created{id, t}, nil
}

// newID is an ID that a client wants, or a new one.
func (s *Store) newID(id uint32) uint32 {
	if id == 0 {
		id = s.nextID
	}
	s.nextID = max(s.nextID, id+1)
	return id
}

// use calls f with a transaction and its volume.
func (s *Store) use(id int32, procedure string, f func(*transaction, *volume) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.transactions[id]
	if t == nil {
		return afs.ErrNoEntry
	}
	t.used, t.procedure = s.now(), procedure
	v := s.volumes[t.at]
	if v == nil {
		return ErrNoSuchVolume
	}
	return f(t, v)
}

// End ends a transaction.
func (s *Store) End(id int32) (code int32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.transactions[id]
	if t == nil {
		return 0, afs.ErrNoEntry
	}
	delete(s.transactions, id)
	return t.code, nil
}

// Delete removes the volume of a transaction.
func (s *Store) Delete(id int32) error {
	return s.use(id, "DeleteVolume", func(t *transaction, _ *volume) error {
		t.flags |= Deleted
		s.remove(t.at)
		return nil
	})
}

// SetFlags sets the flags of a transaction's volume. Without DeleteOnSalvage and OutOfService,
// it is on-line.
func (s *Store) SetFlags(id int32, flags uint32) error {
	return s.use(id, "SetFlags", func(t *transaction, v *volume) error {
		t.flags = flags
		v.InUse = 1
		if flags&(DeleteOnSalvage|OutOfService) != 0 {
			v.InUse = 0
		}
		return nil
	})
}

// Transactions returns all transactions.
func (s *Store) Transactions() []TransactionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []TransactionInfo
	for _, t := range s.transactions {
		i := TransactionInfo{
			ID: t.id, Used: afs.TimeOf(t.used), Began: afs.TimeOf(t.began), Code: t.code, Volume: t.at.id, Partition: t.at.partition,
			Access: int16(t.access), VolumeFlags: int8(t.flags), Procedure: t.procedure,
		}
		if t.calls > 0 {
			i.CallValid = 1
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b TransactionInfo) int { return int(a.ID) - int(b.ID) })
	return all
}

// hold marks a transaction as used by a call that lasts, and returns its volume.
func (s *Store) hold(id int32, procedure string) (v *volume, at place, release func(error), err error) {
	var held *transaction
	err = s.use(id, procedure, func(t *transaction, found *volume) error {
		held, v, at = t, found, t.at
		t.calls++
		return nil
	})
	return v, at, func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		held.calls--
		held.used = s.now()
		if err != nil {
			held.code = ErrFailed.Number
		}
	}, err
}

// Dump writes a dump of a transaction's volume.
func (s *Store) Dump(id int32, w io.Writer) (err error) {
	v, _, release, err := s.hold(id, "Dump")
	if err != nil {
		return err
	}
	defer func() { release(err) }()
	s.mu.Lock()
	p := v.content()
	s.mu.Unlock()
	_, err = w.Write(p)
	return err
}

// Size returns the size of a dump of a transaction's volume.
func (s *Store) Size(id int32) (n uint64, err error) {
	err = s.use(id, "GetSize", func(_ *transaction, v *volume) error {
		n = uint64(len(v.content()))
		return nil
	})
	return n, err
}

// Restore replaces the volume of a transaction by a dump.
func (s *Store) Restore(a RestoreArgs, r io.Reader) (err error) {
	v, at, release, err := s.hold(a.Transaction, "Restore")
	if err != nil {
		return err
	}
	defer func() { release(err) }()
	p, err := s.readAll(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.volumes[at] != v { // it was deleted meanwhile
		s.used -= int64(len(p))
		return ErrNoSuchVolume
	}
	s.used -= int64(len(v.dump))
	v.dump, v.source = p, nil
	v.Size, v.Files = kib(len(p)), 1
	v.Updated = afs.TimeOf(s.now())
	if c := a.Cookie; validName(c.Name) {
		v.Name, v.Type = c.Name, c.Type
		v.ParentID, v.CloneID = c.Parent, c.Clone
	}
	return nil
}

const readSize = 64 << 10 // bytes of a dump that are read at once

// readAll reads a dump, as far as there is room for it.
func (s *Store) readAll(r io.Reader) (p []byte, err error) {
	taken := 0
	defer func() {
		if err != nil {
			s.release(taken)
		}
	}()
	p = make([]byte, 0, readSize)
	for {
		if len(p) == cap(p) {
			p = slices.Grow(p, readSize)
		}
		n, err := r.Read(p[len(p):min(cap(p), len(p)+readSize)])
		if n > 0 {
			if err := s.reserve(n); err != nil {
				return nil, err
			}
			taken += n
			p = p[:len(p)+n]
		}
		if err == io.EOF {
			return p, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
