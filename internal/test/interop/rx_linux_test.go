//go:build interop

package interop

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxref"
	"urnic/ulp/rx/rxudp"
)

// rxrpcPort is the port of Linux's server in the guest.
const rxrpcPort = 7077

// TestRxWithLinux has the kernel's AF_RXRPC as the peer, which its program rxrpc uses.
func TestRxWithLinux(t *testing.T) {
	t.Parallel()
	linked(t, func(t *testing.T) {
		theGuest.run(t, "modprobe -a rxrpc des_generic pcbc fcrypt")
		t.Run("our client", linuxServes)
		t.Run("our server", linuxCalls)
		t.Run("upgrade", linuxUpgrades)
		t.Run("kAFS through a relay", kafs)
		t.Run("kAFS at our server", kafsAtOurs)
	})
}

// linuxServes has the kernel serve. It knows old tickets only.
func linuxServes(t *testing.T) {
	p := theGuest.start(t, fmt.Sprintf("exec rxrpc server -p %d", rxrpcPort))
	p.expect("serving")
	server := netip.AddrPortFrom(netip.MustParseAddr(guestIPv4), rxrpcPort)
	// One after the other: the program serves one call at a time, and the kernel gives up those
	// whose request it has not read within a second.
	for _, s := range rxSecurities {
		if !s.none && !s.old {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			checkRx(t, dialRx(t, server, rxref.ID, rx.DialConfig{Security: s.client(t, rxUser())}))
		})
	}
	t.Run("refusals", func(t *testing.T) {
		kerberos := rxSecurity{level: rxkad.Auth}
		conn := dialRx(t, server, rxref.ID, rx.DialConfig{Security: kerberos.client(t, rxUser())})
		wantAbort(t, rxref.NewClient(conn).Null(t.Context()), int32(rxkad.CodeBadTicket))
		conn = dialRx(t, server, rxref.ID+5, rx.DialConfig{})
		wantAbort(t, rxref.NewClient(conn).Null(t.Context()), -2)
	})
	t.Run("more calls than it accepts", func(t *testing.T) {
		for range 4 {
			client := rxref.NewClient(dialRx(t, server, rxref.ID, rx.DialConfig{}))
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for range 5 {
					if _, err := client.Both(t.Context(), rxref.How{Length: 20_000}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	})
	if out := p.end(); strings.Contains(out, "network=") && !strings.Contains(out, "network=0") {
		t.Errorf("calls have failed on the way:\n%s", out)
	}
}

// rxKey is what rxrpc takes as -key.
func rxKey(t *testing.T, s rxSecurity, says rxkad.Contents) string {
	t.Helper()
	ticket := s.ticket(t, says)
	end := says.End
	if end.IsZero() {
		end = time.Now().Add(10 * time.Hour)
	}
	return fmt.Sprintf("%d:%d:%x:%x", ticket.Version, end.Unix(), ticket.SessionKey[:], ticket.Data)
}

// linuxCalls has the kernel call, with tickets of both kinds.
func linuxCalls(t *testing.T) {
	server := serveRx(t, lowerIPv4+":0", rxkad.Clear, nil)
	t.Run("levels", func(t *testing.T) {
		for _, s := range rxSecurities {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				command := fmt.Sprintf("rxrpc client -a %s -p %d", lowerIPv4, server.Addr().Port())
				if !s.none {
					command += fmt.Sprintf(" -sec %s -key %s", s.level, rxKey(t, s, rxUser()))
				}
				for _, what := range []string{"all", "par 10"} {
					if out := theGuest.run(t, command+" "+what); strings.Contains(out, "FAILED") || !strings.Contains(out, "end code=0 ") {
						t.Errorf("%s:\n%s", what, out)
					}
				}
			})
		}
	})
	t.Run("IPv6", func(t *testing.T) {
		server := serveRx(t, "["+lowerIPv6+"]:0", rxkad.Clear, nil)
		theGuest.run(t, fmt.Sprintf("rxrpc client -a %s -p %d all", lowerIPv6, server.Addr().Port()))
	})
	t.Run("refusals", func(t *testing.T) {
		strict := serveRx(t, lowerIPv4+":0", rxkad.Crypt, func(s *rx.Service) { s.NoNull = true })
		for _, test := range []struct {
			options string
			want    int32
		}{
			{"", -2},
			{"-service 99", -2},
		} {
			out, err := theGuest.try(t, fmt.Sprintf("rxrpc client -a %s -p %d %s null", lowerIPv4, strict.Addr().Port(), test.options))
			if err == nil || !strings.Contains(out, fmt.Sprintf("end code=%d ", test.want)) {
				t.Errorf("%q: %v, want code %d\n%s", test.options, err, test.want, out)
			}
		}
	})
}

// linuxUpgrades asks for an upgrade, as kAFS does at servers of AFS.
func linuxUpgrades(t *testing.T) {
	const better = rxref.ID + 1
	services := []rx.Service{
		{ID: rxref.ID, Handler: rxref.Handler(), Upgrade: better},
		{ID: better, Handler: rxref.Handler()},
	}
	server := openRx(t, rxudp.Config{Addr: netip.MustParseAddrPort(lowerIPv4 + ":0"), Services: services})
	theGuest.run(t, fmt.Sprintf("rxrpc client -a %s -p %d -upgrade null 5", lowerIPv4, server.Addr().Port()))
	if n := server.Stats().Upgrades; n != 1 {
		t.Errorf("%d connections were upgraded", n)
	}
}
