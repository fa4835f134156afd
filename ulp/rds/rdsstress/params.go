package rdsstress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// A Flag is one of the bytes of Params.Flags.
type Flag uint8

// The flags, in the order of the record. What has no comment is for the original alone.
const (
	SummaryOnly Flag = iota
	Realtime
	Tracing
	Verify // contents are verified
	ShowParams
	ShowPerfData
	CongestionMonitor
	UseOnce // memory for RDMA can be used once
	UseGetMR
	Fence    // an acknowledgement waits for the RDMA Read before it
	CacheMRs // memory for RDMA stays registered
	KeyOMeter
	SuppressWarnings // 255 from the original, until it knows
	Simplex          // only the active side sends requests
	Mode             // of RDMA: ReadWrite, ReadOnly or WriteOnly
	flags
)

// The values of Mode.
const (
	ReadWrite = iota // by turns
	ReadOnly
	WriteOnly
)

// Params are what a run is to do, as the active side tells the passive one.
type Params struct {
	Depth       uint32 // requests of a pair of tasks outstanding
	RequestSize uint32 // bytes
	AckSize     uint32 // bytes
	RDMASize    uint32 // bytes; 0: no RDMA
	// Send and Receive are the IPv4 addresses of the passive and of the active node. Without
	// one, that of the control connection counts, which may be one of IPv6.
	Send, Receive netip.Addr
	Port          uint16 // of the control connection; tasks have those that follow
	Tasks         uint16
	Seconds       uint32 // how long it takes; 0: there is no limit
	Flags         [flags]uint8
	Vectors       uint32 // pieces of memory of an RDMA operation
	Alignment     uint32
	Retries       uint32

	Version string // of the long form; "" for the short one
	TOS     uint8  // in the long form only
	Async   uint8  // in the long form only
}

// On reports whether a flag is set.
func (p *Params) On(f Flag) bool { return p.Flags[f] != 0 }

const (
	// Version is that of the original whose protocol this is.
	Version = "2.0.7"

	versionLen = 16
	shortLen   = 59
	longLen    = versionLen + shortLen + 2
)

// AppendTo appends the wire form: the long one if there is a version.
func (p *Params) AppendTo(b []byte) []byte {
	if p.Version != "" {
		var v [versionLen]byte
		copy(v[:versionLen-1], p.Version)
		b = append(b, v[:]...)
	}
	b = binary.BigEndian.AppendUint32(b, p.Depth)       // depth(32)
	b = binary.BigEndian.AppendUint32(b, p.RequestSize) // request size(32)
	b = binary.BigEndian.AppendUint32(b, p.AckSize)     // ack size(32)
	b = binary.BigEndian.AppendUint32(b, p.RDMASize)    // RDMA size(32)
	b = appendAddr(b, p.Send)                           // send address(32)
	b = appendAddr(b, p.Receive)                        // receive address(32)
	b = binary.BigEndian.AppendUint16(b, p.Port)        // port(16)
	b = binary.BigEndian.AppendUint16(b, p.Tasks)       // tasks(16)
	b = binary.BigEndian.AppendUint32(b, p.Seconds)     // time(32)
	b = append(b, p.Flags[:]...)                        // flags(15×8)
	b = binary.BigEndian.AppendUint32(b, p.Vectors)     // vectors(32)
	b = binary.BigEndian.AppendUint32(b, p.Alignment)   // alignment(32)
	b = binary.BigEndian.AppendUint32(b, p.Retries)     // retries(32)
	if p.Version != "" {
		b = append(b, p.TOS, p.Async)
	}
	return b
}

// ReadParams reads the parameters, in either form. It reads no further.
func ReadParams(r io.Reader) (p Params, err error) {
	var b [longLen]byte
	if _, err := io.ReadFull(r, b[:versionLen]); err != nil {
		return p, readError(err)
	}
	rest := b[versionLen:shortLen]
	if b[0] >= '0' && b[0] <= '9' {
		text, _, ended := strings.Cut(string(b[:versionLen]), "\x00")
		if !ended || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			return p, fmt.Errorf("rdsstress: the parameters have the version %q", text)
		}
		p.Version, rest = text, b[versionLen:]
	}
	if _, err := io.ReadFull(r, rest); err != nil {
		return p, readError(err)
	}
	short := b[:]
	if p.Version != "" {
		short = b[versionLen:]
		p.TOS, p.Async = b[longLen-2], b[longLen-1]
	}
	p.parse(short)
	return p, nil
}

func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("rdsstress: the control connection has ended before the parameters were there: what has connected is no rds-stress")
	}
	return fmt.Errorf("rdsstress: reading the parameters: %w", err)
}

