package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// An ExtensionType is the type of an extension header.
type ExtensionType uint8

// The extension headers of RDS 3.1, those of later kernels, and one of this module. Types 4 and 8
// are of Linux since 7.0 and of Oracle's kernels (UEK), types 7 and 9 of Oracle's alone. No type means two things
// among them, so the type alone tells what it is.
const (
	ExtNone       ExtensionType = 0 // the end
	ExtVersion    ExtensionType = 1 // be32: version; unused
	ExtRDMA       ExtensionType = 2 // be32: the R_Key that an RDMA operation before this message has used
	ExtRDMADest   ExtensionType = 3 // be32, be32: R_Key and offset of memory that the receiver may access
	ExtRDMABytes  ExtensionType = 4 // be32, u8, 3 of padding: bytes of that operation, 1 for a Write or 2 for a Read
	ExtNPaths     ExtensionType = 5 // be16: paths that the sender supports
	ExtGeneration ExtensionType = 6 // be32: the sender's generation number
	ExtCapBits    ExtensionType = 7 // be32: capabilities, in heartbeats; skipped
	// ExtSportIdx says that the sender's source ports tell the paths: modulo their number, the port of whoever
	// opens a TCP connection is the path's index. It has a byte of data, which is 0.
	ExtSportIdx ExtensionType = 8
	ExtChecksum ExtensionType = 9 // be32, u8, 3 of padding: checksum of the data, and whether it is in use; skipped
	// ExtUrnic says that the sender is this module: it acknowledges in headers over TCP too, and expects its peer
	// to do the same. That needs a sign of its own. A generation number is none: Linux since 7.0
	// sends one over TCP, with SPORT_IDX, and still acknowledges by TCP alone. It has no data, because Linux
	// takes a type below 16 that it does not know for one without. Oracle's kernels end the list at such
	// a type, so it comes last.
	ExtUrnic ExtensionType = 15

	// Linux stops at a type that it has no room for in its table.
	extTypes = 16
)

// extLens are the lengths of the extension headers' data, in bytes. As in Linux, a type
// without one has no data.
var extLens = [extTypes]int{
	ExtVersion: 4, ExtRDMA: 4, ExtRDMADest: 8, ExtRDMABytes: 8, ExtNPaths: 2, ExtGeneration: 4,
	ExtCapBits: 4, ExtSportIdx: 1, ExtChecksum: 8,
}

// extNames has a name for each type that is known.
var extNames = [extTypes]string{
	ExtNone: "NONE", ExtVersion: "VERSION", ExtRDMA: "RDMA", ExtRDMADest: "RDMA_DEST", ExtRDMABytes: "RDMA_BYTES", ExtNPaths: "NPATHS",
	ExtGeneration: "GEN_NUM", ExtCapBits: "CAP_BITS", ExtSportIdx: "SPORT_IDX", ExtChecksum: "CSUM", ExtUrnic: "URNIC",
}

// The flags of RDMA_BYTES.
const (
	bytesWritten = 1 << iota
	bytesRead
)

func (t ExtensionType) String() string {
	if t.known() {
		return extNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// known reports whether the type is in the document or named here.
func (t ExtensionType) known() bool { return t < extTypes && extNames[t] != "" }

// A Cookie names memory of the sender that its receiver may read or write: the R_Key in
// the low 32 bits, the offset in the high 32 bits, as Linux gives it to programs.
type Cookie uint64

// NewCookie makes a cookie of an R_Key and an offset.
func NewCookie(rkey, offset uint32) Cookie { return Cookie(offset)<<32 | Cookie(rkey) }

// RKey returns the R_Key, over iWARP the STag.
func (c Cookie) RKey() uint32 { return uint32(c) }

// Offset returns the tagged offset at which the memory begins.
func (c Cookie) Offset() uint32 { return uint32(c >> 32) }

// Extensions are the extension headers of a message.
type Extensions struct {
	Has        uint16 // bit t is set if there is an extension header of type t
	Version    uint32
	RKey       uint32 // of RDMA
	Dest       Cookie // of RDMA_DEST
	Bytes      uint32 // of RDMA_BYTES
	Write      bool   // of RDMA_BYTES: it was an RDMA Write
	Read       bool   // of RDMA_BYTES: it was an RDMA Read
	Paths      uint16 // of NPATHS
	Generation uint32 // of GEN_NUM
	SportIdx   uint8  // of SPORT_IDX; 0
}

// With reports whether there is an extension header of a type.
func (x *Extensions) With(t ExtensionType) bool { return t < extTypes && x.Has&(1<<t) != 0 }

// ParseExtensions decodes the extension headers of a header. There may be several, each
// a type and its data. As in Linux, a type that is not known has no data and is skipped,
// and one of 16 or more ends them. The error, a *FormatError, says that the data of one
// do not fit, or that one is there twice; the result has those before it.
func ParseExtensions(b [ExtensionLen]byte) (x Extensions, err error) {
	for at := 0; at < ExtensionLen; {
		t := ExtensionType(b[at])
		if t == ExtNone || t >= extTypes {
			break
		}
		data := b[at+1:]
		n := extLens[t]
		if n > len(data) {
			return x, malformed(WrongExtension, "%v has %d bytes of data; %d are left", t, n, len(data))
		}
		if n > 0 && x.With(t) {
			return x, malformed(WrongExtension, "%v is there twice", t)
		}
		x.set(t, data[:n])
		at += 1 + n
	}
	return x, nil
}

// UnknownExtension returns the type of the first extension header that is neither in the
// document nor named here, or ExtNone.
func UnknownExtension(b [ExtensionLen]byte) ExtensionType {
	for at := 0; at < ExtensionLen && b[at] != 0; {
		t := ExtensionType(b[at])
		if !t.known() {
			return t
		}
		at += 1 + extLens[t]
	}
	return ExtNone
}

func (x *Extensions) set(t ExtensionType, data []byte) {
	x.Has |= 1 << t
	switch t {
	case ExtVersion:
		x.Version = binary.BigEndian.Uint32(data)
	case ExtRDMA:
		x.RKey = binary.BigEndian.Uint32(data)
	case ExtRDMADest:
		x.Dest = NewCookie(binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:]))
	case ExtRDMABytes:
		x.Bytes, x.Write, x.Read = binary.BigEndian.Uint32(data), data[4]&bytesWritten != 0, data[4]&bytesRead != 0
	case ExtNPaths:
		x.Paths = binary.BigEndian.Uint16(data)
	case ExtGeneration:
		x.Generation = binary.BigEndian.Uint32(data)
	case ExtSportIdx:
		x.SportIdx = data[0]
	default: // without data, or skipped
	}
}

