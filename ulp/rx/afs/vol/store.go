package vol

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"urnic/ulp/rx/afs"
)

const (
	defaultQuota  = 5000 // KiB
	firstVolume   = 0x20000000
	partitionSize = 100 << 20 // KiB that a partition seems to have
	maxTogether   = 1000      // transactions at the same time
	idleTime      = 10 * time.Minute
)

// A Store is the partitions and volumes of a server, in memory. Its methods may be called at
// the same time.
type Store struct {
	mu           sync.Mutex
	partitions   []int32
	volumes      map[place]*volume
	transactions map[int32]*transaction
	last         int32  // transaction
	nextID       uint32 // of a volume
	used, most   int64  // bytes of dumps
	now          func() time.Time
}

type place struct {
	partition int32
	id        uint32
}

type volume struct {
	Info
	dump   []byte // nil before something was restored
	source func() []byte
}

// A StoreConfig describes a Store.
type StoreConfig struct {
	Partitions []int32          // 0 ("/vicepa") if empty
	MaxBytes   int64            // of dumps together: 256 MiB if it is 0
	Now        func() time.Time // the clock: time.Now if nil
}

const defaultMaxBytes = 256 << 20

// NewStore returns a Store without volumes.
func NewStore(c StoreConfig) *Store {
	s := &Store{
		partitions: slices.Sorted(slices.Values(c.Partitions)), volumes: make(map[place]*volume), transactions: make(map[int32]*transaction),
		nextID: firstVolume, most: cmp.Or(c.MaxBytes, defaultMaxBytes), now: c.Now,
	}
	if len(s.partitions) == 0 {
		s.partitions = []int32{0}
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// Add adds a volume whose dumps come from a function, in place of one with the same ID.
func (s *Store) Add(partition int32, i Info, dump func() []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.partitions, partition) {
		return ErrIllegalPartition
	}
	if !validName(i.Name) {
		return ErrBadName
	}
	i.Status, i.InUse = OK, 1
	s.volumes[place{partition, i.ID}] = &volume{Info: i, source: dump}
	s.nextID = max(s.nextID, i.ID+1)
	return nil
}

// Partitions returns the partitions.
func (s *Store) Partitions() []int32 { return slices.Clone(s.partitions) }

// Partition returns the partition with a name.
func (s *Store) Partition(name string) (Partition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.partitions {
		if PartitionName(n) != name {
			continue
		}
		var used int64
		for at, v := range s.volumes {
			if at.partition == n {
				used += int64(v.Size)
			}
		}
		return Partition{Name: name, Device: "memory", LockFD: -1, Size: partitionSize, Free: max(0, partitionSize-used)}, nil
	}
	return Partition{}, ErrIllegalPartition
}

// List returns the volumes of a partition, by their IDs.
func (s *Store) List(partition int32) ([]Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.partitions, partition) {
		return nil, ErrIllegalPartition
	}
	var all []Info
	for _, at := range slices.SortedFunc(maps.Keys(s.volumes), func(a, b place) int { return cmp.Compare(a.id, b.id) }) {
		if at.partition == partition {
			all = append(all, s.volumes[at].Info)
		}
	}
	return all, nil
}

// Volume returns a volume.
func (s *Store) Volume(partition int32, id uint32) (Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.volumes[place{partition, id}]
	if v == nil {
		return Info{}, afs.ErrNoDevice // as OpenAFS's server
	}
	return v.Info, nil
}

// Nuke removes a volume.
func (s *Store) Nuke(partition int32, id uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{partition, id}
	if s.volumes[at] == nil {
		return afs.ErrNoDevice
	}
	s.remove(at)
	return nil
}

func (s *Store) remove(at place) {
	if v := s.volumes[at]; v != nil {
		s.used -= int64(len(v.dump))
		delete(s.volumes, at)
	}
}

// reserve takes n bytes of what dumps may have together.
func (s *Store) reserve(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+int64(n) > s.most {
		return afs.ErrDiskFull
	}
	s.used += int64(n)
	return nil
}

// release gives back what reserve has taken.
func (s *Store) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= int64(n)
}

// content returns a dump of the volume. It does not change any more.
func (v *volume) content() []byte {
	switch {
	case v.dump != nil:
		return v.dump
	case v.source != nil:
		return v.source()
	}
	return emptyDump(&v.Info)
}

// clone returns a copy for another ID.
func (v *volume) clone(i Info) *volume {
	i.Files, i.Size, i.Quota = v.Files, v.Size, v.Quota
	c := &volume{Info: i, dump: v.dump, source: v.source}
	if c.dump != nil {
		c.dump = bytes.Clone(v.dump)
	}
	return c
}

// kib is a size in KiB.
func kib(n int) int32 { return int32((n + 1023) / 1024) }

// validName reports whether a volume may have a name.
func validName(name string) bool {
	return name != "" && len(name) < maxName && !strings.ContainsAny(name, "/\x00\n")
}
