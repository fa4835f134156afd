package rxkad_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
	"urnic/ulp/rx/secure"
)

// seal makes the body of a packet as the sender of data does.
func seal(tb testing.TB, c secure.Protection, p secure.Packet, data []byte) (body []byte, checksum uint16) {
	tb.Helper()
	n := max(c.Overhead()+len(data), c.Least())
	if over := n % c.Multiple(); over != 0 {
		n += c.Multiple() - over
	}
	body = make([]byte, n)
	copy(body[c.Overhead():], data)
	checksum, err := c.Seal(p, body, len(data))
	if err != nil {
		tb.Fatal(err)
	}
	return body, checksum
}

func TestHandshakeAtEachLevelWithEachKindOfTicket(t *testing.T) {
	calls := secure.Calls{7, 0, 1 << 31 >> 1, 1<<31 - 1}
	for _, kind := range ticketKinds {
		for _, level := range levels {
			t.Run(fmt.Sprint(kind.name, " ", level), func(t *testing.T) {
				keys := testKeys(t)
				ticket := kind.make(t, keys, contents)
				client := newClient(t, rxkad.ClientConfig{Ticket: ticket, Level: level}, conn)
				server := newServer(t, rxkad.ServerConfig{Keys: keys, Level: level}, conn)
				if ok, err := server.Authenticated(now); ok || err != nil {
					t.Errorf("authenticated before it has responded: %v, %v", ok, err)
				}
				if c := server.Caller(); c != (secure.Caller{}) {
					t.Errorf("the caller is known before it has responded: %+v", c)
				}
				got, err := server.Verify(response(t, client, server, calls), now)
				if err != nil || got != calls {
					t.Fatalf("calls %v, %v; want %v", got, err, calls)
				}
				if ok, err := server.Authenticated(now); !ok || err != nil {
					t.Errorf("not authenticated: %v, %v", ok, err)
				}
				want := secure.Caller{Name: "rxref", Realm: "rx.test", Class: "rxkad", Level: level.String(), Key: kind.key, Expires: end, Verified: true}
				if c := server.Caller(); c != want {
					t.Errorf("caller %+v, want %+v", c, want)
				}
				exchangeData(t, client, server)
				exchangeData(t, server, client)
				for side, want := range map[any]secure.Description{
					client: {Type: 3, Level: uint8(level)},
					server: {Type: 3, Level: uint8(level), Authenticated: true, Expires: end},
				} {
					if got := side.(secure.Describer).Describe(); got != want {
						t.Errorf("described as %+v, want %+v", got, want)
					}
				}
			})
		}
	}
}

// exchangeData sends packets of all lengths that are special.
func exchangeData(t *testing.T, from, to secure.Protection) {
	t.Helper()
	for n := range 20 {
		p := secure.Packet{Call: uint32(n) * 1000, Channel: uint8(n % 4), Seq: uint32(n + 1)}
		data := bytes.Repeat([]byte{byte(n + 1)}, n)
		body, checksum := seal(t, from, p, data)
		if checksum == 0 {
			t.Error("the checksum is 0, which means that there is none")
		}
		got, err := to.Open(p, checksum, body)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: opened %x, %v", n, got, err)
		}
	}
}

func TestIdentityOfAnInstance(t *testing.T) {
	keys := testKeys(t)
	for _, kind := range ticketKinds {
		says := contents
		says.Instance = "admin"
		client := newClient(t, rxkad.ClientConfig{Ticket: kind.make(t, keys, says)}, conn)
		server := newServer(t, rxkad.ServerConfig{Keys: keys}, conn)
		if _, err := server.Verify(response(t, client, server, secure.Calls{}), now); err != nil {
			t.Fatal(err)
		}
		if name := server.Caller().Name; name != "rxref.admin" {
			t.Errorf("%s: name %q", kind.name, name)
		}
	}
}

func TestARepeatedChallengeIsTheSame(t *testing.T) {
	server := newServer(t, rxkad.ServerConfig{Level: rxkad.Auth, Rand: nonces(7)}, conn)
	first, err := server.Challenge()
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{0, 0, 0, 2, 7, 7, 7, 7, 0, 0, 0, 1, 0, 0, 0, 0}
	if again, err := server.Challenge(); err != nil || !bytes.Equal(first, want) || !bytes.Equal(again, want) {
		t.Errorf("challenges %x and %x, %v; want %x", first, again, err, want)
	}
}

