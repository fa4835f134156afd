//go:build linux

package dropin

import (
	"errors"
	"unsafe"

	"urnic/internal/host/memfault"
)

// A usable is what datagrams may use of a region.
type usable struct {
	pd     *protectionDomain // nil: nothing
	key    uint32
	base   uint64 // the address by which programs name the first byte
	length uint64
	memory unsafe.Pointer
	write  bool
	remote bool // peers may write
}

// usableAs tells datagrams what a region has become. It had another STag, or 0. When it returns,
// nobody copies what was there before. The caller holds the region's mu, or nobody knows it yet.
func (e *Engine) usableAs(m *region, was uint32) {
	is := &m.is
	u := usable{pd: m.pd, key: is.STag, base: is.Addr, length: is.Length, memory: pointer(is.Addr), write: is.Access&accessLocalWrite != 0, remote: is.Access&accessRemoteWrite != 0}
	switch {
	case is.Access&accessZeroBased != 0 || is.IOVA == 0:
		u.base = 0
	case is.IOVA != is.Addr:
		u.base = is.IOVA
	}
	if m.gone {
		u = usable{}
	}
	m.use.Lock()
	m.now = u
	m.use.Unlock()
	if was != 0 {
		e.keys.CompareAndDelete(was, m)
	}
	if !m.gone {
		e.keys.Store(is.STag, m)
	}
}

var errKey = errors.New("an SGE names no memory that the queue pair may use")

// A keyring finds regions by their keys. It remembers the one of last time.
type keyring struct {
	engine *Engine
	pd     *protectionDomain
	last   *region
	key    uint32
}

func (k *keyring) find(key uint32) *region {
	if k.last == nil || k.key != key {
		m, known := k.engine.keys.Load(key)
		if !known {
			return nil
		}
		k.last, k.key = m.(*region), key
	}
	return k.last
}

// copy copies between part of an SGE, from at on, and b: into the program's memory if write is
// set.
func (k *keyring) copy(s *SGE, at uint32, b []byte, write bool) error {
	m := k.find(s.LKey)
	if m == nil {
		return errKey
	}
	m.use.RLock()
	defer m.use.RUnlock()
	u := &m.now
	offset := s.Addr - u.base
	if u.pd != k.pd || u.key != s.LKey || write && !u.write || s.Addr < u.base || offset > u.length || uint64(s.Length) > u.length-offset {
		k.last = nil // perhaps another region has the key now
		return errKey
	}
	memory := unsafe.Slice((*byte)(unsafe.Add(u.memory, offset+uint64(at))), len(b))
	if write {
		return memfault.Copy(memory, b)
	}
	return memfault.Copy(b, memory)
}

// place copies b to an address of a region that peers may write.
func (k *keyring) place(rkey uint32, address uint64, b []byte) error {
	m := k.find(rkey)
	if m == nil {
		return errRKey
	}
	m.use.RLock()
	defer m.use.RUnlock()
	u := &m.now
	offset := address - u.base
	if u.pd != k.pd || u.key != rkey || !u.write || !u.remote || address < u.base || offset > u.length || uint64(len(b)) > u.length-offset {
		k.last = nil // as in copy
		return errRKey
	}
	return memfault.Copy(unsafe.Slice((*byte)(unsafe.Add(u.memory, offset)), len(b)), b)
}

var errRKey = errors.New("an RDMA Write names no memory that the peer may write")

// move copies between b and the bytes of an SGL from at on. It reports errShort if the SGL is too short.
func (k *keyring) move(sgl []SGE, at uint32, b []byte, write bool) error {
	for i := range sgl {
		s := &sgl[i]
		if at >= s.Length {
			at -= s.Length
			continue
		}
		if len(b) == 0 {
			return nil
		}
		n := min(int(s.Length-at), len(b))
		if err := k.copy(s, at, b[:n], write); err != nil {
			return err
		}
		b, at = b[n:], 0
	}
	if len(b) > 0 {
		return errShort
	}
	return nil
}

var errShort = errors.New("the SGL is too short")

// lengthOf returns the bytes of an SGL.
func lengthOf(sgl []SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Length)
	}
	return n
}
