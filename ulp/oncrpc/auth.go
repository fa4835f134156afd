package oncrpc

import (
	"errors"
	"fmt"

	"urnic/ulp/oncrpc/xdr"
)

// A Flavor is a kind of authentication (RFC 5531 §8.2).
type Flavor uint32

// The flavors of RFC 5531 §8.2 that are in use.
const (
	AuthNone  Flavor = 0
	AuthSys   Flavor = 1
	AuthShort Flavor = 2
	RPCSECGSS Flavor = 6
)

// MaxAuth is how many bytes a credential or a verifier has at most (RFC 5531 §8.2).
const MaxAuth = 400

// An Auth is a credential or a verifier. The zero value is that of AuthNone, whose body
// should be empty (RFC 5531 §10.1).
type Auth struct {
	Flavor Flavor
	Body   []byte
}

func (a *Auth) check() error {
	if len(a.Body) > MaxAuth {
		return fmt.Errorf("oncrpc: a credential or verifier of %d octets: there may be %d (RFC 5531 §8.2)", len(a.Body), MaxAuth)
	}
	return nil
}

func (a *Auth) encode(e *xdr.Encoder) {
	e.Uint32(uint32(a.Flavor))
	e.Opaque(a.Body)
}

func (a *Auth) decode(d *xdr.Decoder) {
	a.Flavor, a.Body = Flavor(d.Uint32()), d.Opaque(MaxAuth)
}

// Bounds of what AUTH_SYS tells (RFC 5531, appendix A).
const (
	MaxMachineName = 255
	MaxGroups      = 16
)

// A Sys is the body of an AUTH_SYS credential: who the caller's machine says that the
// caller is (RFC 5531, appendix A).
type Sys struct {
	Stamp   uint32
	Machine string
	UID     uint32
	GID     uint32
	Groups  []uint32
}

// Auth returns the credential. It returns an error if the name or the list of groups is
// too long.
func (s *Sys) Auth() (Auth, error) {
	if len(s.Machine) > MaxMachineName {
		return Auth{}, fmt.Errorf("oncrpc: a machine's name of %d octets: there may be %d (RFC 5531, appendix A)", len(s.Machine), MaxMachineName)
	}
	if len(s.Groups) > MaxGroups {
		return Auth{}, fmt.Errorf("oncrpc: %d groups: there may be %d (RFC 5531, appendix A)", len(s.Groups), MaxGroups)
	}
	var e xdr.Encoder
	e.Uint32(s.Stamp)
	e.String(s.Machine)
	e.Uint32(s.UID)
	e.Uint32(s.GID)
	e.Uint32(uint32(len(s.Groups)))
	for _, g := range s.Groups {
		e.Uint32(g)
	}
	return Auth{Flavor: AuthSys, Body: e.AppendTo(nil)}, nil
}

// ErrFlavor says that a credential is of another flavor.
var ErrFlavor = errors.New("oncrpc: the credential is of another flavor")

// Sys returns what an AUTH_SYS credential says. It returns ErrFlavor, or an *xdr.Error.
func (a *Auth) Sys() (*Sys, error) {
	if a.Flavor != AuthSys {
		return nil, ErrFlavor
	}
	s := new(Sys)
	if err := s.decode(a.Body); err != nil {
		return nil, err
	}
	return s, nil
}

// decode reads the body of a credential, into memory that s has already where that will
// do.
func (s *Sys) decode(body []byte) error {
	var d xdr.Decoder
	d.Reset(body)
	s.Stamp = d.Uint32()
	if name := d.Opaque(MaxMachineName); string(name) != s.Machine {
		s.Machine = string(name)
	}
	s.UID, s.GID = d.Uint32(), d.Uint32()
	s.Groups = s.Groups[:0]
	for range d.Count(MaxGroups, 4) {
		s.Groups = append(s.Groups, d.Uint32())
	}
	return d.End()
}
