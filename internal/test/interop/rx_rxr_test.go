//go:build interop

package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxref"
)

// OpenAFS's library serves, and all checks pass at every level with both kinds of tickets.
func TestRxClientAtOpenAFS(t *testing.T) {
	t.Parallel()
	for _, options := range [][]string{nil, {"-nojumbo", "-reach"}, {"-window", "128", "-udpbuf", "1000000"}, {"-mtu", "600"}} {
		for _, s := range rxSecurities {
			if len(options) > 0 && !s.none && (s.old || s.level != rxkad.Crypt) {
				continue
			}
			t.Run(fmt.Sprint(s.name, options), func(t *testing.T) {
				t.Parallel()
				server := rxrServer(t, options...)
				conn := dialRx(t, server, rxref.ID, rx.DialConfig{Security: s.client(t, rxUser())})
				wantIdentity(t, conn, s)
				checkRx(t, conn)
			})
		}
	}
}

// wantIdentity checks who OpenAFS takes us for. For it, what says that a ticket is of Kerberos 5
// is the version of the key.
func wantIdentity(t *testing.T, conn rx.Conn, s rxSecurity) {
	t.Helper()
	want := s.identity()
	if !s.none && !s.old {
		want.KeyVersion = rxkad.VersionEncryptedPart
	}
	got, err := rxref.NewClient(conn).WhoAmI(t.Context())
	got.Expires = min(got.Expires, 1)
	if err != nil || got != want {
		t.Errorf("the server takes us for %+v, %v; want %+v", got, err, want)
	}
}

// OpenAFS's library calls, and finds everything as it should be.
func TestRxServerForOpenAFS(t *testing.T) {
	t.Parallel()
	for _, options := range [][]string{nil, {"-nojumbo"}, {"-window", "128", "-udpbuf", "1000000"}, {"-mtu", "600"}} {
		for _, s := range rxSecurities {
			if len(options) > 0 && !s.none && (s.old || s.level != rxkad.Crypt) {
				continue
			}
			t.Run(fmt.Sprint(s.name, options), func(t *testing.T) {
				t.Parallel()
				server := serveRx(t, "127.0.0.1:0", rxkad.Clear, nil)
				out, err := rxrClient(t, server.Addr(), slices.Concat(options, s.options(), []string{"all"})...)
				if err != nil || strings.Contains(out, "FAILED") {
					t.Errorf("%v\n%s", err, out)
				}
				i := s.identity()
				if want := fmt.Sprintf("index %d level %d kvno %d ", i.Security, i.Level, i.KeyVersion); !strings.Contains(out, want) || !strings.Contains(out, fmt.Sprintf(" name '%s' instance '%s' cell '%s'", i.Name, i.Instance, i.Cell)) {
					t.Errorf("not %q:\n%s", want, out)
				}
			})
		}
	}
}