func TestChallengesOfTwoConnectionsDiffer(t *testing.T) {
	server, err := rxkad.NewServer(rxkad.ServerConfig{Keys: testKeys(t)})
	if err != nil {
		t.Fatal(err)
	}
	var challenges [2][]byte
	for i := range challenges {
		c, err := server.NewConn(conn)
		if err != nil {
			t.Fatal(err)
		}
		if challenges[i], err = c.Challenge(); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Equal(challenges[0], challenges[1]) {
		t.Errorf("two challenges are %x", challenges[0])
	}
}

// The network may deliver a response twice, and an attacker may send others behind it.
func TestResponsesAfterTheAcceptedOneChangeNothing(t *testing.T) {
	keys := testKeys(t)
	server := newServer(t, rxkad.ServerConfig{Keys: keys}, conn)
	client := newClient(t, rxkad.ClientConfig{Ticket: forge(t, keys, kerberosVersion, krb5.AES256, contents)}, conn)
	calls := secure.Calls{1, 2, 3, 4}
	first := response(t, client, server, calls)
	if _, err := server.Verify(first, now); err != nil {
		t.Fatal(err)
	}
	before := server.Caller()
	for name, again := range map[string][]byte{"the same": first, "rubbish": []byte("rubbish"), "none": nil} {
		if got, err := server.Verify(again, now); err != nil || got != calls || server.Caller() != before {
			t.Errorf("%s: calls %v, %v, caller %+v", name, got, err, server.Caller())
		}
	}
}

func TestAReplayedResponseIsRefused(t *testing.T) {
	keys := testKeys(t)
	ticket := forge(t, keys, kerberosVersion, krb5.AES256, contents)
	recorded := response(t, newClient(t, rxkad.ClientConfig{Ticket: ticket}, conn), newServer(t, rxkad.ServerConfig{Keys: keys, Rand: nonces(1)}, conn), secure.Calls{})

	other := conn
	other.ID += 4
	otherEpoch := conn
	otherEpoch.Epoch++
	otherIndex := conn
	otherIndex.Index++
	for _, test := range []struct {
		name string
		conn secure.Conn
		rand nonces
		want rxkad.Code
	}{
		{"for another challenge", conn, 2, rxkad.CodeOutOfSequence},
		{"on another connection", other, 1, rxkad.CodeSealed},
		{"on a connection with another epoch", otherEpoch, 1, rxkad.CodeSealed},
		{"with another security index", otherIndex, 1, rxkad.CodeSealed},
	} {
		server := newServer(t, rxkad.ServerConfig{Keys: keys, Rand: test.rand}, test.conn)
		if _, err := server.Challenge(); err != nil {
			t.Fatal(err)
		}
		_, err := server.Verify(recorded, now)
		t.Run(test.name, func(t *testing.T) { wantCode(t, err, test.want) })
		if ok, _ := server.Authenticated(now); ok {
			t.Errorf("%s: authenticated", test.name)
		}
	}
}

func TestATicketExpiresWhileItsConnectionLives(t *testing.T) {
	_, server := pair(t, rxkad.Auth)
	for _, test := range []struct {
		at time.Time
		ok bool
	}{{start, true}, {end.Add(-1), true}, {end, false}, {end.Add(time.Hour), false}} {
		ok, err := server.Authenticated(test.at)
		if ok != test.ok {
			t.Errorf("at %v: authenticated %v, want %v", test.at, ok, test.ok)
		}
		if !test.ok {
			wantCode(t, err, rxkad.CodeExpired)
		}
	}
}

func TestATicketWithoutEndStaysValid(t *testing.T) {
	keys := testKeys(t)
	says := contents
	says.Start, says.End = time.Time{}, time.Time{}
	for _, kind := range ticketKinds {
		client := newClient(t, rxkad.ClientConfig{Ticket: kind.make(t, keys, says)}, conn)
		server := newServer(t, rxkad.ServerConfig{Keys: keys}, conn)
		later := now.Add(10 * 365 * 24 * time.Hour)
		if _, err := server.Verify(response(t, client, server, secure.Calls{}), later); err != nil {
			t.Errorf("%s: %v", kind.name, err)
		} else if ok, err := server.Authenticated(later); !ok || err != nil {
			t.Errorf("%s: %v, %v", kind.name, ok, err)
		}
	}
}

// Version 1 knows neither connections nor checksums.
func TestVersion1OfTheProtocol(t *testing.T) {
	plain := conn
	plain.Checksum = false
	for _, level := range levels {
		keys := testKeys(t)
		ticket := forge(t, keys, desVersion, 0, contents)
		client := newClient(t, rxkad.ClientConfig{Ticket: ticket, Level: level, Version1: true}, plain)
		server := newServer(t, rxkad.ServerConfig{Keys: keys, Version1: true, Rand: nonces(9)}, plain)
		challenge, err := server.Challenge()
		if want := []byte{9, 9, 9, 9, 0, 0, 0, 0}; err != nil || !bytes.Equal(challenge, want) {
			t.Fatalf("challenge %x, %v; want %x", challenge, err, want)
		}
		if _, err := server.Verify(response(t, client, server, secure.Calls{}), now); err != nil {
			t.Fatal(err)
		}
		if got := server.Caller().Level; got != level.String() {
			t.Errorf("level %s, want %s", got, level)
		}
		exchangeData(t, client, server)
		exchangeData(t, server, client)

		// Packets may come without a checksum, but not with a wrong one.
		p := secure.Packet{Call: 1, Seq: 1}
		for _, to := range []secure.Protection{client, server} {
			body, checksum := seal(t, client, p, []byte("ping"))
			if data, err := to.Open(p, 0, bytes.Clone(body)); err != nil || string(data) != "ping" {
				t.Errorf("level %s: %q, %v", level, data, err)
			}
			_, err := to.Open(p, checksum^1, bytes.Clone(body))
			wantCode(t, err, rxkad.CodeSealed)
		}
	}
}

func TestVersion1IsForThoseWhoWantIt(t *testing.T) {
	plain := conn
	plain.Checksum = false
	keys := testKeys(t)
	client := newClient(t, rxkad.ClientConfig{Ticket: forge(t, keys, desVersion, 0, contents)}, plain)
	_, err := client.Respond(rxkad.Challenge{Version: 1}.Append(nil), secure.Calls{})
	wantCode(t, err, rxkad.CodePacketShort)

	// The server challenges in version 2, whatever the client's packets look like, and one
	// that has version 1 keeps version 2 for those who have it.
	for _, test := range []struct {
		cfg  rxkad.ServerConfig
		conn secure.Conn
	}{{rxkad.ServerConfig{}, plain}, {rxkad.ServerConfig{Version1: true}, conn}} {
		challenge, err := newServer(t, test.cfg, test.conn).Challenge()
		if c, perr := rxkad.ParseChallenge(challenge); err != nil || perr != nil || c.Version != 2 {
			t.Errorf("%+v: challenge %x, %v, %v", test, challenge, err, perr)
		}
	}
	server := newServer(t, rxkad.ServerConfig{Keys: keys}, plain)
	if _, err := server.Verify(response(t, client, server, secure.Calls{}), now); err != nil {
		t.Fatal(err)
	}
	p := secure.Packet{Call: 1, Seq: 1}
	body, _ := seal(t, client, p, []byte("ping"))
	_, err = server.Open(p, 0, body)
	wantCode(t, err, rxkad.CodeSealed)
}

func TestARecordedExchangeOpensWhateverItsTime(t *testing.T) {
	keys := testKeys(t)
	for _, level := range levels {
		client := newClient(t, rxkad.ClientConfig{Ticket: forge(t, keys, desVersion, 0, contents), Level: level}, conn)
		b := response(t, client, newServer(t, rxkad.ServerConfig{Rand: nonces(3)}, conn), secure.Calls{1, 2, 3, 4})
		version, ticket, err := rxkad.ParseResponse(b)
		if err != nil || version != 2 || ticket.Version != desVersion || ticket.SessionKey != (rxkad.Key{}) {
			t.Errorf("version %d, ticket %+v, %v", version, ticket, err)
		}
		x, err := rxkad.OpenResponse(keys, conn, b)
		if err != nil {
			t.Fatal(err)
		}
		if x.Nonce != 0x03030304 || x.Calls != (secure.Calls{1, 2, 3, 4}) || x.KeyVersion != desVersion || x.Ticket.SessionKey != sessionKey || x.Level() != level {
			t.Errorf("%+v", x)
		}
		p := secure.Packet{Call: 4, Channel: 1, Seq: 9}
		body, checksum := seal(t, client, p, []byte("recorded"))
		if data, err := x.Open(p, checksum, body); err != nil || string(data) != "recorded" {
			t.Errorf("level %s: %q, %v", level, data, err)
		}
	}
}
