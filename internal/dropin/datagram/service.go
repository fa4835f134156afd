package datagram

import (
	"bytes"
	"encoding/binary"
	"errors"

	"urnic/internal/host/crc32c"
)

// A ServiceKind says which side a [Service] message comes from.
type ServiceKind uint8

// The kinds.
const (
	ServiceRequest ServiceKind = iota + 1
	ServiceReply
)

// A ServiceStatus is the answer of a reply, as InfiniBand's SIDR_REP has it.
type ServiceStatus uint8

// The statuses that are used.
const (
	ServiceOK          ServiceStatus = 0
	ServiceUnsupported ServiceStatus = 1 // nobody listens
	ServiceRejected    ServiceStatus = 2
)

// A Service is a message of service resolution: a request asks a port which queue pair
// serves there, and a reply names it. It is what InfiniBand's SIDR_REQ and SIDR_REP are
// for (IBTA 1.4 §12.11), over UDP.
type Service struct {
	Kind   ServiceKind
	Status ServiceStatus // of a reply
	ID     uint32        // chosen for a request; the reply repeats it
	QPN    uint32        // of a reply that is ServiceOK: 24 bits
	Key    uint32        // its Q_Key
	Data   []byte        // private data
}

// The form of a message, all of it in network byte order:
//
//	0  magic "uRSI"
//	4  version, 1
//	5  kind
//	6  status
//	7  length of the private data
//	8  ID
//	12 QPN, 24 bits in 32
//	16 Q_Key
//	20 CRC32c of all that precedes and of the private data
//	24 private data; in a request, zeros behind them, for 204 bytes in all
//
// So no reply is longer than what has asked for it.
const (
	serviceLen   = 24
	serviceCRC   = 20
	serviceMagic = 'u'<<24 | 'R'<<16 | 'S'<<8 | 'I'

	// MaxRequestData and MaxReplyData are how many bytes of private data InfiniBand leaves to a
	// program.
	MaxRequestData = 180
	MaxReplyData   = 136
)

// ErrService says that a UDP datagram is no message of service resolution.
var ErrService = errors.New("datagram: no message of service resolution that this version understands")

// IsService reports whether a UDP datagram says to be a message of service resolution.
func IsService(b []byte) bool {
	return len(b) >= 4 && binary.BigEndian.Uint32(b) == serviceMagic
}

// Append appends the wire form of a message. Private data that are longer than they may be are
// cut.
func (s *Service) Append(b []byte) []byte {
	at := len(b)
	most := MaxReplyData
	if s.Kind == ServiceRequest {
		most = MaxRequestData
	}
	data := s.Data[:min(len(s.Data), most)]
	b = binary.BigEndian.AppendUint32(b, serviceMagic)
	b = append(b, version, byte(s.Kind), byte(s.Status), byte(len(data)))
	b = binary.BigEndian.AppendUint32(b, s.ID)
	b = binary.BigEndian.AppendUint32(b, s.QPN)
	b = binary.BigEndian.AppendUint32(b, s.Key)
	b = append(append(b, 0, 0, 0, 0), data...)
	if s.Kind == ServiceRequest {
		b = append(b, padding[:MaxRequestData-len(data)]...)
	}
	binary.BigEndian.PutUint32(b[at+serviceCRC:], serviceSum(b[at:]))
	return b
}

var padding [MaxRequestData]byte

func serviceSum(b []byte) uint32 {
	return crc32c.Update(crc32c.Update(0, b[:serviceCRC]), b[serviceLen:])
}

// ParseService reads a UDP datagram. Data is a part of b. The error is ErrService.
func ParseService(b []byte) (s Service, err error) {
	if len(b) < serviceLen || !IsService(b) || b[4] != version || len(b) < serviceLen+int(b[7]) || serviceSum(b) != binary.BigEndian.Uint32(b[serviceCRC:]) {
		return s, ErrService
	}
	end := serviceLen + int(b[7])
	if rest := b[end:]; ServiceKind(b[5]) == ServiceRequest && (len(b) != serviceLen+MaxRequestData || !bytes.Equal(rest, padding[:len(rest)])) ||
		ServiceKind(b[5]) != ServiceRequest && len(rest) > 0 {
		return s, ErrService
	}
	s = Service{
		Kind: ServiceKind(b[5]), Status: ServiceStatus(b[6]),
		ID: binary.BigEndian.Uint32(b[8:]), QPN: binary.BigEndian.Uint32(b[12:]), Key: binary.BigEndian.Uint32(b[16:]), Data: b[serviceLen:end],
	}
	if !s.valid() {
		return Service{}, ErrService
	}
	return s, nil
}

func (s *Service) valid() bool {
	switch s.Kind {
	case ServiceRequest:
		return s.Status == 0 && s.QPN == 0 && s.Key == 0
	case ServiceReply:
		if s.Status != ServiceOK && (s.QPN != 0 || s.Key != 0) {
			return false
		}
		return len(s.Data) <= MaxReplyData && s.QPN <= maxNumber
	}
	return false
}
