//go:build linux

package dropin

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/rnic"
	"urnic/stag"
)

// A null region has one key for two regions of 4 GiB that are as long as an SGE can be: one that is read, as zeros, and one
// that is written, whose memory are the same few pages again and again. Requests that are posted with the key name
// one of them instead, whatever their address is.

const (
	nullLength = 1 << 32
	sinkLength = 16 << 20 // of the memory in which writes end
)

// nullMemory is what the null regions of a process share.
type nullMemory struct {
	once       sync.Once
	err        error
	zeros, end uint64 // addresses

	sinks sync.Map     // STag of a null region (uint32): that of the region which is written (uint32)
	n     atomic.Int32 // of sinks
}

// open maps the memory.
func (n *nullMemory) open() error {
	n.once.Do(func() {
		zeros, err := unix.MmapPtr(-1, 0, nil, nullLength, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			n.err = err
			return
		}
		end, err := mapSink()
		if err != nil {
			n.err = err
			_ = unix.MunmapPtr(zeros, nullLength) // nobody has seen it
			return
		}
		n.zeros, n.end = uint64(uintptr(zeros)), uint64(uintptr(end))
	})
	return n.err
}

// close unmaps the memory. Nobody uses it any more.
func (n *nullMemory) close() {
	n.once.Do(func() { n.err = syscall.ENODEV })
	if n.err == nil {
		_ = unix.MunmapPtr(pointer(n.zeros), nullLength)
		_ = unix.MunmapPtr(pointer(n.end), nullLength)
	}
}

// mapSink maps a file of sinkLength again and again.
func mapSink() (unsafe.Pointer, error) {
	fd, err := unix.MemfdCreate("urnic-null", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // the mappings stay
	if err := unix.Ftruncate(fd, sinkLength); err != nil {
		return nil, err
	}
	base, err := unix.MmapPtr(-1, 0, nil, nullLength, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	for at := uintptr(0); at < nullLength; at += sinkLength {
		if _, err := unix.MmapPtr(fd, 0, unsafe.Add(base, at), sinkLength, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
			_ = unix.MunmapPtr(base, nullLength) // nobody has seen it
			return nil, err
		}
	}
	return base, nil
}

// NullMRAlloc makes a region that reads as zeros, and drops what is written. It tells handle and STag in r.
func (e *Engine) NullMRAlloc(pd Handle, r *Region) Errno {
	if e.pds.get(pd) == nil || r == nil {
		return syscall.EINVAL
	}
	if err := e.null.open(); err != nil {
		return e.refuse(errno(err), "allocate a null region: %v", err)
	}
	zeros := Region{Addr: e.null.zeros, Length: nullLength, Access: accessZeroBased}
	if number := e.MRReg(pd, &zeros); number != ok {
		return number
	}
	sink := Region{Addr: e.null.end, Length: nullLength, Access: accessZeroBased | accessLocalWrite}
	if number := e.MRReg(pd, &sink); number != ok {
		_ = e.MRDereg(Handle(zeros.MR)) // nobody has used it
		return number
	}
	m := e.regions.get(Handle(zeros.MR))
	m.mu.Lock()
	m.sink = Handle(sink.MR)
	m.mu.Unlock()
	e.null.sinks.Store(zeros.STag, sink.STag)
	e.null.n.Add(1)
	*r = zeros
	return ok
}

// nullDereg closes what else a null region has. The caller holds mu.
func (m *region) nullDereg(e *Engine) {
	if m.sink == 0 {
		return
	}
	e.null.sinks.Delete(m.is.STag)
	e.null.n.Add(-1)
	_ = e.MRDereg(m.sink) // no window is bound to it
}

// withNull returns an SGL in which null regions stand for their memory, written or read.
func (e *Engine) withNull(sgl []rnic.SGE, written bool) []rnic.SGE {
	if e.null.n.Load() == 0 {
		return sgl
	}
	for i := range sgl {
		if _, is := e.null.sinks.Load(uint32(sgl[i].LKey)); is {
			return e.replaceNull(sgl, written)
		}
	}
	return sgl
}

// replaceNull is withNull for a list that names one. The program's own stays as it is.
func (e *Engine) replaceNull(sgl []rnic.SGE, written bool) []rnic.SGE {
	out := make([]rnic.SGE, len(sgl))
	for i, s := range sgl {
		if sink, is := e.null.sinks.Load(uint32(s.LKey)); is {
			if s.Addr = 0; written {
				s.LKey = stag.STag(sink.(uint32))
			}
		}
		out[i] = s
	}
	return out
}

// replaceNullOf does that to an SGL which is a copy of the program's.
func (e *Engine) replaceNullOf(sgl []SGE, written bool) {
	if e.null.n.Load() == 0 {
		return
	}
	for i := range sgl {
		s := &sgl[i]
		if sink, is := e.null.sinks.Load(s.LKey); is {
			if s.Addr = 0; written {
				s.LKey = sink.(uint32)
			}
		}
	}
}

// replaceNulls does it to receives.
func (e *Engine) replaceNulls(wrs []rnic.RecvWR) {
	if e.null.n.Load() == 0 {
		return
	}
	for i := range wrs {
		wrs[i].SGL = e.withNull(wrs[i].SGL, true)
	}
}