// A client has proved that it is at its address before it is served.
func TestRxServerThatAsksForSignsOfLife(t *testing.T) {
	t.Parallel()
	server := serveRx(t, "127.0.0.1:0", rxkad.Clear, func(s *rx.Service) { s.Reach = true })
	if out, err := rxrClient(t, server.Addr(), "null", "10", ",", "put", "100000"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Each side drops packets that it should send.
func TestRxOverALossyLibrary(t *testing.T) {
	t.Parallel()
	t.Run("its server", func(t *testing.T) {
		t.Parallel()
		conn := dialRx(t, rxrServer(t, "-drop", "5"), rxref.ID, rx.DialConfig{})
		client := rxref.NewClient(conn)
		for _, how := range []rxref.How{{Length: 1000}, {Length: 2_000_000}} {
			if _, err := client.Put(t.Context(), how); err != nil {
				t.Errorf("put %d: %v", how.Length, err)
			}
			if _, err := client.Get(t.Context(), how); err != nil {
				t.Errorf("get %d: %v", how.Length, err)
			}
		}
	})
	t.Run("its client", func(t *testing.T) {
		t.Parallel()
		server := serveRx(t, "127.0.0.1:0", rxkad.Clear, nil)
		out, err := rxrClient(t, server.Addr(), "-drop", "5", "null", "20", ",", "put", "2000000", ",", "get", "2000000", ",", "both", "500000")
		if err != nil || strings.Count(out, "code 0 ok") != 4 {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// What one side refuses has the same code on both.
func TestRxRefusals(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	expired, early, long := rxUser(), rxUser(), rxUser()
	expired.Start, expired.End = now.Add(-3*time.Hour), now.Add(-2*time.Hour)
	early.Start, early.End = now.Add(time.Hour), now.Add(2*time.Hour)
	long.Start, long.End = now.Add(-time.Hour), now.Add(31*24*time.Hour)
	auth := rxSecurity{level: rxkad.Auth}
	otherKey := []string{"-key", "1:18:" + strings.Repeat("77", 32)}
	otherVersion := []string{"-key", "9:18:" + rxKerberosKey}
	for _, test := range []struct {
		name     string
		security rxSecurity
		says     rxkad.Contents
		server   []string // options of rxr
		client   []string // of rxr, for the same
		least    rxkad.Level
		code     int32
	}{
		{"expired", auth, expired, nil, ticketTimes(expired), 0, int32(rxkad.CodeExpired)},
		{"not valid yet", auth, early, nil, ticketTimes(early), 0, int32(rxkad.CodeNoAuth)},
		{"valid for too long", auth, long, nil, ticketTimes(long), 0, int32(rxkad.CodeBadTicket)},
		{"another key", auth, rxUser(), otherKey, otherKey, 0, int32(rxkad.CodeBadTicket)},
		{"another version", auth, rxUser(), otherVersion, otherVersion, 0, int32(rxkad.CodeUnknownKey)},
		{"level too low", auth, rxUser(), []string{"-level", "crypt"}, nil, rxkad.Crypt, int32(rxkad.CodeLevelFail)},
		{"null security", rxSecurity{none: true}, rxUser(), []string{"-nonull"}, nil, 0, -2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			t.Run("our client", func(t *testing.T) {
				conn := dialRx(t, rxrServer(t, test.server...), rxref.ID, rx.DialConfig{Security: test.security.client(t, test.says)})
				wantAbort(t, rxref.NewClient(conn).Null(t.Context()), test.code)
			})
			t.Run("our server", func(t *testing.T) {
				server := serveRx(t, "127.0.0.1:0", test.least, func(s *rx.Service) { s.NoNull = test.security.none })
				out, err := rxrClient(t, server.Addr(), slices.Concat(test.client, test.security.options(), []string{"null"})...)
				if err == nil || !strings.Contains(out, fmt.Sprintf("code %d ", test.code)) {
					t.Errorf("%v, want code %d\n%s", err, test.code, out)
				}
			})
		})
	}
}

func ticketTimes(c rxkad.Contents) []string {
	return []string{"-start", fmt.Sprint(c.Start.Unix()), "-end", fmt.Sprint(c.End.Unix())}
}

func wantAbort(t *testing.T, err error, want int32) {
	t.Helper()
	if code, ok := rpc.AbortCode(err); !ok || code != want {
		t.Errorf("%v, want code %d", err, want)
	}
}

// Requests that the RPC layer refuses, and services that are not there.
func TestRxCodesOfTheRPCLayer(t *testing.T) {
	t.Parallel()
	ours, theirs := serveRx(t, "127.0.0.1:0", rxkad.Clear, nil).Addr(), rxrServer(t)
	for _, test := range []struct {
		name    string
		service uint16
		request string
		args    []string // of rxr's call
		want    int32
	}{
		{"no opcode", rxref.ID, "", nil, -454},
		{"half an opcode", rxref.ID, "\x00\x00", nil, -454},
		{"unknown opcode", rxref.ID, "\x00\x00\x00\x63", []string{"99"}, -455},
		{"no arguments", rxref.ID, "\x00\x00\x00\x06", []string{"6"}, -453},
		{"half of the arguments", rxref.ID, "\x00\x00\x00\x03\x00\x00", []string{"3", "0000"}, -453},
		{"no such service", 99, "\x00\x00\x00\x01", []string{"1"}, -2},
	} {
		conn := dialRx(t, theirs, test.service, rx.DialConfig{})
		call, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = call.Write([]byte(test.request))
		if err == nil {
			err = call.CloseWrite()
		}
		if err == nil {
			_, err = call.Read(make([]byte, 1))
		}
		t.Run(test.name, func(t *testing.T) { wantAbort(t, err, test.want) })
		_ = call.Close()
		if test.args != nil {
			out, err := rxrClient(t, ours, append([]string{"-service", fmt.Sprint(test.service), "call"}, test.args...)...)
			if err == nil || !strings.Contains(out, fmt.Sprintf("code %d ", test.want)) {
				t.Errorf("%s: %v, want code %d\n%s", test.name, err, test.want, out)
			}
		}
	}
}
