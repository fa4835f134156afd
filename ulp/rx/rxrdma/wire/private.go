package wire

import "encoding/binary"

// Magic begins all private data: "RxRN".
const Magic = 0x5278524e

// Version is the version of the protocol that this package has.
const Version = 1

// The lengths of private data, in bytes.
const (
	PrivateLen = 32
	RefusalLen = 12
)

// Features are what a side can do, and asks for.
type Features uint8

// The features.
const (
	// FeatureOffer says that the sender may offer memory to be written to.
	FeatureOffer Features = 1 << iota
	// FeaturePlace says that the sender writes to memory that it is offered.
	FeaturePlace
	// FeatureUpgrade asks for a better service of the same kind; in a reply, it says that the
	// service is another one than was asked for.
	FeatureUpgrade
)

// The limits of what private data may say.
const (
	MinReceive  = 512 // bytes of a receive
	MaxReceive  = 1 << 20
	MinCredits  = 4
	MaxCredits  = 1 << 15
	MaxChannels = 64
	MaxBulk     = 1 << 30 // bytes of one offer
)

// Private is the private data of a request and of the reply that accepts it (docs/rx-rdma.md,
// "Connection set-up").
type Private struct {
	Features Features
	Service  uint16 // that is asked for; of a reply: that is served
	Epoch    uint32 // of the client; of a reply: the same
	ConnID   uint32 // the same; the low 2 bits are 0
	Security uint8  // the security index
	Channels uint8  // how many calls there can be at once
	Credits  uint16 // receives that the sender has posted
	Window   uint16 // messages of a call that the sender takes before it has read some
	Receive  uint32 // the longest message that the sender takes, header and all
	Bulk     uint32 // bytes of the longest offer that the sender makes or uses; 0: none
}

// Append appends the private data to b.
func (p *Private) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, Magic)
	b = append(b, Version, byte(p.Features))
	b = binary.BigEndian.AppendUint16(b, p.Service)
	b = binary.BigEndian.AppendUint32(b, p.Epoch)
	b = binary.BigEndian.AppendUint32(b, p.ConnID)
	b = append(b, p.Security, p.Channels)
	b = binary.BigEndian.AppendUint16(b, p.Credits)
	b = binary.BigEndian.AppendUint16(b, p.Window)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint32(b, p.Receive)
	return binary.BigEndian.AppendUint32(b, p.Bulk)
}

// IsPrivate reports whether private data are of this protocol, of whatever version.
func IsPrivate(b []byte) bool { return len(b) >= 5 && binary.BigEndian.Uint32(b) == Magic }

// ParsePrivate decodes private data. What follows the fields is ignored: networks pad
// private data, and later versions may add to them. It returns a [*FormatError].
func ParsePrivate(b []byte) (Private, error) {
	if err := begins(b, PrivateLen); err != nil {
		return Private{}, err
	}
	p := Private{
		Features: Features(b[5]),
		Service:  binary.BigEndian.Uint16(b[6:]),
		Epoch:    binary.BigEndian.Uint32(b[8:]),
		ConnID:   binary.BigEndian.Uint32(b[12:]),
		Security: b[16],
		Channels: b[17],
		Credits:  binary.BigEndian.Uint16(b[18:]),
		Window:   binary.BigEndian.Uint16(b[20:]),
		Receive:  binary.BigEndian.Uint32(b[24:]),
		Bulk:     binary.BigEndian.Uint32(b[28:]),
	}
	return p, p.check()
}

// check returns an error if no call can be carried with the limits.
func (p *Private) check() error {
	for _, l := range []struct{ n, least, most int }{
		{int(p.Channels), 1, MaxChannels},
		{int(p.Credits), MinCredits, MaxCredits},
		{int(p.Window), 1, MaxCredits},
		{int(p.Receive), MinReceive, MaxReceive},
		{int(p.Bulk), 0, MaxBulk},
	} {
		if l.n < l.least || l.n > l.most {
			return &FormatError{What: "private data", Fault: WrongLimits, Value: l.n}
		}
	}
	return nil
}

// begins checks what begins all private data.
func begins(b []byte, least int) error {
	switch {
	case len(b) < 5:
		return &FormatError{What: "private data", Fault: TooShort, Value: len(b)}
	case binary.BigEndian.Uint32(b) != Magic:
		return &FormatError{What: "private data", Fault: WrongMagic, Value: int(binary.BigEndian.Uint32(b))}
	case b[4] != Version:
		return &FormatError{What: "private data", Fault: WrongVersion, Value: int(b[4])}
	case len(b) < least:
		return &FormatError{What: "private data", Fault: TooShort, Value: len(b)}
	}
	return nil
}

// AppendRefusal appends the private data of a reply that rejects a request to b. code is
// an abort code.
func AppendRefusal(b []byte, code int32) []byte {
	b = binary.BigEndian.AppendUint32(b, Magic)
	b = append(b, Version, 0, 0, 0)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

// ParseRefusal decodes the private data of a reply that rejects a request. It returns a
// [*FormatError].
func ParseRefusal(b []byte) (code int32, err error) {
	if err := begins(b, RefusalLen); err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(b[8:])), nil
}
