package krb5

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzParse gives bytes to all parsers. What one takes is the same after it was made again.
func FuzzParse(f *testing.F) {
	for _, p := range parsers {
		f.Add(p.whole)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParseEncTicketPart(b); err == nil {
			again, err := ParseEncTicketPart(p.Marshal())
			if err != nil || !reflect.DeepEqual(normal(again), normal(p)) {
				t.Errorf("%+v became %+v, %v", p, again, err)
			}
		}
		if e, err := ParseEncryptedData(b); err == nil {
			again, err := ParseEncryptedData(e.Marshal())
			if err != nil || again.Enctype != e.Enctype || again.Version != e.Version || !bytes.Equal(again.Cipher, e.Cipher) {
				t.Errorf("%+v became %+v, %v", e, again, err)
			}
		}
		if k, err := ParseTicket(b); err == nil {
			again, err := ParseTicket(k.Marshal())
			if err != nil || again.Realm != k.Realm || !reflect.DeepEqual(again.Service, k.Service) || !bytes.Equal(again.Part.Cipher, k.Part.Cipher) {
				t.Errorf("%+v became %+v, %v", k, again, err)
			}
		}
	})
}

// normal makes no difference between no bytes and an empty slice.
func normal(p EncTicketPart) EncTicketPart {
	p.SessionKey = bytes.Clone(append([]byte{}, p.SessionKey...))
	p.Transited = append([]byte{}, p.Transited...)
	p.Rest = append([]byte{}, p.Rest...)
	return p
}
