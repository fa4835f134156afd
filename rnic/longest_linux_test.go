//go:build linux && (amd64 || arm64)

package rnic_test

import (
	"math"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/rnic"
)

// One SGE can name a message of any length, where there are as many addresses.
func TestSGECanNameTheLongestMessage(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	mem, err := unix.Mmap(-1, 0, math.MaxUint32+1, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE) // which nobody touches
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	}()
	mr, err := p.RegisterMemory(rnic.Memory{Pointer: unsafe.Pointer(&mem[0]), Length: len(mem)}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	q := l.qp(p, rnic.QPAttr{})
	postSend(t, q, rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{mr.SGE(1, math.MaxUint32)}})
	wantRefused(t, "one octet more", q.PostSend(rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{mr.SGE(0, math.MaxUint32+1)}}), nil, "bounds")
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if err := mr.Close(); err != nil {
		t.Error(err)
	}
}
