package wire

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// EMSS returns how many bytes the target can have in one TCP segment at most, if
// the tester has said that it takes segments of mss bytes: timestamps, if they are
// in use, take some of them.
func (c *Conn) EMSS(mss int) (int, error) {
	tcp, ok := c.nc.(*net.TCPConn)
	if !ok {
		return 0, errNotTCP
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	var info *unix.TCPInfo
	var infoErr error
	err = raw.Control(func(fd uintptr) {
		info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err := errors.Join(err, infoErr); err != nil {
		return 0, err
	}
	const timestamps, timestampsLen = 1, 12 // TCPI_OPT_TIMESTAMPS; RFC 7323, appendix A
	if info.Options&timestamps != 0 {
		mss -= timestampsLen
	}
	return mss, nil
}
