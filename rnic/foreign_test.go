//go:build linux

package rnic_test

import (
	"bytes"
	"math"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// mapping returns memory that Go does not own.
func mapping(t *testing.T, n int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	return mem
}

// withHole returns memory of which only the first page and the last one are mapped. The
// runtime may map something of its own into the hole, but does not fill one of this size;
// so at the end those two pages alone are unmapped.
func withHole(t *testing.T, page int) []byte {
	t.Helper()
	const size = 100 << 20
	p, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	mem := unsafe.Slice((*byte)(p), size)
	unmap := func(from, to int) {
		if err := unix.MunmapPtr(unsafe.Pointer(&mem[from]), uintptr(to-from)); err != nil {
			t.Error(err)
		}
	}
	unmap(page, size-page)
	t.Cleanup(func() {
		unmap(0, page)
		unmap(size-page, size)
	})
	return mem
}

func TestMemoryThatGoDoesNotOwnIsRegisteredByAddress(t *testing.T) {
	mem := mapping(t, 8*unix.Getpagesize())
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mr, err := p.B.PD.RegisterMemory(rnic.Memory{Pointer: unsafe.Pointer(&mem[3]), Length: len(mem) - 3}, everyRight, nil)
		if err != nil {
			t.Fatal(err)
		}
		if mr.Base() != uint64(uintptr(unsafe.Pointer(&mem[3]))) {
			t.Errorf("base 0x%x", mr.Base())
		}
		data := pattern(20_000, 9)
		writeAndReadBack(t, p, mr, 1000, data)
		if !bytes.Equal(mem[1003:1003+len(data)], data) {
			t.Error("the octets are not where they belong")
		}
		// As the source of a Send and as a receive.
		own, err := p.A.PD.RegisterMemory(rnic.Memory{Pointer: unsafe.Pointer(&mem[0]), Length: len(mem), ZeroBased: true}, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, len(data))
		p.B.Recv(t, rnic.RecvWR{SGL: []rnic.SGE{p.B.Register(t, buf, rnic.LocalWrite).SGE(0, len(buf))}})
		p.A.Send(t, rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{own.SGE(1003, len(data))}})
		rnictest.Want(t, p.B.RecvCQ, 0)
		if !bytes.Equal(buf, data) {
			t.Error("what was received differs")
		}
	})
}

