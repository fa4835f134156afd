package rpcrdma

import (
	"bytes"
	"encoding/binary"
)

// The inline thresholds: how long a Send may be, in bytes.
const (
	DefaultInline = 1024       // without private data (RFC 8166 §3.3.3)
	MaxInline     = 256 * 1024 // what private data can say (RFC 8797 §4.2)
)

// PrivateLen is how many bytes private data has (RFC 8797 §4).
const PrivateLen = 8

const (
	identifier     = 0xf6ab0e18
	privateVersion = 1
	flagR          = 1
)

// A Private is what the two sides say of themselves when they connect (RFC 8797 §4).
type Private struct {
	Invalidate bool // it knows remote invalidation
	Send       int  // the longest Send that it makes, in bytes
	Receive    int  // the longest Send that it can receive, in bytes
}

// Append appends the private data to p. Sizes are rounded down to multiples of 1,024,
// and brought between DefaultInline and MaxInline.
func (v Private) Append(p []byte) []byte {
	p = binary.BigEndian.AppendUint32(p, identifier)
	flags := byte(0)
	if v.Invalidate {
		flags = flagR
	}
	return append(p, privateVersion, flags, sizeCode(v.Send), sizeCode(v.Receive))
}

func sizeCode(octets int) byte {
	return byte(min(max(octets, DefaultInline), MaxInline)/1024 - 1)
}

// FindPrivate finds it in the private data of a peer, where others may have written as
// well, at any alignment (RFC 8797 §5.2). If it is not there or not of this version, the
// peer is one that knows nothing of it (§5.1).
func FindPrivate(data []byte) (v Private, found bool) {
	v = Private{Send: DefaultInline, Receive: DefaultInline}
	at := bytes.Index(data, binary.BigEndian.AppendUint32(nil, identifier))
	if at < 0 || len(data)-at < PrivateLen || data[at+4] != privateVersion {
		return v, false
	}
	return Private{
		Invalidate: data[at+5]&flagR != 0,
		Send:       1024 * (int(data[at+6]) + 1),
		Receive:    1024 * (int(data[at+7]) + 1),
	}, true
}
