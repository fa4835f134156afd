package server

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

var pageSize = uint64(os.Getpagesize())

// backing is memory of the process, which the kernel reads and writes as it does
// that of another one.
type backing struct{}

func (backing) open(b *block, size int) error {
	at, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_COMMIT|windows.MEM_RESERVE, windows.PAGE_READWRITE)
	if err != nil {
		return os.NewSyscallError("VirtualAlloc", err)
	}
	b.mem = unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size)
	return nil
}

func (backing) close(b *block) {
	_ = windows.VirtualFree(uintptr(unsafe.Pointer(&b.mem[0])), 0, windows.MEM_RELEASE) // which open has allocated
	b.mem = nil
}

func (backing) end() {}

func (backing) read(b *block, p []byte, off int) error {
	if len(p) == 0 {
		return nil
	}
	return windows.ReadProcessMemory(windows.CurrentProcess(), uintptr(unsafe.Pointer(&b.mem[0]))+uintptr(off), &p[0], uintptr(len(p)), nil)
}

func (backing) write(b *block, p []byte, off int) error {
	if len(p) == 0 {
		return nil
	}
	return windows.WriteProcessMemory(windows.CurrentProcess(), uintptr(unsafe.Pointer(&b.mem[0]))+uintptr(off), &p[0], uintptr(len(p)), nil)
}