// A message has at most 2^32-1 bytes (RFC 5041 §5.2), however many SGEs could
// say more.
func TestMessageThatIsTooLongIsRefused(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	mem, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE) // which nobody touches
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	}()
	mr, err := p.RegisterMemory(rnic.Memory{Pointer: unsafe.Pointer(&mem[0]), Length: len(mem)}, rnic.LocalWrite, nil)
	if err != nil {
		t.Fatal(err)
	}
	q := l.qp(p, rnic.QPAttr{})
	all := mr.SGE(0, len(mem))
	long := []rnic.SGE{all, all, all, all} // one byte too many
	for _, op := range []rnic.Opcode{rnic.OpSend, rnic.OpWrite} {
		wantRefused(t, op.String(), q.PostSend(rnic.SendWR{Op: op, SGL: long}), nil, "4294967296 octets")
	}
	wantRefused(t, "receive", q.PostRecv(rnic.RecvWR{SGL: long}), nil, "4294967296 octets")
	long[3].Length--
	if err := q.PostSend(rnic.SendWR{Op: rnic.OpSend, SGL: long}); err != nil {
		t.Errorf("the longest message: %v", err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if err := mr.Close(); err != nil {
		t.Error(err)
	}
}

func TestReregistrationVerifiesTheRightToTheBuffer(t *testing.T) {
	mem := mapping(t, unix.Getpagesize())
	if err := unix.Mprotect(mem, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	p := newLab(t, rnic.Config{}).domain()
	m := rnic.Memory{Pointer: unsafe.Pointer(&mem[0]), Length: len(mem)}
	mr, err := p.RegisterMemory(m, rnic.RemoteRead, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := door.Reregister(mr, p, m, rnic.LocalWrite)
	wantRefused(t, "reregister", err, nil, "right to the buffer", "can't be written")
	if n != nil || mr.Access() != rnic.RemoteRead {
		t.Errorf("%v; the region grants %v", n, mr.Access())
	}
}

// The same right is asked for when a request makes a region valid: the request is refused.
func TestFastRegistrationOfMemoryOutOfReachIsRefused(t *testing.T) {
	mem := mapping(t, unix.Getpagesize())
	if err := unix.Mprotect(mem, unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	l := newLab(t, rnic.Config{})
	p := l.domain()
	fast := rnic.FastRegister{MR: l.allocated(p), Memory: rnic.Memory{Pointer: unsafe.Pointer(unsafe.SliceData(mem)), Length: 8}}
	err := l.qp(p, rnic.QPAttr{}).PostSend(rnic.SendWR{Op: rnic.OpFastRegister, Register: fast})
	wantRefused(t, "post", err, nil, "right to the buffer", "can't be read")
}

// "MUST verify that the Non-Privileged ULP has the right to access a specific
// Data Buffer before allowing an STag [...] to be associated with" it: RFC 5040
// §8.1.2 rule 4, RFC 5041 §8.3.2 rule 4, RFC 5042 §7.
func TestRegistrationVerifiesTheRightToTheBuffer(t *testing.T) {
	page := unix.Getpagesize()
	mem := mapping(t, 5*page)
	for i, prot := range []int{unix.PROT_READ | unix.PROT_WRITE, unix.PROT_READ, unix.PROT_READ | unix.PROT_WRITE, unix.PROT_NONE, unix.PROT_READ | unix.PROT_WRITE} {
		if err := unix.Mprotect(mem[i*page:(i+1)*page], prot); err != nil {
			t.Fatal(err)
		}
	}
	hole := withHole(t, page)
	at := func(b []byte, off int) unsafe.Pointer { return unsafe.Pointer(&b[off]) }
	for _, tt := range []struct {
		name    string
		pointer unsafe.Pointer
		length  int
		access  rnic.Access
		words   string // "": it may be registered
	}{
		{"all of a page", at(mem, 0), page, everyRight, ""},
		{"an octet beyond what may be written", at(mem, 0), page + 1, rnic.LocalWrite, "can't be written"},
		{"read-only for remote write", at(mem, page), 8, rnic.LocalWrite | rnic.RemoteWrite, "can't be written"},
		{"read-only for remote atomics", at(mem, page), 8, rnic.LocalWrite | rnic.RemoteAtomic, "can't be written"},
		{"read-only for remote read", at(mem, page), page, rnic.RemoteRead, ""},
		{"three pages for remote read", at(mem, 0), 3 * page, rnic.RemoteRead, ""},
		{"an octet that can't be read", at(mem, 0), 3*page + 1, 0, "can't be read"},
		{"no right at all", at(mem, 3*page), 1, 0, "can't be read"},
		{"behind that", at(mem, 4*page), page, everyRight, ""},
		{"a hole", at(hole, 0), len(hole), rnic.RemoteRead, "not mapped"},
		{"before a hole", at(hole, 0), page, everyRight, ""},
		{"half of the address space", at(mem, 4*page), math.MaxInt, 0, "memcheck"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				m := rnic.Memory{Pointer: tt.pointer, Length: tt.length}
				mr, err := p.A.PD.RegisterMemory(m, tt.access, nil)
				if tt.words != "" {
					wantRefused(t, "register", err, nil, "right to the buffer", tt.words)
				} else if err != nil || !mr.Valid() {
					t.Errorf("register: %v", err)
				}

				fast, err := p.A.PD.AllocMR(math.MaxInt32)
				if err != nil {
					t.Fatal(err)
				}
				err = p.A.QP.PostSend(rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{MR: fast, Memory: m, Access: tt.access, Key: fast.STag().Key() + 1}})
				if tt.words != "" {
					wantRefused(t, "fast registration", err, nil, "right to the buffer", tt.words)
				} else if err != nil {
					t.Errorf("fast registration: %v", err)
				} else if rnictest.Want(t, p.A.SendCQ, 0); !fast.Valid() {
					t.Error("not valid after fast registration")
				}
				if s := p.A.QP.State(); s != rnic.RTS {
					t.Errorf("the stream is in state %v", s)
				}
			})
		})
	}
}