// Encode returns the extension headers' space of a header, in the order of the types, so that
// URNIC comes last. It leaves out CAP_BITS, CSUM and types that are not known. It returns a
// *FormatError if the others do not fit into 16 bytes.
func (x *Extensions) Encode() (b [ExtensionLen]byte, err error) {
	at := 0
	for t := ExtVersion; t < extTypes; t++ {
		if !x.With(t) || !t.known() || t == ExtCapBits || t == ExtChecksum {
			continue
		}
		n := extLens[t]
		if at+1+n > ExtensionLen {
			return b, malformed(WrongExtension, "there is no room for %v: the extension headers have %d bytes", t, ExtensionLen)
		}
		b[at] = byte(t)
		x.put(t, b[at+1:])
		at += 1 + n
	}
	return b, nil
}

func (x *Extensions) put(t ExtensionType, p []byte) {
	switch t {
	case ExtVersion:
		binary.BigEndian.PutUint32(p, x.Version)
	case ExtRDMA:
		binary.BigEndian.PutUint32(p, x.RKey)
	case ExtRDMADest:
		binary.BigEndian.PutUint32(p, x.Dest.RKey())
		binary.BigEndian.PutUint32(p[4:], x.Dest.Offset())
	case ExtRDMABytes:
		binary.BigEndian.PutUint32(p, x.Bytes)
		if x.Write {
			p[4] |= bytesWritten
		}
		if x.Read {
			p[4] |= bytesRead
		}
	case ExtNPaths:
		binary.BigEndian.PutUint16(p, x.Paths)
	case ExtGeneration:
		binary.BigEndian.PutUint32(p, x.Generation)
	case ExtSportIdx:
		p[0] = x.SportIdx
	default: // without data
	}
}

// String lists the extension headers.
func (x *Extensions) String() string {
	var s []string
	for t := ExtVersion; t < extTypes; t++ {
		if !x.With(t) {
			continue
		}
		switch t {
		case ExtVersion:
			s = append(s, fmt.Sprintf("%v=%d", t, x.Version))
		case ExtRDMA:
			s = append(s, fmt.Sprintf("%v=0x%08x", t, x.RKey))
		case ExtRDMADest:
			s = append(s, fmt.Sprintf("%v=0x%08x+%d", t, x.Dest.RKey(), x.Dest.Offset()))
		case ExtRDMABytes:
			s = append(s, fmt.Sprintf("%v=%d%s", t, x.Bytes, x.direction()))
		case ExtNPaths:
			s = append(s, fmt.Sprintf("%v=%d", t, x.Paths))
		case ExtGeneration:
			s = append(s, fmt.Sprintf("%v=%d", t, x.Generation))
		case ExtSportIdx:
			s = append(s, fmt.Sprintf("%v=%d", t, x.SportIdx))
		default:
			s = append(s, t.String())
		}
	}
	return strings.Join(s, " ")
}

// direction returns what kind of operation RDMA_BYTES is about, behind a comma.
func (x *Extensions) direction() string {
	var s string
	if x.Write {
		s += ",Write"
	}
	if x.Read {
		s += ",Read"
	}
	return s
}
