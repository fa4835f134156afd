package rxtest

import (
	"crypto/rand"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
	"urnic/ulp/rx/secure"
)

// keys returns a server's keys: one of Kerberos, number 3.
func keys(t testing.TB) *rxkad.Keyring {
	t.Helper()
	k := new(rxkad.Keyring)
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i * 7)
	}
	if err := k.Add(3, krb5.AES256, key); err != nil {
		t.Fatal(err)
	}
	return k
}

// class returns a client's class with a ticket for an hour.
func class(t testing.TB, k *rxkad.Keyring, level rxkad.Level, start time.Time) secure.Client {
	t.Helper()
	session, err := rxkad.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := k.Forge(rxkad.Contents{Name: "caller", Realm: "rx.test", SessionKey: session, Start: start, End: start.Add(time.Hour)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rxkad.NewClient(rxkad.ClientConfig{Ticket: ticket, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// secured returns the services with rxkad.
func secured(t testing.TB, k *rxkad.Keyring, level rxkad.Level) []rx.Service {
	t.Helper()
	s, err := rxkad.NewServer(rxkad.ServerConfig{Keys: k, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	services := Services()
	for i := range services {
		services[i].Security = []secure.Server{s}
	}
	return services
}

func testRxkad(t *testing.T, open Opener) {
	k := keys(t)
	client, server := open(t, secured(t, k, rxkad.Clear))
	for _, level := range []rxkad.Level{rxkad.Clear, rxkad.Auth, rxkad.Crypt} {
		t.Run(level.String(), func(t *testing.T) {
			cfg := rx.DialConfig{Security: class(t, k, level, time.Now())}
			got, err := exchange(within(t), dial(t, client, server, Who, cfg), nil)
			if want := "caller@rx.test rxkad " + level.String() + " true"; err != nil || string(got) != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
			sinks, sources := dial(t, client, server, Sink, cfg), dial(t, client, server, Source, cfg)
			for _, n := range []int{0, 1, 5, 1408, 70_000, 1<<20 + 3} {
				for _, piece := range sizes {
					if err := put(within(t), sinks, n, piece); err != nil {
						t.Errorf("%d bytes to the server: %v", n, err)
					}
					if err := get(within(t), sources, n, piece, piece); err != nil {
						t.Errorf("%d bytes from the server: %v", n, err)
					}
				}
			}
			_, err = exchange(within(t), dial(t, client, server, Fail, cfg), []byte{0, 0, 0, 99})
			wantCode(t, err, 99)
		})
	}
	got, err := exchange(within(t), dial(t, client, server, Who, rx.DialConfig{}), nil)
	if err != nil || string(got) != "@   false" {
		t.Errorf("without a class: %q, %v", got, err)
	}
}

func testBadTicket(t *testing.T, open Opener) {
	k := keys(t)
	client, server := open(t, secured(t, k, rxkad.Auth))
	other := new(rxkad.Keyring)
	if err := other.Add(3, krb5.AES256, make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		class secure.Client
		want  rxkad.Code
	}{
		{"another key", class(t, other, rxkad.Auth, time.Now()), rxkad.CodeBadTicket},
		{"expired", class(t, k, rxkad.Auth, time.Now().Add(-10*time.Hour)), rxkad.CodeExpired},
		{"a level too low", class(t, k, rxkad.Clear, time.Now()), rxkad.CodeLevelFail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := client.Dial(within(t), server.Addr(), Echo, rx.DialConfig{Security: tt.class})
			if err == nil {
				_, err = exchange(within(t), conn, []byte("x"))
				_ = conn.Close()
			}
			wantCode(t, err, int32(tt.want))
		})
	}
}

func testNoNull(t *testing.T, open Opener) {
	k := keys(t)
	services := secured(t, k, rxkad.Clear)
	for i := range services {
		services[i].NoNull = true
	}
	client, server := open(t, services)
	conn, err := client.Dial(within(t), server.Addr(), Echo, rx.DialConfig{})
	if err == nil {
		_, err = exchange(within(t), conn, []byte("x"))
		_ = conn.Close()
	}
	wantCode(t, err, -2)
}
