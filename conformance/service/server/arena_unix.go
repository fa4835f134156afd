//go:build unix

package server

import (
	"os"

	"golang.org/x/sys/unix"
)

var pageSize = uint64(os.Getpagesize())

// backing is a file that has no name, of which each block maps a part.
type backing struct {
	file *os.File // nil until there is a block
	size int64
}

func (k *backing) open(b *block, size int) (err error) {
	if k.file == nil {
		if k.file, err = anonymous(); err != nil {
			return err
		}
	}
	if end := b.off + int64(size); end > k.size {
		if err := k.file.Truncate(end); err != nil {
			return err
		}
		k.size = end
	}
	b.mem, err = unix.Mmap(int(k.file.Fd()), b.off, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return os.NewSyscallError("mmap", err)
}

func (k *backing) close(b *block) {
	_ = unix.Munmap(b.mem) // which open has mapped
	b.mem = nil
}

func (k *backing) end() {
	if k.file != nil {
		_ = k.file.Close() // nobody will read it
	}
}

func (k *backing) read(b *block, p []byte, off int) error {
	_, err := k.file.ReadAt(p, b.off+int64(off))
	return err
}

func (k *backing) write(b *block, p []byte, off int) error {
	_, err := k.file.WriteAt(p, b.off+int64(off))
	return err
}
