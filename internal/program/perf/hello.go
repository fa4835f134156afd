package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The private data of connections: a word that says what they are for. A
// control connection has the version behind it, a connection for data the
// session's token and its own number.
const (
	controlMagic = "urnic-perf-ctl"
	dataMagic    = "urnic-perf-qp:"
)

// tokenLen is how many bytes the token of a session has. The server tells it as
// private data of its Reply on the control connection.
const tokenLen = 16

func controlHello(version uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte(controlMagic), version)
}

func dataHello(token [tokenLen]byte, i int) []byte {
	b := append([]byte(dataMagic), token[:]...)
	return binary.BigEndian.AppendUint32(b, uint32(i))
}

// A greeting is what a connection is for.
type greeting struct {
	control bool
	version uint32
	token   [tokenLen]byte
	index   uint32
}

var errStranger = errors.New("this is a server of urnic perf: connect with `urnic perf client`")

// parseGreeting parses private data of a connection.
func parseGreeting(b []byte) (g greeting, err error) {
	n := len(controlMagic)
	if len(b) < n {
		return g, errStranger
	}
	rest := b[n:]
	switch {
	case string(b[:n]) == controlMagic && len(rest) == 4:
		g.control, g.version = true, binary.BigEndian.Uint32(rest)
		if g.version != Version {
			return g, fmt.Errorf("the client speaks version %d of urnic perf and the server version %d: use the same urnic on both sides", g.version, Version)
		}
	case string(b[:n]) == dataMagic && len(rest) == tokenLen+4:
		copy(g.token[:], rest)
		g.index = binary.BigEndian.Uint32(rest[tokenLen:])
	default:
		return g, errStranger
	}
	return g, nil
}
