package rxkad_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
	"urnic/ulp/rx/secure"
)

// verify has a server judge what a client answers to its challenge, after change.
func verify(t *testing.T, cfg rxkad.ServerConfig, ticket rxkad.Ticket, at time.Time, change func(b []byte) []byte) error {
	t.Helper()
	client := newClient(t, rxkad.ClientConfig{Ticket: ticket}, conn)
	server := newServer(t, cfg, conn)
	_, err := server.Verify(change(response(t, client, server, secure.Calls{})), at)
	return err
}

func asItIs(b []byte) []byte { return b }

// Where the fields of a response stand.
const (
	atTicketVersion = 48
	atTicketLength  = 52
	atTicket        = 56
)

func TestEveryAbortCode(t *testing.T) {
	keys := testKeys(t)
	ticket := forge(t, keys, desVersion, 0, contents)
	none := rxkad.ServerConfig{}
	for _, test := range []struct {
		code rxkad.Code
		what string
		err  func(t *testing.T) error
	}{
		{rxkad.CodeInconsistency, "a response without a challenge", func(t *testing.T) error {
			_, err := newServer(t, none, conn).Verify(make([]byte, 100), now)
			return err
		}},
		{rxkad.CodeInconsistency, "a challenge of version 3", func(*testing.T) error {
			_, err := rxkad.ParseChallenge([]byte{0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
			return err
		}},
		{rxkad.CodeInconsistency, "a call number that no response can have", func(t *testing.T) error {
			_, err := newClient(t, rxkad.ClientConfig{Ticket: ticket}, conn).Respond(rxkad.Challenge{Version: 2}.Append(nil), secure.Calls{1 << 31})
			return err
		}},
		{rxkad.CodeInconsistency, "data before the response", func(t *testing.T) error {
			server := newServer(t, none, conn)
			if _, err := server.Open(secure.Packet{Call: 1, Seq: 1}, 1, make([]byte, 100)); err == nil {
				return nil
			}
			_, err := server.Seal(secure.Packet{Call: 1, Seq: 1}, make([]byte, 100), 90)
			return err
		}},
		{rxkad.CodeInconsistency, "no random bytes for the challenge", func(t *testing.T) error {
			_, err := newServer(t, rxkad.ServerConfig{Rand: iotest.ErrReader(errors.New("empty"))}, conn).Challenge()
			return err
		}},
		{rxkad.CodePacketShort, "a challenge cut short", func(*testing.T) error {
			_, err := rxkad.ParseChallenge(make([]byte, 15))
			return err
		}},
		{rxkad.CodePacketShort, "a response cut short", func(t *testing.T) error {
			return verify(t, none, ticket, now, func(b []byte) []byte { return b[:atTicket-1] })
		}},
		{rxkad.CodePacketShort, "a ticket cut short", func(t *testing.T) error {
			return verify(t, none, ticket, now, func(b []byte) []byte { return b[:len(b)-1] })
		}},
		{rxkad.CodeLevelFail, "the server wants more", func(t *testing.T) error {
			_, err := newClient(t, rxkad.ClientConfig{Ticket: ticket, Level: rxkad.Auth}, conn).Respond(rxkad.Challenge{Version: 2, Level: rxkad.Crypt}.Append(nil), secure.Calls{})
			return err
		}},
		{rxkad.CodeLevelFail, "the client does not care what the server wants", func(t *testing.T) error {
			cfg := rxkad.ServerConfig{Keys: keys, Level: rxkad.Auth, Rand: nonces(1)}
			server := newServer(t, cfg, conn)
			if _, err := server.Challenge(); err != nil {
				t.Fatal(err)
			}
			client := newClient(t, rxkad.ClientConfig{Ticket: ticket, Level: rxkad.Clear}, conn)
			b, err := client.Respond(rxkad.Challenge{Version: 2, Nonce: 0x01010101}.Append(nil), secure.Calls{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = server.Verify(b, now)
			return err
		}},
		{rxkad.CodeTicketLength, "a client's ticket too short", func(*testing.T) error {
			_, err := rxkad.NewClient(rxkad.ClientConfig{Ticket: rxkad.Ticket{Data: make([]byte, 31)}})
			return err
		}},
		{rxkad.CodeTicketLength, "a client's ticket too long", func(*testing.T) error {
			_, err := rxkad.NewClient(rxkad.ClientConfig{Ticket: rxkad.Ticket{Data: make([]byte, 12001)}})
			return err
		}},
		{rxkad.CodeTicketLength, "a response that says so of its ticket", func(t *testing.T) error {
			return verify(t, none, ticket, now, func(b []byte) []byte {
				binary.BigEndian.PutUint32(b[atTicketLength:], 31)
				return b
			})
		}},
		{rxkad.CodeTicketLength, "a length that does not fit an int", func(t *testing.T) error {
			return verify(t, none, ticket, now, func(b []byte) []byte {
				binary.BigEndian.PutUint32(b[atTicketLength:], 1<<32-1)
				return b
			})
		}},
		{rxkad.CodeNoAuth, "a ticket of tomorrow", func(t *testing.T) error {
			return verify(t, none, ticket, start.Add(-24*time.Hour), asItIs)
		}},
		{rxkad.CodeBadKey, "a weak key of the service", func(t *testing.T) error {
			weak := new(rxkad.Keyring)
			if err := weak.AddDES(desVersion, rxkad.Key{1, 1, 1, 1, 1, 1, 1, 1}); err != nil {
				t.Fatal(err)
			}
			if _, err := weak.ForgeWith(desVersion, 0, contents, nil); err == nil {
				t.Error("a ticket was made with a weak key")
			}
			return verify(t, rxkad.ServerConfig{Keys: weak}, ticket, now, asItIs)
		}},
		{rxkad.CodeBadTicket, "a changed old ticket", func(t *testing.T) error {
			return verify(t, none, ticket, now, func(b []byte) []byte {
				b[atTicket+5]++
				return b
			})
		}},
		{rxkad.CodeBadTicket, "a changed Kerberos ticket", func(t *testing.T) error {
			return verify(t, none, forge(t, keys, kerberosVersion, krb5.AES256, contents), now, func(b []byte) []byte {
				b[len(b)-1]++
				return b
			})
		}},
		{rxkad.CodeUnknownKey, "a version that the server does not have", func(t *testing.T) error {
			return verify(t, none, ticket, now, func(b []byte) []byte {
				binary.BigEndian.PutUint32(b[atTicketVersion:], 99)
				return b
			})
		}},
		{rxkad.CodeUnknownKey, "no keys", func(t *testing.T) error {
			return verify(t, rxkad.ServerConfig{Keys: new(rxkad.Keyring)}, ticket, now, asItIs)
		}},
		{rxkad.CodeExpired, "an old ticket after its grace", func(t *testing.T) error {
			return verify(t, none, ticket, end.Add(15*time.Minute+1), asItIs)
		}},
		{rxkad.CodeSealed, "a session key other than the ticket's", func(t *testing.T) error {
			other := ticket
			other.SessionKey[3] ^= 2
			return verify(t, none, other, now, asItIs)
		}},
		{rxkad.CodeDataLength, "a buffer that can't hold its data", func(t *testing.T) error {
			client, _ := pair(t, rxkad.Crypt)
			_, err := client.Seal(secure.Packet{Call: 1, Seq: 1}, make([]byte, 16), 9)
			return err
		}},
		{rxkad.CodeIllegalLevel, "a client of level 3", func(*testing.T) error {
			_, err := rxkad.NewClient(rxkad.ClientConfig{Ticket: ticket, Level: 3})
			return err
		}},
		{rxkad.CodeIllegalLevel, "a server of level 3", func(t *testing.T) error {
			_, err := rxkad.NewServer(rxkad.ServerConfig{Keys: keys, Level: 3})
			return err
		}},
		{rxkad.CodeIllegalLevel, "a session of level 3", func(*testing.T) error {
			_, err := rxkad.NewSession(sessionKey, conn, 3)
			return err
		}},
	} {
		t.Run(fmt.Sprintf("%d %s", int32(test.code), test.what), func(t *testing.T) {
			wantCode(t, test.err(t), test.code)
		})
	}
}

func TestCodesAreThoseOfOpenAFS(t *testing.T) {
	// RXKADINCONSISTENCY is the first, RXKADILLEGALLEVEL the last.
	if rxkad.CodeInconsistency != 19270400 || rxkad.CodeIllegalLevel != 19270412 {
		t.Errorf("the codes are %d to %d", rxkad.CodeInconsistency, rxkad.CodeIllegalLevel)
	}
	for c := rxkad.CodeInconsistency; c <= rxkad.CodeIllegalLevel; c++ {
		if strings.HasPrefix(c.String(), "code ") {
			t.Errorf("code %d has no meaning", c)
		}
	}
	for c, want := range map[rxkad.Code]string{0: "code 0", 19270399: "code 19270399", 19270413: "code 19270413", 19270409: "ticket expired"} {
		if c.String() != want {
			t.Errorf("%q, want %q", c, want)
		}
	}
	e := &rxkad.Error{Code: rxkad.CodeExpired}
	if got, want := e.Error(), "rxkad: ticket expired (19270409)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The code tells what to do about a ticket.
func TestTimesOfTickets(t *testing.T) {
	const month = 30 * 24 * time.Hour
	keys := testKeys(t)
	for _, kind := range ticketKinds {
		for _, test := range []struct {
			name       string
			start, end time.Time
			code       rxkad.Code
		}{
			{"valid", start, end, 0},
			{"has just ended", now.Add(-time.Hour), now.Add(-time.Nanosecond).Truncate(time.Second), graceOr(kind.grace, rxkad.CodeExpired)},
			{"has ended before the grace", now.Add(-2 * time.Hour), now.Add(-time.Hour), rxkad.CodeExpired},
			{"begins within the skew", now.Add(15 * time.Minute), now.Add(time.Hour), 0},
			{"begins after the skew", now.Add(15*time.Minute + time.Second), now.Add(time.Hour), rxkad.CodeNoAuth},
			{"begins in more than 30 days", now.Add(month + time.Hour), now.Add(month + 2*time.Hour), rxkad.CodeBadTicket},
			{"30 days", now.Add(-time.Hour), now.Add(-time.Hour + month), 0},
		} {
			says := contents
			says.Start, says.End = test.start, test.end
			err := verify(t, rxkad.ServerConfig{}, kind.make(t, keys, says), now, asItIs)
			t.Run(kind.name+" "+test.name, func(t *testing.T) {
				if test.code != 0 {
					wantCode(t, err, test.code)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
	// An old ticket can't say so.
	says := contents
	says.Start, says.End = now.Add(-time.Hour), now.Add(month)
	err := verify(t, rxkad.ServerConfig{}, forge(t, keys, kerberosVersion, krb5.AES256, says), now, asItIs)
	wantCode(t, err, rxkad.CodeBadTicket)
}

func graceOr(grace time.Duration, code rxkad.Code) rxkad.Code {
	if grace > 0 {
		return 0
	}
	return code
}

// With the right version and the wrong key it is the ticket that is bad.
func TestAKeyOtherThanTheTickets(t *testing.T) {
	keys := testKeys(t)
	for _, kind := range ticketKinds {
		other := new(rxkad.Keyring)
		for _, err := range []error{
			other.Add(kerberosVersion, krb5.AES256, bytes.Repeat([]byte{3}, 32)),
			other.AddDES(desVersion, rxkad.Key{0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10}),
			other.Add(aes128Version, krb5.AES128, bytes.Repeat([]byte{3}, 16)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Run(kind.name, func(t *testing.T) {
			wantCode(t, verify(t, rxkad.ServerConfig{Keys: other}, kind.make(t, keys, contents), now, asItIs), rxkad.CodeBadTicket)
		})
	}
}

// The version of a Kerberos ticket's key is in the ticket.
func TestAKerberosTicketOfAnUnknownKey(t *testing.T) {
	keys := testKeys(t)
	ticket := forge(t, keys, kerberosVersion, krb5.AES256, contents)
	for name, other := range map[string]struct {
		version uint32
		enctype krb5.Enctype
		length  int
	}{
		"another version": {kerberosVersion + 1, krb5.AES256, 32},
		"another type":    {kerberosVersion, krb5.AES128, 16},
	} {
		ring := new(rxkad.Keyring)
		if err := ring.Add(other.version, other.enctype, make([]byte, other.length)); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			wantCode(t, verify(t, rxkad.ServerConfig{Keys: ring}, ticket, now, asItIs), rxkad.CodeUnknownKey)
		})
	}
}

// Whatever bit of the encrypted part is changed, the response is refused.
func TestAChangedResponseIsRefused(t *testing.T) {
	keys := testKeys(t)
	ticket := forge(t, keys, kerberosVersion, krb5.AES256, contents)
	for i := 8; i < atTicketVersion; i++ {
		for bit := range 8 {
			err := verify(t, rxkad.ServerConfig{Keys: keys}, ticket, now, func(b []byte) []byte {
				b[i] ^= 1 << bit
				return b
			})
			if err == nil {
				t.Errorf("bit %d of byte %d may be changed", bit, i)
			}
		}
	}
}

// A level or a call number that no client can have, in a response that is well sealed.
func TestAResponseThatSaysWhatItMayNot(t *testing.T) {
	keys := testKeys(t)
	ticket := forge(t, keys, desVersion, 0, contents)
	for name, test := range map[string]struct {
		word  int
		value uint32
		want  rxkad.Code
	}{
		"level 3":            {11, 3, rxkad.CodeLevelFail},
		"a negative level":   {11, 1<<32 - 1, rxkad.CodeLevelFail},
		"call number 2³¹":    {6, 1 << 31, rxkad.CodeSealed},
		"another checksum":   {4, 0, rxkad.CodeSealed},
		"another nonce":      {10, 0, rxkad.CodeOutOfSequence},
		"another connection": {3, 8, rxkad.CodeSealed},
	} {
		server := newServer(t, rxkad.ServerConfig{Keys: keys, Rand: nonces(5)}, conn)
		client := newClient(t, rxkad.ClientConfig{Ticket: ticket}, conn)
		b := response(t, client, server, secure.Calls{1, 2, 3, 4})
		s, err := rxkad.NewSession(sessionKey, conn, rxkad.Crypt)
		if err != nil {
			t.Fatal(err)
		}
		resealed := s.Reseal(b, func(head []byte) {
			binary.BigEndian.PutUint32(head[4*test.word:], test.value)
			if test.word != 4 {
				binary.BigEndian.PutUint32(head[16:], rxkad.ResponseChecksum(head))
			}
		})
		_, err = server.Verify(resealed, now)
		t.Run(name, func(t *testing.T) { wantCode(t, err, test.want) })
	}
}
