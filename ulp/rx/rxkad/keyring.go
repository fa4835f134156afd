package rxkad

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"sync"

	"urnic/ulp/rx/rxkad/krb5"
)

// A Keyring holds the keys of a service. The zero Keyring has none. Goroutines may use it
// while keys are added.
type Keyring struct {
	mu   sync.RWMutex
	keys map[keyID]any // a Key for DES, a *krb5.Key otherwise
}

// A keyID names a key. Keys for old tickets have the type 0.
type keyID struct {
	version uint32
	enctype krb5.Enctype
}

// AddDES adds a DES key: a key for old tickets.
func (k *Keyring) AddDES(version uint32, key Key) error {
	if version >= VersionKerberos || version == VersionEncryptedPart {
		return fmt.Errorf("rxkad: DES key with version %d: responses use that number for Kerberos tickets", version)
	}
	k.add(keyID{version, 0}, key)
	return nil
}

// Add adds a key for Kerberos tickets. One of the same version and type is replaced. The
// error wraps [krb5.ErrEnctype] for types that are not supported.
func (k *Keyring) Add(version uint32, e krb5.Enctype, key []byte) error {
	kerberos, err := krb5.NewKey(e, key)
	if err != nil {
		return fmt.Errorf("rxkad: key with version %d: %w", version, err)
	}
	k.add(keyID{version, e}, kerberos)
	return nil
}

func (k *Keyring) add(id keyID, key any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys = make(map[keyID]any)
	}
	k.keys[id] = key
}

// addAll adds the keys of another keyring, which nobody else has.
func (k *Keyring) addAll(other *Keyring) {
	for id, key := range other.keys {
		k.add(id, key)
	}
}

// Len is the number of keys.
func (k *Keyring) Len() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.keys)
}

func (k *Keyring) des(version uint32) (Key, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if key, ok := k.keys[keyID{version, 0}].(Key); ok {
		return key, nil
	}
	return Key{}, fail(CodeUnknownKey, "no DES key with version %d", version)
}

func (k *Keyring) kerberos(version uint32, e krb5.Enctype) (*krb5.Key, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if key, ok := k.keys[keyID{version, e}].(*krb5.Key); ok {
		return key, nil
	}
	return nil, fail(CodeUnknownKey, "no key of type %s with version %d", e, version)
}

// newest returns the key that tickets are best made with: the strongest type, and of it
// the highest version.
func (k *Keyring) newest() (keyID, any, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var best keyID
	var key any
	for id, candidate := range k.keys {
		if key == nil || cmp.Or(cmp.Compare(id.enctype, best.enctype), cmp.Compare(id.version, best.version)) > 0 {
			best, key = id, candidate
		}
	}
	return best, key, key != nil
}

// open opens a ticket of any kind, and returns the version of the key that opened it.
func (k *Keyring) open(version uint32, ticket []byte) (c Contents, key uint32, err error) {
	if len(ticket) < minTicket || len(ticket) > maxTicket {
		return c, 0, fail(CodeTicketLength, "a ticket of %d bytes: they have from %d to %d", len(ticket), minTicket, maxTicket)
	}
	if t := (Ticket{Version: version}); !t.old() {
		return k.openKerberosTicket(version, ticket)
	}
	des, err := k.des(version)
	if err != nil {
		return c, version, err
	}
	c, err = openOldTicket(des, ticket)
	return c, version, err
}

// Forge makes a ticket with the newest key, as the option -localauth of the AFS tools
// does: whoever has the service's keys may call itself anything. [Superuser] is who may
// do everything. A session key is made unless c has one. random may be nil.
//
// The ticket is a Kerberos 5 one, unless the keyring has DES keys only.
func (k *Keyring) Forge(c Contents, random io.Reader) (Ticket, error) {
	id, _, ok := k.newest()
	if !ok {
		return Ticket{}, fmt.Errorf("rxkad: no ticket without keys: load a KeyFile or KeyFileExt, or add a key")
	}
	return k.ForgeWith(id.version, id.enctype, c, random)
}

// ForgeWith is [Keyring.Forge] with a certain key. The type 0 is for DES keys, with which
// old tickets are made.
func (k *Keyring) ForgeWith(version uint32, e krb5.Enctype, c Contents, random io.Reader) (t Ticket, err error) {
	if random == nil {
		random = rand.Reader
	}
	if err := c.checkNames(); err != nil {
		return t, fmt.Errorf("rxkad: no ticket: %w", err)
	}
	if c.SessionKey == (Key{}) {
		if c.SessionKey, err = NewKey(random); err != nil {
			return t, err
		}
	}
	t.SessionKey = c.SessionKey
	if e == 0 {
		des, err := k.des(version)
		if err != nil {
			return t, err
		}
		t.Version = version
		t.Data, err = makeOldTicket(des, &c)
		return t, err
	}
	kerberos, err := k.kerberos(version, e)
	if err != nil {
		return t, err
	}
	t.Version = VersionEncryptedPart
	t.Data, err = makeKerberosTicket(kerberos, version, &c, random)
	return t, err
}

// Superuser is the name that AFS servers trust with everything when it comes without a
// realm.
const Superuser = "afs"
