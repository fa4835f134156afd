package llpwire

import (
	"encoding/binary"

	"urnic/mpa"
)

// An Offer is the body of a message of start-up.
type Offer struct {
	IRD, ORD uint16 // of its sender
	Private  []byte // for the peer's ULP, at most MaxPrivateData bytes
}

const offerLen = 4

// MaxPrivateData is how many bytes of private data fit, as into MPA's frames of revision 2.
const MaxPrivateData = mpa.MaxPrivateData - mpa.EnhancedLen

// Message returns a message of start-up.
func (o *Offer) Message(k Kind) []byte {
	b := make([]byte, HeaderLen, Overhead+offerLen+len(o.Private))
	PutHeader(b, k, 0)
	b = binary.BigEndian.AppendUint16(b, o.IRD)
	b = binary.BigEndian.AppendUint16(b, o.ORD)
	return Seal(append(b, o.Private...))
}

// ParseOffer decodes the body of a message of start-up. The private data is copied. The error is a *mpa.Error with CodeStartup.
func ParseOffer(body []byte) (Offer, error) {
	if len(body) < offerLen || len(body) > offerLen+MaxPrivateData {
		return Offer{}, malformed("an offer has %d bytes; it has %d to %d", len(body), offerLen, offerLen+MaxPrivateData)
	}
	return Offer{
		IRD: binary.BigEndian.Uint16(body), ORD: binary.BigEndian.Uint16(body[2:]),
		Private: append([]byte(nil), body[offerLen:]...),
	}, nil
}
