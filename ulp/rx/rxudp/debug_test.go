package rxudp_test

import (
	"slices"
	"testing"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxdebug"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxref"
	"urnic/ulp/rx/rxudp"
	"urnic/ulp/rx/secure"
)

// Both sides of a connection tell by debug packets how it is secured, and what was moved.
func TestDebugPacketsTellOfSecurity(t *testing.T) {
	keys := new(rxkad.Keyring)
	if err := keys.AddDES(2, rxkad.Key{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}); err != nil {
		t.Fatal(err)
	}
	kad, err := rxkad.NewServer(rxkad.ServerConfig{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := keys.Forge(rxkad.Contents{Name: "alice"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	alice, err := rxkad.NewClient(rxkad.ClientConfig{Ticket: ticket, Level: rxkad.Crypt})
	if err != nil {
		t.Fatal(err)
	}
	server := open(t, rxudp.Config{Addr: loopback, Services: []rx.Service{{ID: rxref.ID, Handler: rxref.Handler(), Security: []secure.Server{kad}}}})
	client := open(t, rxudp.Config{Addr: loopback})
	conn, err := client.Dial(t.Context(), server.Addr(), rxref.ID, rx.DialConfig{Security: alice})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rxref.NewClient(conn).Put(t.Context(), rxref.How{Length: 10_000}); err != nil {
		t.Fatal(err)
	}
	const request, reply = 4 + 24 + 10_000, 20
	for _, test := range []struct {
		of             *rxudp.Endpoint
		sent, received uint32
		flags          []string
	}{
		{server, reply, request, []string{"authenticated", "packet checksums"}},
		{client, request, reply, []string{"packet checksums"}},
	} {
		c, err := rxdebug.Dial(t.Context(), test.of.Addr(), rxdebug.Config{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Ask(t.Context(), rxdebug.Want{Basic: true, Conns: true, AllConns: true})
		if err != nil || len(r.Conns) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		s := r.Conns[0].Security
		if s == nil || s.Class != "rxkad" || s.Level != "crypt" || s.BytesSent != test.sent || s.BytesReceived != test.received || !slices.Equal(s.Flags, test.flags) {
			t.Errorf("%+v, want %+v", s, test)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
