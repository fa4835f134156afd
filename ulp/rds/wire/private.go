package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Version is the version of the protocol that this package speaks.
const (
	Major = 3
	Minor = 1
	// MinorMask is the set of minor versions that Linux offers: x.0 and x.1.
	MinorMask = 1<<0 | 1<<1
)

// The lengths of private data, in bytes. The last 4 are padding in the document and on
// Linux, which sends zeros and ignores them. Nodes of this module have their generation there.
const (
	PrivateLen4 = 32
	PrivateLen6 = 56
)

// Private is the private data of a connection over RDMA, in a request and in its reply
// (RDS 3.1, "Connection establishment").
type Private struct {
	Source, Dest netip.Addr // of the sender and of the receiver; both of one family
	Major, Minor uint8      // proposed, and then agreed
	MinorMask    uint16     // bit n: x.n is supported
	TOS          uint8      // type of service: Linux's use of a reserved byte
	AckSequence  uint64     // if reconnecting, the last sequence number received
	Credit       uint32     // receives that are posted; 0 disables flow control
	Generation   uint32     // of the sender; 0: it tells none
}

// AppendTo appends the private data to b in the layout of the addresses' family. It
// returns a *FormatError if they are not valid or of two families.
func (v *Private) AppendTo(b []byte) ([]byte, error) {
	src, dst := v.Source.Unmap(), v.Dest.Unmap()
	if !src.IsValid() || !dst.IsValid() || src.Is4() != dst.Is4() {
		return b, malformed(WrongAddress, "the addresses %v and %v are not of one family", v.Source, v.Dest)
	}
	b = append(b, src.AsSlice()...)
	b = append(b, dst.AsSlice()...)
	b = append(b, v.Major, v.Minor)
	b = binary.BigEndian.AppendUint16(b, v.MinorMask)
	b = append(b, v.TOS, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, v.AckSequence)
	b = binary.BigEndian.AppendUint32(b, v.Credit)
	return binary.BigEndian.AppendUint32(b, v.Generation), nil
}

// ParsePrivate decodes private data that came over a connection of IPv6, or else of
// IPv4. The fields tell how many bytes count, as the RDMA CM of InfiniBand pads private
// data to its own length. It returns a *FormatError if there are too few, or if an
// address is not that of a host, or of IPv4 in the layout of IPv6. Versions are for [Agree] to judge.
func ParsePrivate(b []byte, ipv6 bool) (Private, error) {
	n, fields := 4, PrivateLen4-4
	if ipv6 {
		n, fields = 16, PrivateLen6-4
	}
	if len(b) < fields {
		return Private{}, malformed(TooShort, "private data have %d bytes; there are %d", fields, len(b))
	}
	src, _ := netip.AddrFromSlice(b[:n])
	dst, _ := netip.AddrFromSlice(b[n : 2*n])
	r := b[2*n:]
	v := Private{
		Source: src, Dest: dst, Major: r[0], Minor: r[1],
		MinorMask:   binary.BigEndian.Uint16(r[2:]),
		TOS:         r[4],
		AckSequence: binary.BigEndian.Uint64(r[8:]),
		Credit:      binary.BigEndian.Uint32(r[16:]),
	}
	if len(r) >= 24 {
		v.Generation = binary.BigEndian.Uint32(r[20:])
	}
	for _, a := range []netip.Addr{src, dst} {
		if a.IsUnspecified() || a.IsMulticast() || a.Is4In6() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			return v, malformed(WrongAddress, "private data name the address %v", a)
		}
	}
	return v, nil
}

// Agree returns the version that both sides speak, given what the peer proposes. Linux
// proposes 3.1 with the mask of its table for major version 4, and accepts either. The
// error is a *FormatError with WrongVersion.
func (v *Private) Agree() (major, minor uint8, err error) {
	if v.Major == Major && v.Minor == Minor {
		return Major, Minor, nil
	}
	if v.Major == Major+1 {
		for m := 1; m >= 0; m-- {
			if v.MinorMask&MinorMask&(1<<m) != 0 {
				return v.Major, uint8(m), nil
			}
		}
	}
	return 0, 0, malformed(WrongVersion, "the peer proposes version %d.%d with the minor versions 0x%04x", v.Major, v.Minor, v.MinorMask)
}

// String shows the private data in one line.
func (v *Private) String() string {
	s := fmt.Sprintf("%v>%v version %d.%d mask 0x%04x tos %d ack %d credit %d",
		v.Source, v.Dest, v.Major, v.Minor, v.MinorMask, v.TOS, v.AckSequence, v.Credit)
	if v.Generation != 0 {
		s += fmt.Sprintf(" generation %d", v.Generation)
	}
	return s
}

// RejectReason is the private data of a reject: 1, in the byte order of a little-endian
// host, as Linux sends it. It says "wrong version" as well as "busy, I am connecting too".
var RejectReason = [4]byte{1}
