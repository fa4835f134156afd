//go:build !race

package sockio

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// An iov keeps its vector from call to call, which unix.Writev does not.
type iov struct{ vec []unix.Iovec }

func (v *iov) writev(fd int, pieces [][]byte) (int, unix.Errno) {
	if len(pieces) == 1 {
		return write(fd, pieces[0])
	}
	v.vec = v.vec[:0]
	for _, p := range pieces {
		if len(p) > 0 {
			e := unix.Iovec{Base: unsafe.SliceData(p)}
			e.SetLen(len(p))
			v.vec = append(v.vec, e)
		}
	}
	if len(v.vec) == 0 {
		return 0, 0
	}
	n, _, errno := unix.Syscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&v.vec[0])), uintptr(len(v.vec)))
	clear(v.vec) // holds no memory of the consumer
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// brief is how many octets can be written without telling the scheduler of the
// call: it is over before that would be worth while.
const brief = 16 << 10

func write(fd int, p []byte) (int, unix.Errno) {
	if len(p) == 0 {
		return 0, 0
	}
	var n uintptr
	var errno unix.Errno
	if len(p) <= brief {
		n, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	} else {
		n, _, errno = unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// recv does not tell the scheduler, as unix.Read does: who polls does so all the
// time, and the descriptor never makes one wait.
func recv(fd int, p []byte) (int, unix.Errno) {
	if len(p) == 0 {
		return 0, 0
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
