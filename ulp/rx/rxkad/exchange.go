package rxkad

import (
	"encoding/binary"

	"urnic/ulp/rx/secure"
)

// An Exchange is a response that a service's keys have opened, with the session that it
// began.
type Exchange struct {
	Session
	Version  int          // of the protocol
	Calls    secure.Calls // version 2 only
	Nonce    uint32       // of the challenge, and 1 more
	Ticket   Ticket
	Contents Contents // of the ticket

	// KeyVersion is of the service's key that the ticket was made with.
	KeyVersion uint32
}

// OpenResponse opens a response for whoever looks at recorded traffic. It takes any
// nonce, and a ticket of any time; all else must be right. The exchange opens and seals
// the data packets of the connection, in both directions. The error is an [*Error].
func OpenResponse(keys *Keyring, c secure.Conn, response []byte) (*Exchange, error) {
	return open(keys, responseVersion(response), c, response, func(*Contents, bool) error { return nil })
}

// ParseResponse reads what is not encrypted of a response: the version of the protocol,
// and the ticket, which aliases the response and comes without its session key. The error
// is an [*Error].
func ParseResponse(b []byte) (version int, t Ticket, err error) {
	r, err := parseResponse(responseVersion(b), b)
	if err != nil {
		return 0, Ticket{}, err
	}
	return r.version, r.ticket, nil
}

// responseVersion tells the version of the protocol from the first words: in version 1
// they are encrypted.
func responseVersion(b []byte) int {
	if len(b) >= responseHead && binary.BigEndian.Uint64(b) == 2<<32 {
		return 2
	}
	return 1
}

// open opens a response. check is asked about the ticket before its session key is used.
func open(keys *Keyring, version int, c secure.Conn, b []byte, check func(says *Contents, old bool) error) (*Exchange, error) {
	r, err := parseResponse(version, b)
	if err != nil {
		return nil, err
	}
	says, key, err := keys.open(r.ticket.Version, r.ticket.Data)
	if err != nil {
		return nil, err
	}
	if err := check(&says, r.ticket.old()); err != nil {
		return nil, err
	}
	s := newSealer(says.SessionKey)
	if err := r.open(b, s, c); err != nil {
		return nil, err
	}
	if r.level > Crypt {
		return nil, fail(CodeLevelFail, "the client uses %s; there are clear, auth and crypt", r.level)
	}
	r.ticket.SessionKey = says.SessionKey
	x := &Exchange{
		Session:    newSession(s, c, r.level),
		Version:    r.version,
		Calls:      r.calls,
		Nonce:      r.nonce,
		Ticket:     r.ticket,
		Contents:   says,
		KeyVersion: key,
	}
	x.lenient = r.version == 1
	return x, nil
}
