package rxkad_test

import (
	"bytes"
	"testing"

	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
	"urnic/ulp/rx/secure"
)

// What is taken for a challenge is the same after it was made again, but for its last word.
func FuzzChallenge(f *testing.F) {
	f.Add(rxkad.Challenge{Version: 1, Nonce: 1}.Append(nil))
	f.Add(rxkad.Challenge{Version: 2, Nonce: 1, Level: rxkad.Crypt}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := rxkad.ParseChallenge(b)
		if err != nil {
			return
		}
		if again := c.Append(nil); !bytes.Equal(again[:min(len(again), 12)], b[:min(len(again), 12)]) {
			t.Errorf("%x became %x", b, again)
		}
		client := newClient(t, rxkad.ClientConfig{Ticket: rxkad.Ticket{Data: make([]byte, 32)}, Version1: true}, conn)
		if _, err := client.Respond(b, secure.Calls{}); err == nil && c.Level > rxkad.Clear {
			t.Errorf("a client of level clear has answered %+v", c)
		}
	})
}

// A server, and whoever looks at captures, are given responses of any kind.
func FuzzResponse(f *testing.F) {
	keys := testKeys(f)
	for _, kind := range ticketKinds {
		server := newServer(f, rxkad.ServerConfig{Keys: keys, Rand: nonces(1)}, conn)
		client := newClient(f, rxkad.ClientConfig{Ticket: kind.make(f, keys, contents), Level: rxkad.Auth}, conn)
		f.Add(response(f, client, server, secure.Calls{1, 2, 3, 4}), false)
	}
	plain := conn
	plain.Checksum = false
	server := newServer(f, rxkad.ServerConfig{Keys: keys, Rand: nonces(1), Version1: true}, plain)
	client := newClient(f, rxkad.ClientConfig{Ticket: forge(f, keys, desVersion, 0, contents), Version1: true}, plain)
	f.Add(response(f, client, server, secure.Calls{}), true)
	f.Fuzz(func(t *testing.T, b []byte, first bool) {
		c := conn
		c.Checksum = !first
		whole := bytes.Clone(b)
		server := newServer(t, rxkad.ServerConfig{Keys: keys, Rand: nonces(1), Version1: first}, c)
		if _, err := server.Challenge(); err != nil {
			t.Fatal(err)
		}
		calls, err := server.Verify(b, now)
		if ok, _ := server.Authenticated(now); ok != (err == nil) {
			t.Errorf("authenticated: %v, and Verify says %v", ok, err)
		}
		if !bytes.Equal(b, whole) {
			t.Error("the response was changed")
		}
		x, openErr := rxkad.OpenResponse(keys, c, b)
		if err != nil || first {
			return // version 1 may look like version 2
		}
		if openErr != nil || x.Calls != calls {
			t.Errorf("the server takes calls %v, OpenResponse %v", calls, openErr)
		}
		if _, ticket, err := rxkad.ParseResponse(b); err != nil || ticket.Version != x.Ticket.Version {
			t.Errorf("ticket %+v, %v", ticket, err)
		}
	})
}

// A ticket that opens is made again from what it says.
func FuzzTicket(f *testing.F) {
	keys := testKeys(f)
	for _, kind := range ticketKinds {
		ticket := kind.make(f, keys, contents)
		f.Add(ticket.Version, ticket.Data)
	}
	f.Fuzz(func(t *testing.T, version uint32, b []byte) {
		whole := bytes.Clone(b)
		says, _, err := keys.OpenTicket(version, b)
		if err == nil && (says.Name == "" || len(says.Name)+len(says.Instance)+len(says.Realm) > 3*63) {
			t.Errorf("%+v", says)
		}
		if !bytes.Equal(b, whole) {
			t.Error("the ticket was changed")
		}
	})
}

// The plaintext of an old ticket, which a random change of the ticket would not reach.
func FuzzOldTicket(f *testing.F) {
	f.Add(plainTicket(0, "rxref", 12, []byte{0x65, 0x53, 0xf1, 0}, "afs"))
	f.Add(plainTicket(1, "rxref", 255, []byte{0, 0xf1, 0x53, 0x65}, "afs"))
	keys := testKeys(f)
	f.Fuzz(func(t *testing.T, plain []byte) {
		if len(plain) < 25 || len(plain) > 12_000 {
			return
		}
		says, _, err := keys.OpenTicket(desVersion, rxkad.EncryptOld(desKey, bytes.Clone(plain)))
		if err != nil {
			return
		}
		if says.Name == "" || says.Service == "" {
			t.Errorf("%+v", says)
		}
		again, err := keys.ForgeWith(desVersion, 0, says, nil)
		if err != nil {
			return // a lifetime of nothing, or a session key of zeros
		}
		if second, _, err := keys.OpenTicket(desVersion, again.Data); err != nil || says.SessionKey != (rxkad.Key{}) && second != says {
			t.Errorf("%+v became %+v, %v", says, second, err)
		}
	})
}

// Whatever keys come out of a file, tickets can be made with them.
func FuzzKeyFiles(f *testing.F) {
	f.Add(keyFile(1, 2), false)
	f.Add(append(words(1), keyRecord(2, 1, uint32(krb5.AES128), make([]byte, 16))...), true)
	f.Fuzz(func(t *testing.T, b []byte, ext bool) {
		keys := new(rxkad.Keyring)
		load := keys.LoadKeyFile
		if ext {
			load = keys.LoadKeyFileExt
		}
		if err := load(b); err != nil && keys.Len() > 0 {
			t.Errorf("%v, and %d keys", err, keys.Len())
		}
		if 12*keys.Len() > len(b) {
			t.Errorf("%d keys in %d bytes", keys.Len(), len(b))
		}
		keys.Forge(rxkad.Contents{Name: rxkad.Superuser}, nonces(3)) //nolint:errcheck // a weak key makes none
	})
}

// Bodies from the network, at each level: what opens seals to the same bytes.
func FuzzOpen(f *testing.F) {
	for _, level := range levels {
		client, _ := pair(f, level)
		body, checksum := seal(f, client, packet, []byte("some data"))
		f.Add(uint8(level), checksum, body)
	}
	f.Fuzz(func(t *testing.T, level uint8, checksum uint16, b []byte) {
		s, err := rxkad.NewSession(sessionKey, conn, rxkad.Level(level))
		if err != nil {
			return
		}
		body := bytes.Clone(b)
		data, err := s.Open(packet, checksum, body)
		if err != nil {
			return
		}
		if sum := s.SealAsItIs(packet, body, len(data)); sum != checksum || level != uint8(rxkad.Crypt) && !bytes.Equal(body, b) {
			t.Errorf("%x opens to %x and seals to %x", b, data, body)
		}
	})
}
