//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
	"urnic/ulp/rx/rxref"
	"urnic/ulp/rx/rxudp"
	"urnic/ulp/rx/secure"
)

// The keys that all peers in the lab have.
const (
	rxKerberosVersion = 1
	rxKerberosKey     = "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	rxOldVersion      = 2
	rxOldKey          = "0123456789abcdef"
)

func rxKeys(t *testing.T) *rxkad.Keyring {
	t.Helper()
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	keys := new(rxkad.Keyring)
	if err := keys.Add(rxKerberosVersion, krb5.AES256, unhex(rxKerberosKey)); err != nil {
		t.Fatal(err)
	}
	if err := keys.AddDES(rxOldVersion, rxkad.Key(unhex(rxOldKey))); err != nil {
		t.Fatal(err)
	}
	return keys
}

// An rxSecurity is how a connection may be secured.
type rxSecurity struct {
	name  string
	none  bool
	level rxkad.Level
	old   bool // ticket
}

var rxSecurities = []rxSecurity{
	{name: "null", none: true},
	{name: "clear"},
	{name: "auth", level: rxkad.Auth},
	{name: "crypt", level: rxkad.Crypt},
	{name: "clear, old ticket", old: true},
	{name: "auth, old ticket", level: rxkad.Auth, old: true},
	{name: "crypt, old ticket", level: rxkad.Crypt, old: true},
}

// ticket makes one for a user that is valid now.
func (s rxSecurity) ticket(t *testing.T, says rxkad.Contents) rxkad.Ticket {
	t.Helper()
	version, enctype := uint32(rxKerberosVersion), krb5.AES256
	if s.old {
		version, enctype = rxOldVersion, 0
	}
	ticket, err := rxKeys(t).ForgeWith(version, enctype, says, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// rxUser is the user that tickets are for.
func rxUser() rxkad.Contents {
	now := time.Now().Truncate(time.Second)
	return rxkad.Contents{Name: "rxref", Realm: "rx.test", Start: now.Add(-5 * time.Minute), End: now.Add(10 * time.Hour)}
}

// client returns what a connection is secured with: nil for null security.
func (s rxSecurity) client(t *testing.T, says rxkad.Contents) secure.Client {
	t.Helper()
	if s.none {
		return nil
	}
	c, err := rxkad.NewClient(rxkad.ClientConfig{Ticket: s.ticket(t, says), Level: s.level})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// identity is who our server must take rxUser for. Of the expiry, it says whether there is one.
func (s rxSecurity) identity() rxref.Identity {
	if s.none {
		return rxref.Identity{Level: -1}
	}
	i := rxref.Identity{Security: rxkad.Index, Level: int32(s.level), Expires: 1, KeyVersion: rxKerberosVersion, Name: "rxref", Cell: "rx.test"}
	if s.old {
		i.KeyVersion = rxOldVersion
	}
	return i
}

// options are those of rxr's client.
func (s rxSecurity) options() []string {
	if s.none {
		return nil
	}
	o := []string{"-sec", s.level.String()}
	if s.old {
		o = append(o, "-old")
	}
	return o
}

// openRx opens an endpoint that records what it sends and receives.
func openRx(t *testing.T, cfg rxudp.Config) *rxudp.Endpoint {
	t.Helper()
	f, err := os.CreateTemp(artifacts, strings.NewReplacer("/", "-", " ", "-", ",", "").Replace(t.Name())+"-*.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	w, err := capture.NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Recorder, cfg.Version = w, rxVersion
	if !cfg.Addr.IsValid() {
		cfg.Addr = netip.MustParseAddrPort("127.0.0.1:0")
	}
	e, err := rxudp.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{e.Close(), w.Close(), f.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			t.Logf("recorded in %s; %+v", f.Name(), e.Stats())
		} else if err := os.Remove(f.Name()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// dialRx makes a connection from an endpoint of its own.
func dialRx(t *testing.T, server netip.AddrPort, service uint16, cfg rx.DialConfig) rx.Conn {
	t.Helper()
	var from rxudp.Config
	if !server.Addr().IsLoopback() {
		from.Addr = netip.MustParseAddrPort("0.0.0.0:0")
	}
	c, err := openRx(t, from).Dial(t.Context(), server, service, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serveRx serves the reference service with what change changes of it.
func serveRx(t *testing.T, addr string, least rxkad.Level, change func(*rx.Service)) *rxudp.Endpoint {
	t.Helper()
	s := rx.Service{ID: rxref.ID, Handler: rxref.Handler(), Security: []secure.Server{rxServer(t, least)}}
	if change != nil {
		change(&s)
	}
	return openRx(t, rxudp.Config{Addr: netip.MustParseAddrPort(addr), Services: []rx.Service{s}})
}

// rxServer accepts callers who have a ticket and use a level.
func rxServer(t *testing.T, least rxkad.Level) secure.Server {
	t.Helper()
	s, err := rxkad.NewServer(rxkad.ServerConfig{Keys: rxKeys(t), Level: least})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkRx carries out all checks of the reference service.
func checkRx(t *testing.T, conn rx.Conn) {
	t.Helper()
	client := rxref.NewClient(conn)
	for _, check := range rxref.Checks() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := check.Run(ctx, client); err != nil {
			t.Errorf("%s: %v", check.Name, err)
		}
		cancel()
	}
}

// rxPeers is where lab/build has put what runs on this machine of the peers of Rx.
var rxPeers = sync.OnceValues(func() (string, error) {
	out, err := exec.Command(lab("build"), "--paths").Output()
	if err != nil {
		return "", err
	}
	paths := strings.Split(strings.TrimSpace(string(out)), "\n")
	return paths[len(paths)-1], nil
})

// rxr returns the command that runs the reference peer.
func rxr(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := rxPeers()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(filepath.Join(dir, "rxr"), args...)
}

// rxrServer starts a server of rxr at 127.0.0.1. It ends with the test.
func rxrServer(t *testing.T, options ...string) netip.AddrPort {
	t.Helper()
	for range 3 { // somebody else may take the port
		addr := freeUDP(t)
		if serving(t, rxr(t, append([]string{"server", "-a", addr.Addr().String(), "-p", fmt.Sprint(addr.Port())}, options...)...)) {
			return addr
		}
	}
	t.Fatal("rxr does not serve")
	return netip.AddrPort{}
}

// serving starts a command and waits until it says that it serves.
func serving(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if lines.Scan() && strings.HasPrefix(lines.Text(), "serving") {
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()         // by that signal
		})
		return true
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	t.Logf("%s: %s%s", cmd, lines.Text(), &stderr)
	return false
}

// freeUDP returns a UDP address of 127.0.0.1 that is free.
func freeUDP(t *testing.T) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// rxrClient runs commands of rxr's client against a server, and returns what it prints.
func rxrClient(t *testing.T, server netip.AddrPort, args ...string) (string, error) {
	t.Helper()
	cmd := rxr(t, append([]string{"client", "-a", server.Addr().String(), "-p", fmt.Sprint(server.Port())}, args...)...)
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
