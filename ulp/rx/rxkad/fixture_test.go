package rxkad_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
	"urnic/ulp/rx/secure"
)

var (
	desKey     = rxkad.Key{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	sessionKey = rxkad.Key{0x13, 0x57, 0x9b, 0xdf, 0x20, 0x46, 0x8a, 0xce}

	now   = time.Date(2023, 11, 14, 23, 0, 0, 0, time.UTC)
	start = time.Unix(1700000000, 0).UTC() // 46 min 40 s before now
	end   = start.Add(10 * time.Hour)

	conn = secure.Conn{Epoch: 0xb8123456, ID: 0x7a10, Index: rxkad.Index, Checksum: true}

	contents = rxkad.Contents{Name: "rxref", Realm: "rx.test", SessionKey: sessionKey, Start: start, End: end}
)

// The key versions of testKeys.
const (
	kerberosVersion = 1
	desVersion      = 2
	aes128Version   = 3
)

func testKeys(tb testing.TB) *rxkad.Keyring {
	tb.Helper()
	keys := new(rxkad.Keyring)
	for _, err := range []error{
		keys.Add(kerberosVersion, krb5.AES256, unhex(tb, "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0")),
		keys.AddDES(desVersion, desKey),
		keys.Add(aes128Version, krb5.AES128, unhex(tb, "00112233445566778899aabbccddeeff")),
	} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return keys
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// ticketKinds are the kinds of tickets, each with a function that makes one.
var ticketKinds = []struct {
	name  string
	make  func(tb testing.TB, keys *rxkad.Keyring, c rxkad.Contents) rxkad.Ticket
	key   uint32
	grace time.Duration
}{
	{"old", func(tb testing.TB, keys *rxkad.Keyring, c rxkad.Contents) rxkad.Ticket {
		return forge(tb, keys, desVersion, 0, c)
	}, desVersion, 15 * time.Minute},
	{"kerberos", func(tb testing.TB, keys *rxkad.Keyring, c rxkad.Contents) rxkad.Ticket {
		return forge(tb, keys, kerberosVersion, krb5.AES256, c)
	}, kerberosVersion, 0},
	{"aes128", func(tb testing.TB, keys *rxkad.Keyring, c rxkad.Contents) rxkad.Ticket {
		return forge(tb, keys, aes128Version, krb5.AES128, c)
	}, aes128Version, 0},
	{"whole", func(tb testing.TB, keys *rxkad.Keyring, c rxkad.Contents) rxkad.Ticket {
		return whole(tb, forge(tb, keys, kerberosVersion, krb5.AES256, c))
	}, kerberosVersion, 0},
}

func forge(tb testing.TB, keys *rxkad.Keyring, version uint32, e krb5.Enctype, c rxkad.Contents) rxkad.Ticket {
	tb.Helper()
	ticket, err := keys.ForgeWith(version, e, c, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return ticket
}

// whole makes a whole Kerberos ticket of an encrypted part.
func whole(tb testing.TB, t rxkad.Ticket) rxkad.Ticket {
	tb.Helper()
	part, err := krb5.ParseEncryptedData(t.Data)
	if err != nil {
		tb.Fatal(err)
	}
	service := krb5.Principal{Type: krb5.TypePrincipal, Components: []string{"afs", "rx.test"}}
	t.Version = rxkad.VersionKerberos
	t.Data = krb5.Ticket{Realm: "RX.TEST", Service: service, Part: part}.Marshal()
	return t
}

func newClient(tb testing.TB, cfg rxkad.ClientConfig, c secure.Conn) secure.ClientConn {
	tb.Helper()
	client, err := rxkad.NewClient(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	cc, err := client.NewConn(c)
	if err != nil {
		tb.Fatal(err)
	}
	return cc
}

// nonces gives the same nonce always.
type nonces byte

func (n nonces) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte{byte(n)}, len(p))), nil
}

func newServer(tb testing.TB, cfg rxkad.ServerConfig, c secure.Conn) secure.ServerConn {
	tb.Helper()
	if cfg.Keys == nil {
		cfg.Keys = testKeys(tb)
	}
	server, err := rxkad.NewServer(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	sc, err := server.NewConn(c)
	if err != nil {
		tb.Fatal(err)
	}
	return sc
}

// response is what the client answers to the server's challenge.
func response(tb testing.TB, client secure.ClientConn, server secure.ServerConn, calls secure.Calls) []byte {
	tb.Helper()
	challenge, err := server.Challenge()
	if err != nil {
		tb.Fatal(err)
	}
	b, err := client.Respond(challenge, calls)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// pair returns both sides of a connection after the handshake.
func pair(tb testing.TB, l rxkad.Level) (secure.ClientConn, secure.ServerConn) {
	tb.Helper()
	keys := testKeys(tb)
	client := newClient(tb, rxkad.ClientConfig{Ticket: forge(tb, keys, kerberosVersion, krb5.AES256, contents), Level: l}, conn)
	server := newServer(tb, rxkad.ServerConfig{Keys: keys}, conn)
	if _, err := server.Verify(response(tb, client, server, secure.Calls{}), now); err != nil {
		tb.Fatal(err)
	}
	return client, server
}

// wantCode checks the abort code of an error.
func wantCode(tb testing.TB, err error, want rxkad.Code) {
	tb.Helper()
	var e secure.Error
	switch {
	case err == nil:
		tb.Errorf("no error, want %d: %s", int32(want), want)
	case !errors.As(err, &e):
		tb.Errorf("%v: no code, want %d", err, int32(want))
	case e.AbortCode() != int32(want):
		tb.Errorf("%v: code %d, want %d: %s", err, e.AbortCode(), int32(want), want)
	}
}

var levels = []rxkad.Level{rxkad.Clear, rxkad.Auth, rxkad.Crypt}
