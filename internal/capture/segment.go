package capture

import (
	"encoding/binary"
	"net/netip"
)

// A segment is one TCP segment as it was captured.
type segment struct {
	src, dst netip.AddrPort
	seq, ack uint32
	syn, fin bool
	rst, ok  bool // ok: the acknowledgement is valid
	window   uint16
	scale    uint8 // of a SYN: what its sender's windows are shifted by
	sum      checksum
	data     []byte
	missing  uint32 // bytes of payload behind data that were not captured
}

// size returns how many bytes of payload the segment had.
func (s *segment) size() uint32 { return uint32(len(s.data)) + s.missing }

// A verdict says what a packet is to the Assembler.
type verdict int

const (
	isTCP      verdict = iota
	isFragment         // of an IP packet
	isOther            // something else than TCP
	isUnread           // perhaps TCP, but it can't be decoded
	isRoCE             // RDMA over UDP
	isUDP              // anything else over UDP
	isRDP              // RDP over IP
	isUnknown          // its link type is not known
)

// maxScale is the largest shift of a window (RFC 7323 §2.3).
const maxScale = 14

// segment decodes a TCP segment. Options that make no sense end its options and are
// no reason to refuse it, as for a TCP; gopacket would.
func (d *decoder) segment(b []byte) (segment, bool) {
	if len(b) < tcpLen {
		return segment{}, false
	}
	n := int(b[12]>>4) * 4
	if n < tcpLen || n > len(b) {
		return segment{}, false
	}
	flags := b[13]
	s := segment{
		src: netip.AddrPortFrom(d.src, binary.BigEndian.Uint16(b)),
		dst: netip.AddrPortFrom(d.dst, binary.BigEndian.Uint16(b[2:])),
		seq: binary.BigEndian.Uint32(b[4:]), ack: binary.BigEndian.Uint32(b[8:]),
		syn: flags&flagSYN != 0, fin: flags&flagFIN != 0, rst: flags&flagRST != 0, ok: flags&flagACK != 0,
		window: binary.BigEndian.Uint16(b[14:]), data: b[n:], missing: uint32(d.missing),
	}
	if s.syn {
		s.scale = windowShift(b[tcpLen:n])
	}
	s.sum = d.checksum(b, protTCP, binary.BigEndian.Uint16(b[16:]))
	return s, true
}

// windowShift returns the shift that the options of a SYN ask for.
func windowShift(options []byte) uint8 {
	for len(options) > 1 && options[0] != 0 {
		if options[0] == 1 { // no-operation
			options = options[1:]
			continue
		}
		n := int(options[1])
		if n < 2 || n > len(options) {
			break
		}
		if options[0] == 3 && n == 3 {
			return min(options[2], maxScale)
		}
		options = options[n:]
	}
	return 0
}

// A checksum says what a segment's TCP checksum is worth.
type checksum uint8

const (
	// sumUnknown: the segment is not whole, or its checksum was left to the network
	// card, as in captures of what a host sends itself.
	sumUnknown checksum = iota
	sumGood
	sumBad
)

// checksum judges the checksum field of the segment b (RFC 9293 §3.1), or of the UDP
// datagram b (RFC 768), which need have none.
func (d *decoder) checksum(b []byte, protocol uint64, field uint16) checksum {
	if d.missing > 0 || field == 0 || len(b) > maxIPLen {
		return sumUnknown
	}
	var pseudo [32]byte
	src, dst := d.src.AsSlice(), d.dst.AsSlice()
	n := copy(pseudo[:], src)
	n += copy(pseudo[n:], dst)
	addrs := onesSum(protocol, pseudo[:n])
	head := addrs + uint64(len(b))
	if foldSum(onesSum(head, b)) == 0 {
		return sumGood
	}
	// What a stack leaves to the network card is the sum of the pseudo-header, for
	// segmentation offload without the length.
	if field == ^foldSum(head) || field == ^foldSum(addrs) {
		return sumUnknown
	}
	return sumBad
}