// parse takes the short form.
func (p *Params) parse(b []byte) {
	p.Depth = binary.BigEndian.Uint32(b[0:])
	p.RequestSize = binary.BigEndian.Uint32(b[4:])
	p.AckSize = binary.BigEndian.Uint32(b[8:])
	p.RDMASize = binary.BigEndian.Uint32(b[12:])
	p.Send = parseAddr(b[16:])
	p.Receive = parseAddr(b[20:])
	p.Port = binary.BigEndian.Uint16(b[24:])
	p.Tasks = binary.BigEndian.Uint16(b[26:])
	p.Seconds = binary.BigEndian.Uint32(b[28:])
	copy(p.Flags[:], b[32:])
	p.Vectors = binary.BigEndian.Uint32(b[47:])
	p.Alignment = binary.BigEndian.Uint32(b[51:])
	p.Retries = binary.BigEndian.Uint32(b[55:])
}

// appendAddr appends an address of IPv4; 0 for none, and for those of IPv6.
func appendAddr(b []byte, a netip.Addr) []byte {
	var raw [4]byte
	if a.Is4() {
		raw = a.As4()
	}
	return append(b, raw[:]...)
}

// parseAddr is the reverse; 0 is no address.
func parseAddr(b []byte) netip.Addr {
	a := netip.AddrFrom4([4]byte(b))
	if a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// The limits of a run.
const (
	MaxTasks   = 256
	MaxVectors = 512
	MaxDepth   = 1<<16 - 1
	// MaxUnderWay limits the requests of all pairs of tasks together.
	MaxUnderWay = 1 << 20
	// MaxRDMA limits the memory for RDMA of a process.
	MaxRDMA = 1 << 30
	// MaxRegion is the most memory of one RDMA operation.
	MaxRegion = 1 << 20
	// MaxRegions limits the pieces of memory for RDMA of a task.
	MaxRegions = 1024
	// MaxMessage is the longest message.
	MaxMessage = 1 << 20
)

// Check returns an error if a run can't have the parameters. They may come from a stranger:
// what it passes takes a bounded amount of memory.
func (p *Params) Check() error {
	pairs := uint64(p.Tasks) * uint64(p.Tasks)
	switch {
	case p.Tasks < 1 || p.Tasks > MaxTasks:
		return fmt.Errorf("%d tasks: there can be 1 to %d", p.Tasks, MaxTasks)
	case p.Depth < 1 || p.Depth > MaxDepth || pairs*uint64(p.Depth) > MaxUnderWay:
		return fmt.Errorf("depth %d: it can be 1 to %d with %d tasks", p.Depth, min(MaxDepth, MaxUnderWay/pairs), p.Tasks)
	case p.Port == 0 || int(p.Port)+int(p.Tasks) > 65535:
		return fmt.Errorf("port %d: it and the ports of %d tasks behind it must be 1 to 65535", p.Port, p.Tasks)
	case p.RequestSize < HeaderLen || p.RequestSize > MaxMessage:
		return fmt.Errorf("requests of %d bytes: they can have %d to %d", p.RequestSize, HeaderLen, MaxMessage)
	case p.AckSize < HeaderLen || p.AckSize > MaxMessage:
		return fmt.Errorf("acks of %d bytes: they can have %d to %d", p.AckSize, HeaderLen, MaxMessage)
	case p.Flags[Mode] > WriteOnly:
		return fmt.Errorf("RDMA mode %d: it can be 0 to %d", p.Flags[Mode], WriteOnly)
	case p.Async != 0:
		return errors.New("asynchronous sends are not supported")
	case p.RDMASize == 0:
		return nil
	case p.Vectors < 1 || p.Vectors > MaxVectors:
		return fmt.Errorf("%d vectors: there can be 1 to %d", p.Vectors, MaxVectors)
	case p.Alignment > 1<<16:
		return fmt.Errorf("an alignment of %d bytes: it can be 0 to %d", p.Alignment, 1<<16)
	case p.RDMASize > MaxRegion || uint64(p.RDMASize)*uint64(p.Vectors) > MaxRegion:
		return fmt.Errorf("RDMA of %d times %d bytes: there can be %d bytes", p.Vectors, p.RDMASize, MaxRegion)
	case uint64(p.Tasks)*uint64(p.Depth) > MaxRegions || pairs*uint64(p.Depth) > 16*MaxRegions:
		return fmt.Errorf("RDMA with %d tasks and depth %d: it would take more than %d pieces of memory for a task, or %d in all", p.Tasks, p.Depth, MaxRegions, 16*MaxRegions)
	case 2*pairs*uint64(p.Depth)*uint64(p.Vectors)*uint64(p.RDMASize) > MaxRDMA:
		return fmt.Errorf("RDMA of %d bytes, with all tasks and slots: it would take more than %d bytes of memory", p.RDMASize, MaxRDMA)
	}
	return nil
}
