package rxkad

import (
	"encoding/binary"
	"errors"
	"fmt"

	"urnic/ulp/rx/rxkad/krb5"
)

// ErrKeyFile says that a file is no KeyFile or KeyFileExt.
var ErrKeyFile = errors.New("rxkad: not in the form of a file of keys")

// LoadKeyFile adds the keys of an AFS KeyFile: their number, then for each its version
// and 8 bytes of DES key. Whatever follows is ignored: old programs write room for 8 keys.
func (k *Keyring) LoadKeyFile(file []byte) error {
	const record = 4 + len(Key{})
	r := fields{b: file}
	n := r.number()
	if r.bad || uint64(n) > uint64(len(r.b)/record) {
		return fmt.Errorf("%w: %d bytes can't hold the %d keys of a KeyFile", ErrKeyFile, len(file), n)
	}
	var all Keyring
	for range n {
		version := r.number()
		if err := all.AddDES(version, Key(r.take(len(Key{})))); err != nil {
			return err
		}
	}
	k.addAll(&all)
	return nil
}

// The types of keys in a KeyFileExt that are for Kerberos tickets.
const typeKerberos = 2

// LoadKeyFileExt adds the keys of an AFS KeyFileExt: their number, then for each the
// length of the record's head, the type, the version, the encryption type, the length of
// the key, the key. Keys of other types, which rxkad does not use or this package does not
// support, are ignored.
func (k *Keyring) LoadKeyFileExt(file []byte) error {
	const head = 16 // the four numbers up to the encryption type
	r := fields{b: file}
	n := r.number()
	var all Keyring
	for i := uint32(0); i < n && !r.bad; i++ {
		length, kind, version, enctype := r.number(), r.number(), r.number(), r.number()
		r.skip(length - min(length, head)) // fields that later versions of the format add
		key := r.counted()
		if r.bad = r.bad || length < head; r.bad || kind != typeKerberos {
			continue
		}
		if err := all.Add(version, krb5.Enctype(enctype), key); err != nil && !errors.Is(err, krb5.ErrEnctype) {
			return err
		}
	}
	if r.bad {
		return fmt.Errorf("%w: %d bytes can't hold the %d keys of a KeyFileExt", ErrKeyFile, len(file), n)
	}
	k.addAll(&all)
	return nil
}

func (f *fields) number() uint32 { return binary.BigEndian.Uint32(f.take(4)) }

// counted takes bytes that their number stands in front of.
func (f *fields) counted() []byte {
	n := f.number()
	b := f.b
	f.skip(n)
	if f.bad {
		return nil
	}
	return b[:n]
}

func (f *fields) skip(n uint32) {
	if uint64(n) > uint64(len(f.b)) {
		f.bad = true
		return
	}
	f.b = f.b[n:]
}
