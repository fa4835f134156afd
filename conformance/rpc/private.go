package rpc

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// PrivateID is the Format Identifier, and PrivateLen the length of the message, in
// bytes (RFC 8797 §4).
const (
	PrivateID  = 0xF6AB0E18
	PrivateLen = 8
)

// FlagR says that its sender supports remote invalidation (RFC 8797 §4.1).
const FlagR = 0x01

// DefaultThreshold is the inline threshold without private data, in bytes (RFC 8166
// §3.3.3).
const DefaultThreshold = 1024

// A Private is what start-up carries of RPC-over-RDMA (RFC 8797 §4).
type Private struct {
	Version       uint8
	Flags         uint8
	Send, Receive uint8 // as they are encoded
}

// Offer returns the message of who sends and receives n bytes at once, a multiple of
// 1024.
func Offer(n int, flags uint8) Private {
	size := uint8(n/DefaultThreshold - 1)
	return Private{Version: 1, Flags: flags, Send: size, Receive: size}
}

// Octets returns the message as it stands on the wire.
func (p Private) Octets() []byte {
	return append(words(nil, PrivateID), p.Version, p.Flags, p.Send, p.Receive)
}

// FindPrivate returns the message that is in private data, or nil if there is none
// that conforms (RFC 8797 §5.2).
func FindPrivate(b []byte) *Private {
	at := bytes.Index(b, binary.BigEndian.AppendUint32(nil, PrivateID))
	if at < 0 || len(b)-at < PrivateLen || b[at+4] != 1 {
		return nil
	}
	return &Private{Version: b[at+4], Flags: b[at+5], Send: b[at+6], Receive: b[at+7]}
}

// SendSize returns what the message's sender sends at once at most, in bytes. That
// of nil is the default.
func (p *Private) SendSize() int {
	if p == nil {
		return DefaultThreshold
	}
	return (int(p.Send) + 1) * DefaultThreshold
}

// ReceiveSize returns what it receives at once at most, in bytes.
func (p *Private) ReceiveSize() int {
	if p == nil {
		return DefaultThreshold
	}
	return (int(p.Receive) + 1) * DefaultThreshold
}

// Invalidates reports whether the message's sender supports remote invalidation.
func (p *Private) Invalidates() bool { return p != nil && p.Flags&FlagR != 0 }

// String describes the message.
func (p *Private) String() string {
	if p == nil {
		return "no RPC-over-RDMA private data"
	}
	return fmt.Sprintf("RPC-over-RDMA private data: version %d, flags 0x%02x, sends %d, receives %d",
		p.Version, p.Flags, p.SendSize(), p.ReceiveSize())
}
