package krb5

import (
	"encoding/binary"
	"time"
)

// The flags of a ticket that have a meaning here (RFC 4120 §5.3). Bit 0 is the highest.
const (
	FlagInvalid          uint32 = 1 << (31 - 7)
	FlagTransitedChecked uint32 = 1 << (31 - 12)
)

// An EncTicketPart is what a ticket says to its service (RFC 4120 §5.3).
type EncTicketPart struct {
	Flags      uint32
	KeyType    Enctype // of the session key
	SessionKey []byte
	Realm      string // of the client
	Client     Principal

	// Transited says which realms vouch for the client: the type of the list, and the
	// list.
	TransitedType int32
	Transited     []byte

	AuthTime  time.Time
	StartTime time.Time // zero if it is not given: AuthTime counts
	EndTime   time.Time
	RenewTill time.Time // zero if it is not given

	// Rest are the addresses and the authorization data, as they were. Nothing here
	// looks into them.
	Rest []byte
}

// ParseEncTicketPart reads an EncTicketPart. Its slices alias b.
func ParseEncTicketPart(b []byte) (p EncTicketPart, err error) {
	application, err := der(b).only(tagApplication | 3)
	if err != nil {
		return p, err
	}
	d, err := application.only(tagSequence)
	if err != nil {
		return p, err
	}
	body, err := d.field(0, tagBitString) // flags
	if err != nil {
		return p, err
	}
	// 32 bits at least (RFC 4120 §5.2.8), of which later versions may have more.
	if len(body) < 5 || body[0] > 7 {
		return p, syntax("flags of %d bytes", len(body))
	}
	p.Flags = binary.BigEndian.Uint32(body[1:])

	if body, err = d.field(1, tagSequence); err != nil { // key
		return p, err
	}
	if p.KeyType, p.SessionKey, err = typed[Enctype](body); err != nil {
		return p, err
	}
	if body, err = d.field(2, tagGeneralString); err != nil { // crealm
		return p, err
	}
	p.Realm = string(body)
	if body, err = d.field(3, tagSequence); err != nil { // cname
		return p, err
	}
	if p.Client, err = body.principal(); err != nil {
		return p, err
	}
	if body, err = d.field(4, tagSequence); err != nil { // transited
		return p, err
	}
	if p.TransitedType, p.Transited, err = typed[int32](body); err != nil {
		return p, err
	}
	if d, err = d.times(&p); err != nil {
		return p, err
	}
	p.Rest = d
	for len(d) > 0 {
		if tag, _, err := d.next(); err != nil || tag != tagContext|9 && tag != tagContext|10 {
			return p, syntax("tag %#02x behind the times", tag)
		}
	}
	return p, nil
}

// times reads the four times, and returns what follows.
func (d der) times(p *EncTicketPart) (rest der, err error) {
	for _, t := range []struct {
		number   byte
		to       *time.Time
		required bool
	}{
		{5, &p.AuthTime, true},
		{6, &p.StartTime, false},
		{7, &p.EndTime, true},
		{8, &p.RenewTill, false},
	} {
		body, there, err := d.optional(t.number, tagGeneralizedTime)
		if err != nil {
			return nil, err
		}
		if !there {
			if t.required {
				return nil, syntax("no field %d", t.number)
			}
			continue
		}
		if *t.to, err = body.time(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// typed reads a number and the bytes that it is the type of.
func typed[T ~int32](d der) (T, []byte, error) {
	body, err := d.field(0, tagInteger)
	if err != nil {
		return 0, nil, err
	}
	number, err := body.int32()
	if err != nil {
		return 0, nil, err
	}
	body, err = d.field(1, tagOctetString)
	return T(number), body, err
}

// Marshal returns the DER form of p.
func (p EncTicketPart) Marshal() []byte {
	flags := binary.BigEndian.AppendUint32([]byte{0}, p.Flags) // all bits of the last byte count
	optional := func(number byte, t time.Time) []byte {
		if t.IsZero() {
			return nil
		}
		return field(number, generalizedTime(t))
	}
	return element(tagApplication|3, element(tagSequence,
		field(0, element(tagBitString, flags)),
		field(1, element(tagSequence,
			field(0, integer(int64(p.KeyType))),
			field(1, element(tagOctetString, p.SessionKey)))),
		field(2, generalString(p.Realm)),
		field(3, p.Client.marshal()),
		field(4, element(tagSequence,
			field(0, integer(int64(p.TransitedType))),
			field(1, element(tagOctetString, p.Transited)))),
		field(5, generalizedTime(p.AuthTime)),
		optional(6, p.StartTime),
		field(7, generalizedTime(p.EndTime)),
		optional(8, p.RenewTill),
		p.Rest))
}
