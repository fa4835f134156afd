package rxudp_test

import (
	"crypto/rand"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
	"urnic/ulp/rx/rxref"
	"urnic/ulp/rx/rxudp"
	"urnic/ulp/rx/secure"
)

// A realm is a server's keys, and a client's ticket of each kind.
type realm struct {
	keys    *rxkad.Keyring
	tickets map[string]rxkad.Ticket
}

func newRealm(tb testing.TB) *realm {
	tb.Helper()
	r := &realm{keys: new(rxkad.Keyring), tickets: make(map[string]rxkad.Ticket)}
	if err := r.keys.AddDES(2, rxkad.Key{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}); err != nil {
		tb.Fatal(err)
	}
	var aes [32]byte
	rand.Read(aes[:])
	if err := r.keys.Add(1, krb5.AES256, aes[:]); err != nil {
		tb.Fatal(err)
	}
	session, err := rxkad.NewKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	now := time.Now()
	c := rxkad.Contents{Name: "alice", Realm: "example.org", SessionKey: session, Start: now, End: now.Add(time.Hour)}
	for kind, id := range map[string]struct {
		version uint32
		enctype krb5.Enctype
	}{"old": {2, 0}, "Kerberos": {1, krb5.AES256}} {
		ticket, err := r.keys.ForgeWith(id.version, id.enctype, c, rand.Reader)
		if err != nil {
			tb.Fatal(err)
		}
		r.tickets[kind] = ticket
	}
	return r
}

func (r *realm) server(tb testing.TB, least rxkad.Level) secure.Server {
	tb.Helper()
	s, err := rxkad.NewServer(rxkad.ServerConfig{Keys: r.keys, Level: least})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func (r *realm) client(tb testing.TB, kind string, l rxkad.Level) secure.Client {
	tb.Helper()
	c, err := rxkad.NewClient(rxkad.ClientConfig{Ticket: r.tickets[kind], Level: l})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

var levels = []rxkad.Level{rxkad.Clear, rxkad.Auth, rxkad.Crypt}

func TestChecksPassAtEachLevelWithBothTickets(t *testing.T) {
	r := newRealm(t)
	server := open(t, rxudp.Config{Addr: loopback, Services: []rx.Service{
		{ID: rxref.ID, Handler: rxref.Handler(), Security: []secure.Server{r.server(t, rxkad.Clear)}},
	}})
	client := open(t, rxudp.Config{Addr: loopback})
	check := func(name string, s secure.Client, want rxref.Identity) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			conn, err := client.Dial(t.Context(), server.Addr(), rxref.ID, rx.DialConfig{Security: s})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := rxref.NewClient(conn)
			for _, check := range rxref.Checks() {
				if err := check.Run(t.Context(), c); err != nil {
					t.Errorf("%s: %v", check.Name, err)
				}
			}
			who, err := c.WhoAmI(t.Context())
			if err != nil || who.Level != want.Level || who.Name != want.Name || who.Security != want.Security {
				t.Errorf("the server sees %+v, %v", who, err)
			}
		})
	}
	check("null", nil, rxref.Identity{Level: -1})
	for kind := range r.tickets {
		for i, l := range levels {
			check(kind+" "+l.String(), r.client(t, kind, l), rxref.Identity{Security: 2, Level: int32(i), Name: "alice"})
		}
	}
}

func TestServerThatDemandsMoreRefusesLess(t *testing.T) {
	r := newRealm(t)
	server := open(t, rxudp.Config{Addr: loopback, Services: []rx.Service{
		{ID: rxref.ID, Handler: rxref.Handler(), NoNull: true, Security: []secure.Server{r.server(t, rxkad.Crypt)}},
	}})
	client := open(t, rxudp.Config{Addr: loopback})
	null := func(s secure.Client) error {
		conn, err := client.Dial(t.Context(), server.Addr(), rxref.ID, rx.DialConfig{Security: s})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return rxref.NewClient(conn).Null(t.Context())
	}
	wantCode(t, null(nil), -2)
	wantCode(t, null(r.client(t, "old", rxkad.Auth)), 19270402)
	if err := null(r.client(t, "old", rxkad.Crypt)); err != nil {
		t.Error(err)
	}
	stranger := newRealm(t)
	wantCode(t, null(stranger.client(t, "Kerberos", rxkad.Crypt)), 19270407)
}
