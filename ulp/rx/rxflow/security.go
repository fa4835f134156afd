package rxflow

import (
	"errors"
	"fmt"
	"strings"

	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/secure"
)

// A Security opens what a security class protects, for whoever has the keys of the service.
type Security interface {
	// Index is the security index of the class.
	Index() uint8

	// Session returns what opens the data packets of a connection whose client has sent
	// this response. The error is a *KeyError if the keys do not open it; any other one
	// says what is wrong with the response.
	Session(c secure.Conn, response []byte) (Session, error)
}

// A Session opens the data packets of a connection, those of both sides.
type Session interface {
	// Open checks a body, decrypts it in place and returns the data in it.
	Open(p secure.Packet, checksum uint16, body []byte) (data []byte, err error)

	// Answers returns the nonce of the challenge that the response answers, and the level
	// of protection.
	Answers() (nonce, level uint32)

	// String tells who the client is and how packets are protected, in a few words.
	String() string
}

// A KeyError says that keys do not open a response: they may be those of another service.
type KeyError struct{ Err error }

// Error returns what was found.
func (e *KeyError) Error() string { return e.Err.Error() }

// Unwrap returns what was found.
func (e *KeyError) Unwrap() error { return e.Err }

// Rxkad returns the Security for rxkad with the keys of a service.
func Rxkad(keys *rxkad.Keyring) Security { return kad{keys} }

type kad struct{ keys *rxkad.Keyring }

func (kad) Index() uint8 { return rxkad.Index }

func (k kad) Session(c secure.Conn, response []byte) (Session, error) {
	x, err := rxkad.OpenResponse(k.keys, c, response)
	if err == nil {
		return kadSession{x}, nil
	}
	// Who has opened a Kerberos ticket has the right key. Old tickets have no checksum.
	_, t, _ := rxkad.ParseResponse(response)
	kerberos := t.Version == rxkad.VersionKerberos || t.Version == rxkad.VersionEncryptedPart
	if e, ok := errors.AsType[*rxkad.Error](err); ok && kerberos && (e.Code == rxkad.CodeSealed || e.Code == rxkad.CodeLevelFail) {
		return nil, err
	}
	return nil, &KeyError{err}
}

type kadSession struct{ *rxkad.Exchange }

func (s kadSession) Answers() (nonce, level uint32) { return s.Nonce - 1, uint32(s.Level()) }

func (s kadSession) String() string {
	var b strings.Builder
	c := &s.Contents
	b.WriteString(c.Name)
	if c.Instance != "" {
		b.WriteString("." + c.Instance)
	}
	if c.Realm != "" {
		b.WriteString("@" + c.Realm)
	}
	if b.Len() == 0 {
		b.WriteString("nobody in particular")
	}
	fmt.Fprintf(&b, ", level %v, key version %d", s.Level(), s.KeyVersion)
	return b.String()
}

// readChallenge reads what is not encrypted of a challenge, if its security class is known.
func readChallenge(index uint8, b []byte) (nonce, level uint32, text string, err error) {
	if index != rxkad.Index {
		return 0, 0, "", nil
	}
	c, err := rxkad.ParseChallenge(b)
	if err != nil {
		return 0, 0, "", err
	}
	return c.Nonce, uint32(c.Level), fmt.Sprintf("rxkad version %d, nonce %08x, level %v", c.Version, c.Nonce, c.Level), nil
}

// readResponse reads what is not encrypted of a response, if its security class is known.
func readResponse(index uint8, b []byte) (text string, err error) {
	if index != rxkad.Index {
		return "", nil
	}
	version, t, err := rxkad.ParseResponse(b)
	if err != nil {
		return "", err
	}
	kind := fmt.Sprintf("an old ticket for key version %d", t.Version)
	switch t.Version {
	case rxkad.VersionKerberos:
		kind = "a Kerberos ticket"
	case rxkad.VersionEncryptedPart:
		kind = "the encrypted part of a Kerberos ticket"
	}
	return fmt.Sprintf("rxkad version %d, %s of %d bytes", version, kind, len(t.Data)), nil
}
